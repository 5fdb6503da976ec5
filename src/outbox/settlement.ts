import type { Clock } from '../clock';
import { asSmsError, isSmsError, SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Replies } from '../replies/replies';
import { endOfOutcome } from './expiry';
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
import type { MessageRepository } from './message-repository';
import type { OutboxAccount } from './options';
import type { Reconciliations } from './reconciliation';
import { Redelivery } from './redelivery';
import { createTooEarly, explainWithheld, hasRules, type RuleSettings } from './rules';
import type { SendCounts } from './send-counts';
import type { OutcomeEvent, SenderRegistration, SenderRegistrations } from './sender-registrations';
import { type Ending, type Stale, stale } from './transitions';

interface SettlementOptions {
  clock: Clock;
  counts: SendCounts;
  rules: RuleSettings;
  account: OutboxAccount;
  repository: MessageRepository;
  registrations: SenderRegistrations;
  reconciliations: Reconciliations;
  replies: Replies;
}

/** The registration of the node that sent a message, and the input. */
export interface MessageSource {
  from: SenderRegistration;
  origin: unknown;
}

/**
 * Sends messages to the service, and ends each message with an outcome. Counts messages for limits, searches for
 * evidence if necessary, and sends each outcome into the flow once.
 */
export class Settlement {
  readonly #options: SettlementOptions;
  /** Delivers the outcomes of messages into the flow, now or when their nodes return. */
  readonly redelivery: Redelivery<MessageItem>;

  constructor(options: SettlementOptions) {
    this.#options = options;
    const { clock, account, repository, registrations } = options;
    this.redelivery = new Redelivery({
      clock,
      repository,
      onFault: account.onFault,
      items: repository.messages,
      handlerOf: ({ node }) => registrations.handlerOf(node),
      patienceMs: (item) => registrations.leftMs(item.node, endOfOutcome(item, clock)),
      report: async (handler, item, mayBeKnown) => {
        if (item.again) return true;
        const { id, outcome, isManuallyResent, sendNowAt } = item;
        if (!outcome) throw new Error('not settled');
        const origin = repository.inputs.get(id);
        // Reads the flow message from the store only if this process no longer has the input.
        const flowMessage = origin === undefined ? await repository.flowMessageOf(item) : item.flowMessage;
        const event = createEvent(item, {
          outcome: parseOutcome(outcome),
          origin,
          flowMessage,
          redelivered: mayBeKnown || isManuallyResent === true || sendNowAt !== undefined,
          duplicate: false,
        });
        return handler.onOutcome(event);
      },
      ended: async (item, isMissed) => {
        await repository.delivered(item);
        this.#delivered(item);
        // Does not report a message with an unknown outcome, because a user can still decide about it.
        if (isMissed && !repository.messages.has(item.id)) account.onAbandoned(item.node);
      },
    });
  }

  /** Forgets the input of a message, and returns that input. */
  forget(id: string): unknown {
    const { inputs } = this.#options.repository;
    const origin = inputs.get(id);
    inputs.delete(id);
    return origin;
  }

