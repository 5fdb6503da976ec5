import { type Clock, nextTurn, type Timer } from '../clock';
import type { Told } from '../errors';
import type { Client } from '../http/client';
import type { Journal } from '../journal/journal';
import { createReading, type Step } from '../journal/step';
import { FollowUpBook } from '../replies/follow-up-book';
import { MessagesInTransit } from '../replies/in-transit';
import { type AwaitedKind, type FollowUp, flowMessageKey } from '../replies/reply-request';
import { hasSentIndex } from '../replies/sent-index';
import type { Item } from '../store/store';
import { type Arrival, collectSuperseded, type TakenIn, takeIn, withdraw } from './arrivals';
import { Duplicates } from './duplicates';
import { Messages } from './messages';
import type { Outage } from './outage';
import type { SendQueue } from './queue';
import { holdsAny, type RuleSettings } from './rules';
import type { SendCounts } from './send-counts';
import { type Evidence, isFollowed, isTracked, type StoredOutcome, type Text } from './text';
import {
  delivered,
  discard,
  type Ending,
  judge,
  leave,
  type Moved,
  putBack,
  type Stale,
  type StepContext,
  sendAgain,
  sendNow,
  settle,
  stale,
  undecided,
} from './transitions';

/** What the outbox of an account stands on. */
export interface OutboxOptions {
  journal: Journal;
  clock: Clock;
  queue: SendQueue;
  /** Counts what becomes of texts. */
  counts: SendCounts;
  /** Why kept texts do not leave, as long as the service is out of reach. */
  outage: Outage;
  /** Ids of nodes that know that the store fails. It outlives the outbox, since a redeploy changes nothing of that. */
  toldOfStore: Told;
  /** How long a key of `once` guards, in ms. */
  dedupeMs(): number;
  /** How long a text is known to replies and statuses, in ms. */
  sentMs(): number;
  /** What the rules go by. */
  rules: RuleSettings;
  /** Which records pass the account now, beside the feed, so that evidence may be among them. */
  sources(): readonly Evidence[];
  /** Asks the service while no node is here that sends; `undefined`: nobody can. */
  client(): Client | undefined;
  /** A text of a node that is not deployed any more has been given up. */
  onAbandoned(node: string): void;
  /** Somebody has discarded a text of a node. */
  onDiscarded(node: string): void;
  /**
   * A node has reply requests or reports for whose replies (`incoming`) or statuses (`status`) the account has to poll, or has come back to them;
   * or its last one has ended.
   */
  onOpenRequests(node: string, kind: AwaitedKind, areOpen: boolean): void;
  /** Nobody is here who sends: the reply requests that are open wait for whoever comes. */
  onRequestsRest(): void;
  /** A node has thrown, or something that nobody waits for has failed. */
  onFault(error: unknown): void;
}

/** What the ledger stands on. */
export interface LedgerOptions extends OutboxOptions {
  /** What an earlier process left, or a dead one held, has been found. */
  onFound(texts: readonly Text[], followUps: readonly FollowUp[]): void;
  /** A message was replaced or withdrawn. */
  onSuperseded(text: Text): void;
  /** A node has more or fewer open reply requests or reports. */
  onCount(node: string, kind: FollowUp['kind']): void;
}

/** Replies found in one turn of the event loop: a store may have a hundred thousand. */
const mostInTurn = 1_000;

/** Interval at which a process looks whether another instance has replaced or withdrawn a message of it. */
const watchMs = 1_000;

/**
 * One record per text that is kept, guarded or asks: the one place that knows where each stands, in memory and in the
 * store. Every method is a transition of `transitions.ts`, and resolves when it is written, or cannot be for now.
 */
