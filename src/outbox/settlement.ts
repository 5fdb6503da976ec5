import { asSmsError, isSmsError, SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Replies } from '../replies/replies';
import { type Absences, endOfOutcome } from './expiry';
import type { Ledger, OutboxOptions } from './ledger';
import {
  asks,
  formatOutcome,
  isFollowed,
  isKept,
  isReconciled,
  isTracked,
  isUnknown,
  isUnsent,
  type MessageItem,
  type Outcome,
  parseOutcome,
  submittedOf,
  uncountedBy,
  withMessageId,
  withWithheld,
} from './message-item';
import type { Reconciliations } from './reconciliation';
import { Redelivery } from './redelivery';
import { createTooEarly, explainWithheld, hasRules } from './rules';
import type { OutcomeEvent, SenderRegistration, SenderRegistrations } from './sender-registrations';
import { type Ending, type Stale, stale } from './transitions';

/** The components that a settlement uses. */
export interface SettlementOptions extends OutboxOptions {
  ledger: Ledger;
  registrations: SenderRegistrations;
  /**
   * Inputs of the nodes, by message id, as long as the message or its reply requests are open. The store does not have
   * them.
   */
  origins: Map<string, unknown>;
  absences: Absences;
  replies: Replies;
  reconciliations: Reconciliations;
}

/** The registration of the node that sent a message, and the input. */
export interface MessageSource {
  from: SenderRegistration;
  origin: unknown;
}

/**
 * Makes the requests of messages, and brings each message to its outcome. Counts messages for limits, searches for
 * evidence if necessary, and sends each outcome into the flow once.
 */
export class Settlement {
  readonly #options: SettlementOptions;
  /** Delivers the outcomes of messages into the flow, now or when their nodes return. */
  readonly redelivery: Redelivery<MessageItem>;

  constructor(options: SettlementOptions) {
    this.#options = options;
    const { clock, ledger, origins, absences, registrations, onAbandoned } = options;
    this.redelivery = new Redelivery({
      ...options,
      items: ledger.messages,
      handlerOf: ({ node }) => registrations.handlerOf(node),
      patienceMs: (text) => absences.leftMs(text.node, endOfOutcome(text, clock)),
      report: async (handler, text, mayBeKnown) => {
        if (text.again) return true;
        const { id, outcome, isManuallyResent, sendNowAt } = text;
        if (!outcome) throw new Error('not settled');
        const origin = origins.get(id);
        // If this process has the input, the message in memory still has its flow message.
        const flowMessage = origin === undefined ? await ledger.flowMessageOf(text) : text.flowMessage;
        const event = createEvent(text, {
          outcome: parseOutcome(outcome),
          origin,
          flowMessage,
          redelivered: mayBeKnown || isManuallyResent === true || sendNowAt !== undefined,
          duplicate: false,
        });
        return handler.onOutcome(event);
      },
      ended: async (text, isMissed) => {
        await ledger.delivered(text);
        this.#delivered(text);
        // A message with an unknown outcome stays on the list, so that a user can decide.
        if (isMissed && !ledger.messages.has(text.id)) onAbandoned(text.node);
      },
    });
  }

  /** Forgets the input of a message, and returns that input. */
  forget(id: string): unknown {
    const { origins } = this.#options;
    const origin = origins.get(id);
    origins.delete(id);
    return origin;
  }

