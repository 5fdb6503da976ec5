import { asSmsError, isSmsError, SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Replies } from '../replies/replies';
import { type Absences, endOfOutcome } from './expiry';
import type { Ledger, OutboxOptions } from './ledger';
import type { Reconciliations } from './reconciliation';
import { Redelivery } from './redelivery';
import { createTooEarly, explainWithheld, holdsAny } from './rules';
import type { OutcomeEvent, SenderRegistration, SenderRegistrations } from './sender-registrations';
import {
  asks,
  formatOutcome,
  isFollowed,
  isKept,
  isReconciled,
  isTracked,
  isUnknown,
  isUnsent,
  type Outcome,
  parseOutcome,
  submittedOf,
  type Text,
  uncountedBy,
  withMessageId,
  withWithheld,
} from './text';
import { type Ending, type Stale, stale } from './transitions';

/** What brings texts to their end. */
export interface SettlementOptions extends OutboxOptions {
  ledger: Ledger;
  registrations: SenderRegistrations;
  /** What nodes gave with texts that may outlast the call that gave it. It is in no store, and a node may come back for it. */
  origins: Map<string, unknown>;
  absences: Absences;
  replies: Replies;
  reconciliations: Reconciliations;
}

/** Who gave a text, and what with it. */
export interface Given {
  from: SenderRegistration;
  origin: unknown;
}

/**
 * How texts leave, to those of their recipients that no rule withholds, who are counted; and what follows, until the outcome has
 * entered the flow: each text ends once.
 */
export class Settlement {
  readonly #options: SettlementOptions;
  /** Brings the outcomes of settled texts into the flow, now or when their nodes are back. */
  readonly redelivery: Redelivery<Text>;

  constructor(options: SettlementOptions) {
    this.#options = options;
    const { clock, ledger, origins, absences, registrations, onAbandoned } = options;
    this.redelivery = new Redelivery({
      ...options,
      items: ledger.messages,
      handlerOf: ({ node }) => registrations.handlerOf(node),
      patienceMs: (text) => absences.leftMs(text.node, endOfOutcome(text, clock)),
      tell: async (handler, text, mayBeKnown) => {
        if (text.again) return true;
        const { id, outcome, isManuallyResent, sendNowAt } = text;
        if (!outcome) throw new Error('not settled');
        const origin = origins.get(id);
        // Where the node gave it here, it is in memory as it came.
        const flowMessage = origin === undefined ? await ledger.flowMessageOf(text) : text.flowMessage;
        const news = createNews(text, {
          outcome: parseOutcome(outcome),
          origin,
          flowMessage,
          redelivered: mayBeKnown || isManuallyResent === true || sendNowAt !== undefined,
          duplicate: false,
        });
        return handler.onOutcome(news);
      },
      ended: async (text, isMissed) => {
        await ledger.delivered(text);
        this.#delivered(text);
        // What is unknown is listed from now on, for somebody to decide about.
        if (isMissed && !ledger.messages.has(text.id)) onAbandoned(text.node);
      },
    });
  }

  /** Lets go of what a node gave with a text, and returns it. */
  forget(id: string): unknown {
    const { origins } = this.#options;
    const origin = origins.get(id);
    origins.delete(id);
    return origin;
  }

