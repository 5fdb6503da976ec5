import BTree from 'sorted-btree';
import type { Clock, Timer } from '../clock';
import { SmsError } from '../errors';
import { backOffMs } from '../polling/poll-loop';
import { createExpired, endOf } from './expiry';
import { isOutage, isUnknown, type MessageItem, type Outcome } from './message-item';
import type { MessageRepository } from './message-repository';
import type { OutgoingMessage } from './messages';
import type { Outage, SendFailure } from './outage';
import { placeOf, type SendQueue, type TurnSource, UnderWay } from './queue';
import { isWithheldError, mayLeaveAt, type RuleSettings } from './rules';
import type { SenderRegistrations } from './sender-registrations';
import type { Settlement } from './settlement';
import { stale } from './transitions';

interface DispatcherOptions {
  clock: Clock;
  queue: SendQueue;
  /** Tracks outages of the service, during which stored messages wait. */
  outage: Outage;
  rules: RuleSettings;
  repository: MessageRepository;
  registrations: SenderRegistrations;
  settlement: Settlement;
  /** Called when background work fails. */
  onFault(error: unknown): void;
}

/**
 * Delay before an expired message is checked again, in ms. Used if the message expires while its state `leaving` is
 * being written.
 */
const postponedMs = 1_000;

/** Prefix of the queue key of a message that a user sends now. Keys with this prefix sort before all other keys. */
const urgent = '!';

/**
 * Decides when stored messages are sent. Each message waits for its scheduled time, its node, the end of an outage, and
 * its turn in the queue. During an outage, one message at a time is tried, after a growing delay. The dispatcher ends
 * messages that expire.
 */
