import { type Clock, systemClock, wait } from '../clock';
import { isSmsError, SmsError } from '../errors';
import type { Delivery } from '../model';
import { isUnknown, isUnsent } from './outgoing';

/** When a send is tried again. */
export interface RetryPolicy {
  /** Further tries when the request never reached the service. */
  retries: number;
  /** Also when the outcome is unknown, which may send twice. */
  retryUncertain: boolean;
}

/** What ends a send from outside, and what it measures time by. */
export interface SendSurroundings {
  signal: AbortSignal;
  giveUp: AbortSignal;
  clock?: Clock;
}

const firstDelayMs = 200;
const longestDelayMs = 30_000;

/**
 * Sends one message, again when it never reached the service: after 0.2 s, doubling to at most 30 s.
 *
 * @param attempt makes one try, which its signal gives up
 * @param signal ends the waiting between tries, never a request that has left: that one is followed to its end unless
 *   `giveUp` aborts it
 * @throws SmsError of the last try, or `SMS_UNCERTAIN` when an earlier one may have been accepted and none after it
 *   arrived; `SMS_CLOSED` when `signal` aborted between tries
 */
export async function send(
  attempt: (signal: AbortSignal) => Promise<Delivery>,
  policy: RetryPolicy,
  { signal, giveUp, clock = systemClock }: SendSurroundings,
): Promise<Delivery> {
  let uncertain: SmsError | undefined;
  for (let tries = 0; ; tries++) {
    try {
      return await attempt(giveUp);
    } catch (error) {
      if (isSmsError(error) && isUnknown(error)) uncertain = error;
      // An unknown outcome stays unknown; only what never left may be called unsent.
      const failure = isUnsent(error) ? (uncertain ?? error) : error;
      const again = isSmsError(error, 'SMS_UNREACHABLE') || (policy.retryUncertain && error === uncertain);
      if (!again || tries >= policy.retries) throw failure;
      try {
        await wait(clock, Math.min(longestDelayMs, firstDelayMs * 2 ** tries), signal);
      } catch {
        throw uncertain ?? new SmsError('closed', { cause: error });
      }
    }
  }
}
