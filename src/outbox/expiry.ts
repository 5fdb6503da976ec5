import { type Clock, longestDeploymentMs } from '../clock';
import { SmsError } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import { mayLeaveAt, type RuleSettings } from './rules';
import type { Text } from './text';

/** When a text that waits is given up. By {@link Clock.elapsed}. */
export interface End {
  /** Its own time is over then: never, where it has none. */
  endsAt: number;
  /** So it is then where its node is not here, and has not been. */
  unclaimedAt: number;
}

/** A text of a node that is not deployed is given up after so long at most. */
const longestAbsenceMs = 7 * 24 * 3_600_000;

/** It may have been here until this process began, of whose node nothing is known yet: it is waited for so long at least. */
const leastAbsenceMs = 3_600_000;

/** When a text is given up, as it stands: its time counts from the first moment at which it may or might leave. */
export function endOf(given: Text, clock: Clock, { quietHours }: Pick<RuleSettings, 'quietHours'>): End {
  const { sendNowAt = Number.POSITIVE_INFINITY, ...text } = given;
  const skew = ClockSkew.of(clock);
  const { expireMs = Number.POSITIVE_INFINITY } = text.options.keep ?? {};
  const elapsed = clock.elapsed();
  const now = clock.now();
  const arrivedAt = skew.timeOf(text.arrivedAt);
  const dueAt = Math.min(skew.timeOf(sendNowAt), mayLeaveAt(text, arrivedAt, quietHours));
  const endAfter = (ms: number) => {
    // The clock may have been set since: what is left of its time is never more than the whole.
    const wholeMs = Math.max(0, dueAt - arrivedAt) + ms;
    return elapsed + Math.min(wholeMs, Math.max(0, dueAt + ms - now));
  };
  return { endsAt: endAfter(expireMs), unclaimedAt: endAfter(longestAbsenceMs) };
}

/** When an outcome is given up that waits for its node: its own time has no end. */
export function endOfOutcome({ settledAt = 0 }: Text, clock: Clock): End {
  const ageMs = Math.max(0, clock.now() - ClockSkew.of(clock).timeOf(settledAt));
  return { endsAt: Number.POSITIVE_INFINITY, unclaimedAt: clock.elapsed() + longestAbsenceMs - ageMs };
}

/** Says within what time a text has not left. */
export function createExpired({ options }: Text): SmsError {
  const expireMs = options.keep?.expireMs ?? 0;
  const minutes = expireMs / 60_000;
  if (Number.isInteger(minutes)) return new SmsError('expired', { params: { minutes } });
  return new SmsError('expiredSeconds', { params: { seconds: Math.max(1, Math.round(expireMs / 1_000)) } });
}

/** What knows of absences needs. */
interface AbsencesOptions {
  clock: Clock;
  /** A node that is here. */
  handlerOf(node: string): unknown;
}

/** Knows since when nodes have not been here whose texts wait. What an earlier process knew of that is in how old its texts are. */
export class Absences {
  readonly #options: AbsencesOptions;
  readonly #begunAt: number;
  /** When nodes have gone that had been here, by {@link Clock.elapsed}. */
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

  /** How long something of a node waits from now on, in ms: 0 once its time is over, endless where that never will be. */
  leftMs(node: string, { endsAt, unclaimedAt }: End): number {
    const { clock, handlerOf } = this.#options;
    const goneAt = this.#goneAt.get(node);
    // It may be about to be deployed, and be late.
    const backAt = (goneAt ?? this.#begunAt) + longestDeploymentMs;
    const leastUntil = goneAt === undefined ? this.#begunAt + leastAbsenceMs : goneAt + longestAbsenceMs;
    const absentUntil = Math.max(unclaimedAt, leastUntil);
    const end = handlerOf(node) ? endsAt : Math.max(backAt, Math.min(endsAt, absentUntil));
    return Math.max(0, end - clock.elapsed());
  }
}