  /**
   * Makes one try to send a message. Never rejects.
   *
   * 1. Asks the rules which recipients they withhold, and whether the message must wait.
   * 2. When the connection is open, asks the rules again. If they now decide differently, starts again. In the same
   *    step, stores the state `leaving` of a message that must survive the process.
   * 3. Sends the message to the recipients that no rule withholds.
   *
   * The outcome is that of `Client.send`. If no recipient is left, or the message must wait, the outcome is the error
   * of the first rule.
   *
   * @param signal aborts a request that was not sent yet
   * @returns the outcome and the current message, which might have been sent; `stale` if another step has moved the
   * message
   */
  async attempt(
    item: MessageItem,
    client: Client,
    signal: AbortSignal,
  ): Promise<{ item: MessageItem; outcome: Outcome } | Stale> {
    const { repository, reconciliations, rules } = this.#options;
    const isWritten = () => isTracked(item) || isFollowed(item) || hasRules(rules);
    const isMarked = isReconciled(item) || isWritten();
    let current = item;
    try {
      if (!isMarked && !item.withheld) return { item, outcome: await client.send(item.message, { signal }) };
      for (;;) {
        const { item: judged, notBefore } = await repository.judge(item);
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
          marking = isWritten() ? repository.markLeaving(judged) : Promise.resolve(judged);
          const marked = await marking;
          isOvertaken = marked === undefined;
          if (!marked || marked === stale || marked.state === 'settled') throw new Error('overtaken');
          current = marked;
        };
        try {
          const options = isMarked ? { signal, beforeLeaving } : { signal };
          const outcome = await client.send({ ...judged.message, to }, options);
          return { item: current, outcome };
        } catch (error) {
          // If the request was aborted while the state `leaving` was being written, waits until that step has ended.
          const marked = await marking?.catch(() => undefined);
          if (marked === stale || marked?.state === 'settled') return stale;
          if (marked && isSmsError(error, 'SMS_UNREACHABLE', 'SMS_CLOSED')) {
            const requeued = await repository.requeue(marked);
            if (requeued === stale || requeued.state === 'settled') return stale;
            current = requeued;
          }
          if (!isOvertaken) throw error;
        }
      }
    } catch (error) {
      return { item: current, outcome: asSmsError(error) };
    }
  }

  /** Sends the outcome of a replaced or withdrawn message into the flow. */
  superseded(item: MessageItem): void {
    const { repository, reconciliations, registrations, counts, account } = this.#options;
    reconciliations.close(item.id);
    if (item.outcome) counts.add(parseOutcome(item.outcome), item.message.to.length);
    repository.duplicates.ended(item);
    void this.redelivery.deliver(item, false).catch(account.onFault);
    registrations.reportState(item.node);
  }

  /** Ends a message. Returns `false` if the state of the message does not allow this ending. */
  async end(before: MessageItem, ending: Ending, source?: MessageSource): Promise<boolean> {
    const { repository, reconciliations, counts } = this.#options;
    const item = { ...before, ...ending.change };
    const { outcome: lastOutcome } = ending;
    // If the last try sent nothing, but an earlier try might have, the outcome is the unknown outcome of the earlier
    // try.
    const possible =
      item.previousAttempt && isUnsent(lastOutcome) ? parseOutcome(item.previousAttempt.outcome) : lastOutcome;
    const outcome = withMessageId(possible instanceof SmsError ? possible : withWithheld(possible, item), item);
    const isWritten = isTracked(item) || isFollowed(item) || uncountedBy(item, outcome).length > 0;
    // Keeps the message in memory while it ends, so that its replies enter the flow only after its outcome.
    const untracked = !isTracked(item) && asks(item) ? repository.messages.begin(item, 'settling') : undefined;
    let settled: MessageItem | Stale = item;
    try {
      if (isWritten) {
        settled = await repository.messages.during(item.id, 'settling', () =>
          repository.settle(before, { ...ending, outcome }),
        );
      }
      if (settled === stale) return false;
      if (isReconciled(item)) reconciliations.close(item.id);
      counts.add(outcome, item.message.to.length, item.withheld);
      if (isTracked(item)) {
        await this.redelivery.deliver(settled, false);
        return true;
      }
      if (source) await this.report(source, settled, outcome);
    } finally {
      if (untracked) repository.messages.delete(item.id);
    }
    this.#delivered(settled);
    return true;
  }

  /**
   * Resumes a message that was being sent when its process ended, and whose outcome is therefore unknown. Does nothing
   * while no client can search for evidence: the message then waits.
   */
  async resume(item: MessageItem): Promise<MessageItem | undefined> {
    const { repository, reconciliations, registrations } = this.#options;
    const canLook = !isReconciled(item) || registrations.clientFor(item.node) !== undefined;
    if (repository.isClosed || !canLook) return undefined;
    const error =
      reconciliations.get(item.id)?.interruptedWith ?? new SmsError('uncertain', { params: { detail: 'stopped' } });
    const evidence = reconciliations.open(item);
    for (const record of evidence ? await repository.evidenceOf(item) : []) evidence?.observe(record);
    return this.reconcile(item, error);
  }

  /**
   * Resolves the unknown outcome of a stored message: searches for evidence that the service accepted it, and then ends
   * the message. If the message must be sent again, returns the message instead.
   */
  async reconcile(item: MessageItem, error: SmsError): Promise<MessageItem | undefined> {
    const { repository, reconciliations, registrations } = this.#options;
    const { id, node, options } = item;
    const { retryUncertain, keep, resolveMs } = options;
    const evidence = reconciliations.open(item);
    let outcome: Outcome = error;
    if (evidence) {
      const message = repository.messages.find(id);
      // While the message is in this phase, users cannot decide about it.
      if (message) repository.messages.move(message, 'searching');
      registrations.reportState(node);
      try {
        outcome = await evidence.search(error, resolveMs, repository.closing.signal);
      } catch {
        // The account is closing. Notes the error, so that the search for evidence is repeated when the account opens
        // again.
        evidence.interruptedWith = error;
        return undefined;
      } finally {
        if (message?.phase === 'searching') {
          repository.messages.move(message, evidence.interruptedWith === error ? 'sending' : 'settling');
        }
        registrations.reportState(node);
      }
    }
    if (outcome instanceof SmsError && retryUncertain && keep) {
      const repeats = { repeats: (item.repeats ?? 0) + 1 };
      const unknown = formatOutcome(outcome);
      const requeued = await repository.messages.during(id, 'settling', () =>
        repository.sendAgain(item, unknown, repeats),
      );
      return requeued === stale || requeued.state === 'settled' ? undefined : requeued;
    }
    await this.end(item, { by: 'settle', outcome });
    return undefined;
  }

  /** Ends a message whose node has been absent for too long. Never rejects. */
  async abandon(item: MessageItem): Promise<void> {
    const { repository, reconciliations, account } = this.#options;
    account.onAbandoned(item.node);
    this.forget(item.id);
    reconciliations.close(item.id);
    await repository.discard(item).catch(account.onFault);
  }

  /**
   * Discards a message for a user. Returns `false` if the message cannot be discarded.
   *
   * @throws SmsError `SMS_STORE` if the store cannot write the change now. The message then stays
   */
  async discard(item: MessageItem): Promise<boolean> {
    const { repository, replies, reconciliations, registrations, account } = this.#options;
    const { id, node } = item;
    if (!(await repository.discard(item, 'refuse'))) return false;
    reconciliations.close(id);
    const origin = this.forget(id);
    replies.begin(id);
    account.onDiscarded(node);
    if (origin !== undefined) registrations.handlerOf(node)?.onDiscarded(origin);
    registrations.reportState(node);
    return true;
  }

  /**
   * Reports to a node an outcome that the store does not have. Never rejects, because an error in the node does not
   * change the outcome.
   */
  async report({ from, origin }: MessageSource, item: MessageItem, outcome: Outcome, duplicate = false): Promise<void> {
    if (item.again) return;
    const event = createEvent(item, { outcome, origin, flowMessage: item.flowMessage, redelivered: false, duplicate });
    try {
      if (!(await from.handler.onOutcome(event))) from.handler.onMissed?.(event);
    } catch (error) {
      this.#options.account.onFault(error);
    }
  }

  /** Cleans up after the outcome of a message has entered the flow, or was dropped. */
  #delivered({ id, options, outcome }: MessageItem): void {
    const { repository, replies } = this.#options;
    if (asks({ options })) {
      replies.begin(id);
      // If the store is closed, for example by a redeploy, keeps the input, because the store might have reply requests
      // that need it.
      const mayAsk = !repository.journal.isOpen && outcome !== undefined && 'sent' in outcome;
      if (mayAsk || repository.followUps.hasOf(id)) return;
    }
    this.forget(id);
  }
}

function createEvent(
  item: MessageItem,
  event: Omit<OutcomeEvent, 'message' | 'encoding' | 'parts' | 'isKept'>,
): OutcomeEvent {
  const { message, encoding, parts, replacements } = item;
  // Nothing was sent for the duplicate itself, so `SMS_UNCERTAIN` replaces the unknown outcome of the first message.
  if (event.duplicate && event.outcome instanceof SmsError && isUnknown(event.outcome)) {
    event.outcome = new SmsError('uncertainBefore', { ...event.outcome, params: { detail: event.outcome.code } });
  }
  return { message, encoding, parts, ...(replacements && { replacements }), isKept: isKept(item), ...event };
}
