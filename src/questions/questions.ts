import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import { Batched } from '../outbox/batched';
import { Bringing } from '../outbox/delivery';
import type { Ledger } from '../outbox/ledger';
import type { SendHandler } from '../outbox/send-handler';
import { type Question, remainingGraceMs, remainingMs } from './question';

/** What open questions need. */
export interface QuestionsOptions {
  clock: Clock;
  ledger: Ledger;
  handlerOf(node: string): SendHandler | undefined;
  /** Whether the outcome of a text is on its way into the flow: its answers follow it. */
  isOutcomeComing(text: string): boolean;
  /** What the node gave with a text. */
  origin(text: string): unknown;
  /** No question of a text is left. */
  onAllAnswered(text: string): void;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

/** From the start on no question runs out before the replies that the service still has were read, or so long has passed. */
const readRepliesFirstMs = 60_000;
const collectIntervalMs = 500;

/** So many questions are looked for elsewhere at a time: of more the next ones follow. */
const mostCollected = 1_000;

/**
 * Waits for the replies to questions: for each recipient exactly one of reply and no reply enters the flow, at least
 * once, and after the outcome of the text.
 */
export class Questions {
  readonly #options: QuestionsOptions;
  readonly #batched: Batched;
  /** Brings those into the flow that have ended. */
  readonly #bringing: Bringing<Question>;
  /** The deadlines of those that are open. */
  readonly #timers = new Map<string, Timer>();
  /** They have run out, before or after the start, and there may be replies yet that the service has had since before. */
  readonly #overdue = new Set<string>();
  /** There as long as such replies are waited for, for what was asked before. */
  #patience: { timer: Timer; since: number } | undefined;
  #collecting: Timer | undefined;
  /** Goes through all that are known. */
  #round: Iterator<Question> | undefined;
  #isClosed = false;