  /**
   * Makes one try. Asks the rules before the request and again when the message leaves, so that the message goes only
   * to recipients that no rule withholds by then. If the message must survive the process, writes the mark that it
   * leaves. Never rejects. The outcome is that of `Client.send`. If no recipient is left, or the message cannot leave
   * yet, the outcome is the error of the first rule.
   *
   * @param signal aborts a request that has not left
   * @returns the outcome and the current message, which might have left; `stale` if another step has moved the message
   */
  async attempt(
    text: MessageItem,
    client: Client,
    signal: AbortSignal,
  ): Promise<{ text: MessageItem; outcome: Outcome } | Stale> {
    const { ledger, reconciliations, rules } = this.#options;
    const isWritten = () => isTracked(text) || isFollowed(text) || hasRules(rules);
    const isMarked = isReconciled(text) || isWritten();
    let current = text;
    try {
      if (!isMarked && !text.withheld) return { text, outcome: await client.send(text.message, { signal }) };
      for (;;) {
        const { text: judged, notBefore } = await ledger.judge(text);
        current = judged;
        const to = submittedOf(judged);
        // If no recipient is left, the error of the first rule is the outcome.
        const [first] = judged.withheld ?? [];
        if (first && to.length === 0) throw explainWithheld(first);
        if (notBefore !== undefined) throw createTooEarly(notBefore);
        let marking: Promise<MessageItem | Stale | undefined> | undefined;
        let isOvertaken = false;
        const beforeLeaving = async () => {
          reconciliations.open(judged, client);
          marking = isWritten() ? ledger.markLeaving(judged) : Promise.resolve(judged);
          const marked = await marking;
          isOvertaken = marked === undefined;
          if (!marked || marked === stale || marked.state === 'settled') throw new Error('overtaken');
          current = marked;
        };
        try {
          const options = isMarked ? { signal, beforeLeaving } : { signal };
          const outcome = await client.send({ ...judged.message, to }, options);
          return { text: current, outcome };
        } catch (error) {
          // The request might have been aborted while the mark was being written.
          const marked = await marking?.catch(() => undefined);
          if (marked === stale || marked?.state === 'settled') return stale;
          if (marked && isSmsError(error, 'SMS_UNREACHABLE', 'SMS_CLOSED')) {
            const back = await ledger.requeue(marked);
            if (back === stale || back.state === 'settled') return stale;
            current = back;
          }
          if (!isOvertaken) throw error;
        }
      }
    } catch (error) {
      return { text: current, outcome: asSmsError(error) };
    }
  }

  /** Sends the outcome of a replaced or withdrawn message into the flow. */
  superseded(text: MessageItem): void {
    const { ledger, reconciliations, registrations, counts, onFault } = this.#options;
    reconciliations.close(text.id);
    if (text.outcome) counts.add(parseOutcome(text.outcome), text.message.to.length);
    ledger.duplicates.ended(text);
    void this.redelivery.deliver(text, false).catch(onFault);
    registrations.reportState(text.node);
  }

  /** Ends a message. Returns `false` if the state of the message does not allow this ending. */
  async end(former: MessageItem, ending: Ending, source?: MessageSource): Promise<boolean> {
    const { ledger, reconciliations, counts } = this.#options;
    const text = { ...former, ...ending.change };
    const { outcome: lastOutcome } = ending;
    // The service might have accepted an earlier try, so the outcome must not say that the message is unsent.
    const possible =
      text.previousAttempt && isUnsent(lastOutcome) ? parseOutcome(text.previousAttempt.outcome) : lastOutcome;
    const outcome = withMessageId(possible instanceof SmsError ? possible : withWithheld(possible, text), text);
    const isWritten = isTracked(text) || isFollowed(text) || uncountedBy(text, outcome).length > 0;
    // Replies to the message wait until its outcome has entered the flow.
    const untracked = !isTracked(text) && asks(text) ? ledger.messages.begin(text, 'settling') : undefined;
    let settled: MessageItem | Stale = text;
    try {
      if (isWritten) {
        settled = await ledger.messages.during(text.id, 'settling', () =>
          ledger.settle(former, { ...ending, outcome }),
        );
      }
      if (settled === stale) return false;
      if (isReconciled(text)) reconciliations.close(text.id);
      counts.add(outcome, text.message.to.length, text.withheld);
      if (isTracked(text)) {
        await this.redelivery.deliver(settled, false);
        return true;
      }
      if (source) await this.report(source, settled, outcome);
    } finally {
      if (untracked) ledger.messages.delete(text.id);
    }
    this.#delivered(settled);
    return true;
  }

  /**
   * Resumes a message that had left when its process ended, so that its outcome is unknown. If there is no client for
   * the search, the message waits.
   */
  async resume(text: MessageItem): Promise<MessageItem | undefined> {
    const { ledger, reconciliations, registrations } = this.#options;
    const canLook = !isReconciled(text) || registrations.clientFor(text.node) !== undefined;
    if (ledger.isClosed || !canLook) return undefined;
    const error =
      reconciliations.get(text.id)?.interruptedWith ?? new SmsError('uncertain', { params: { detail: 'stopped' } });
    const evidence = reconciliations.open(text);
    for (const record of evidence ? await ledger.evidenceOf(text) : []) evidence?.observe(record);
    return this.reconcile(text, error);
  }

