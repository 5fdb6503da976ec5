import { randomUUID } from 'node:crypto';
import { nextTurn, wait } from '../clock';
import { asSmsError, isSmsError, SmsError } from '../errors';
import type { Participant } from '../journal/journal';
import { awaitedKindOf, type FollowUp, type ReplyRequest } from '../replies/follow-ups';
import { Replies } from '../replies/replies';
import type { Item } from '../store/store';
import { Admin } from './admin';
import { Dispatcher } from './dispatcher';
import {
  asks,
  formatOutcome,
  isKept,
  isTracked,
  isUnknown,
  type MessageItem,
  type Outcome,
  parseOutcome,
  withMessageId,
} from './message-item';
import { isReadableItem, MessageRepository } from './message-repository';
import type { OutboxOptions } from './options';
import { UnderWay } from './queue';
import { Reconciliations } from './reconciliation';
import { assertAnyAllowed, isWithheldError, keepUntilDue, maxScheduled, mayLeaveAt } from './rules';
import {
  closeGraceMs,
  type SenderRegistration,
  SenderRegistrations,
  type SendHandler,
  type SendingNode,
  type SendRequest,
} from './sender-registrations';
import { type MessageSource, Settlement } from './settlement';
import { type Stale, stale } from './transitions';

/** First delay before a message that is not stored is tried again, in ms. The delay doubles with each further try. */
const firstDelayMs = 200;
/** Maximum delay before a message that is not stored is tried again, in ms. */
const maxDelayMs = 30_000;

/** Maximum number of reply requests and reports resumed in one turn of the event loop. A store can contain 100,000. */
const maxPerTurn = 1_000;

/** Kinds of follow-ups that a message can have. */
const kinds = ['replyRequest', 'report'] as const;

/**
 * The sending side of an account: accepts and sends messages, resolves unknown outcomes, and waits for replies. It
 * reports each outcome to the node of the message. The {@link MessageRepository} keeps everything that must survive the
 * process.
 */
export class Outbox implements Participant {
  /** See {@link Participant.isReadable}. */
  readonly isReadable = isReadableItem;
  /** Shows the activity of the outbox, and carries out the decisions of users. */
  readonly admin: Admin;
  /** The sending nodes. */
  readonly registrations: SenderRegistrations;
  readonly replies: Replies;
  readonly #options: OutboxOptions;
  readonly #repository: MessageRepository;
  readonly #reconciliations: Reconciliations;
  readonly #settlement: Settlement;
  readonly #dispatcher: Dispatcher;
  /** Second messages (option `again`) that are being sent now, each as `<id of the reply request> <handset>`. */
  readonly #againUnderWay = new Set<string>();
  /**
   * The running work of each node: messages that the outbox is accepting, or sending without storing them. The work of
   * a closed node stays in this set until it has ended.
   */
  readonly #running = new Set<UnderWay>();

