import type { Clock } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Journal, Participant } from '../journal/journal';
import type { Circumstances } from '../journal/step';
import { Correlation } from '../questions/correlation';
import { type Asked, awaited, type PolledFor } from '../questions/question';
import { Questions } from '../questions/questions';
import { SentIndex } from '../questions/sent-index';
import type { Item } from '../store/store';
import { Admin } from './admin';
import type { SendCounts } from './counts';
import { Dispatcher } from './dispatcher';
import { Absences } from './expiry';
import { Intake } from './intake';
import { isLedgerItem, Ledger } from './ledger';
import { type Move, moveAll } from './move';
import type { RetryAfter } from './outage';
import type { SendQueue } from './queue';
import { Reconciliations } from './reconciliation';
import type { RuleSettings } from './rules';
import {
  closeGraceMs,
  SenderRegistration,
  SenderRegistrations,
  type SendHandler,
  type SendingNode,
} from './sender-registrations';
import { Followers, Settlement } from './settlement';
import { type Evidence, isKept, type Text } from './text';

/** What the outbox of an account stands on. */
export interface OutboxOptions {
  journal: Journal;
  clock: Clock;
  queue: SendQueue;
  /** Counts what becomes of texts. */
  counts: SendCounts;
  /** Until when the service wants to be left alone. */
  retryAfter: RetryAfter;
  /** Nodes that know that the store fails. */
  toldOfStore: Set<string>;
  /** How long a key of `once` guards, in ms. */
  dedupeMs(): number;
  /** How long a text is known to replies and statuses, in ms. */
  sentMs(): number;
  /** What the rules go by. */
  rules: RuleSettings;
  /** Which records pass the account now, so that evidence may be among them. */
  sources(): readonly Evidence[];
  /** Asks the service while no node is here that sends; `undefined`: nobody can. */
  client(): Client | undefined;
  /** A text of a node that is not deployed any more has been given up. */
  onAbandoned(node: string): void;
  /** Somebody has discarded a text of a node. */
  onDiscarded(node: string): void;
  /**
   * A node has questions or reports for whose replies (`incoming`) or statuses (`status`) the account has to poll, or has come back to them;
   * or its last one has ended.
   */
  onOpenQuestions(node: string, kind: PolledFor, areOpen: boolean): void;
  /** Nobody is here who sends: the questions that are open wait for whoever comes. */
  onQuestionsRest(): void;
  /** A node has thrown, or something that nobody waits for has failed. */
  onFault(error: unknown): void;
  /** For whom it takes over what other processes leave, while it is handed over; absent, or `undefined`: for its own nodes. */
  replacedBy?(): Outbox | undefined;
  /** See {@link LedgerOptions.expected}. */
  expected?(): Promise<void> | undefined;
  /** See {@link LedgerOptions.unread}. */
  unread?(): SmsError | undefined;
}

/** How everything is given to another outbox; nobody ever sends it here when `isWanted` is absent. */
export type HandOver = Pick<Move, 'isLast' | 'keepsMemory' | 'more'> &
  Partial<Pick<Move, 'isWanted'>> & { onGiven?(): void };

/** What a text may ask. */
const kinds = ['question', 'report'] as const;

/**
 * The sending side of an account: takes texts in, has them sent as their options say, clears up unknown outcomes, waits
 * for replies, and tells each node what became of its texts. What has to outlive the process is in the {@link Ledger}.
 */
export class Outbox implements Participant {
  /** What goes on here, and what somebody may do about it. */
  readonly admin: Admin;
  /** What records that come in answer. */
  readonly correlation: Correlation;
  /** The nodes that send. */
  readonly registrations: SenderRegistrations;
  readonly questions: Questions;
  readonly #options: OutboxOptions;
  readonly #ledger: Ledger;
  /** What nodes gave with texts. */
  readonly #origins = new Map<string, unknown>();
  readonly #absences: Absences;
  readonly #dispatcher: Dispatcher;
  readonly #settlement: Settlement;
  readonly #intake: Intake;
  /** Those of whom texts may be under way, though they are closed. */
  readonly #sending = new Set<SenderRegistration>();

