import type { Random } from './random';

/** A text that somebody wants sent, with what `sms-send` is asked for. */
export interface OrderPlan {
  what: 'order';
  process: number;
  /** Index of the sending node. */
  sender: number;
  count: number;
  /** Last digits of the handsets. */
  to: number[];
  /** Texts of a node with the same key are one. */
  key?: number;
  keep: boolean;
  /** 0: never. */
  expireMs: number;
  hasOwnId: boolean;
  retries: number;
  retryUncertain: boolean;
  resolveMs: number;
  remember: boolean;
  /** 0: not at all. */
  waitMs: number;
  /** How long statuses are waited for, of which a report is to be made; absent: not at all. */
  reportMs?: number;
  priority: number;
  unlimited: boolean;
  /** Neither consent nor quiet hours hold for it. */
  essential?: true;
  /** It may leave so long after it is ordered. */
  inMs?: number;
  /** How long after the service has accepted it each handset replies, once; some of them within 20 s when absent. */
  replyMs?: number;
}

/** Part of a plan that sends messages with all options of the library. */
export interface OutwardPlan {
  /** Ids of the sending nodes. */
  senders: string[];
  limits?: { perHandset?: number; perHandsetMs: number; perDay?: number };
  /** The entries of the feed have the ids of the texts; else the service's own. */
  feedKnows: boolean;
  /** Value of `Retry-After` of 429 and 503. */
  retryAfterS?: number;
  /** Consent applies, and `quietMinute` is a minute of the run (from 0) in which no message leaves. */
  consent?: { quietMinute?: number };
}

/** Texts are to the same few handsets, so that limits and questions meet. The service refuses the last one. */
export const handsets = [1, 2, 3, 4, 9] as const;

export function createOutwardPlan(random: Random): OutwardPlan {
  return {
    senders: random.chance(0.5) ? ['send a', 'send b'] : ['send a'],
    ...(random.chance(0.4) ? { limits: createLimits(random) } : undefined),
    feedKnows: random.chance(0.6),
    ...(random.chance(0.5) ? { retryAfterS: random.pick([1, 20, 60]) } : undefined),
  };
}

function createLimits(random: Random): NonNullable<OutwardPlan['limits']> {
  const perHandsetMs = random.pick([30_000, 60_000, 600_000]);
  if (random.chance(0.3)) return { perHandsetMs, perDay: random.between(1, 8) };
  return { perHandsetMs, perHandset: random.between(1, 3) };
}

export function createOrder(random: Random, instances: number, senders: number): OrderPlan {
  const keep = random.chance(0.65);
  const waits = random.chance(0.4);
  return {
    what: 'order',
    process: random.below(instances),
    sender: random.below(senders),
    count: random.pick([1, 1, 2, 3, 8]),
    to: handsets
      .filter(() => random.chance(0.35))
      .concat(random.pick(handsets))
      .filter(isFirst),
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

function isFirst(item: number, index: number, all: readonly number[]): boolean {
  return all.indexOf(item) === index;
}