export class Dispatcher implements TurnSource {
  /** Numbers of messages that the outbox is accepting. `scheduled`: messages that cannot be sent yet. */
  readonly arriving = { scheduled: 0, unscheduled: 0 };
  readonly #options: DispatcherOptions;
  /** Messages that wait only for the service and their turn, by the key {@link OutgoingMessage.turn}. */
  readonly #ready = new BTree<string, OutgoingMessage>();
  readonly #tries = new UnderWay();
  /**
   * Delays all messages until the next turn of the event loop, so that a later message with a higher priority goes
   * first.
   */
  #gathering: Timer | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.open();
  }

  /** See {@link TurnSource}. Excludes scheduled messages, because the queue limit does not apply to them. */
  get waiting(): number {
    const { queued, paused } = this.#options.repository.messages.counts;
    return this.arriving.unscheduled + queued + paused;
  }

  /** The current outage. `undefined` unless stored messages wait for its end. */
  get failing(): SendFailure | undefined {
    const { repository, outage } = this.#options;
    const { queued, scheduled, paused, connecting, sending } = repository.messages.counts;
    return queued + scheduled + paused + connecting + sending > 0 && !repository.isClosed ? outage.state : undefined;
  }

  /**
   * Queues a stored message. Does nothing while the outbox is closed, because all stored messages are queued when the
   * outbox opens.
   *
   * @param repeats number of earlier tries with an unknown outcome. If above 0, the message first pauses
   * @param isUrgent true to send the message before all other messages
   */
  admit(item: MessageItem, repeats = 0, isUrgent = false): void {
    const { clock, repository, outage, queue, rules } = this.#options;
    const message = repository.messages.find(item.id);
    if (repository.isClosed || !message) return;
    const place = message.place ?? placeOf(item.options.priority, queue.arrive());
    this.#dequeue(message);
    Object.assign(message, { place, isOwned: false, end: endOf(item, clock, rules) });
    repository.messages.move(message, 'queued');
    if (item.retryAfter) outage.recall(item.retryAfter);
    if (this.#schedule(message)) return;
    if (repeats > 0) {
      message.pausedUntil = clock.elapsed() + backOffMs(repeats, clock.random());
      repository.messages.move(message, 'paused');
    }
    this.#await(message);
    this.#queueUp(message, isUrgent);
  }

  /**
   * Delays the queue until the next turn of the event loop, so that messages that arrive together are sent in order of
   * priority.
   */
  gather(): void {
    const { clock, repository, queue, registrations } = this.#options;
    this.#gathering ??= clock.nextTurn(() => {
      this.#gathering = undefined;
      queue.nudge();
      this.#reportOutage();
      for (const node of registrations.nodes) {
        const { queued, scheduled, paused } = repository.messages.countsOf(node);
        if (queued + scheduled + paused > 0) registrations.reportState(node);
      }
    });
  }

  /**
   * Reschedules messages after a change of quiet hours, because the change can move the times at which messages are
   * sent or expire.
   */
  quietHoursChanged(): void {
    const { clock, repository, rules } = this.#options;
    for (const message of repository.messages.values()) {
      if (message.place === undefined) continue;
      message.end = endOf(message.item, clock, rules);
      if (message.phase !== 'scheduled') this.#await(message);
      else if (!this.#schedule(message)) this.#onDue(message.id);
    }
  }

  /**
   * Updates the messages of a node that was deployed or removed. Messages of a deployed node can be sent, and messages
   * of a removed node wait.
   */
  nodeChanged(node: string): void {
    for (const message of this.#options.repository.messages.values()) {
      if (message.item.node !== node || message.place === undefined) continue;
      this.#await(message);
      this.#queueUp(message);
    }
  }

  /** Sends a message next. Returns `false` if the message is being tried already, or is not queued in this process. */
  sendNow(id: string): boolean {
    const message = this.#options.repository.messages.find(id);
    if (message?.place === undefined || message.abort) return false;
    this.admit(message.item, 0, true);
    return true;
  }

  /** Takes a message in any state out of the queue. Aborts its request if the request was not sent yet. */
  release(id: string): void {
    const message = this.#options.repository.messages.find(id);
    if (!message) return;
    this.#dequeue(message);
    message.abort?.abort();
    message.abort = undefined;
  }

  /**
   * Removes a message from the queue. Returns `false` if it is too late, because the message is being sent or has an
   * outcome.
   */
  remove(id: string): boolean {
    const { isClosed, messages } = this.#options.repository;
    const message = messages.find(id);
    if (message && !messages.isWaiting(id)) return false;
    // A message of a closed outbox is no longer in the queue, so it counts as removed.
    if (message?.place === undefined) return isClosed && message !== undefined;
    this.release(id);
    return true;
  }

  /**
   * Stops making requests. Resolves when running requests have ended, or after `graceMs`. The waiting messages stay in
   * the store.
   */
  async close(graceMs: number): Promise<void> {
    const { clock, repository, outage, queue } = this.#options;
    queue.sources.delete(this);
    this.#gathering?.cancel();
    this.#gathering = undefined;
    outage.close();
    const followed = clock.after(graceMs, () => {
      for (const { abort } of repository.messages.values()) abort?.abort();
    });
    await this.#tries.idle();
    followed.cancel();
    if (!repository.isClosed) return;
    for (const message of repository.messages.values()) this.#dequeue(message);
  }

  /** Continues after {@link close}. */
  open(): void {
    const { outage, queue } = this.#options;
    queue.sources.add(this);
    outage.open(() => queue.nudge());
  }

  /**
   * See {@link TurnSource}. During an outage, only one message at a time is tried, and only when the next try is due. A
   * message that a user sends now does not wait for that time.
   */
  get first(): string | undefined {
    const { outage } = this.#options;
    if (this.#gathering || outage.probe !== undefined) return undefined;
    if (this.#ready.size === 0) {
      // If no message waits, ends the outage. The next message will show whether the service can be reached.
      if (outage.error && outage.delayMs === 0) outage.end();
      return undefined;
    }
    const first = this.#ready.minKey();
    return !outage.error || first?.startsWith(urgent) || outage.delayMs === 0 ? first : undefined;
  }

  /** See {@link TurnSource}. */
  async take(first: string, refund: () => void): Promise<void> {
    const message = this.#ready.get(first);
    if (!message || message.abort) return;
    const { repository, outage, registrations, onFault } = this.#options;
    const { id } = message;
    const { node } = message.item;
    this.#unready(message);
    if (outage.error) outage.probe = id;
    const isTried = await this.#tries.run(() => this.#takeTurn(message)).catch(onFault);
    if (!isTried) refund();
    if (outage.probe === id) outage.probe = undefined;
    if (repository.messages.find(id) === message && message.place !== undefined) this.#queueUp(message);
    registrations.reportState(node);
  }

  /**
   * Tries to send a message. Resolves with `false` if no request was made, so that the try does not count for the pace
   * of the queue.
   */
  async #takeTurn(message: OutgoingMessage): Promise<boolean> {
    const { repository, outage, queue, registrations, settlement, onFault } = this.#options;
    const { id } = message;
    this.#endIfOver(message);
    const { node } = message.item;
    const handler = registrations.handlerOf(node);
    const isHere = repository.messages.find(id) === message && message.place !== undefined;
    if (!isHere || !handler || this.#schedule(message)) return false;
    const abort = new AbortController();
    message.abort = abort;
    repository.messages.move(message, 'connecting');
    registrations.reportState(node);
    try {
      const attempt = await settlement.attempt(message.item, handler.client, abort.signal);
      if (attempt === stale) return false;
      const { item: tried, outcome } = attempt;
      const error = outcome instanceof SmsError ? outcome : undefined;
      // Whether a rule of the account or a store failure stopped the message. The service then received no request.
      const isKeptBack = error !== undefined && (error.code === 'SMS_STORE' || isWithheldError(error));
      // If the message was released during the try, or the account was closed, leaves the message alone.
      if (message.abort !== abort || message.place === undefined) return !isKeptBack;
      // Schedules the message, because quiet hours began just before its try.
      if (error?.code === 'SMS_QUIET') this.#schedule(message);
      else if (error && (error.code === 'SMS_CLOSED' || isOutage(error))) await this.#continueWaiting(message, error);
      else {
        if (!isKeptBack && outage.answered(id)) queue.nudge();
        this.#dequeue(message);
        void this.#end(message.item, { withheld: tried.withheld }, outcome).catch(onFault);
      }
      return !isKeptBack;
    } finally {
      if (message.abort === abort) message.abort = undefined;
      if (message.phase === 'connecting') repository.messages.move(message, 'queued');
    }
  }

  async #continueWaiting(message: OutgoingMessage, error: SmsError): Promise<void> {
    const { repository, outage } = this.#options;
    const { item } = message;
    if (isOutage(error)) outage.failed(item, error);
    if (item.state === 'leaving') await repository.requeue(item, { retryAfter: outage.stored });
    // Checks whether the message expired during its try.
    if (!repository.isClosed) this.#endIfOver(message);
  }

  async #end(item: MessageItem, change: Partial<MessageItem>, outcome: Outcome): Promise<void> {
    const { settlement } = this.#options;
    if (outcome instanceof Error && isUnknown(outcome)) this.sendAgain(await settlement.reconcile(item, outcome));
    else await settlement.end(item, { by: 'settle', outcome, change });
  }

  /** Queues a message that will be sent again after an unknown outcome. Does nothing without a message. */
  sendAgain(item: MessageItem | undefined): void {
    if (item) this.admit(item, item.repeats);
  }

  /**
   * Sets the due time of a message that is not scheduled. The message is due when its pause ends, or when it expires if
   * that is earlier.
   */
  #await({ id, item, phase, pausedUntil = Number.POSITIVE_INFINITY, end }: OutgoingMessage): void {
    const { clock, registrations, repository } = this.#options;
    if (!end || phase === 'scheduled' || repository.isClosed) return;
    const endsAt = clock.elapsed() + registrations.leftMs(item.node, end);
    repository.dueTimes.set(id, Math.min(endsAt, pausedUntil), this.#onDue);
  }

  readonly #onDue = (id: string): void => {
    const { clock, repository, rules } = this.#options;
    const message = repository.messages.find(id);
    if (message?.place === undefined) return;
    const { item, phase, pausedUntil = 0 } = message;
    if (phase === 'scheduled') message.end = endOf(item, clock, rules);
    if (this.#endIfOver(message)) return;
    if (phase === 'scheduled' || (phase === 'paused' && pausedUntil <= clock.elapsed())) {
      Object.assign(message, { dueAt: undefined, pausedUntil: undefined });
      repository.messages.move(message, 'queued');
      this.#queueUp(message);
    }
    this.#await(message);
  };

  /** Ends a message if it has expired. Returns whether it has expired. */
  #endIfOver(message: OutgoingMessage): boolean {
    const { clock, repository, registrations, settlement, onFault } = this.#options;
    const { id, item, end } = message;
    if (!end || message.place === undefined || registrations.leftMs(item.node, end) > 0) return false;
    if (!this.remove(id)) {
      // The message cannot be removed now. If it was sent, it will get an outcome. If its state `leaving` is still
      // being written, it might wait again, so checks it again later.
      if (item.state === 'waiting') repository.dueTimes.set(id, clock.elapsed() + postponedMs, this.#onDue);
      return true;
    }
    if (!registrations.handlerOf(item.node)) void settlement.abandon(item);
    else void settlement.end(item, { by: 'expire', outcome: createExpired(item) }).catch(onFault);
    registrations.reportState(item.node);
    return true;
  }

  /** Schedules a message if it cannot be sent yet. Returns whether it is scheduled. */
  #schedule(message: OutgoingMessage): boolean {
    const { clock, repository, rules, registrations } = this.#options;
    const { id, item } = message;
    const now = clock.now();
    const dueAt = mayLeaveAt(item, now, rules.quietHours);
    if (dueAt <= now) return false;
    this.#unready(message);
    message.dueAt = dueAt;
    repository.messages.move(message, 'scheduled');
    repository.dueTimes.set(id, dueAt, this.#onDue, 'now');
    registrations.reportState(item.node);
    return true;
  }

  /**
   * If a message waits only for the service and its turn, adds it to the ready messages. Otherwise, removes it from
   * them.
   */
  #queueUp(message: OutgoingMessage, isUrgent = false): void {
    const { repository, registrations } = this.#options;
    const { phase, place, abort, item } = message;
    const isFree = !repository.isClosed && !abort && phase === 'queued';
    if (isFree && place !== undefined && registrations.handlerOf(item.node)) {
      // A message that is already urgent stays urgent.
      const turn = isUrgent ? urgent + place : (message.turn ?? place);
      this.#unready(message);
      message.turn = turn;
      this.#ready.set(turn, message);
    } else this.#unready(message);
    this.gather();
  }

  #unready(message: OutgoingMessage): void {
    if (message.turn !== undefined) this.#ready.delete(message.turn);
    message.turn = undefined;
  }

  #dequeue(message: OutgoingMessage): void {
    this.#unready(message);
    Object.assign(message, { place: undefined, dueAt: undefined, pausedUntil: undefined });
    this.#options.repository.dueTimes.delete(message.id);
  }

  /**
   * Reports an outage once to each node whose messages wait for its end. Failures of the store are reported separately.
   */
  #reportOutage(): void {
    const { repository, outage, registrations } = this.#options;
    const { error, notices } = outage;
    if (!error || error.code === 'SMS_STORE') return;
    for (const node of registrations.nodes) {
      const handler = registrations.handlerOf(node);
      const { queued, paused, connecting, sending } = repository.messages.countsOf(node);
      if (handler && queued + paused > 0 && notices.note(node)) {
        handler.onOutage(createOutage(error, queued + paused + connecting + sending));
      }
    }
  }
}

/** Creates the error that reports an outage to a node. Unlike an outcome, it says that messages are still waiting. */
function createOutage(error: SmsError, waiting: number): SmsError {
  const { message } = new SmsError('storedWaiting', { params: { waiting } });
  return error.with({ waiting }, `${error.message} ${message}`);
}