export class Ledger {
  readonly messages: Messages;
  /** Replies and reports that have not entered the flow. */
  readonly followUps: FollowUpBook;
  readonly inTransit: MessagesInTransit;
  /** Whether texts have been remembered that what comes may answer; `undefined`: that is not known yet. */
  remembers: boolean | undefined;
  readonly journal: Journal;
  /** Whether nothing is sent, told or taken up here: others may be about to take over. */
  isClosed = false;
  /** Aborts then; another takes its place when somebody sends here again. */
  closing = new AbortController();
  /** Texts that the store would not take, of which it may have written some all the same. */
  readonly #refused = new Set<string>();
  readonly duplicates: Duplicates;
  #watching: Timer | undefined;
  readonly #options: LedgerOptions;
  /** See {@link Moment.origin}. */
  readonly #origin: string;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.followUps = new FollowUpBook(options.onCount);
    this.inTransit = new MessagesInTransit(options.clock);
    this.#origin = Math.floor(options.clock.random() * 2 ** 48).toString(36);
    this.messages = new Messages(options.clock, (text) => void this.discard(text));
    this.journal = options.journal;
    this.duplicates = new Duplicates(options.clock, (id) => this.messages.isUnderWay(id));
  }

  /** Whether nothing would be lost by forgetting it: what is in a durable store is found again. */
  get isSettled(): boolean {
    return this.messages.size === 0 && this.followUps.size === 0 && this.#refused.size === 0;
  }

  /** See {@link Participant.found}. */
  async found(items: readonly Item[], isOpening: boolean): Promise<void> {
    // The store has written a text that it would not take: its node has been told that nothing is sent.
    for (const item of items) if (this.#refused.has(item.id)) void this.discard(item as Text);
    const found = (items as readonly (Text | FollowUp)[]).filter(({ id }) => !this.#refused.has(id));
    if (isOpening) this.#refused.clear();
    const texts = found.filter((item) => item.kind === 'text').filter(({ id }) => !this.messages.has(id));
    const followUps = found
      .filter((item) => item.kind === 'replyRequest' || item.kind === 'report')
      .filter((item) => {
        const own = this.followUps.get(item.id);
        // The commit in which it was answered may have seemed to fail.
        return !own || (item.result !== undefined && own.result === undefined);
      });
    for (const text of texts) this.messages.put(text);
    this.#watchReplaceable();
    const { clock, onFound } = this.#options;
    // No step is taken before all of them are known.
    if (texts.length > 0) onFound(texts, []);
    for (let start = 0; start < followUps.length; start += mostInTurn) {
      if (start > 0) await nextTurn(clock);
      const some = followUps.slice(start, start + mostInTurn);
      for (const followUp of some) this.followUps.put(followUp);
      onFound([], some);
    }
  }

  /**
   * @throws SmsError `SMS_STORE`, or why it may not wait: nothing may be sent then, and the message is not here
   */
  async takeIn(text: Text, arrival: Arrival = {}): Promise<TakenIn> {
    // Before it is decided nothing of it reaches the store, and while that fails nothing is decided.
    let mayBeWritten = false;
    const decide: Step<TakenIn>['decide'] = (look, changes) => {
      mayBeWritten = true;
      // By the clock as it is then, which may have been set in the meantime.
      return takeIn(text, this.#memory(), arrival)(look, changes);
    };
    const step: Step<TakenIn> = { whileFailing: 'refuse', decide, bytes: text.flowMessage?.length };
    const added = withEffect(step, (taken) => {
      if (taken.replaced) this.#apply(taken.replaced);
      if (taken.verdict.type === 'new') this.messages.put(taken.text);
      this.#watchReplaceable();
      return taken;
    });
    return this.journal.run(added).catch((error: unknown) => {
      if (mayBeWritten && error !== arrival.busy) this.#refused.add(text.id);
      throw error;
    });
  }

  /**
   * Withdraws the message of a node with a key of `replace`, unless it has started to leave.
   *
   * @throws SmsError `SMS_STORE` if it cannot be written: the message continues to wait
   */
  async withdraw(node: string, replaceKey: string): Promise<void> {
    await this.journal.run(
      withEffect(withdraw(node, replaceKey, this.#memory()), (moved) => moved && this.#apply(moved)),
    );
  }

  /** Looks regularly for messages that another instance has replaced or withdrawn, as long as there can be any. */
  #watchReplaceable(): void {
    const { clock } = this.#options;
    const { replaceable } = this.messages;
    if (!this.journal.isShared || this.#watching || this.isClosed || replaceable.size === 0) return;
    const collect = async () => {
      const ids = [...replaceable];
      for (let start = 0; start < ids.length && !this.isClosed; start += mostInTurn) {
        const step = collectSuperseded(ids.slice(start, start + mostInTurn), this.#memory());
        await this.journal.run(withEffect(step, (ended) => ended.map((moved) => this.#apply(moved))));
      }
    };
    this.#watching = clock.after(
      watchMs,
      () => {
        // If the store fails, the next look finds them.
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

  /** @throws SmsError `SMS_STORE` if it cannot be written: the message continues to wait for its time */
  sendNow(text: Text): Promise<Text | Stale> {
    return this.#move(sendNow(text, this.#memory()));
  }

  /** The text with those of its recipients that the rules withhold now, and when it may leave if not yet. Nothing is counted, or kept. */
  async judge(text: Text): Promise<{ text: Text; notBefore?: number | undefined }> {
    const { withheld: _, ...rest } = text;
    const { rules } = this.#options;
    if (!holdsAny(rules)) return { text: rest };
    const { withheld, notBefore } = await this.journal.run(judge(text, this.#memory()));
    return { text: withheld.length === 0 ? rest : { ...rest, withheld }, notBefore };
  }

  /**
   * Marks that a message leaves, and counts its recipients. Results in `undefined` if the caller has to judge it again.
   *
   * @throws SmsError `SMS_STORE` if the mark of a tracked message cannot be written: it must not leave then
   */
  async leave(text: Text): Promise<Text | Stale | undefined> {
    // A reply may come as soon as the first byte has gone.
    this.inTransit.add(text);
    let left: Text | Stale | undefined;
    try {
      const step = leave(text, this.#memory(text));
      left = await this.messages.during(text.id, 'sending', () => this.#move(step));
    } finally {
      if (!left || left === stale) this.inTransit.delete(text.id);
    }
    return left;
  }

  /** Nothing of it was sent. */
  putBack(text: Text, change: Partial<Text> = {}): Promise<Text | Stale> {
    return this.#move(putBack(text, change, this.#memory()));
  }

  /** It may have been sent, as its outcome says, and is to be sent again. */
  sendAgain(text: Text, outcome: StoredOutcome, change: Partial<Text>): Promise<Text | Stale> {
    return this.#move(sendAgain(text, { outcome, change }, this.#memory()));
  }

  async settle(text: Text, ending: Ending): Promise<Text | Stale> {
    const settled = await this.#move(settle(text, ending, this.#memory(text)));
    if (settled !== stale) this.duplicates.ended(text);
    return settled;
  }

  async delivered(text: Text): Promise<void> {
    if (!isTracked(text)) return;
    const uncertain = undecided(text, this.#memory());
    // At once: whoever has been told looks for it, and nobody is to take it up again while it is being written.
    if (uncertain) this.messages.put(uncertain);
    else this.messages.delete(text.id);
    await this.journal.run(delivered(text, uncertain, this.followUps));
  }

  /**
   * Removes a message. Says whether it stood where it can be removed.
   *
   * @throws SmsError `SMS_STORE` with `refuse`, if it cannot be written now: the message stays as it is
   */
  discard(text: Text, whileFailing: 'refuse' | 'apply' = 'apply'): Promise<boolean> {
    const step = discard(text, this.#memory(), whileFailing);
    return this.journal.run(
      withEffect(step, (result) => {
        if (result === stale) return false;
        this.messages.delete(text.id);
        this.inTransit.delete(text.id);
        for (const followUp of result.asked) this.followUps.put(followUp);
        for (const id of result.closedRequests) this.followUps.delete(id);
        this.duplicates.ended(text);
        return true;
      }),
    );
  }

  /** The store has been opened, or others have brought what they remember. */
  async findRemembered(): Promise<void> {
    this.remembers ||= undefined;
    const isFound = await this.journal.run(createReading('postpone', hasSentIndex));
    this.remembers ||= isFound;
  }

  /** What a text carries, for it or for what it asks, as far as it is known. */
  async flowMessageOf(item: Text | FollowUp): Promise<string | undefined> {
    if (item.kind === 'text' && !item.isFlowMessageApart) return item.flowMessage;
    const key = flowMessageKey(item.kind === 'text' ? item.id : item.text);
    return this.journal.run(createReading('postpone', (look) => look(key)?.value));
  }

  /** @param remembered a text that may be remembered now */
  #memory(remembered?: Text): StepContext {
    const { clock, dedupeMs, sentMs, rules } = this.#options;
    const now = clock.now();
    const moment = { now, lead: Math.round(now - clock.elapsed()), origin: this.#origin };
    // Before a reply can come, which may be in the same commit.
    if (remembered && isFollowed(remembered)) this.remembers = true;
    return { now, moment, rules, dedupeMs, sentMs: sentMs(), books: this };
  }

  /** Takes a step. The next step of the same commit sees where it has left the message. */
  #move<Other extends Stale | undefined>(step: Step<Moved | Other>): Promise<Text | Other> {
    return this.journal.run(
      withEffect(step, (moved) => (moved === undefined || moved === stale ? moved : this.#apply(moved as Moved))),
    ) as Promise<Text | Other>;
  }

  #apply({ text, asked, closedRequests, isSuperseded }: Moved): Text {
    if (text.state !== 'leaving') this.inTransit.delete(text.id);
    if (isTracked(text)) this.messages.put(text);
    this.#watchReplaceable();
    for (const followUp of asked) {
      // Another step of the same commit may have answered it.
      const { result } = this.followUps.get(followUp.id) ?? {};
      this.followUps.put(result ? ({ ...followUp, result } as FollowUp) : followUp);
    }
    for (const id of closedRequests) this.followUps.delete(id);
    if (isSuperseded) this.#options.onSuperseded(text);
    return text;
  }
}

/** A step whose result is changed as soon as it is written. */
function withEffect<Result, Changed>(step: Step<Result>, change: (result: Result) => Changed): Step<Changed> {
  return {
    ...step,
    decide(look, changes) {
      const effect = step.decide(look, changes);
      return (isWritten) => change(effect(isWritten));
    },
  };
}

/** What is done with an item of each kind whatever its state, as it may be. */
const examples: Readonly<Record<FollowUp['kind'] | 'text', object>> = {
  text: { state: '', node: '', message: { to: [], body: '' }, options: {}, arrivedAt: 0 },
  replyRequest: { node: '', text: '', recipient: '', reference: '', waitMs: 0 },
  report: { node: '', text: '', recipients: [], reference: '', waitMs: 0, askedAt: 0 },
};

/** Says whether the ledger can make something of an item in the store, which may be damaged. What another version has put there is left alone. */
export function isLedgerItem(item: Item): boolean {
  return isLike(item, examples[(item as Text | FollowUp).kind] ?? {});
}

function isLike(value: unknown, example: unknown): boolean {
  if (typeof value !== typeof example || value === null || Array.isArray(value) !== Array.isArray(example))
    return false;
  return Object.entries(Object(example)).every(([name, inner]) => isLike(Object(value)[name], inner));
}
