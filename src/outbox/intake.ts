import { wait } from '../clock';
import { asSmsError, isSmsError, SmsError } from '../errors';
import type { Journal } from '../journal/journal';
import type { Delivery } from '../model';
import type { Dispatcher, DispatcherOptions } from './dispatcher';
import type { Turn } from './queue';
import { assertAnyAllowed, isWithheldError, keepUntilDue, mayLeaveAt, mostScheduled, TooEarly } from './rules';
import type { SenderRegistration, SendRequest } from './sender-registrations';
import type { Given, SettlementOptions } from './settlement';
import {
  afterUnknown,
  formatOutcome,
  isReconciled,
  isTracked,
  isUnknown,
  isUnsent,
  needsMessage,
  type Outcome,
  parseOutcome,
  type Text,
  withMessageId,
} from './text';

/** What takes texts in. */
export interface IntakeOptions
  extends Pick<
      DispatcherOptions,
      'clock' | 'queue' | 'ledger' | 'followers' | 'rules' | 'settlement' | 'registrations'
    >,
    Pick<SettlementOptions, 'reconciliations' | 'counts' | 'origins'> {
  journal: Journal;
  dispatcher: Dispatcher;
}

/** A text that is not kept is tried again after so long, then after twice as long each time, up to a limit. */
const firstDelayMs = 200;
const longestDelayMs = 30_000;

/** Takes texts of nodes in: keeps them, compares them by their keys, or sends them at once. */
export class Intake {
  readonly #options: IntakeOptions;
  /** Ids of texts that this process will tell of by itself. */
  readonly #underWay = new Set<string>();

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Whether a text that is found in the store, which was closed meanwhile, is still in hand here. */
  isUnderWay(id: string): boolean {
    return this.#underWay.has(id);
  }

  /** Resolves when the text is kept or has ended, which it does within 10 s once its node is closed. Never rejects: what goes wrong is an outcome. */
  async submit(request: SendRequest, from: SenderRegistration): Promise<void> {
    const { clock, rules } = this.#options;
    const options = keepUntilDue(request.options, clock.now(), rules.quietHours);
    const text = createText(this.#options, { ...request, options }, from.handler.id);
    const given = { from, origin: request.origin };
    if (needsMessage(text)) this.#options.origins.set(text.id, request.origin);
    if (isTracked(text)) this.#underWay.add(text.id);
    try {
      assertAnyAllowed(text.message.to, text.node, rules);
      if (isTracked(text)) await this.#takeIn(text, given);
      else await this.#sendToEnd(text, given);
    } catch (error) {
      await this.#refuse(text, given, error);
    } finally {
      this.#underWay.delete(text.id);
      // A kept one goes on.
      if (text.options.once !== undefined && !text.options.keep) this.#options.followers.ended(text.id);
    }
  }

  /** Keeps a text, or guards it by its key, before anything else happens to it. */
  async #takeIn(text: Text, given: Given): Promise<void> {
    const { clock, dispatcher, followers, ledger, rules, settlement } = this.#options;
    const now = clock.now();
    const isKept = text.options.keep !== undefined;
    const isScheduled = isKept && mayLeaveAt(text, now, rules.quietHours) > now;
    if (isKept) this.#assertRoom(isScheduled);
    const arriving = isScheduled ? 'scheduled' : 'others';
    dispatcher.arriving[arriving]++;
    const taken = await ledger.takeIn(text).finally(() => dispatcher.arriving[arriving]--);
    const { verdict } = taken;
    if (verdict.type === 'taken') throw new SmsError('onceTaken', { field: 'once' });
    if (isKept) {
      if (verdict.type === 'ended') await settlement.echo(text, verdict.outcome);
      else dispatcher.admit(taken.text);
    } else if (verdict.type === 'ended') {
      await settlement.tell(given, text, parseOutcome(verdict.outcome), true);
      settlement.forget(text.id);
    } else if (verdict.type === 'underway') {
      await followers.follow(text.id, verdict.id, given.from.stopped);
      await this.#takeIn(text, given);
    } else await this.#sendToEnd(taken.text, given);
  }

