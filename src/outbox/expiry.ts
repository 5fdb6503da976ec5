import { type Clock, longestDeploymentMs } from '../clock';
import { SmsError } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import { mayLeaveAt, type RuleSettings } from './rules';
import type { Text } from './text';

/** Times at which a message that waits ends, by {@link Clock.elapsed}. */
export interface End {
  /** Time at which it expires. Infinite if it never does. */
  endsAt: number;
  /** Time at which it is given up if its node is not here, and has not been here. */
  unclaimedAt: number;
}

/** Maximum time for which a message of a node that is not deployed waits. */
const longestAbsenceMs = 7 * 24 * 3_600_000;

/** Minimum wait for a node of which this process knows nothing, because the node may have been here until the process began. */
const leastAbsenceMs = 3_600_000;

/** When a message ends. Its time counts from the first moment at which it can leave. */
export function endOf(given: Text, clock: Clock, { quietHours }: Pick<RuleSettings, 'quietHours'>): End {
  const { sendNowAt = Number.POSITIVE_INFINITY, ...text } = given;
  const skew = ClockSkew.of(clock);
  const { expireMs = Number.POSITIVE_INFINITY } = text.options.keep ?? {};
  const elapsed = clock.elapsed();
  const now = clock.now();
  const arrivedAt = skew.timeOf(text.arrivedAt);
  const dueAt = Math.min(skew.timeOf(sendNowAt), mayLeaveAt(text, arrivedAt, quietHours));
  const endAfter = (ms: number) => {
    // The rest is never more than the whole time, because the clock can have been set.
    const wholeMs = Math.max(0, dueAt - arrivedAt) + ms;
    return elapsed + Math.min(wholeMs, Math.max(0, dueAt + ms - now));
  };
  return { endsAt: endAfter(expireMs), unclaimedAt: endAfter(longestAbsenceMs) };
}

/** When an outcome that waits for its node is given up. It never expires. */
export function endOfOutcome({ settledAt = 0 }: Text, clock: Clock): End {
  const ageMs = Math.max(0, clock.now() - ClockSkew.of(clock).timeOf(settledAt));
  return { endsAt: Number.POSITIVE_INFINITY, unclaimedAt: clock.elapsed() + longestAbsenceMs - ageMs };
}

/** The error of a message that has not left in its time. */
export function createExpired({ options }: Text): SmsError {
  const expireMs = options.keep?.expireMs ?? 0;
  const minutes = expireMs / 60_000;
  if (Number.isInteger(minutes)) return new SmsError('expired', { params: { minutes } });
  return new SmsError('expiredSeconds', { params: { seconds: Math.max(1, Math.round(expireMs / 1_000)) } });
}

/** The environment of the absences. */
interface AbsencesOptions {
  clock: Clock;
  /** A node that is here. */
  handlerOf(node: string): unknown;
}

/** Knows since when nodes have been absent. The age of a message says how long its node was absent before this process began. */
export class Absences {
  readonly #options: AbsencesOptions;
  readonly #begunAt: number;
  /** Time at which each absent node was removed, in ms of {@link Clock.elapsed}. */
  readonly #goneAt = new Map<string, number>();

  constructor(options: AbsencesOptions) {
    this.#options = options;
    this.#begunAt = options.clock.elapsed();
  }

  /** A node has come or gone. */
  nodeChanged(node: string): void {
    const { clock, handlerOf } = this.#options;
    if (handlerOf(node)) this.#goneAt.delete(node);
    else this.#goneAt.set(node, clock.elapsed());
  }

  /** Time for which a message of a node still waits, in ms. 0: its time is over. Infinite: it never ends. */
  leftMs(node: string, { endsAt, unclaimedAt }: End): number {
    const { clock, handlerOf } = this.#options;
    const goneAt = this.#goneAt.get(node);
    // The node can be about to be deployed.
    const backAt = (goneAt ?? this.#begunAt) + longestDeploymentMs;
    const leastUntil = goneAt === undefined ? this.#begunAt + leastAbsenceMs : goneAt + longestAbsenceMs;
    const absentUntil = Math.max(unclaimedAt, leastUntil);
    const end = handlerOf(node) ? endsAt : Math.max(backAt, Math.min(endsAt, absentUntil));
    return Math.max(0, end - clock.elapsed());
  }
}