  constructor(options: QuestionsOptions) {
    const { clock, ledger, handlerOf, isOutcomeComing, onFault } = options;
    this.#options = options;
    this.#batched = new Batched(clock);
    const forget = (question: Question) => this.#forget(question);
    this.#bringing = new Bringing({
      clock,
      items: ledger.questions,
      isShared: ledger.isShared,
      taker: ({ text, node }) => (isOutcomeComing(text) ? undefined : handlerOf(node)),
      // Its node may be about to be deployed.
      patienceMs: (question) => Math.max(longestDeploymentMs, remainingGraceMs(question, clock.now())),
      tell: (taker, question, mayBeKnown) => this.#tell(taker, question, mayBeKnown),
      taken: forget,
      missed: forget,
      onFault,
    });
  }

  /** The outcome of a text has entered the flow: the wait for its replies goes on. */
  begin(text: string): void {
    const { questions } = this.#options.ledger;
    if (questions.size === 0) return;
    for (const question of questions.of(text)) {
      // Its text was not accepted: a store that had seemed to fail had it, and it was found after that was settled.
      if (question.askedAt === undefined) void this.#options.ledger.forgetQuestion(question);
      else if (question.answer) void this.#bringing.bring(question, false);
      else this.#await(question);
    }
    this.#collectReplies();
  }

  /** An earlier process has asked. */
  resume(questions: readonly Question[]): void {
    // Whoever opens this, or takes over from it, finds them in the ledger.
    if (this.#isClosed) return;
    const { clock, ledger, origin } = this.#options;
    // One that is in no store is known by its origin alone. The outcome of an uncertain one has been told.
    const isUnderWay = ({ text: id }: Question) => {
      const text = ledger.texts.get(id);
      return text ? text.state !== 'uncertain' : origin(id) !== undefined;
    };
    for (const question of questions) {
      if (question.answer) {
        if (question.askedAt !== undefined || !isUnderWay(question)) void this.#bringing.bring(question, true);
      } else if (question.askedAt === undefined) {
        // Whether its text was accepted is known to nobody, or will be when the text is settled.
        if (!isUnderWay(question)) void ledger.forgetQuestion(question);
      } else {
        this.#patience ??= {
          timer: clock.after(readRepliesFirstMs, () => this.onRepliesRead(), true),
          since: clock.now(),
        };
        this.#await(question);
      }
    }
    this.#collectReplies();
  }

  /** The service has no more replies for now: what is overdue ends without one. */
  onRepliesRead(): void {
    this.#patience?.timer.cancel();
    this.#patience = undefined;
    for (const id of this.#overdue) {
      this.#batched.run(() => {
        if (this.#overdue.has(id)) void this.#timeOut(id);
      });
    }
  }

  /** A question has been answered, and that is written. */
  answered(question: Question): void {
    const { questions } = this.#options.ledger;
    const asked = questions.get(question.id);
    if (!asked) return;
    questions.update(question);
    // As far as it is known, which its text's acceptance in the same commit is not yet.
    this.onAnswered(asked);
  }

  /** A reply, or the word that none will come, is written down. */
  onAnswered({ id, askedAt }: Question): void {
    this.#stopWaiting(id);
    const answered = this.#options.ledger.questions.get(id);
    // Before its text is known to be accepted, the outcome comes first.
    if (askedAt !== undefined && answered?.answer) void this.#bringing.bring(answered, false);
  }

  /** A node is here, and can take what has ended. */
  attach(node: string): void {
    this.#bringing.nodeChanged(node);
  }

  /** Nothing is told any more; the store has it. */
  close(): void {
    this.#isClosed = true;
    this.#bringing.close();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#patience?.timer.cancel();
    this.#collecting?.cancel();
    this.#timers.clear();
    this.#overdue.clear();
    this.#patience = undefined;
    this.#collecting = undefined;
  }

  /** Goes on after {@link close}. */
  open(): void {
    this.#isClosed = false;
    this.#bringing.open();
  }

  #await(question: Question): void {
    const { clock } = this.#options;
    const { id, askedAt = 0 } = question;
    const onOver = () => {
      if (this.#patience && askedAt < this.#patience.since) this.#overdue.add(id);
      else void this.#timeOut(id);
    };
    this.#timers.get(id)?.cancel();
    const end = () => {
      if (this.#timers.get(id) === timer) onOver();
    };
    const timer = clock.after(remainingMs(question, clock.now()), () => this.#batched.run(end), true);
    this.#timers.set(id, timer);
  }

  async #timeOut(id: string): Promise<void> {
    const { ledger, onFault } = this.#options;
    this.#stopWaiting(id);
    try {
      const ended = await ledger.endQuestion(id, { reason: 'timeout' });
      if (ended) await this.#bringing.bring(ended, false);
    } catch (error) {
      onFault(error);
    }
  }

  #stopWaiting(id: string): void {
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
    this.#overdue.delete(id);
  }

  async #tell(taker: SendHandler, question: Question, mayBeKnown: boolean): Promise<boolean> {
    const { text, recipient, messageId, answer } = question;
    if (!answer) return false;
    const given = this.#options.origin(text);
    const carried = given === undefined ? await this.#options.ledger.carried(question) : undefined;
    return taker.onAnswer({
      recipient,
      ...(messageId === undefined ? undefined : { messageId }),
      answer,
      redelivered: mayBeKnown,
      ...(given === undefined ? undefined : { origin: given }),
      ...(carried === undefined ? undefined : { carried }),
    });
  }

  /** Its end has entered the flow, or nobody was there to take it. */
  async #forget(question: Question): Promise<void> {
    const { ledger, onAllAnswered } = this.#options;
    this.#stopWaiting(question.id);
    await ledger.forgetQuestion(question);
    if (!ledger.questions.hasOf(question.text)) onAllAnswered(question.text);
  }

  /** Replies may have been read elsewhere, as long as something is asked. */
  #collectReplies(): void {
    const { clock, ledger } = this.#options;
    if (!ledger.isShared || this.#collecting || this.#isClosed || ledger.questions.open === 0) return;
    this.#collecting = clock.after(
      collectIntervalMs,
      () => {
        this.#collecting = undefined;
        ledger
          .collectReplies(this.#nextOpen())
          .then((answered) => {
            for (const question of answered) this.onAnswered(question);
          })
          // The store fails, which it tells by itself.
          .catch(() => {})
          .finally(() => this.#collectReplies());
      },
      true,
    );
  }

  /** Some of the open ones, others each time until all have had their turn. */
  #nextOpen(): Question[] {
    const { questions } = this.#options.ledger;
    const open: Question[] = [];
    for (let left = questions.size; left > 0 && open.length < mostCollected; left--) {
      let next = this.#round?.next();
      if (!next || next.done) {
        this.#round = questions.values();
        next = this.#round.next();
      }
      if (!next.done && !next.value.answer) open.push(next.value);
    }
    return open;
  }
}
