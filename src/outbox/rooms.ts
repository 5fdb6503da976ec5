import type { Clock } from '../clock';
import type { Client } from '../http/client';
import type { Journal } from '../journal/journal';
import type { Question } from '../questions/question';
import { Askers, Questions } from '../questions/questions';
import type { Remembrance } from '../questions/sent-index';
import { Absences } from './absences';
import { Attachment, Attachments, closeGraceMs } from './attachments';
import { SendCounts } from './counts';
import { Deliveries } from './delivery';
import { Desk } from './desk';
import { Respite } from './dispatch-order';
import { Duplicates, Followers } from './duplicates';
import type { HoldingsHandOver } from './holdings';
import { Intake } from './intake';
import { KeptTexts } from './keeping';
import { Ledger } from './ledger';
import { type Evidence, isKept, type Outcome, type Text } from './outgoing';
import type { Outlet, SendingNode } from './outlet';
import type { SendQueue } from './queue';
import { EvidenceCollector, Reconciliations } from './reconciliation';
import type { RuleSettings } from './rule';
import { SendAttempts } from './send-attempt';
import { Settlement } from './settlement';

/** What the sending side of an account stands on. */
export interface SenderOptions {
  journal: Journal;
  clock: Clock;
  queue: SendQueue;
  /** Counts what becomes of texts; begins with none when absent. */
  counts?: SendCounts;
  /** Until when the service wants to be left alone; not at all when absent. */
  respite?: Respite;
  /** Nodes that know that the store fails; none at first when absent. */
  toldOfStore?: Set<string>;
  /** How long a key of `once` guards, in ms. */
  dedupeMs(): number;
  /** How long a text is known to replies and statuses, in ms. */
  sentMs(): number;
  /** What the rules go by. */
  rules(): RuleSettings;
  /** Which records pass the account now, so that evidence may be among them. */
  sources(): readonly Evidence[];
  /** Asks the service while no node is here that sends; `undefined`: nobody can. */
  client(): Client | undefined;
  /** A text of a node that is not deployed any more has been given up. */
  onAbandoned(node: string): void;
  /** Somebody has discarded a text of a node. */
  onDiscarded(node: string): void;
  /** A node has questions for whose replies the account has to poll, or has come back to them; or its last one has ended. */
  onAsking(node: string, isAsking: boolean): void;
  /** Nobody is here who sends: the questions that are open wait for whoever comes. */
  onAskingRests(): void;
  /** A node has thrown, or something that nobody waits for has failed. */
  onFault(error: unknown): void;
}

/** What the rooms stand on. */
interface SendingRoomsOptions extends SenderOptions {
  /** Is told what is going to be remembered. */
  remembrance: Remembrance;
  /** See {@link Sender.expect}. */
  expected(): Promise<void> | undefined;
}

/** All that the sending side of an account works with, and what ties one to the other. */
export class SendingRooms {
  /** What goes on here, and what somebody may do about it. */
  readonly desk: Desk;
  readonly ledger: Ledger;
  readonly evidence: EvidenceCollector;
  readonly deliveries: Deliveries;
  readonly askers: Askers;
  readonly questions: Questions;
  readonly attachments: Attachments;
  readonly absences: Absences;
  readonly #options: SendingRoomsOptions;
  readonly #kept: KeptTexts;
  readonly #duplicates: Duplicates;
  readonly #endings: Settlement;
  readonly #intake: Intake;

