import { EventEmitter } from 'node:events';
import type { Timer } from '../clock';
import { ClockSkew } from '../journal/clock-skew';
import type { Journal } from '../journal/journal';
import { createReading, type Step, withEffect } from '../journal/step';
import { type FollowUp, FollowUpBook, flowMessageKey } from '../replies/follow-ups';
import { MessagesInTransit } from '../replies/in-transit';
import { hasSentIndex } from '../replies/sent-index';
import type { Item } from '../store/store';
import { DueTimes } from './due-times';
import { Duplicates } from './duplicates';
import { type EvidenceRecord, readEvidence } from './evidence';
import { isFollowed, isTracked, type MessageItem, type StoredOutcome } from './message-item';
import { Messages } from './messages';
import type { OutboxOptions } from './options';
import { hasRules } from './rules';
import {
  type Acceptance,
  type Arrival,
  accept,
  collectSuperseded,
  delivered,
  discard,
  type Ending,
  judge,
  type Moved,
  markLeaving,
  requeue,
  type Stale,
  type StepContext,
  sendAgain,
  sendNow,
  settle,
  stale,
  undecided,
  withdraw,
} from './transitions';

type MessageRepositoryOptions = Pick<OutboxOptions, 'journal' | 'clock' | 'settings'>;

/** Events of a repository. */
interface MessageRepositoryEvents {
  /** A message was replaced or withdrawn. */
  superseded: [item: MessageItem];
  /** The number of open reply requests or reports of a node has changed. */
  openRequests: [node: string, kind: FollowUp['kind']];
}

/** Maximum number of messages that one step checks, to find those that another instance has replaced or withdrawn. */
const maxPerStep = 1_000;

/** Time for which a user can decide about a message with an unknown outcome, in ms. */
const undecidedMs = 7 * 24 * 3_600_000;

/**
 * Interval at which the account checks whether another instance has replaced or withdrawn a message of this process, in
 * ms.
 */
const watchMs = 1_000;

/**
 * Keeps the messages, reply requests and reports of this process, in memory and in the store. Each method that changes
 * a message runs one step of `transitions.ts`, and resolves when the step is written. While the store fails, the method
 * resolves when the step is applied in memory.
 */
export class MessageRepository {
  readonly events = new EventEmitter<MessageRepositoryEvents>();
  readonly messages = new Messages();
  /** Inputs of the nodes, by message id, as long as the message or its follow-ups are open. The store has no inputs. */
  readonly inputs = new Map<string, unknown>();
  /** When to continue, end or drop each message, reply request and report. */
  readonly dueTimes: DueTimes;
  /** Reply requests and reports whose results have not entered the flow. */
  readonly followUps: FollowUpBook;
  readonly inTransit: MessagesInTransit;
  /**
   * Whether the store remembers any sent message, so that an incoming record can be its reply or status. `undefined`
   * until the store has been read.
   */
  remembers: boolean | undefined;
  readonly journal: Journal;
  /** Whether the outbox is closed. If so, no message is sent, resumed or reported. */
  isClosed = false;
  /** Aborts when the outbox closes. Replaced by a new controller when the outbox opens. */
  closing = new AbortController();
  /** Ids of messages whose commit failed, although the store might contain them. */
  readonly #refused = new Set<string>();
  readonly duplicates: Duplicates;
  #watching: Timer | undefined;
  /** See {@link KeyMemory.maxFoundId}. */
  #maxFoundId = '';
  readonly #options: MessageRepositoryOptions;
  /** See {@link CountTime.clock}. */
  readonly #clockName: string;

  constructor(options: MessageRepositoryOptions) {
    this.#options = options;
    this.followUps = new FollowUpBook((node, kind) => this.events.emit('openRequests', node, kind));
    this.inTransit = new MessagesInTransit(options.clock);
    this.#clockName = Math.floor(options.clock.random() * 2 ** 48).toString(36);
    this.dueTimes = new DueTimes(options.clock);
    this.journal = options.journal;
    this.duplicates = new Duplicates(options.clock, (id) => this.messages.isUnderWay(id));
  }

