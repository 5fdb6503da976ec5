import type { Clock } from '../clock';
import { asSmsError, isSmsError, type SmsError } from '../errors';
import type { Delivery } from '../model';
import type { StopSignals } from './attachment';
import type { Case } from './evidence';
import { isUnknown, isUnsent, type Outcome, type Text } from './outgoing';
import type { SendQueue, Turn } from './queue';
import { send } from './send';

/** What a text that is not kept is sent with. */
export interface PlainSurroundings {
  clock: Clock;
  queue: SendQueue;
  /** Makes one try; `signal` ends one that has left, too. */
  attempt(signal: AbortSignal): Promise<Delivery>;
  signals: StopSignals;
  /** Evidence of the text, when it is to be looked for. */
  evidence: Case | undefined;
}

/**
 * Sends a text that is not kept: tries again as its options say, and looks for evidence before it does so after an
 * unknown outcome. Waiting for evidence takes no place in the queue. Never rejects.
 */
export async function sendPlain(text: Text, surroundings: PlainSurroundings): Promise<Outcome> {
  const { retries, retryUncertain, resolveMs, priority } = text.options;
  const { clock, queue, attempt, signals, evidence } = surroundings;
  const policy = { retries, retryUncertain: retryUncertain && !evidence };
  let uncertain: SmsError | undefined;
  const { signal, giveUp } = signals;
  for (let tries = 0; ; tries++) {
    let failure: SmsError;
    let turn: Turn | undefined;
    const take = (given: Turn) => {
      turn = given;
      return send(attempt, policy, { signal, giveUp, clock });
    };
    try {
      return await queue.run(take, { signal, priority });
    } catch (error) {
      if (isSmsError(error, 'SMS_LIMIT')) turn?.giveBack();
      failure = asSmsError(error);
    }
    if (!evidence || !isUnknown(failure)) return isUnsent(failure) ? (uncertain ?? failure) : failure;
    try {
      const { sent, looked } = await evidence.look(resolveMs, signal);
      if (sent) return sent;
      failure = failure.with({ looked });
      uncertain = failure;
    } catch {
      // The flow is being stopped.
      return failure;
    }
    if (!retryUncertain || tries >= retries) return failure;
  }
}
