import { type Changes, type Duration, digest, foreverMs, type Look, parseRememberedValue } from '../store/store';
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
  /** The first message was accepted for a recipient, or its outcome is unknown. */
  | { type: 'ended'; outcome: StoredOutcome };

interface Guard {
  fingerprint: string;
  id: string;
  outcome?: StoredOutcome;
}

/** The current time, and the time for which a key is remembered after the outcome, in ms. */
export interface KeyMemory {
  now: number;
  dedupeMs(): number;
}

/**
 * Maximum time from the last wait of a message to its outcome. If the outcome is lost, the key becomes free after this
 * time.
 */
const maxEndMs = 30 * 24 * 3_600_000;

/** Time within which duplicates at other instances notice that the first message was replaced or withdrawn. */
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
 * Checks whether a message can be sent under its deduplication key. If the node allows it, a message with an unknown
 * outcome can be sent again.
 */
export function judgeOnce(
  text: MessageItem,
  { look, now, firstId }: { look: Look; now: number; firstId?: string | undefined },
): OnceVerdict {
  const guard = read(text, look, now);
  if (!guard || guard.id === text.id) return { type: 'new' };
  if (guard.fingerprint !== fingerprintOf(text)) return { type: 'taken' };
  if (!guard.outcome) return { type: 'underway', id: guard.id };
  // Duplicates that waited for a replaced or withdrawn message end with its outcome. A later input is sent.
  if (isSuperseded(guard.outcome) && guard.id !== firstId) return { type: 'new' };
  if ('error' in guard.outcome && !isSuperseded(guard.outcome) && text.options.retryUncertain) return { type: 'new' };
  return { type: 'ended', outcome: guard.outcome };
}

/** Reserves the deduplication key until the message has an outcome. */
export function guard(text: MessageItem, changes: Changes, { now: at, dedupeMs }: KeyMemory): void {
  if (text.options.once === undefined) return;
  const waitMs = isKept(text) ? (text.options.keep?.expireMs ?? foreverMs) : 0;
  const aheadMs = Math.max(0, (text.options.at?.time ?? at) - at);
  const forMs = Math.max(dedupeMs(), aheadMs + waitMs + maxEndMs);
  write(text, { fingerprint: fingerprintOf(text), id: text.id }, changes, { at, forMs });
}

/** Reserves the key again for a message that is sent again, unless another message has the key by now. */
export function guardAgain(text: MessageItem, look: Look, changes: Changes, memory: KeyMemory): void {
  if (read(text, look, memory.now)?.id === text.id) guard(text, changes, memory);
}

/**
 * Stores the outcome under the deduplication key. If the service accepted no recipient, the key becomes free, unless
 * another message has it by now.
 */
export function noteOutcome(
  text: MessageItem,
  outcome: Outcome,
  { look, changes }: { look: Look; changes: Changes },
  { now: at, dedupeMs }: KeyMemory,
): void {
  const [key] = keysOfOnce(text);
  if (key === undefined) return;
  const noted = { fingerprint: fingerprintOf(text), id: text.id, outcome: formatOutcome(outcome) };
  if (isSuperseded(noted.outcome)) write(text, noted, changes, { at, forMs: supersededMs });
  else if (!isAccepted(outcome) && !isUnknown(outcome)) {
    const { id } = read(text, look, at) ?? text;
    if (id === text.id) changes.remember.set(key, undefined);
  } else {
    write(text, noted, changes, { at, forMs: dedupeMs() });
  }
}

function write(text: MessageItem, value: Guard, changes: Changes, duration: Duration): void {
  const [key] = keysOfOnce(text);
  if (key !== undefined) changes.remember.set(key, { ...duration, value: JSON.stringify(value) });
}

function read(text: MessageItem, look: Look, now: number): Guard | undefined {
  const [key] = keysOfOnce(text);
  const remembered = key === undefined ? undefined : look(key);
  if (!remembered || remembered.at + remembered.forMs <= now) return undefined;
  return parseRememberedValue(remembered, isGuard);
}

function isGuard(value: unknown): value is Guard {
  const { fingerprint, id, outcome } = Object(value) as Partial<Record<keyof Guard, unknown>>;
  const isOutcome = outcome === undefined || 'sent' in Object(outcome) || 'error' in Object(outcome);
  return typeof fingerprint === 'string' && typeof id === 'string' && isOutcome;
}

/** Returns a digest that is equal for the same body and recipients, in any order. */
function fingerprintOf({ message, originalBody = message.body }: MessageItem): string {
  return digest(originalBody, [...message.to].sort());
}
