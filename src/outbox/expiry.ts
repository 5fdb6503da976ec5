import type { Clock } from '../clock';
import { SmsError } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import type { MessageItem } from './message-item';
import { mayLeaveAt, type RuleSettings } from './rules';

/** Times until which a message or its outcome waits, by {@link Clock.elapsed}. */
export interface End {
  /** Time at which the wait ends even if the node is deployed. Infinite: never. */
  endsAt: number;
  /** Time at which the wait ends if the node has not been deployed in this process. */
  unclaimedAt: number;
}

/** Maximum time for which a message waits for a node that is not deployed, in ms. */
export const maxAbsenceMs = 7 * 24 * 3_600_000;

/**
 * Returns until when a message waits. Both `expireMs` and {@link maxAbsenceMs} count from the time at which the message
 * can be sent.
 */
export function endOf(waiting: MessageItem, clock: Clock, { quietHours }: Pick<RuleSettings, 'quietHours'>): End {
  const { sendNowAt, ...item } = waiting;
  const skew = ClockSkew.of(clock);
  const { expireMs = Number.POSITIVE_INFINITY } = item.options.keep ?? {};
  const elapsed = clock.elapsed();
  const now = clock.now();
  const arrivedAt = skew.timeOf(item.arrivedAt);
  const at = mayLeaveAt(item, arrivedAt, quietHours);
  const dueAt = sendNowAt === undefined ? at : Math.min(skew.timeOf(sendNowAt), at);
  const endAfter = (ms: number) => {
    // Caps the remaining time at the whole wait, because a message would otherwise wait too long if the clock was set
    // back.
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

/** Creates the error of a message that expired before it was sent. */
export function createExpired({ options }: MessageItem): SmsError {
  const expireMs = options.keep?.expireMs ?? 0;
  const minutes = expireMs / 60_000;
  if (Number.isInteger(minutes)) return new SmsError('expired', { params: { minutes } });
  return new SmsError('expiredSeconds', { params: { seconds: Math.max(1, Math.round(expireMs / 1_000)) } });
}