  constructor(options: OutboxOptions) {
    const { journal, clock, sources } = options;
    this.#options = options;
    const sentIndex = new SentIndex(journal.isShared, clock);
    const ledger = new Ledger({
      ...options,
      sentIndex,
      expected: () => options.expected?.(),
      unread: () => options.unread?.(),
      onFound: (texts, questions) => this.#resume(texts, questions),
      onOpenQuestions: (node, kind) => {
        this.#tellOpenQuestions(node, kind);
        this.registrations.tellState(node);
      },
    });
    this.#ledger = ledger;
    const registrations = new SenderRegistrations({ ...options, stateOf: (node) => this.#dispatcher.stateOf(node) });
    this.registrations = registrations;
    const base = {
      ...options,
      ledger,
      registrations,
      followers: new Followers(clock, ledger),
      origins: this.#origins,
      handlerOf: (node: string) => registrations.handlerOf(node),
    };
    const absences = new Absences({ ...base, onFound: (node) => this.#nodeChanged(node) });
    this.#absences = absences;
    this.questions = new Questions(base);
    const { questions } = this;
    const clientFor = (node: string) => registrations.clientFor(node) ?? options.client();
    const reconciliations = new Reconciliations({ clock, sources, clientFor });
    const settling = { ...base, absences, questions, reconciliations };
    this.#settlement = new Settlement(settling);
    const dispatching = { ...settling, settlement: this.#settlement };
    this.#dispatcher = new Dispatcher(dispatching);
    const all = { ...dispatching, dispatcher: this.#dispatcher };
    this.admin = new Admin(all);
    this.#intake = new Intake(all);
    this.correlation = new Correlation({ sentIndex, ledger, questions, reconciliations, now: () => clock.now() });
    journal.join('ledger', this);
  }

  /** Quiet hours are others now: texts may leave earlier or later. */
  quietHoursChanged(): void {
    this.#dispatcher.quietHoursChanged();
  }

  /** Whether nothing would be lost by forgetting it once its store is closed. */
  get isSettled(): boolean {
    return this.#ledger.isSettled;
  }

  /** Whether messages of the flow are here, as they came, whose texts or questions are open: a store has only what can be written of them. */
  get hasMessages(): boolean {
    return this.#origins.size > 0;
  }

  /** A node begins to send. Its texts from before go on. */
  attach(handler: SendHandler): SendingNode {
    const { registrations } = this;
    const { clock, journal } = this.#options;
    const { id } = handler;
    const registration = new SenderRegistration(handler, clock, () => registrations.tellState(id));
    registrations.add(registration);
    this.#sending.add(registration);
    this.#begin();
    this.#nodeChanged(id);
    this.questions.attach(id);
    const { size, open } = this.#ledger.questions;
    if (size > 0) for (const kind of kinds) if (open[kind].of(id) > 0) this.#tellOpenQuestions(id, kind);
    // Texts of nodes that have gone are to be given up by whoever is here.
    journal.open(!handler.usesStore);
    registrations.greet(registration);
    return {
      send: (request) => void registration.running.run(() => this.#intake.submit(request, registration)),
      countRefused: () => this.admin.counts.refused++,
      close: () => {
        const stopped = registration.stop();
        registrations.delete(registration);
        this.#nodeChanged(id);
        return stopped.then(() => void this.#sending.delete(registration));
      },
    };
  }

  /** Goes on after {@link close} though no node sends: what waits for one that does not come back is given up in its time. */
  open(): void {
    this.#begin();
    this.#options.journal.open(true);
  }

  /**
   * The last node is gone. Resolves when nothing is being sent any more.
   *
   * @param graceMs how long what has left is followed; 10 s when absent
   */
  async close(graceMs = closeGraceMs): Promise<void> {
    const parts = [this.#settlement, this.questions, this.#absences];
    for (const part of parts) part.close();
    this.#options.onQuestionsRest();
    await Promise.all([this.#dispatcher.close(graceMs), ...[...this.#sending].map(({ running }) => running.idle())]);
    this.#ledger.inTransit.clear();
  }

  /** Gives everything to another outbox, unless that is not wanted any more. What a shared store has stays there, unless nobody else is to take it any more. */
  async handOver(successor: Outbox, how: HandOver): Promise<void> {
    const { isWanted = () => true } = how;
    if (!isWanted()) return;
    await this.close();
    if (!isWanted()) return;
    const onGiven = (texts: ReadonlySet<string>) => {
      successor.#settlement.adopt(this.#settlement, (id) => texts.has(id));
      how.onGiven?.();
    };
    await moveAll(this.#ledger, successor.#ledger, { ...how, isWanted, onGiven });
    // Who was absent here is not so there.
    for (const node of successor.registrations.nodes) successor.#absences.end(node, true);
  }

  /** See {@link Participant.wanted}. */
  wanted(): string[] {
    return this.#options.replacedBy?.()?.wanted() ?? this.registrations.nodes.map((node) => `node ${node}`);
  }

  /** See {@link Participant.isReadable}. */
  isReadable(item: Item): boolean {
    return isLedgerItem(item);
  }

  /** See {@link Participant.found}. */
  found(items: readonly Item[], circumstances: Circumstances): Promise<void> {
    if (circumstances.isOpening) {
      this.registrations.onStore();
      void this.#ledger.findOut();
    } else {
      const wanted = new Set(this.wanted());
      // Nobody has wanted them anywhere for as long as they wait.
      for (const { subscribers, node } of items as readonly (Text | Asked)[]) {
        if (!subscribers.some((name) => wanted.has(name))) this.#absences.exhaust(node);
      }
    }
    return this.#ledger.found(items, circumstances.isOpening);
  }

  /** See {@link Participant.itemOf}. */
  itemOf(id: string): Item | undefined {
    return this.#ledger.texts.get(id) ?? this.#ledger.questions.get(id);
  }

  /** See {@link Participant.forget}. */
  forget(id: string): void {
    this.#ledger.forget(id);
  }

  /** See {@link Participant.letGo}. */
  letGo(): void {
    this.#ledger.letGo();
  }

  /** Goes on after {@link close}. */
  #begin(): void {
    if (!this.#settlement.open()) return;
    this.#dispatcher.open();
    this.questions.open();
    // What is in no store is still in hand.
    this.#resume([...this.#ledger.texts.values()], [...this.#ledger.questions.values()]);
  }

  /** Takes up what an earlier process, or another instance, has left. */
  #resume(texts: readonly Text[], questions: readonly Asked[]): void {
    if (texts.length > 0) this.#dispatcher.gather();
    for (const text of texts) this.#takeUp(text);
    this.questions.resume(questions);
    for (const node of new Set(questions.map((question) => question.node))) {
      for (const kind of kinds) this.#tellOpenQuestions(node, kind);
    }
  }

  #tellOpenQuestions(node: string, kind: Asked['kind']): void {
    this.#options.onOpenQuestions(node, awaited[kind], this.#ledger.questions.open[kind].of(node) > 0);
  }

  #takeUp(text: Text): void {
    const { onFault } = this.#options;
    if (this.#intake.isUnderWay(text.id) || this.#dispatcher.isTried(text.id) || this.#settlement.isDecided(text.id))
      return;
    if (text.state === 'waiting' && isKept(text)) this.#dispatcher.admit(text);
    // It was only guarded, and nothing of it has been sent. Whoever opens this, or takes over from it, frees the key as it is known there.
    else if (text.state === 'waiting' && !this.#settlement.isClosed) void this.#ledger.discard(text).catch(onFault);
    else if (text.state === 'leaving') void this.#goOn(text).catch(onFault);
    else if (text.state === 'settled') void this.#settlement.deliver(text, true);
  }

  /** A text has left, and its outcome is not known. */
  async #goOn(text: Text): Promise<void> {
    this.#dispatcher.sendAgain(await this.#settlement.takeUp(text));
  }

  /** A node has come, and its texts may leave; or it has gone, and they wait for it. */
  #nodeChanged(node: string): void {
    const handler = this.registrations.handlerOf(node);
    if (handler) this.#absences.end(node, handler.usesStore);
    this.#settlement.nodeChanged(node);
    this.#dispatcher.nodeChanged(node);
  }
}