  constructor(options: OutboxOptions) {
    const { journal, clock, queue, counts, outage, storeNotices, settings, account } = options;
    const { rules } = settings;
    const { onFault, onAbandoned } = account;
    const repository = new MessageRepository({ journal, clock, settings });
    const registrations = new SenderRegistrations({ journal, clock, outage, storeNotices, account, repository });
    const reconciliations = new Reconciliations({ clock, account, registrations });
    const replies = new Replies({ clock, repository, registrations, reconciliations, onAbandoned, onFault });
    const sending = { clock, rules, repository, registrations };
    const settlement = new Settlement({ ...sending, counts, account, reconciliations, replies });
    const dispatcher = new Dispatcher({ ...sending, queue, outage, settlement, onFault });
    this.#options = options;
    this.#repository = repository;
    this.registrations = registrations;
    this.#reconciliations = reconciliations;
    this.replies = replies;
    this.#settlement = settlement;
    this.#dispatcher = dispatcher;
    this.admin = new Admin({ ...sending, counts, queue, reconciliations, settlement, dispatcher });
    repository.events.on('superseded', (item) => {
      dispatcher.release(item.id);
      settlement.superseded(item);
    });
    repository.events.on('openRequests', (node, kind) => {
      this.#reportOpenRequests(node, kind);
      registrations.reportState(node);
    });
    replies.events.on('againDue', (request) => void this.#sendAgain(request).catch(onFault));
    journal.join('outgoing', this);
  }

  /** Reschedules messages after a change of quiet hours. */
  quietHoursChanged(): void {
    this.#dispatcher.quietHoursChanged();
  }

  /** See {@link MessageRepository.hasRefused}. */
  get hasRefused(): boolean {
    return this.#repository.hasRefused;
  }

  /** Whether the outbox can be forgotten without losing anything, once its store is closed. */
  get isSettled(): boolean {
    return this.#repository.isSettled;
  }

  /**
   * Whether memory still has inputs of open messages or reply requests. The store keeps only JSON, so it cannot restore
   * these inputs.
   */
  get hasMessages(): boolean {
    return this.#repository.inputs.size > 0;
  }

  /** Registers a sending node. Messages that the node sent earlier continue. */
  attach(handler: SendHandler): SendingNode {
    const { registrations } = this;
    const { clock, journal } = this.#options;
    const { id } = handler;
    const running = new UnderWay(() => registrations.reportState(id));
    const [stop, giveUp] = [new AbortController(), new AbortController()];
    const registration = { handler, running, stopped: stop.signal, givenUp: giveUp.signal };
    registrations.add(registration);
    this.#running.add(running);
    this.#begin();
    this.#nodeChanged(id);
    for (const kind of kinds) this.#reportOpenRequests(id, kind);
    // Opens an unshared store even if this node does not use it, so that stored messages of removed nodes can expire.
    // Does not open a shared store for this, because another instance might still have the removed nodes.
    if (handler.usesStore || (!journal.isShared && journal.mayHold)) journal.open();
    this.replies.nodeAttached(id);
    registrations.greet(registration);
    return {
      send: (request) => void running.run(() => this.#submit(request, registration)),
      withdraw: (key) => running.run(() => this.#repository.withdraw(id, key)),
      countRefused: () => this.admin.counts.refused++,
      close: async () => {
        stop.abort();
        const timer = clock.after(closeGraceMs, () => giveUp.abort());
        registrations.delete(registration);
        this.#nodeChanged(id);
        await running.idle();
        timer.cancel();
        this.#running.delete(running);
      },
    };
  }

  /** Continues after {@link close}, even without a sending node, so that messages of removed nodes expire. */
  open(): void {
    this.#begin();
    this.#options.journal.ensureRead();
  }

  /**
   * Closes the outbox after the last node was removed. Resolves when no request is running.
   *
   * @param graceMs maximum time to wait for the answers to sent requests
   */
  async close(graceMs = closeGraceMs): Promise<void> {
    this.#repository.isClosed = true;
    this.#repository.closing.abort();
    this.#repository.dueTimes.clear();
    for (const part of [this.#settlement.redelivery, this.replies]) part.close();
    // Does not wait for nodes that attach while the outbox is closing.
    const running = [...this.#running].map((one) => one.idle());
    await Promise.all([this.#dispatcher.close(graceMs), ...running]);
    this.#repository.inTransit.clear();
  }

  /**
   * Moves the inputs of imported messages from their former outbox to this one. The store contains only JSON, no
   * inputs.
   */
  importInputs(source: Outbox): void {
    for (const [id, input] of source.#repository.inputs) this.#repository.inputs.set(id, input);
    source.#repository.inputs.clear();
  }

  /** See {@link Participant.wantedNames}. */
  wantedNames(): string[] {
    return this.registrations.nodes.map((node) => `node ${node}`);
  }

  /** See {@link Participant.receiveItems}. */
  async receiveItems(items: readonly Item[], isOpening: boolean): Promise<void> {
    if (isOpening) void this.registrations.onStore();
    if (isOpening) void this.#repository.findRemembered();
    const { messages, followUps } = this.#repository.addFound(items, isOpening);
    // Resumes the messages before the follow-ups, because the outbox must have all messages before the first step.
    this.#resume(messages, []);
    for (let start = 0; start < followUps.length; start += maxPerTurn) {
      if (start > 0) await nextTurn(this.#options.clock);
      const part = followUps.slice(start, start + maxPerTurn);
      for (const followUp of part) this.#repository.followUps.set(followUp);
      this.#resume([], part);
    }
  }

  /** See {@link Participant.itemOf}. */
  itemOf(id: string): Item | undefined {
    const { messages, followUps } = this.#repository;
    const item = messages.get(id);
    return item && isTracked(item) ? item : followUps.get(id);
  }

  /** See {@link Participant.forget}. */
  forget(id: string): void {
    const repository = this.#repository;
    const followUp = repository.followUps.get(id);
    this.#dispatcher.release(id);
    this.#reconciliations.close(id);
    repository.messages.delete(id);
    repository.followUps.delete(id);
    const message = followUp?.messageItemId ?? id;
    if (!repository.messages.has(message) && !repository.followUps.hasOf(message)) this.#settlement.forget(message);
  }

  /** See {@link Participant.releaseAll}. */
  releaseAll(): void {
    const { messages, followUps } = this.#repository;
    for (const { id, isOwned } of [...messages.values()]) if (!isOwned) messages.delete(id);
    followUps.clear();
  }

  /** Continues after {@link close}. */
  #begin(): void {
    const repository = this.#repository;
    if (!repository.isClosed) return;
    repository.isClosed = false;
    repository.closing = new AbortController();
    this.#dispatcher.open();
    // Memory still has the messages that are not stored, so these are resumed, too.
    const items = [...repository.messages.values()].map(({ item }) => item);
    this.#resume(items, [...repository.followUps.values()]);
  }

  /** Resumes the messages of an earlier process, or of a dead instance. */
  #resume(items: readonly MessageItem[], followUps: readonly FollowUp[]): void {
    if (items.length > 0) this.#dispatcher.gather();
    for (const item of items) void this.#resumeMessage(item).catch(this.#options.account.onFault);
    this.replies.resume(followUps);
    for (const node of new Set(followUps.map((followUp) => followUp.node))) {
      for (const kind of kinds) this.#reportOpenRequests(node, kind);
    }
  }

  #reportOpenRequests(node: string, kind: FollowUp['kind']): void {
    this.#options.account.onOpenRequests(
      node,
      awaitedKindOf[kind],
      this.#repository.followUps.openCounts[kind].has(node),
    );
  }

  async #resumeMessage(item: MessageItem): Promise<void> {
    const repository = this.#repository;
    const dispatcher = this.#dispatcher;
    const settlement = this.#settlement;
    const message = repository.messages.find(item.id);
    if (!message || message.isOwned || message.abort) return;
    if (item.state === 'waiting' && isKept(item)) dispatcher.admit(item);
    // The message was stored only to reserve its deduplication key, and was not sent. Frees the key.
    else if (item.state === 'waiting' && !repository.isClosed) await repository.discard(item);
    // The message might have been sent, so its outcome is unknown.
    else if (item.state === 'leaving') dispatcher.sendAgain(await settlement.resume(item));
    else if (item.state === 'settled') await settlement.redelivery.deliver(item, true);
    else if (item.state === 'uncertain' && !repository.isClosed) repository.awaitDecision(item);
  }

  /** Notes that a node was deployed or removed. Its messages can now be sent, or wait for the node. */
  #nodeChanged(node: string): void {
    this.#settlement.redelivery.nodeChanged(node);
    this.replies.redelivery.nodeChanged(node);
    this.#dispatcher.nodeChanged(node);
  }

  /** Sends the second message (option `again`) of a request to the remaining handsets, if its node is deployed. */
  async #sendAgain(request: ReplyRequest): Promise<void> {
    const from = this.registrations.registrationOf(request.node);
    const template = from && (await this.replies.againOf(request));
    if (!template || from.stopped.aborted || this.#repository.isClosed) return;
    const { id, recipient, reference, waitMs } = request;
    for (const handset of this.replies.dueOf(id)) {
      const key = `${id} ${handset}`;
      if (this.#againUnderWay.has(key)) continue;
      this.#againUnderWay.add(key);
      const { hasOwnId, message, ...draft } = template;
      const messageId = hasOwnId ? { messageId: randomUUID() } : undefined;
      const order = { ...draft, message: { ...message, to: [handset], ...messageId } };
      const item = this.#createMessage({ ...order, origin: undefined, flowMessage: () => '' }, request.node);
      item.again = { request: id, recipient, reference, waitMs };
      const sent = from.running.run(() => this.#submitMessage(item, { from, origin: undefined }));
      void sent
        .then(() => (from.stopped.aborted ? undefined : this.replies.againEnded(id, handset)))
        .finally(() => this.#againUnderWay.delete(key));
    }
  }

  #submit(request: SendRequest, from: SenderRegistration): Promise<void> {
    return this.#submitMessage(this.#createMessage(request, from.handler.id), { from, origin: request.origin });
  }

  /**
   * Processes a new message. Resolves when the message is stored or has ended, at the latest 10 s after its node is
   * closed. Never rejects, because each failure is an outcome.
   */
  async #submitMessage(item: MessageItem, source: MessageSource): Promise<void> {
    const message = isTracked(item) ? this.#repository.messages.begin(item, 'accepting') : undefined;
    try {
      const { keep, replaceKey } = item.options;
      if (replaceKey !== undefined && !keep) throw new SmsError('replaceNotStored', { field: 'replace' });
      assertAnyAllowed({ recipients: item.message.to, rules: this.#options.settings.rules, item });
      if (isTracked(item)) await this.#accept(item, source);
      else await this.#sendToEnd(item, source);
    } catch (error) {
      await this.#refuse(item, source, error);
    } finally {
      if (message) message.isOwned = false;
      if (message?.phase === 'accepting') this.#repository.messages.delete(item.id);
    }
  }

  /** Stores a message, or reserves its deduplication key, before sending it. A duplicate gets the earlier outcome. */
  async #accept(item: MessageItem, source: MessageSource): Promise<void> {
    const { clock, settings } = this.#options;
    const repository = this.#repository;
    const dispatcher = this.#dispatcher;
    const now = clock.now();
    const isKept = item.options.keep !== undefined;
    const isScheduled = isKept && mayLeaveAt(item, now, settings.rules.quietHours) > now;
    const arriving = isScheduled ? 'scheduled' : 'unscheduled';
    const { once, replaceKey } = item.options;
    const busy = this.#whyBusy(isScheduled);
    // If the queue is full, refuses the message before it is stored. Exceptions: a duplicate needs no queue place, and
    // a replacement uses the place of the older message.
    if (busy && isKept && once === undefined && replaceKey === undefined) throw busy;
    dispatcher.arriving[arriving]++;
    const accept = async () => {
      const acceptance = await repository.accept(item, { busy });
      if (acceptance.verdict.type !== 'underway') return acceptance;
      const acceptAgain = (firstId: string) => repository.accept(item, { firstId });
      const waiting = { firstId: acceptance.verdict.id, signal: source.from.stopped, accept: acceptAgain };
      return repository.duplicates.wait(item, waiting);
    };
    const { verdict, item: accepted } = await accept().finally(() => dispatcher.arriving[arriving]--);
    if (verdict.type === 'taken') throw new SmsError('onceTaken', { field: 'once' });
    if (verdict.type === 'ended') {
      await this.#settlement.report(source, item, parseOutcome(verdict.outcome), true);
      this.#settlement.forget(item.id);
    } else if (isKept) dispatcher.admit(accepted);
    else await this.#sendToEnd(accepted, source);
  }

  /** Returns `SMS_BUSY` if a message to be stored would have to wait, and no place is left for it. */
  #whyBusy(isScheduled: boolean): SmsError | undefined {
    const { outage, queue } = this.#options;
    if (!isScheduled) return queue.busy(outage.error ? 0 : queue.free);
    const isFull = this.#dispatcher.arriving.scheduled + this.#repository.messages.counts.scheduled >= maxScheduled;
    return isFull ? new SmsError('busyScheduled', { params: { limit: maxScheduled } }) : undefined;
  }

  /**
   * Sends a message that is not stored. Tries again, up to `retries` times, in these cases:
   *
   * - The request never reached the service.
   * - The outcome is unknown, no evidence was found, and the message has `retryUncertain`. After the delay, the next
   *   try takes a new turn. The message uses no queue place during the delay, and a full queue does not refuse it.
   *
   * The first delay between tries is 0.2 s. Each further delay is twice as long, up to 30 s. If the node closes during
   * a request, the account still waits up to 7 s for the outcome.
   *
   * The outcome is that of the last try. If the last try sent nothing, an unknown outcome of an earlier try applies
   * instead. If the flow stopped before the next try, and no try has an unknown outcome, the outcome is `SMS_CLOSED`.
   */
  async #sendToEnd(item: MessageItem, source: MessageSource): Promise<void> {
    const { clock, queue } = this.#options;
    const settlement = this.#settlement;
    const { handler, stopped: signal, givenUp } = source.from;
    const { client } = handler;
    const { retries, retryUncertain, resolveMs, priority } = item.options;
    let current = item;
    const end = (outcome: Outcome) =>
      settlement.end(current, { by: 'settle', outcome: asUnsent(current, outcome) }, source);
    let further = 0;
    /** Rejects if the flow stops before the delay is over. */
    const waitForNext = () => wait(clock, Math.min(maxDelayMs, firstDelayMs * 2 ** further++), signal);
    /**
     * Makes the tries of one turn: tries again while the service is unreachable, up to `retries` times. A message that
     * the rules withheld does not count for the pace of the queue.
     */
    const take = async (refund: () => void): Promise<Outcome | Stale> => {
      for (;;) {
        const attempt = await settlement.attempt(current, client, givenUp);
        if (attempt === stale) return stale;
        const { item, outcome } = attempt;
        current = item;
        if (!(outcome instanceof SmsError)) return outcome;
        if (isWithheldError(outcome)) refund();
        if (!isSmsError(outcome, 'SMS_UNREACHABLE') || further >= retries) return outcome;
        await waitForNext().catch(() => {
          throw new SmsError('closed', { cause: outcome });
        });
      }
    };
    const order = queue.arrive();
    for (;;) {
      const outcome = await queue
        .run(take, { signal, priority, ...(current.previousAttempt && { order }) })
        .catch(asSmsError);
      // Another instance has claimed the message, and will end it.
      if (outcome === stale) return void settlement.forget(item.id);
      if (!(outcome instanceof SmsError && isUnknown(outcome))) return void (await end(outcome));
      let uncertain = outcome;
      // Includes the evidence that the account has collected since the message was sent.
      const evidence = this.#reconciliations.open(current, client);
      try {
        if (evidence) {
          const result = await evidence.search(outcome, resolveMs, givenUp);
          if (!(result instanceof SmsError)) return void (await end(result));
          uncertain = result;
        }
        if (!retryUncertain || further >= retries) return void (await end(uncertain));
        await waitForNext();
      } catch {
        // The flow stopped during the wait, so there is no further try.
        return void (await end(uncertain));
      }
      const requeued = await this.#repository.sendAgain(current, formatOutcome(uncertain), {});
      if (requeued === stale) return void settlement.forget(item.id);
      current = requeued;
    }
  }

  /** Ends a message that the outbox did not accept. */
  async #refuse(item: MessageItem, source: MessageSource, error: unknown): Promise<void> {
    // A store that is closed, but not failing, was closed because the flow stopped.
    const isShut = isSmsError(error, 'SMS_STORE') && !this.#options.journal.failure;
    const isStopped = source.from.stopped.aborted && (isShut || !isSmsError(error));
    const outcome = withMessageId(asUnsent(item, isStopped ? new SmsError('closed') : asSmsError(error)), item);
    // The error of this message also reports the store failure, so the node is not notified again. Exception: if stored
    // messages wait, the node receives a second error with their number.
    const { waiting } = this.registrations.stateOf(item.node);
    if (isSmsError(outcome, 'SMS_STORE') && !isShut && waiting === 0) this.#options.storeNotices.add(item.node);
    this.#options.counts.add(outcome, item.message.to.length);
    await this.#settlement.report(source, item, outcome);
    this.#settlement.forget(item.id);
  }

  #createMessage({ flowMessage, origin, ...request }: SendRequest, node: string): MessageItem {
    const { journal, clock, settings } = this.#options;
    const arrivedAt = clock.now();
    const item: MessageItem = {
      ...request,
      id: journal.nextId(),
      part: 'outgoing',
      kind: 'message',
      subscribers: [`node ${node}`],
      attempts: 0,
      state: 'waiting',
      node,
      options: keepUntilDue(request.options, arrivedAt, settings.rules),
      arrivedAt,
    };
    // Serialises the flow message now, because the flow can change it after the call.
    if (isTracked(item) || asks(item)) {
      item.flowMessage = flowMessage();
      this.#repository.inputs.set(item.id, origin);
    }
    return item;
  }
}

/**
 * Replaces the error `storeUnavailable`, whose text is about polling, with an error about an unsent message. Other
 * store errors stay, because they name a remedy.
 */
function asUnsent<End extends Outcome>(item: MessageItem, outcome: End): End | SmsError {
  if (!isTracked(item) || !isSmsError(outcome, 'SMS_STORE') || outcome.reason !== 'storeUnavailable') return outcome;
  return new SmsError('keepRefused', { params: { detail: String(outcome.params.detail ?? '') } });
}
