import { type Clock, maxDeploymentMs } from '../clock';
import { SmsError } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import type { MessageItem } from './message-item';
import { mayLeaveAt, type RuleSettings } from './rules';

/** Times at which a waiting message ends, by {@link Clock.elapsed}. */
export interface End {
  /** Time at which the item expires. Infinite if the item never expires. */
  endsAt: number;
  /** Time at which the message expires if its node has not been deployed in this process. */
  unclaimedAt: number;
}

/** Maximum time for which a message waits for a node that is not deployed, in ms. */
const maxAbsenceMs = 7 * 24 * 3_600_000;

/**
 * Minimum wait for a node that this process has never seen, because it might have been deployed until the process
 * began.
 */
const minAbsenceMs = 3_600_000;

/** Returns when a message ends. Its expiry period begins when it can first leave. */
export function endOf(waiting: MessageItem, clock: Clock, { quietHours }: Pick<RuleSettings, 'quietHours'>): End {
  const { sendNowAt = Number.POSITIVE_INFINITY, ...item } = waiting;
  const skew = ClockSkew.of(clock);
  const { expireMs = Number.POSITIVE_INFINITY } = item.options.keep ?? {};
  const elapsed = clock.elapsed();
  const now = clock.now();
  const arrivedAt = skew.timeOf(item.arrivedAt);
  const dueAt = Math.min(skew.timeOf(sendNowAt), mayLeaveAt(item, arrivedAt, quietHours));
  const endAfter = (ms: number) => {
    // The clock might have been changed, so the remaining time is capped at the whole period.
    const wholeMs = Math.max(0, dueAt - arrivedAt) + ms;
    return elapsed + Math.min(wholeMs, Math.max(0, dueAt + ms - now));
  };
  return { endsAt: endAfter(expireMs), unclaimedAt: endAfter(maxAbsenceMs) };
}

/** Returns the time at which the account drops an outcome that waits for its node. */
export function endOfOutcome({ settledAt = 0 }: MessageItem, clock: Clock): End {
  const ageMs = Math.max(0, clock.now() - ClockSkew.of(clock).timeOf(settledAt));
  return { endsAt: Number.POSITIVE_INFINITY, unclaimedAt: clock.elapsed() + maxAbsenceMs - ageMs };
}

/** Creates the error of a message that expired before it left. */
export function createExpired({ options }: MessageItem): SmsError {
  const expireMs = options.keep?.expireMs ?? 0;
  const minutes = expireMs / 60_000;
  if (Number.isInteger(minutes)) return new SmsError('expired', { params: { minutes } });
  return new SmsError('expiredSeconds', { params: { seconds: Math.max(1, Math.round(expireMs / 1_000)) } });
}

/** Settings and callbacks for {@link Absences}. */
interface AbsencesOptions {
  clock: Clock;
  /** Returns the handler of a deployed node, or `undefined`. */
  handlerOf(node: string): unknown;
}

/**
 * Tracks how long nodes have been absent. For the time before this process began, the age of a message counts instead.
 */
export class Absences {
  readonly #options: AbsencesOptions;
  readonly #begunAt: number;
  /** Time at which each absent node was removed, in ms of {@link Clock.elapsed}. */
  readonly #goneAt = new Map<string, number>();

  constructor(options: AbsencesOptions) {
    this.#options = options;
    this.#begunAt = options.clock.elapsed();
  }

  /** Notes that a node was deployed or removed. */
  nodeChanged(node: string): void {
    const { clock, handlerOf } = this.#options;
    if (handlerOf(node)) this.#goneAt.delete(node);
    else this.#goneAt.set(node, clock.elapsed());
  }

  /** Returns how long a message still waits for its node, in ms. 0: its time is over. Infinite: it never ends. */
  leftMs(node: string, { endsAt, unclaimedAt }: End): number {
    const { clock, handlerOf } = this.#options;
    const goneAt = this.#goneAt.get(node);
    // The node might be about to be deployed.
    const backAt = (goneAt ?? this.#begunAt) + maxDeploymentMs;
    const minUntil = goneAt === undefined ? this.#begunAt + minAbsenceMs : goneAt + maxAbsenceMs;
    const absentUntil = Math.max(unclaimedAt, minUntil);
    const end = handlerOf(node) ? endsAt : Math.max(backAt, Math.min(endsAt, absentUntil));
    return Math.max(0, end - clock.elapsed());
  }
}
