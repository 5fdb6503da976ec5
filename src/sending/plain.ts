import type { Clock } from '../clock';
import { isSmsError, SmsError } from '../errors';
import type { StopSignals } from './attachment';
import type { Case } from './evidence';
import { isUnknown, type Outcome, type Text } from './outgoing';
import type { Outlet } from './outlet';
import type { SendQueue } from './queue';
import { send } from './send';

/** What a text that is not kept is sent with. */
export interface PlainSurroundings {
  clock: Clock;
  queue: SendQueue;
  outlet: Outlet;
  signals: StopSignals;
  /** To be written before each try leaves; absent when nothing is. */
  beforeLeaving: (() => Promise<void>) | undefined;
  /** Evidence of the text, when it is to be looked for. */
  evidence: Case | undefined;
}

/**
 * Sends a text that is not kept: tries again as its options say, and looks for evidence before it does so after an
 * unknown outcome. Waiting for evidence takes no place in the queue. Never rejects.
 */
export async function sendPlain(text: Text, surroundings: PlainSurroundings): Promise<Outcome> {
  const { retries, retryUncertain, resolveMs, priority } = text.options;
  const { clock, queue, outlet, signals, beforeLeaving, evidence } = surroundings;
  const policy = { retries, retryUncertain: retryUncertain && !evidence };
  for (let tries = 0; ; tries++) {
    let failure: SmsError;
    try {
      const turn = { signal: signals.signal, priority };
      return await queue.run(
        () => send(outlet.client, text.message, policy, { ...signals, clock, beforeLeaving }),
        turn,
      );
    } catch (error) {
      failure = isSmsError(error) ? error : new SmsError('unexpected', { cause: error });
    }
    if (!evidence || !isUnknown(failure)) return failure;
    try {
      const { sent, looked } = await evidence.look(resolveMs, signals.signal);
      if (sent) return sent;
      failure = failure.with({ looked });
    } catch {
      // The flow is being stopped.
      return failure;
    }
    if (!retryUncertain || tries >= retries) return failure;
  }
}