  constructor(options: SendingRoomsOptions) {
    const { journal, clock, queue } = options;
    this.#options = options;
    const quietHours = () => options.rules().quietHours ?? [];
    const outlet = (node: string) => this.deliveries.outlet(node);
    this.ledger = new Ledger({
      ...options,
      onFound: (texts, questions) => this.#resume(texts, questions),
      onAsking: (node) => {
        this.askers.changed(node);
        this.attachments.tellState(node);
      },
    });
    this.askers = new Askers({ ledger: this.ledger, kept: () => this.#kept, outlet, onAsking: options.onAsking });
    this.attachments = new Attachments({
      clock,
      journal,
      ledger: this.ledger,
      kept: () => this.#kept,
      searching: (node) => this.#endings.searchingOf(node),
      told: options.toldOfStore ?? new Set(),
    });
    const followers = new Followers(clock, (id) => this.ledger.texts.isUnderWay(id));
    const isHere = (node: string) => outlet(node) !== undefined;
    this.absences = new Absences({ clock, journal, isHere, onFound: (node) => this.#nodeChanged(node) });
    this.deliveries = new Deliveries({
      clock,
      ledger: this.ledger,
      absences: this.absences,
      onDelivered: (text) => this.#endings.delivered(text),
      onAbandoned: ({ node }) => options.onAbandoned(node),
      onFault: options.onFault,
    });
    this.questions = new Questions({
      clock,
      ledger: this.ledger,
      outlet,
      isOutcomeComing: (text) => this.#endings.isOnItsWay(text),
      origin: (text) => this.deliveries.originOf(text),
      onAllAnswered: (text) => this.deliveries.forget(text),
      onFault: options.onFault,
    });
    this.evidence = new EvidenceCollector(clock, options.sources);
    const reconciliations = new Reconciliations(
      this.evidence,
      (node) => this.deliveries.clientFor(node) ?? options.client(),
    );
    const attempts = new SendAttempts(this.ledger, reconciliations);
    const onEnded = (text: Text, outcome: Outcome) => void this.#endings.end(text, outcome).catch(options.onFault);
    const onAbandoned = async (text: Text) => {
      options.onAbandoned(text.node);
      this.deliveries.forget(text.id);
      await this.ledger.discard(text).catch(options.onFault);
      followers.ended(text.id);
    };
    this.#kept = new KeptTexts({
      ...options,
      quietHours,
      absences: this.absences,
      ledger: this.ledger,
      respite: options.respite ?? new Respite(clock),
      outlet,
      attempt: (text, { client }, { signal }) => attempts.depart(text, { client, signal }),
      onEnded,
      onUnknown: (text, error) => void this.#endings.reconcile(text, error).catch(options.onFault),
      onAbandoned,
      onState: (node) => this.attachments.tellState(node),
    });
    this.#duplicates = new Duplicates({
      ...options,
      quietHours,
      absences: this.absences,
      ledger: this.ledger,
      followers,
      kept: this.#kept,
      deliveries: this.deliveries,
      onEnded,
      onAbandoned,
    });
    this.desk = new Desk({
      ledger: this.ledger,
      evidence: this.evidence,
      kept: this.#kept,
      duplicates: this.#duplicates,
      queue,
      counts: options.counts ?? new SendCounts(),
      isHere,
      release: async (text) => {
        const again = { ...text, isReleased: true, arrivedAt: clock.now() } as const;
        this.#kept.admit(await this.ledger.sendAgain(again));
      },
      end: (text, sent) => this.#endings.end({ ...text, isReleased: true }, sent),
      goOn: (text) => this.#takeUp(text),
      onDiscarded: ({ id, node }) => {
        const origin = this.deliveries.forget(id);
        this.questions.begin(id);
        followers.ended(id);
        options.onDiscarded(node);
        if (origin !== undefined) outlet(node)?.onDiscarded(origin);
        this.attachments.tellState(node);
      },
    });
    this.#endings = new Settlement({
      ...options,
      ledger: this.ledger,
      deliveries: this.deliveries,
      questions: this.questions,
      reconciliations,
      followers,
      counts: this.desk.counts,
      onRepeat: (text, repeats) => this.#kept.admit(text, repeats),
      onSearching: (node) => this.attachments.tellState(node),
    });
    this.#intake = new Intake({
      ...options,
      quietHours,
      ledger: this.ledger,
      deliveries: this.deliveries,
      kept: this.#kept,
      duplicates: this.#duplicates,
      reconciliations,
      followers,
      counts: this.desk.counts,
      attempts,
      onEnded: (text, outcome, given) => this.#endings.end(text, outcome, given),
      onRefused: (node) => this.attachments.refused(node),
    });
  }

  /** How many kept texts wait: they count for the queue's limit. */
  get keptWaiting(): number {
    return this.#kept.waiting + this.#duplicates.size + this.#intake.waiting;
  }

  /** Quiet hours are others now: texts may leave earlier or later. */
  quietHoursChanged(): void {
    this.#kept.quietHoursChanged();
  }

  /** A node begins to send. Its texts from before go on. */
  attach(outlet: Outlet): SendingNode {
    const attachment = new Attachment(outlet, this.#options.clock, {
      submit: (request, from) => this.#intake.submit(request, from),
      onRefused: () => this.desk.counts.refused++,
      onChanged: () => this.attachments.tellState(outlet.id),
      onClosed: () => {
        this.attachments.delete(attachment);
        this.deliveries.detach(outlet);
        this.#nodeChanged(outlet.id);
      },
    });
    this.attachments.add(attachment);
    this.deliveries.attach(outlet);
    this.open();
    this.#nodeChanged(outlet.id);
    this.questions.attach(outlet.id);
    if (this.ledger.questions.openOf(outlet.id) > 0) this.askers.changed(outlet.id);
    // Texts of nodes that have gone are to be given up by whoever is here.
    this.#options.journal.open(!outlet.usesStore);
    this.attachments.greet(attachment);
    return attachment;
  }

  /** A question has been answered, and that is written. */
  onAnswered(answered: Question): void {
    const { questions } = this.ledger;
    const asked = questions.get(answered.id);
    if (!asked) return;
    questions.update(answered);
    // As far as it is known, which its text's acceptance in the same commit is not yet.
    this.questions.onAnswered(asked);
  }

  /** The last node is gone. Resolves when nothing is being sent any more; what has left is followed for so long. */
  async close(graceMs = closeGraceMs): Promise<void> {
    const rooms = [this.#endings, this.deliveries, this.questions, this.#duplicates, this.absences];
    for (const room of rooms) room.close();
    this.#options.onAskingRests();
    await Promise.all([this.#kept.close(graceMs), this.#intake.idle()]);
    this.ledger.inTransit.clear();
  }

  /** Gives everything to others. To be called when these are closed. */
  async handOver(heir: SendingRooms, how: Omit<HoldingsHandOver, 'onGiven'>): Promise<void> {
    const onGiven = (texts: ReadonlySet<string>) => heir.deliveries.adopt(this.deliveries, (id) => texts.has(id));
    await this.ledger.holdings.handOver(heir.ledger.holdings, { ...how, onGiven });
  }

  /** Goes on after {@link close}. */
  open(): void {
    if (!this.#endings.open()) return;
    this.#kept.open();
    this.#duplicates.open();
    this.deliveries.open();
    this.questions.open();
    // What is in no store is still in hand.
    this.#resume([...this.ledger.texts.values()], [...this.ledger.questions.values()]);
  }

  /** Takes up what an earlier process, or another instance, has left. */
  #resume(texts: readonly Text[], questions: readonly Question[]): void {
    for (const text of texts) this.#takeUp(text);
    this.questions.resume(questions);
    for (const node of new Set(questions.map((question) => question.node))) this.askers.changed(node);
  }

  #takeUp(text: Text): void {
    const { onFault } = this.#options;
    if (this.#intake.isUnderWay(text.id) || this.#kept.isTried(text.id) || this.#endings.isDecided(text.id)) return;
    if (text.state === 'waiting' && text.follows) void this.#duplicates.resume(text);
    else if (text.state === 'waiting' && isKept(text)) this.#kept.admit(text, 0, true);
    // It was only guarded, and nothing of it has been sent. Whoever opens this, or takes over from it, frees the key as it is known there.
    else if (text.state === 'waiting' && !this.#endings.isClosed) void this.ledger.discard(text).catch(onFault);
    else if (text.state === 'leaving') void this.#endings.takeUp(text).catch(onFault);
    else if (text.state === 'settled') void this.deliveries.deliver(text, true);
  }

  /** A node has come, and its texts may leave; or it has gone, and they wait for it. */
  #nodeChanged(node: string): void {
    const outlet = this.deliveries.outlet(node);
    if (outlet) this.absences.end(node, outlet.usesStore);
    this.deliveries.nodeChanged(node);
    // Of a node that is gone they are given up first, lest each becomes the first of its key as that is given up.
    this.#duplicates.nodeChanged(node);
    this.#kept.nodeChanged(node);
  }
}