  /**
   * Makes one try. The rules are asked before the request is made, where one is known to withhold somebody, and as it
   * leaves; whom one withholds by then it does not go to. That it leaves is written where the text is to outlive the process. Never rejects:
   * its outcome is as `Client.send` says, or as the first rule does when nobody is left, or it may not leave yet.
   *
   * @param signal ends one that has not left
   * @returns what came of it, and the text as it stands then: it may have left; `stale` if another step has moved it
   */
  async attempt(text: Text, client: Client, signal: AbortSignal): Promise<{ text: Text; outcome: Outcome } | Stale> {
    const { ledger, reconciliations, rules } = this.#options;
    const isWritten = () => isTracked(text) || isFollowed(text) || holdsAny(rules);
    const isMarked = isReconciled(text) || isWritten();
    let current = text;
    try {
      if (!isMarked && !text.withheld) return { text, outcome: await client.send(text.message, { signal }) };
      for (;;) {
        const { text: judged, notBefore } = await ledger.judge(text);
        current = judged;
        const to = submittedOf(judged);
        // That of the first rule is the error of a text that nobody is left for.
        const [first] = judged.withheld ?? [];
        if (first && to.length === 0) throw explainWithheld(first);
        if (notBefore !== undefined) throw createTooEarly(notBefore);
        let marking: Promise<Text | Stale | undefined> | undefined;
        let isOvertaken = false;
        const beforeLeaving = async () => {
          reconciliations.open(judged, client);
          marking = isWritten() ? ledger.leave(judged) : Promise.resolve(judged);
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
          // The request may have been given up while the mark was being written.
          const marked = await marking?.catch(() => undefined);
          if (marked === stale || marked?.state === 'settled') return stale;
          if (marked && isSmsError(error, 'SMS_UNREACHABLE', 'SMS_CLOSED')) {
            const back = await ledger.putBack(marked);
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

  /** A message was replaced or withdrawn: that is written, and its outcome enters the flow. */
  superseded(text: Text): void {
    const { ledger, reconciliations, registrations, counts, onFault } = this.#options;
    reconciliations.close(text.id);
    if (text.outcome) counts.add(parseOutcome(text.outcome), text.message.to.length);
    ledger.duplicates.ended(text);
    void this.redelivery.deliver(text, false).catch(onFault);
    registrations.tellState(text.node);
  }

  /**
   * A message ends, unless it stands where it cannot end so. Says whether it has ended.
   */
  async end(given: Text, ending: Ending, source?: Given): Promise<boolean> {
    const { ledger, reconciliations, counts } = this.#options;
    const text = { ...given, ...ending.change };
    const { outcome: told } = ending;
    // An earlier try may have been accepted, so it must not be called unsent.
    const known = text.previousAttempt && isUnsent(told) ? parseOutcome(text.previousAttempt.outcome) : told;
    const outcome = withMessageId(known instanceof SmsError ? known : withWithheld(known, text), text);
    const isWritten = isTracked(text) || isFollowed(text) || uncountedBy(text, outcome).length > 0;
    // Its replies wait until its outcome has entered the flow.
    const untracked = !isTracked(text) && asks(text) ? ledger.messages.begin(text, 'settling') : undefined;
    let settled: Text | Stale = text;
    try {
      if (isWritten) {
        settled = await ledger.messages.during(text.id, 'settling', () => ledger.settle(given, { ...ending, outcome }));
      }
      if (settled === stale) return false;
      if (isReconciled(text)) reconciliations.close(text.id);
      counts.add(outcome, text.message.to.length, text.withheld);
      if (isTracked(text)) {
        await this.redelivery.deliver(settled, false);
        return true;
      }
      if (source) await this.tell(source, settled, outcome);
    } finally {
      if (untracked) ledger.messages.delete(text.id);
    }
    this.#delivered(settled);
    return true;
  }

  /** An earlier process had it leave, or this one before it was closed: its outcome is unknown. Where nobody is here who could look for it, whoever opens this, or takes over from it, does. */
  async takeUp(text: Text): Promise<Text | undefined> {
    const { ledger, reconciliations, registrations } = this.#options;
    const canLook = !isReconciled(text) || registrations.clientFor(text.node) !== undefined;
    if (ledger.isClosed || !canLook) return undefined;
    const error =
      reconciliations.get(text.id)?.interruptedWith ?? new SmsError('uncertain', { params: { detail: 'stopped' } });
    return this.reconcile(text, error);
  }

  /** The outcome of a kept text is unknown: evidence is looked for before anything else. Results in the text where it is to be sent again. */
  async reconcile(text: Text, error: SmsError): Promise<Text | undefined> {
    const { ledger, reconciliations, registrations } = this.#options;
    const { id, node, options } = text;
    const { retryUncertain, keep, resolveMs } = options;
    const evidence = reconciliations.open(text);
    let outcome: Outcome = error;
    if (evidence) {
      const message = ledger.messages.find(id);
      // No user can decide about it before its outcome is known.
      if (message) ledger.messages.move(message, 'searching');
      registrations.tellState(node);
      try {
        const { sent, searched } = await evidence.look(resolveMs, ledger.closing.signal);
        outcome = sent ?? error.with({ searched });
      } catch {
        // Looked for again when the account is used again.
        evidence.interruptedWith = error;
        return undefined;
      } finally {
        if (message?.phase === 'searching') {
          ledger.messages.move(message, evidence.interruptedWith === error ? 'sending' : 'settling');
        }
        registrations.tellState(node);
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

  /** The node of a text has not been here for too long. Never rejects. */
  async abandon(text: Text): Promise<void> {
    const { ledger, reconciliations, onAbandoned, onFault } = this.#options;
    onAbandoned(text.node);
    this.forget(text.id);
    reconciliations.close(text.id);
    await ledger.discard(text).catch(onFault);
  }

  /**
   * A user discards a message. Says whether it could be discarded.
   *
   * @throws SmsError `SMS_STORE` if that cannot be written now: the message stays
   */
  async discard(text: Text): Promise<boolean> {
    const { ledger, replies, reconciliations, registrations, onDiscarded } = this.#options;
    const { id, node } = text;
    if (!(await ledger.discard(text, 'refuse'))) return false;
    reconciliations.close(id);
    const origin = this.forget(id);
    replies.begin(id);
    onDiscarded(node);
    if (origin !== undefined) registrations.handlerOf(node)?.onDiscarded(origin);
    registrations.tellState(node);
    return true;
  }

  /** Tells a node an outcome that is in no store. Never rejects: a node that throws makes no other outcome of it. */
  async tell({ from, origin }: Given, text: Text, outcome: Outcome, duplicate = false): Promise<void> {
    if (text.again) return;
    const news = createNews(text, { outcome, origin, flowMessage: text.flowMessage, redelivered: false, duplicate });
    try {
      if (!(await from.handler.onOutcome(news))) from.handler.onMissed?.(news);
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  /** The outcome of a text has entered the flow, or never will. */
  #delivered({ id, options, outcome }: Text): void {
    const { journal, ledger, replies } = this.#options;
    if (asks({ options })) {
      replies.begin(id);
      // A redeploy may have closed the store that has its reply requests.
      const mayAsk = !journal.isOpen && outcome !== undefined && 'sent' in outcome;
      if (mayAsk || ledger.followUps.hasOf(id)) return;
    }
    this.forget(id);
  }
}

function createNews(text: Text, told: Omit<OutcomeEvent, 'message' | 'encoding' | 'parts' | 'isKept'>): OutcomeEvent {
  const { message, encoding, parts, replacements } = text;
  // Whichever error it was, that of a text that was not sent itself is `SMS_UNCERTAIN`.
  if (told.duplicate && told.outcome instanceof SmsError && isUnknown(told.outcome)) {
    told.outcome = new SmsError('uncertainBefore', { ...told.outcome, params: { detail: told.outcome.code } });
  }
  return { message, encoding, parts, ...(replacements && { replacements }), isKept: isKept(text), ...told };
}
