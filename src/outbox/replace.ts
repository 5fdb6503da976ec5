import { SmsError } from '../errors';
import { type Changes, digest, foreverMs, parseRememberedValue, type ReadKey } from '../store/store';
import { type MessageItem, type Outcome, parseOutcome, withMessageId } from './message-item';

/** The latest message with a `replace` key. It waits, or is being sent. */
interface Holder {
  id: string;
  /** True if the message is being sent. It cannot be replaced or withdrawn unless it waits again. */
  isLeaving?: true;
  /** True after a reset, or after the message has ended. */
  isWithdrawn?: true;
  /**
   * True if the message replaced an older message that might wait again, because that message was being sent or belongs
   * to another instance. The older message then ends as replaced, even after the end of this message.
   */
  hasOvertaken?: true;
}

/** Why a message is not sent: a newer input has the same key, or a reset withdrew it. */
export type Superseding = 'replaced' | 'withdrawn';

/** Time for which the key remembers an overtaken message, in ms. The tries of that message end within this time. */
const overtakenMs = 7 * 24 * 3_600_000;

/** Returns the store key for a `replace` key of a node. */
export function replaceKeyOf(node: string, key: string): string {
  return `replace:${digest(node, key)}`;
}

/**
 * Stores a new message as the holder of its `replace` key. Returns the id of the older message, and why it must end.
 * The older message might belong to another instance.
 *
 * @param isHere returns whether this process has a message, so that the same commit ends it
 */
export function takeKey(
  item: MessageItem,
  readKey: ReadKey,
  changes: Changes,
  isHere: (id: string) => boolean,
): { id: string; why: Superseding } | undefined {
  const key = keyOf(item);
  if (key === undefined) return undefined;
  const older = readHolder(key, readKey);
  const { isLeaving = false, isWithdrawn = false, hasOvertaken } = older ?? {};
  const isElsewhere = older !== undefined && !isHere(older.id);
  const mayComeBack = isLeaving || hasOvertaken || isElsewhere;
  write(key, { id: item.id, ...(mayComeBack && { hasOvertaken: true }) }, item.arrivedAt, changes);
  if (!older || isLeaving) return undefined;
  return { id: older.id, why: isWithdrawn ? 'withdrawn' : 'replaced' };
}

/** Returns why a waiting message must not be sent, or `undefined` if it can be sent. */
export function readSuperseding(item: MessageItem, readKey: ReadKey): Superseding | undefined {
  const key = keyOf(item);
  const holder = key === undefined ? undefined : readHolder(key, readKey);
  if (!holder) return undefined;
  if (holder.id !== item.id) return 'replaced';
  return holder.isWithdrawn ? 'withdrawn' : undefined;
}

/** Notes that a message is being sent, or waits again. */
export function noteLeaving(item: MessageItem, isLeaving: boolean, readKey: ReadKey, changes: Changes): void {
  const key = keyOf(item);
  if (key === undefined) return;
  const current = readHolder(key, readKey);
  // While the store fails, the key cannot be read. The key then still says that the message is being sent, which is
  // safe.
  if (!isLeaving && current?.id !== item.id) return;
  const { hasOvertaken } = current ?? {};
  const holder = { id: item.id, ...(isLeaving && { isLeaving: true as const }), ...(hasOvertaken && { hasOvertaken }) };
  write(key, holder, item.arrivedAt, changes);
}

/** Notes a reset for a message that another instance has, or that is being sent. */
export function noteWithdrawn(key: string, now: number, readKey: ReadKey, changes: Changes): void {
  const holder = readHolder(key, readKey);
  if (holder) write(key, { ...holder, isWithdrawn: true }, now, changes);
}

/**
 * Frees the key of a message that has ended. The key stays if a newer message has it, or if an older message must still
 * learn that it was replaced.
 */
export function releaseKey(item: MessageItem, now: number, readKey: ReadKey, changes: Changes): void {
  const key = keyOf(item);
  const holder = key === undefined ? undefined : readHolder(key, readKey);
  if (key === undefined || holder?.id !== item.id) return;
  if (holder.hasOvertaken) {
    const ended = JSON.stringify({ ...holder, isWithdrawn: true } satisfies Holder);
    changes.remember.set(key, { at: now, forMs: overtakenMs, value: ended });
  } else changes.remember.set(key, undefined);
}

/**
 * Creates the outcome of a replaced or withdrawn message. If the service might have accepted an earlier try, the
 * outcome stays unknown.
 */
export function createSuperseded(item: MessageItem, why: Superseding): Outcome {
  const { previousAttempt } = item;
  return withMessageId(previousAttempt ? parseOutcome(previousAttempt.outcome) : createError(why), item);
}

function createError(why: Superseding): SmsError {
  return why === 'replaced' ? new SmsError('replaced') : new SmsError('withdrawn');
}

function keyOf({ node, options: { keep, replaceKey } }: MessageItem): string | undefined {
  return keep === undefined || replaceKey === undefined ? undefined : replaceKeyOf(node, replaceKey);
}

/** Returns the latest message with a key. */
export function readHolder(key: string, readKey: ReadKey): Holder | undefined {
  return parseRememberedValue(readKey(key), isHolder);
}

function write(key: string, holder: Holder, at: number, changes: Changes): void {
  changes.remember.set(key, { at, forMs: foreverMs, value: JSON.stringify(holder) });
}

function isHolder(value: unknown): value is Holder {
  return typeof Object(value).id === 'string';
}
