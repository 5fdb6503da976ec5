import { type Changes, type Duration, digest, foreverMs, parseRememberedValue, type ReadKey } from '../store/store';
import {
  formatOutcome,
  isAccepted,
  isKept,
  isSuperseded,
  isUnknown,
  type MessageItem,
  type Outcome,
  type StoredOutcome,
} from './message-item';

/** The result of checking a deduplication key. */
export type OnceVerdict =
  | { type: 'new' }
  /** A message with another body or other recipients has the key. */
  | { type: 'taken' }
  /** The message `id` has the key, but no outcome yet. */
  | { type: 'underway'; id: string }
  /**
   * The message with the key has ended with one of these outcomes: the service accepted at least one recipient, the
   * message was replaced or withdrawn, or the outcome is unknown.
   */
  | { type: 'ended'; outcome: StoredOutcome };

interface Guard {
  fingerprint: string;
  id: string;
  outcome?: StoredOutcome;
  /** Time from the outcome until another message can use the key, in ms. Absent: until the stored value expires. */
  freeAfterMs?: number;
  /** Set if the store from before a change of the login or the store might still have a reservation of the key. */
  inFormerStore?: true;
}

/** The time and the settings of a step that changes deduplication keys. */
export interface KeyMemory {
  now: number;
  /** Returns for how long a key is remembered after the outcome, in ms. */
  dedupeMs(): number;
  /**
   * An id that is higher than the ids of all messages found in the store. A message with a lower id might have been
   * imported.
   */
  maxFoundId: string;
}

/**
 * Time in ms, used for two purposes:
 *
 * - A key stays reserved for this time after its message has stopped waiting. If the outcome is lost, the key then
 *   becomes free.
 * - If a former store might still have a reservation of a key that is free now, this store remembers the key for this
 *   time. If a user changes back to the former login within this time, the import overwrites the outdated reservation.
 */
const maxEndMs = 30 * 24 * 3_600_000;

/** Time within which duplicates at other instances notice that the first message was replaced or withdrawn, in ms. */
const supersededMs = 60_000;

/** Prefix of all stored deduplication keys. */
const oncePrefix = 'once:';

/**
 * Returns the store key of the deduplication key, or no key if the message has none. Different nodes never share a key.
 */
export function keysOfOnce({ node, options }: Pick<MessageItem, 'node' | 'options'>): string[] {
  return options.once === undefined ? [] : [`${oncePrefix}${digest(node, options.once)}`];
}

/**
 * Checks whether a message can be sent under its deduplication key. If the message has `retryUncertain`, it can be sent
 * even if the outcome of an earlier message with the key is unknown.
 */
export function judgeOnce(
  item: MessageItem,
  { readKey, now, firstId }: { readKey: ReadKey; now: number; firstId?: string | undefined },
): OnceVerdict {
  const guard = read(item, readKey, now);
  if (!guard || guard.isFree || guard.id === item.id) return { type: 'new' };
  // A replaced or withdrawn message does not block its key, so a message that arrives later is sent. A duplicate that
  // was already waiting for the earlier message ends with the outcome of that message.
  if (guard.outcome && isSuperseded(guard.outcome) && guard.id !== firstId) return { type: 'new' };
  if (guard.fingerprint !== fingerprintOf(item)) return { type: 'taken' };
  if (!guard.outcome) return { type: 'underway', id: guard.id };
  if ('error' in guard.outcome && !isSuperseded(guard.outcome) && item.options.retryUncertain) return { type: 'new' };
  return { type: 'ended', outcome: guard.outcome };
}

/** Reserves the deduplication key until the message has an outcome. */
export function guard(item: MessageItem, readKey: ReadKey, changes: Changes, { now: at, dedupeMs }: KeyMemory): void {
  const waitMs = isKept(item) ? (item.options.keep?.expireMs ?? foreverMs) : 0;
  const aheadMs = Math.max(0, (item.options.at?.time ?? at) - at);
  const forMs = Math.max(dedupeMs(), aheadMs + waitMs + maxEndMs);
  const { inFormerStore } = read(item, readKey, at) ?? {};
  write(item, createGuard(item, inFormerStore), changes, { at, forMs });
}

/**
 * Reserves the deduplication key again when a message is sent again. Does nothing if the message no longer has the key.
 */
export function guardAgain(item: MessageItem, readKey: ReadKey, changes: Changes, memory: KeyMemory): void {
  const current = read(item, readKey, memory.now);
  if (current?.id === item.id && !current.isFree) guard(item, readKey, changes, memory);
}

/**
 * Stores the outcome under the deduplication key. If the service accepted no recipient, the key becomes free, unless
 * another message has it by now.
 */
export function noteOutcome(
  item: MessageItem,
  outcome: Outcome,
  { readKey, changes }: { readKey: ReadKey; changes: Changes },
  { now: at, dedupeMs, maxFoundId }: KeyMemory,
): void {
  const [key] = keysOfOnce(item);
  if (key === undefined) return;
  const current = read(item, readKey, at);
  const mayBeInFormerStore = item.id < maxFoundId || current?.inFormerStore;
  const value = createGuard(item, mayBeInFormerStore);
  const storedOutcome = formatOutcome(outcome);
  if (isSuperseded(storedOutcome)) {
    const forMs = mayBeInFormerStore ? maxEndMs : supersededMs;
    write(item, { ...value, outcome: storedOutcome }, changes, { at, forMs });
  } else if (!isAccepted(outcome) && !isUnknown(outcome)) {
    if (current && !current.isFree && current.id !== item.id) return;
    if (mayBeInFormerStore) write(item, { ...value, freeAfterMs: 0 }, changes, { at, forMs: maxEndMs });
    else changes.remember.set(key, undefined);
  } else {
    const freeAfterMs = dedupeMs();
    const forMs = mayBeInFormerStore ? Math.max(freeAfterMs, maxEndMs) : freeAfterMs;
    write(item, { ...value, outcome: storedOutcome, freeAfterMs }, changes, { at, forMs });
  }
}

function createGuard(item: MessageItem, mayBeInFormerStore = false): Guard {
  return { fingerprint: fingerprintOf(item), id: item.id, ...(mayBeInFormerStore && { inFormerStore: true }) };
}

function write(item: MessageItem, value: Guard, changes: Changes, duration: Duration): void {
  const [key] = keysOfOnce(item);
  if (key !== undefined) changes.remember.set(key, { ...duration, value: JSON.stringify(value) });
}

/** Reads the value under the deduplication key. `isFree`: another message can use the key. */
function read(item: MessageItem, readKey: ReadKey, now: number): (Guard & { isFree: boolean }) | undefined {
  const [key] = keysOfOnce(item);
  const remembered = key === undefined ? undefined : readKey(key);
  if (!remembered || remembered.at + remembered.forMs <= now) return undefined;
  const guard = parseRememberedValue(remembered, isGuard);
  const { freeAfterMs = Number.POSITIVE_INFINITY } = guard ?? {};
  return guard && { ...guard, isFree: remembered.at + freeAfterMs <= now };
}

function isGuard(value: unknown): value is Guard {
  const { fingerprint, id, outcome } = Object(value) as Partial<Record<keyof Guard, unknown>>;
  const isOutcome = outcome === undefined || 'sent' in Object(outcome) || 'error' in Object(outcome);
  return typeof fingerprint === 'string' && typeof id === 'string' && isOutcome;
}

/** Returns a digest of the body and the recipients. The order of the recipients makes no difference. */
function fingerprintOf({ message, originalBody = message.body }: MessageItem): string {
  return digest(originalBody, [...message.to].sort());
}