  /**
   * Whether the store might contain messages whose commit failed. These messages are removed at the next opening of the
   * store.
   */
  get hasRefused(): boolean {
    return this.#refused.size > 0;
  }

  /**
   * Whether this object can be dropped without loss, because memory has no messages or follow-ups. The items of a
   * durable store can be read again.
   */
  get isSettled(): boolean {
    return this.messages.size === 0 && this.followUps.size === 0 && this.#refused.size === 0;
  }

  /**
   * Adds the messages that were found in the store. Returns these messages, and the follow-ups that the caller must
   * add.
   */
  addFound(items: readonly Item[], isOpening: boolean): { messages: MessageItem[]; followUps: FollowUp[] } {
    // Discards messages whose commit failed although the store wrote them. The node was notified that they were not
    // sent.
    for (const item of items) if (this.#refused.has(item.id)) void this.discard(item as MessageItem);
    const wanted = (items as readonly (MessageItem | FollowUp)[]).filter(({ id }) => !this.#refused.has(id));
    if (isOpening) this.#refused.clear();
    this.#maxFoundId = this.journal.nextId();
    const messages = wanted.filter((item) => item.kind === 'message').filter(({ id }) => !this.messages.has(id));
    const followUps = wanted
      .filter((item) => item.kind === 'replyRequest' || item.kind === 'report')
      .filter((item) => {
        const current = this.followUps.get(item.id);
        // If only the store has the result of a follow-up, uses the version of the store, because the store can write a
        // result and still report a failure.
        return !current || (item.result !== undefined && current.result === undefined);
      });
    for (const item of messages) this.messages.put(item);
    this.#watchReplaceable();
    return { messages, followUps };
  }

  /**
   * Accepts a new message.
   *
   * @throws SmsError `SMS_STORE` if the store fails, or `arrival.busy` if the message would have to wait. The caller
   * must not send the message then, because the repository does not have it
   */
  async accept(item: MessageItem, arrival: Arrival): Promise<Acceptance> {
    // Whether the store might contain the message even if the commit fails. Stays `false` if the journal refuses the
    // step without a call of `decide`, because the store already fails.
    let mayBeWritten = false;
    const decide: Step<Acceptance>['decide'] = (readKey, changes) => {
      mayBeWritten = true;
      // Reads the clock only now, because the system clock might have been changed since the step was requested.
      return accept(item, this.#context(), arrival)(readKey, changes);
    };
    const step: Step<Acceptance> = { whileFailing: 'refuse', decide, bytes: item.flowMessage?.length };
    const added = withEffect(step, (acceptance) => {
      if (acceptance.replaced) this.#apply(acceptance.replaced);
      if (acceptance.verdict.type === 'new') this.messages.put(acceptance.item);
      this.#watchReplaceable();
      return acceptance;
    });
    return this.journal.run(added).catch((error: unknown) => {
      if (mayBeWritten && error !== arrival.busy) this.#refused.add(item.id);
      throw error;
    });
  }

  /**
   * Withdraws the message of a node with this `replace` key, unless the message is already being sent.
   *
   * @throws SmsError `SMS_STORE` if the store cannot write the change. The message then continues to wait
   */
  async withdraw(node: string, replaceKey: string): Promise<void> {
    await this.journal.run(
      withEffect(withdraw(node, replaceKey, this.#context()), (moved) => moved && this.#apply(moved)),
    );
  }

  /**
   * While any message can be replaced, regularly checks whether another instance has replaced or withdrawn messages.
   */
  #watchReplaceable(): void {
    const { clock } = this.#options;
    const { replaceable } = this.messages;
    if (!this.journal.isShared || this.#watching || this.isClosed || replaceable.size === 0) return;
    const collect = async () => {
      const ids = [...replaceable];
      for (let start = 0; start < ids.length && !this.isClosed; start += maxPerStep) {
        const step = collectSuperseded(ids.slice(start, start + maxPerStep), this.#context());
        await this.journal.run(withEffect(step, (ended) => ended.map((moved) => this.#apply(moved))));
      }
    };
    this.#watching = clock.after(
      watchMs,
      () => {
        // Ignores failures of the store, because the next check searches again.
        void collect()
          .catch(() => {})
          .then(() => {
            this.#watching = undefined;
            this.#watchReplaceable();
          });
      },
      true,
    );
  }

  /**
   * Lets a message be sent before its scheduled time.
   *
   * @throws SmsError `SMS_STORE` if the store cannot write the change. The message then continues to wait for its time
   */
  sendNow(item: MessageItem): Promise<MessageItem | Stale> {
    return this.#move(sendNow(item, this.#context()));
  }

  /** Asks the rules which recipients they withhold, and how long the message has to wait. Counts and stores nothing. */
  async judge(item: MessageItem): Promise<{ item: MessageItem; notBefore?: number | undefined }> {
    const { withheld: _, ...rest } = item;
    const { rules } = this.#options.settings;
    if (!hasRules(rules)) return { item: rest };
    const { withheld, notBefore } = await this.journal.run(judge(item, this.#context()));
    return { item: withheld.length === 0 ? rest : { ...rest, withheld }, notBefore };
  }

  /**
   * Stores the state `leaving` of a message, and counts its recipients. Resolves with `undefined` if the rules no
   * longer allow this. The caller must then call {@link judge} again.
   *
   * @throws SmsError `SMS_STORE` if the store cannot write the state of a tracked message, see {@link isTracked}. The
   * caller must not send the message then
   */
  async markLeaving(item: MessageItem): Promise<MessageItem | Stale | undefined> {
    // Adds the message now, because a reply can arrive as soon as the first byte is sent.
    this.inTransit.add(item);
    let marked: MessageItem | Stale | undefined;
    try {
      const step = markLeaving(item, this.#context(item));
      marked = await this.messages.during(item.id, 'sending', () => this.#move(step));
    } finally {
      if (!marked || marked === stale) this.inTransit.delete(item.id);
    }
    return marked;
  }

  /** Makes a message wait again after a try that sent nothing. */
  requeue(item: MessageItem, change: Partial<MessageItem> = {}): Promise<MessageItem | Stale> {
    return this.#move(requeue(item, change, this.#context()));
  }

  /** Makes a message wait again after a try whose outcome is unknown. */
  sendAgain(item: MessageItem, outcome: StoredOutcome, change: Partial<MessageItem>): Promise<MessageItem | Stale> {
    return this.#move(sendAgain(item, { outcome, change }, this.#context()));
  }

  async settle(item: MessageItem, ending: Ending): Promise<MessageItem | Stale> {
    const settled = await this.#move(settle(item, ending, this.#context(item)));
    if (settled !== stale) this.duplicates.ended(item);
    return settled;
  }

  async delivered(item: MessageItem): Promise<void> {
    if (!isTracked(item)) return;
    const uncertain = undecided(item, this.#context());
    // Updates memory before the commit, so that users see the unknown outcome as soon as it has entered the flow. This
    // also prevents the message from being resumed before the commit.
    if (uncertain) this.awaitDecision(this.messages.put(uncertain).item);
    else this.messages.delete(item.id);
    await this.journal.run(delivered(item, uncertain, this.followUps));
  }

  /** Discards a message with an unknown outcome after 7 days, unless a user decides about it. */
  awaitDecision({ id, settledAt = 0 }: MessageItem): void {
    const { clock } = this.#options;
    const endsAt = ClockSkew.of(clock).timeOf(settledAt) + undecidedMs;
    const leftMs = Math.min(undecidedMs, Math.max(0, endsAt - clock.now()));
    this.dueTimes.set(id, clock.elapsed() + leftMs, () => {
      const item = this.messages.get(id);
      if (item?.state === 'uncertain') void this.discard(item);
    });
  }

  /**
   * Removes a message. Resolves with whether the state of the message allowed this.
   *
   * @throws SmsError `SMS_STORE` if `whileFailing` is `refuse` and the store cannot write the change now. The message
   * then stays
   */
  discard(item: MessageItem, whileFailing: 'refuse' | 'apply' = 'apply'): Promise<boolean> {
    const step = discard(item, this.#context(), whileFailing);
    return this.journal.run(
      withEffect(step, (result) => {
        if (result === stale) return false;
        this.messages.delete(item.id);
        this.dueTimes.delete(item.id);
        this.inTransit.delete(item.id);
        for (const followUp of result.newFollowUps) this.followUps.set(followUp);
        for (const id of result.closedRequests) this.followUps.delete(id);
        this.duplicates.ended(item);
        return true;
      }),
    );
  }

  /** Checks whether the store, which has just opened, remembers any sent message. */
  async findRemembered(): Promise<void> {
    this.remembers ||= undefined;
    const isFound = await this.journal.run(createReading('postpone', hasSentIndex));
    this.remembers ||= isFound;
  }

  /** Reads the evidence that an earlier process received before it ended. */
  evidenceOf(item: MessageItem): Promise<EvidenceRecord[]> {
    return this.journal.run(createReading('postpone', (readKey) => readEvidence(item, readKey)));
  }

  /** Returns the flow message that belongs to a message, a reply request or a report, if it is known. */
  async flowMessageOf(item: MessageItem | FollowUp): Promise<string | undefined> {
    if (item.kind === 'message' && !item.isFlowMessageApart) return item.flowMessage;
    const key = flowMessageKey(item.kind === 'message' ? item.id : item.messageItemId);
    return this.journal.run(createReading('postpone', (readKey) => readKey(key)?.value));
  }

  /** @param remembered the message, if the step might store it for matching later replies and statuses */
  #context(remembered?: MessageItem): StepContext {
    const { clock, settings } = this.#options;
    const now = clock.now();
    const lead = Math.round(now - clock.elapsed());
    const time = { now: Math.round(now), clock: this.journal.isShared ? 'server' : `${this.#clockName}/${lead}` };
    // Sets `remembers` before the commit, because the same commit can contain the first reply.
    if (remembered && isFollowed(remembered)) this.remembers = true;
    return { ...settings, now, time, sentMs: settings.sentMs(), maxFoundId: this.#maxFoundId, current: this };
  }

  /** Runs a step, and updates memory. The next step of the same commit sees the new state of the message. */
  #move<Other extends Stale | undefined>(step: Step<Moved | Other>): Promise<MessageItem | Other> {
    return this.journal.run(
      withEffect(step, (moved) => (moved === undefined || moved === stale ? moved : this.#apply(moved as Moved))),
    ) as Promise<MessageItem | Other>;
  }

  #apply({ item, newFollowUps, closedRequests, isSuperseded }: Moved): MessageItem {
    if (item.state !== 'leaving') this.inTransit.delete(item.id);
    if (isTracked(item)) this.messages.put(item);
    this.#watchReplaceable();
    for (const followUp of newFollowUps) {
      // If another step of the same commit has already ended the follow-up, keeps that result.
      const { result } = this.followUps.get(followUp.id) ?? {};
      this.followUps.set(result ? ({ ...followUp, result } as FollowUp) : followUp);
    }
    for (const id of closedRequests) this.followUps.delete(id);
    if (isSuperseded) this.events.emit('superseded', item);
    return item;
  }
}

/** Properties that an item of each kind must have, with sample values of the right types. */
const examples: Readonly<Record<FollowUp['kind'] | 'message', object>> = {
  message: { state: '', node: '', message: { to: [], body: '' }, options: {}, arrivedAt: 0 },
  replyRequest: { node: '', messageItemId: '', recipient: '', reference: '', waitMs: 0 },
  report: { node: '', messageItemId: '', recipients: [], reference: '', waitMs: 0, askedAt: 0 },
};

/**
 * Returns whether an item in the store is usable, and not damaged. Accepts items of unknown kinds, which other versions
 * might have written.
 */
export function isReadableItem(item: Item): boolean {
  return isLike(item, examples[(item as MessageItem | FollowUp).kind] ?? {});
}

function isLike(value: unknown, example: unknown): boolean {
  if (typeof value !== typeof example || value === null || Array.isArray(value) !== Array.isArray(example))
    return false;
  return Object.entries(Object(example)).every(([name, inner]) => isLike(Object(value)[name], inner));
}
