import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import type { Ledger } from './ledger';
import type { Outlet } from './outlet';
import { Paced } from './paced';
import { type Question, remainingGraceMs, remainingMs } from './question';

/** What open questions need. */
export interface QuestionsOptions {
  clock: Clock;
  ledger: Ledger;
  /** Whether other instances may read the replies. */
  isShared: boolean;
  outlet(node: string): Outlet | undefined;
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
const letterIntervalMs = 500;

/**
 * Waits for the replies to questions: for each recipient exactly one of reply and no reply enters the flow, at least
 * once, and after the outcome of the text.
 */
export class Questions {
  readonly #options: QuestionsOptions;
  readonly #paced: Paced;
  /** One for each question: its deadline, or since it has ended when it is given up. */
  readonly #timers = new Map<string, Timer>();
  /** Ended, and not taken by a node yet; `true`: an earlier process may have sent it into the flow. */
  readonly #undelivered = new Map<string, boolean>();
  readonly #delivering = new Set<string>();
  /** They have run out, before or after the start, and there may be replies yet that the service has had since before. */
  readonly #overdue = new Set<string>();
  /** There as long as such replies are waited for, for what was asked before. */
  #patience: { timer: Timer; since: number } | undefined;
  #letters: Timer | undefined;
  #isClosed = false;

  constructor(options: QuestionsOptions) {
    this.#options = options;
    this.#paced = new Paced(options.clock);
  }

  /** The outcome of a text has entered the flow: the wait for its replies goes on. */
  begin(text: string): void {
    const { questions } = this.#options.ledger;
    if (questions.size === 0) return;
    for (const question of questions.of(text)) {
      // Its text was not accepted: a store that had seemed to fail had it, and it was found after that was settled.
      if (question.askedAt === undefined) void this.#options.ledger.forgetQuestion(question);
      else if (question.answer) void this.#deliver(question.id, this.#undelivered.get(question.id) ?? false);
      else this.#await(question);
    }
    this.#collectLetters();
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
        if (question.askedAt !== undefined || !isUnderWay(question)) void this.#deliver(question.id, true);
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
    this.#collectLetters();
  }

  /** The service has no more replies for now: what is overdue ends without one. */
  onRepliesRead(): void {
    this.#patience?.timer.cancel();
    this.#patience = undefined;
    for (const id of this.#overdue) {
      this.#paced.run(() => {
        if (this.#overdue.has(id)) void this.#timeOut(id);
      });
    }
  }

  /** A reply, or the word that none will come, is written down. */
  onAnswered({ id, askedAt }: Question): void {
    this.#stopWaiting(id);
    // Before its text is known to be accepted, the outcome comes first.
    if (askedAt !== undefined) void this.#deliver(id, false);
  }

  /** A node is here, and can take what has ended. */
  attach(node: string): void {
    for (const [id, mayBeKnown] of this.#undelivered) {
      if (this.#options.ledger.questions.get(id)?.node === node) void this.#deliver(id, mayBeKnown);
    }
  }

  /** Nothing is told any more; the store has it. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#patience?.timer.cancel();
    this.#letters?.cancel();
    this.#timers.clear();
    this.#undelivered.clear();
    this.#overdue.clear();
    this.#patience = undefined;
    this.#letters = undefined;
  }

  /** Goes on after {@link close}. */
  open(): void {
    this.#isClosed = false;
  }

  #await(question: Question): void {
    const { clock } = this.#options;
    const { id, askedAt = 0 } = question;
    this.#setTimer(question, remainingMs(question, clock.now()), () => {
      if (this.#patience && askedAt < this.#patience.since) this.#overdue.add(id);
      else void this.#timeOut(id);
    });
  }

  #setTimer({ id }: Question, delayMs: number, onOver: () => void): void {
    this.#timers.get(id)?.cancel();
    const end = () => {
      if (this.#timers.get(id) === timer) onOver();
    };
    const timer = this.#options.clock.after(delayMs, () => this.#paced.run(end), true);
    this.#timers.set(id, timer);
  }

  async #timeOut(id: string): Promise<void> {
    const { ledger, onFault } = this.#options;
    this.#stopWaiting(id);
    try {
      const ended = await ledger.endQuestion(id, { reason: 'timeout' });
      if (ended) await this.#deliver(id, false);
    } catch (error) {
      onFault(error);
    }
  }

  #stopWaiting(id: string): void {
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
    this.#overdue.delete(id);
  }

  async #deliver(id: string, mayBeKnown: boolean): Promise<void> {
    const { clock, ledger, outlet, isOutcomeComing, origin, onFault } = this.#options;
    const question = ledger.questions.get(id);
    if (!question?.answer || this.#isClosed) return;
    this.#undelivered.set(id, mayBeKnown);
    // Its node may be about to be deployed.
    const graceMs = Math.max(longestDeploymentMs, remainingGraceMs(question, clock.now()));
    this.#setTimer(question, graceMs, () => void this.#forget(question));
    if (this.#delivering.has(id) || isOutcomeComing(question.text)) return;
    const taker = outlet(question.node);
    if (!taker) return;
    this.#delivering.add(id);
    try {
      const given = origin(question.text);
      const carried = given === undefined ? await ledger.carried(question) : undefined;
      const { recipient, messageId, answer } = question;
      const isTaken = await taker.onAnswer({
        recipient,
        ...(messageId === undefined ? undefined : { messageId }),
        answer,
        redelivered: mayBeKnown,
        ...(given === undefined ? undefined : { origin: given }),
        ...(carried === undefined ? undefined : { carried }),
      });
      if (isTaken) await this.#forget(question);
    } catch (error) {
      onFault(error);
    } finally {
      this.#delivering.delete(id);
    }
    // It came while the one before it was being told.
    if (this.#undelivered.has(id) && outlet(question.node) !== taker) await this.#deliver(id, mayBeKnown);
  }

  /** Its end has entered the flow, or nobody was there to take it. */
  async #forget(question: Question): Promise<void> {
    const { ledger, onAllAnswered } = this.#options;
    this.#stopWaiting(question.id);
    this.#undelivered.delete(question.id);
    await ledger.forgetQuestion(question);
    if (!ledger.questions.hasOf(question.text)) onAllAnswered(question.text);
  }

  /** Replies may have been read elsewhere, as long as something is asked. */
  #collectLetters(): void {
    const { clock, ledger, isShared } = this.#options;
    if (!isShared || this.#letters || this.#isClosed || ledger.questions.open === 0) return;
    this.#letters = clock.after(
      letterIntervalMs,
      () => {
        this.#letters = undefined;
        ledger
          .collectLetters()
          .then((answered) => {
            for (const question of answered) this.onAnswered(question);
          })
          // The store fails, which it tells by itself.
          .catch(() => {})
          .finally(() => this.#collectLetters());
      },
      true,
    );
  }
}