  /** @throws SmsError `SMS_BUSY` when a text that is about to be kept would have to wait, and may not */
  #assertRoom(isScheduled: boolean): void {
    const { dispatcher, queue } = this.#options;
    const { scheduled, others } = dispatcher.arriving;
    if (!isScheduled) {
      if (others >= dispatcher.places) queue.assertRoom();
    } else if (scheduled + dispatcher.scheduled >= mostScheduled) {
      throw new SmsError('busyScheduled', { params: { limit: mostScheduled } });
    }
  }

  async #sendToEnd(text: Text, given: Given): Promise<void> {
    const { text: sent, outcome } = await this.#send(text, given.from);
    await this.#options.settlement.end(sent, asUnsent(sent, outcome), given);
  }

  /**
   * Sends a text that is not kept. It is tried again when it never reached the service, and, if its options say so, when the
   * outcome is unknown and no evidence was found: after 0.2 s, doubling to at most 30 s.
   *
   * A try after one that may have been sent takes a turn of its own, and no place in the queue while it waits; it is not refused
   * for want of room. What has left is followed to its end, for as long as a node that is closed waits for it. Never rejects.
   *
   * @returns the outcome of the last try, or of an earlier one that may have been accepted when none after it arrived; `SMS_CLOSED` when the
   *   flow was stopped between tries; with the text as it stands then
   */
  async #send(
    text: Text,
    { handler, stopped: signal, givenUp }: SenderRegistration,
  ): Promise<{ text: Text; outcome: Outcome }> {
    const { clock, queue, reconciliations, settlement } = this.#options;
    const { client } = handler;
    const { retries, retryUncertain, resolveMs, priority } = text.options;
    let current = text;
    const onMoved = (moved: Text) => {
      current = moved;
    };
    const ended = (outcome: Outcome) => ({ text: current, outcome });
    let further = 0;
    /** Rejects when the flow is stopped before. */
    const waitForNext = () => wait(clock, Math.min(longestDelayMs, firstDelayMs * 2 ** further++), signal);
    /** Tries until the service is reached: nothing was sent before, so that the pace need not count it. */
    const take = async ({ giveBack }: Turn): Promise<Delivery> => {
      for (;;) {
        try {
          return await settlement.attempt(current, { client, signal: givenUp, onMoved });
        } catch (error) {
          if (isWithheldError(error) || error instanceof TooEarly) giveBack();
          if (!isSmsError(error, 'SMS_UNREACHABLE') || further >= retries) throw error;
          await waitForNext().catch(() => {
            throw new SmsError('closed', { cause: error });
          });
        }
      }
    };
    const evidence = isReconciled(text) ? reconciliations.open(text, client) : undefined;
    const order = queue.arrive();
    let uncertain: SmsError | undefined;
    for (;;) {
      let failure: SmsError;
      try {
        return ended(await queue.run(take, uncertain ? { signal, priority, order } : { signal, priority }));
      } catch (error) {
        failure = asSmsError(error);
      }
      // An unknown outcome stays unknown; only what never left may be called unsent.
      if (!isUnknown(failure)) return ended(isUnsent(failure) ? (uncertain ?? failure) : failure);
      if (retryUncertain) current = afterUnknown(current, formatOutcome(failure));
      uncertain = failure;
      try {
        if (evidence) {
          const { sent, looked } = await evidence.look(resolveMs, signal);
          if (sent) return ended(sent);
          uncertain = failure.with({ looked });
        }
        if (!retryUncertain || further >= retries) return ended(uncertain);
        await waitForNext();
      } catch {
        // The flow is being stopped.
        return ended(uncertain);
      }
    }
  }

  /** It was not taken in at all. */
  async #refuse(text: Text, given: Given, error: unknown): Promise<void> {
    const failure = this.#describe(error, given.from);
    if (isSmsError(failure, 'SMS_STORE')) this.#options.registrations.refused(text.node);
    const outcome = withMessageId(asUnsent(text, failure), text);
    this.#options.counts.add(outcome, text.message.to.length);
    await this.#options.settlement.tell(given, text, outcome);
    this.#options.settlement.forget(text.id);
  }

  /** Whoever waited for another text is told when its node is closed, and whoever comes later that the store is, with which nothing is wrong. */
  #describe(error: unknown, { stopped }: SenderRegistration): SmsError {
    const isShut = isSmsError(error, 'SMS_STORE') && !this.#options.journal.failure;
    const isStopped = stopped.aborted && (isShut || !isSmsError(error));
    return isStopped ? new SmsError('closed') : asSmsError(error);
  }
}

/** Of a text that could not be written the store's own error would speak of polling, unless it knows what is to be done. */
function asUnsent<End extends Outcome>(text: Text, outcome: End): End | SmsError {
  if (!isTracked(text) || !isSmsError(outcome, 'SMS_STORE') || outcome.reason !== 'storeUnavailable') return outcome;
  return new SmsError('keepRefused', { params: { detail: String(outcome.params.detail ?? '') } });
}

function createText(
  { journal, clock }: Pick<IntakeOptions, 'journal' | 'clock'>,
  { message, encoding, parts, options, carried }: SendRequest,
  node: string,
): Text {
  const text: Text = {
    id: journal.nextId(),
    part: 'ledger',
    kind: 'text',
    subscribers: [`node ${node}`],
    attempts: 0,
    state: 'waiting',
    node,
    message,
    encoding,
    parts,
    options,
    arrivedAt: clock.now(),
  };
  if (needsMessage(text)) text.carried = carried();
  return text;
}