  /**
   * Searches for evidence of a stored message with an unknown outcome, and then ends the message. If the message must
   * be sent again, returns it.
   */
  async reconcile(text: MessageItem, error: SmsError): Promise<MessageItem | undefined> {
    const { ledger, reconciliations, registrations } = this.#options;
    const { id, node, options } = text;
    const { retryUncertain, keep, resolveMs } = options;
    const evidence = reconciliations.open(text);
    let outcome: Outcome = error;
    if (evidence) {
      const message = ledger.messages.find(id);
      // A user cannot decide about the message during the search.
      if (message) ledger.messages.move(message, 'searching');
      registrations.reportState(node);
      try {
        const { sent, searched } = await evidence.look(resolveMs, ledger.closing.signal);
        outcome = sent ?? error.with({ searched });
      } catch {
        // The account repeats the search when it opens again.
        evidence.interruptedWith = error;
        return undefined;
      } finally {
        if (message?.phase === 'searching') {
          ledger.messages.move(message, evidence.interruptedWith === error ? 'sending' : 'settling');
        }
        registrations.reportState(node);
      }
    }
    if (outcome instanceof SmsError && retryUncertain && keep) {
      const repeats = { repeats: (text.repeats ?? 0) + 1 };
      const unknown = formatOutcome(outcome);
      const again = await ledger.messages.during(id, 'settling', () => ledger.sendAgain(text, unknown, repeats));
      return again === stale || again.state === 'settled' ? undefined : again;
    }
    await this.end(text, { by: 'settle', outcome });
    return undefined;
  }

  /** Ends a message whose node has been absent for too long. Never rejects. */
  async abandon(text: MessageItem): Promise<void> {
    const { ledger, reconciliations, onAbandoned, onFault } = this.#options;
    onAbandoned(text.node);
    this.forget(text.id);
    reconciliations.close(text.id);
    await ledger.discard(text).catch(onFault);
  }

  /**
   * Discards a message for a user. Returns `false` if the message cannot be discarded.
   *
   * @throws SmsError `SMS_STORE` if the store cannot write this now: the message stays
   */
  async discard(text: MessageItem): Promise<boolean> {
    const { ledger, replies, reconciliations, registrations, onDiscarded } = this.#options;
    const { id, node } = text;
    if (!(await ledger.discard(text, 'refuse'))) return false;
    reconciliations.close(id);
    const origin = this.forget(id);
    replies.begin(id);
    onDiscarded(node);
    if (origin !== undefined) registrations.handlerOf(node)?.onDiscarded(origin);
    registrations.reportState(node);
    return true;
  }

  /**
   * Reports an outcome that is not stored to its node. Never rejects, because an error in the node does not change the
   * outcome.
   */
  async report({ from, origin }: MessageSource, text: MessageItem, outcome: Outcome, duplicate = false): Promise<void> {
    if (text.again) return;
    const event = createEvent(text, { outcome, origin, flowMessage: text.flowMessage, redelivered: false, duplicate });
    try {
      if (!(await from.handler.onOutcome(event))) from.handler.onMissed?.(event);
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  /** Cleans up after the outcome of a message has entered the flow, or was dropped. */
  #delivered({ id, options, outcome }: MessageItem): void {
    const { journal, ledger, replies } = this.#options;
    if (asks({ options })) {
      replies.begin(id);
      // A redeploy might have closed the store that keeps its reply requests.
      const mayAsk = !journal.isOpen && outcome !== undefined && 'sent' in outcome;
      if (mayAsk || ledger.followUps.hasOf(id)) return;
    }
    this.forget(id);
  }
}

function createEvent(
  text: MessageItem,
  event: Omit<OutcomeEvent, 'message' | 'encoding' | 'parts' | 'isKept'>,
): OutcomeEvent {
  const { message, encoding, parts, replacements } = text;
  // The unknown outcome of a duplicate is always `SMS_UNCERTAIN`, because nothing was sent for the duplicate itself.
  if (event.duplicate && event.outcome instanceof SmsError && isUnknown(event.outcome)) {
    event.outcome = new SmsError('uncertainBefore', { ...event.outcome, params: { detail: event.outcome.code } });
  }
  return { message, encoding, parts, ...(replacements && { replacements }), isKept: isKept(text), ...event };
}
