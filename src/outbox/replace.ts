import { SmsError } from '../errors';
import { type Changes, digest, foreverMs, parseRememberedValue, type ReadKey } from '../store/store';
import { type MessageItem, type Outcome, parseOutcome, withMessageId } from './message-item';

/** The latest message with a `replace` key. Stored under the key. */
interface Holder {
  id: string;
  /** True while the message is being sent. Until it waits again, it cannot be replaced or withdrawn. */
  isLeaving?: true;
  /** True after a reset (`msg.reset`), or after the message has ended. */
  isWithdrawn?: true;
  /**
   * True if an older message with the key might still wait again, because it was being sent or another instance has it.
   * If it does, it ends as replaced, even if this message has already ended.
   */
  hasOvertaken?: true;
}

/**
 * Why a message is not sent: a newer input has the `replace` key of the message, or an input with `msg.reset` withdrew
 * the message.
 */
export type Superseding = 'replaced' | 'withdrawn';

/**
 * Time for which the key of an ended message is remembered, in ms, because an older message might still wait again (see
 * {@link Holder.hasOvertaken}). All tries of the older message end within this time.
 */
const overtakenMs = 7 * 24 * 3_600_000;

/** Returns the store key for a `replace` key of a node. */
export function replaceKeyOf(node: string, key: string): string {
  return `replace:${digest(node, key)}`;
}

/**
 * Stores a new message under its `replace` key. If an older message had the key and must end, returns its id and the
 * reason. The older message might belong to another instance.
 *
 * @param isHere returns whether this process has the message with an id
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

/** Notes under the `replace` key that the message is being sent, or that it waits again. */
export function noteLeaving(item: MessageItem, isLeaving: boolean, readKey: ReadKey, changes: Changes): void {
  const key = keyOf(item);
  if (key === undefined) return;
  const current = readHolder(key, readKey);
  // A message that waits again notes nothing if a newer message has the key, or if the key cannot be read because the
  // store fails. In the second case, `isLeaving` stays set, which does not prevent a later replacement.
  if (!isLeaving && current?.id !== item.id) return;
  const { hasOvertaken } = current ?? {};
  const holder = { id: item.id, ...(isLeaving && { isLeaving: true as const }), ...(hasOvertaken && { hasOvertaken }) };
  write(key, holder, item.arrivedAt, changes);
}

/**
 * Notes under a `replace` key that `msg.reset` withdrew the message with this key. Used if this process cannot end the
 * message now: another instance has it, or it is being sent.
 */
export function noteWithdrawn(key: string, now: number, readKey: ReadKey, changes: Changes): void {
  const holder = readHolder(key, readKey);
  if (holder) write(key, { ...holder, isWithdrawn: true }, now, changes);
}

/**
 * Frees the `replace` key of a message that has ended, with two exceptions:
 *
 * - If a newer message has the key, nothing changes.
 * - If an older message might still wait again ({@link Holder.hasOvertaken}), the key is remembered for
 *   {@link overtakenMs}. The older message then ends as replaced.
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
