import { SmsError } from '../errors';
import { type Changes, digest, foreverMs, type Look, parseRememberedValue } from '../store/store';
import { type Outcome, parseOutcome, type Text, withMessageId } from './text';

/** The latest message with a key of `replace`: it waits, or has started to leave. */
interface Holder {
  id: string;
  /** The message has started to leave: it cannot be replaced or withdrawn unless it waits again. */
  isLeaving?: true;
  /** A reset has come. */
  isWithdrawn?: true;
  /** The message replaced one that had started to leave, and that learns of it if it waits again. */
  hasOvertaken?: true;
}

/** Why a message is not sent: a newer input has its key, or a reset came. */
export type Superseding = 'replaced' | 'withdrawn';

/** An overtaken message is not tried for longer. */
const overtakenMs = 7 * 24 * 3_600_000;

/** The key in the store. It is one for each node and key of `replace`. */
export function replaceKeyOf(node: string, key: string): string {
  return `replace:${digest(node, key)}`;
}

/** Makes a new message the one with its key. Returns the id of the message that it replaces, which may be at another instance. */
export function takeKey(text: Text, look: Look, changes: Changes): string | undefined {
  const key = keyOf(text);
  if (key === undefined) return undefined;
  const former = read(key, look);
  const { isLeaving = false, isWithdrawn = false, hasOvertaken } = former ?? {};
  const mayComeBack = isLeaving || hasOvertaken;
  write(key, { id: text.id, ...(mayComeBack && { hasOvertaken: true }) }, text.arrivedAt, changes);
  return isLeaving || isWithdrawn ? undefined : former?.id;
}

/** Says whether a message that waits may not be sent any longer, and why. */
export function readSuperseding(text: Text, look: Look): Superseding | undefined {
  const key = keyOf(text);
  const holder = key === undefined ? undefined : read(key, look);
  if (!holder) return undefined;
  if (holder.id !== text.id) return 'replaced';
  return holder.isWithdrawn ? 'withdrawn' : undefined;
}

/** Notes that a message has started to leave, or that it waits again. */
export function noteLeaving(text: Text, isLeaving: boolean, look: Look, changes: Changes): void {
  const key = keyOf(text);
  if (key === undefined) return;
  const { hasOvertaken } = read(key, look) ?? {};
  const holder = { id: text.id, ...(isLeaving && { isLeaving: true as const }), ...(hasOvertaken && { hasOvertaken }) };
  write(key, holder, text.arrivedAt, changes);
}

/** Notes that a reset has come for a message that is at another instance, or has started to leave. */
export function noteWithdrawn(key: string, now: number, look: Look, changes: Changes): void {
  const holder = read(key, look);
  if (holder) write(key, { ...holder, isWithdrawn: true }, now, changes);
}

/** The id of the message that a reset withdraws, if any; `isLeaving`: it has started to leave. */
export function readHolder(key: string, look: Look): Holder | undefined {
  return read(key, look);
}

/** A message has ended: its key is free, unless a newer message has it, or an older one has to learn that it was overtaken. */
export function releaseKey(text: Text, now: number, look: Look, changes: Changes): void {
  const key = keyOf(text);
  const holder = key === undefined ? undefined : read(key, look);
  if (key === undefined || holder?.id !== text.id) return;
  if (holder.hasOvertaken) {
    const ended = JSON.stringify({ ...holder, isWithdrawn: true } satisfies Holder);
    changes.remember.set(key, { at: now, forMs: overtakenMs, value: ended });
  } else changes.remember.set(key, undefined);
}

/** The outcome of a message that was replaced or withdrawn. An earlier try may have been accepted: then its outcome stays unknown. */
export function createSuperseded(text: Text, why: Superseding): Outcome {
  const { previousAttempt } = text;
  return withMessageId(previousAttempt ? parseOutcome(previousAttempt.outcome) : createError(why), text);
}

function createError(why: Superseding): SmsError {
  return why === 'replaced' ? new SmsError('replaced') : new SmsError('withdrawn');
}

function keyOf({ node, options: { keep, replaceKey } }: Text): string | undefined {
  return keep === undefined || replaceKey === undefined ? undefined : replaceKeyOf(node, replaceKey);
}

function read(key: string, look: Look): Holder | undefined {
  return parseRememberedValue(look(key), isHolder);
}

function write(key: string, holder: Holder, at: number, changes: Changes): void {
  changes.remember.set(key, { at, forMs: foreverMs, value: JSON.stringify(holder) });
}

function isHolder(value: unknown): value is Holder {
  return typeof Object(value).id === 'string';
}
