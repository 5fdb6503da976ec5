import type { Random } from './random';

/** An outgoing message in a plan, with its options of `sms-send`. */
export interface OrderPlan {
  type: 'order';
  process: number;
  /** Index of the sending node. */
  sender: number;
  count: number;
  /** Last digits of the handsets. */
  to: number[];
  /** Number of the deduplication key. A node sends only one message with the same key. */
  key?: number;
  /**
   * Number of the `replace` key. While this message waits, its node can replace it with a newer stored message that has
   * the same key.
   */
  replaceKey?: number;
  /** Present for a question. `again`: after an unclear reply, the node sends a second message. */
  ask?: { again: boolean };
  keep: boolean;
  /** Time until the message expires, in ms. 0: never. */
  expireMs: number;
  hasOwnId: boolean;
  retries: number;
  retryUncertain: boolean;
  resolveMs: number;
  remember: boolean;
  /** How long to wait for a reply, in ms. 0: no reply request. */
  waitMs: number;
  /** How long to wait for statuses before the report, in ms. Absent: no report. */
  reportMs?: number;
  priority: number;
  unlimited: boolean;
  /** Consent and quiet hours do not apply. */
  essential?: true;
  /** Time from the arrival of the flow message until the outgoing message may leave, in ms (option `at`). */
  inMs?: number;
  /**
   * Time from the acceptance of the message until each handset sends its only reply, in ms. Absent: each handset sends
   * up to two replies within 20 s.
   */
  replyMs?: number;
}

/** A flow message with `msg.reset`. It withdraws the stored message of its node that has this `replace` key. */
export interface ResetPlan {
  type: 'reset';
  process: number;
  sender: number;
  replaceKey: number;
}

/** The settings of a plan that concern outgoing messages. */
export interface OutgoingPlan {
  /** Ids of the sending nodes. */
  senders: string[];
  limits?: { perHandset?: number; perHandsetMs: number; perDay?: number };
  /** True if the feed shows each message with its id, false if the service gives the feed entries different ids. */
  feedKnows: boolean;
  /** Value of `Retry-After` in answers with the status 429 or 503, in seconds. Absent: no such header. */
  retryAfterS?: number;
  /** Present if consent applies. `quietMinute`: minute of the run (from 0) in which no message may leave. */
  consent?: { quietMinute?: number };
}

/**
 * Last digits of all handsets. There are only a few, so that limits and reply requests collide. The service refuses
 * the last one.
 */
export const handsets = [1, 2, 3, 4, 9] as const;

export function createOutgoingPlan(random: Random): OutgoingPlan {
  return {
    senders: random.chance(0.5) ? ['send a', 'send b'] : ['send a'],
    ...(random.chance(0.4) ? { limits: createLimits(random) } : undefined),
    feedKnows: random.chance(0.6),
    ...(random.chance(0.5) ? { retryAfterS: random.pick([1, 20, 60]) } : undefined),
  };
}

function createLimits(random: Random): NonNullable<OutgoingPlan['limits']> {
  const perHandsetMs = random.pick([30_000, 60_000, 600_000]);
  if (random.chance(0.3)) return { perHandsetMs, perDay: random.between(1, 8) };
  return { perHandsetMs, perHandset: random.between(1, 3) };
}

export function createOrder(random: Random, instances: number, senders: number): OrderPlan {
  const keep = random.chance(0.65);
  const waits = random.chance(0.4);
  return {
    type: 'order',
    process: random.below(instances),
    sender: random.below(senders),
    count: random.pick([1, 1, 2, 3, 8]),
    to: [...new Set([...handsets.filter(() => random.chance(0.35)), random.pick(handsets)])],
    ...(random.chance(0.3) ? { key: random.below(3) } : undefined),
    keep,
    expireMs: random.pick([0, 0, 0, 5_000, 60_000]),
    hasOwnId: random.chance(0.8),
    retries: random.pick([0, 1, 3]),
    retryUncertain: random.chance(0.2),
    resolveMs: random.pick([0, 0, 5_000, 45_000]),
    remember: random.chance(0.3),
    waitMs: waits ? random.pick([2_000, 20_000, 60_000]) : 0,
    priority: random.pick([0, 0, 0, -3, 5]),
    unlimited: random.chance(0.1),
  };
}
