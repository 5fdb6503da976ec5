import type { Clock, Timer } from '../clock';
import type { Journal } from '../journal';
import type { Item } from '../store/store';
import { collectLetters, endQuestion, forgetQuestion, readCarried } from './answering';
import { abandon, adopt, ledgerPrefixes } from './inheritance';
import { keysOfLimits, type LimitSettings } from './limits';
import type { OnceVerdict } from './once';
import { isTracked, type Outcome, type Text } from './outgoing';
import type { Answer, Question } from './question';
import { QuestionBook } from './question-book';
import { createMoments, type Moment } from './sliding-window';
import { delivered, discard, judge, leave, type Memory, type Moved, putBack, settle, takeIn } from './transitions';

/** What the ledger stands on. */
export interface LedgerOptions {
  journal: Journal;
  clock: Clock;
  /** How long a key guards. */
  dedupeMs(): number;
  /** How long a text is remembered. */
  sentMs(): number;
  /** The account's own limits; `undefined`: none. */
  limits(): LimitSettings | undefined;
  /** What an earlier process left, or a dead one held, has been found. */
  onFound(texts: readonly Text[], questions: readonly Question[]): void;
  /** Which nodes are here, so that what dead processes held for them may be taken over. */
  nodes(): readonly string[];
  /** A node has more or fewer open questions. */
  onAsking(node: string): void;
}

/** Items handed over in one commit. */
const sliceSize = 500;
const uncertainMs = 7 * 24 * 3_600_000;
const noLimits: LimitSettings = { perHandsetMs: 0 };

/**
 * One record per text that is kept, guarded or asks: the one place that knows where each stands, in memory and in the
 * store. Every method is a transition of `transitions.ts`, and resolves when it is written, or cannot be for now.
 */
export class Ledger {
  /** Questions that have not entered the flow. */
  readonly questions: QuestionBook;
  readonly #options: LedgerOptions;
  readonly #texts = new Map<string, Text>();
  /** For whom it takes over what other processes leave. */
  #heir: Ledger | undefined;
  /** An uncertain text can be decided about for so long. */
  readonly #decisions = new Map<string, Timer>();
  readonly #createMoment: () => Moment;
  /** Until when, by {@link Clock.elapsed}, a limit is known to keep somebody back. */
  #tightUntil = 0;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.questions = new QuestionBook(options.onAsking);
    this.#createMoment = createMoments(options.clock);
    options.journal.join('ledger', {
      found: (items, { isOpening, isReset }) => this.#found(items, isOpening, isReset),
      wanted: () => this.#wanted(),
      letGo: (isUnsaved) => this.#letGo(isUnsaved),
    });
  }

  /** Texts in the order of their arrival, or of their being found. */
  texts(): IterableIterator<Text> {
    return this.#texts.values();
  }

  /** Texts that somebody may decide about. */
  get uncertain(): number {
    return this.#decisions.size;
  }

  text(id: string): Text | undefined {
    return this.#texts.get(id);
  }

  /** Whether nothing would be lost by forgetting it: what is in a durable store is found again. */
  get isSettled(): boolean {
    return this.#texts.size === 0 && this.questions.size === 0;
  }

  /** @throws SmsError `SMS_STORE` when it cannot be kept: nothing may be sent then */
  async takeIn(text: Text): Promise<OnceVerdict> {
    const verdict = await this.#options.journal.run(takeIn(text, this.#memory()));
    if (verdict.type === 'new') this.#texts.set(text.id, text);
    return verdict;
  }

  /** Whether a text is counted when it leaves. */
  counts({ message }: Text): boolean {
    return keysOfLimits(message.to, this.#memory().limits).length > 0;
  }

  /**
   * The text with those of its recipients that the limits keep back now. Nothing is counted, or kept. As long as no limit is
   * known to be reached nobody is looked for: {@link leave} finds out.
   */
  async judge(text: Text): Promise<Text> {
    const { limited: _, ...rest } = text;
    const { clock, journal } = this.#options;
    if (!this.counts(text) || clock.elapsed() >= this.#tightUntil) return rest;
    const limited = await journal.run(judge(text, this.#memory()));
    const aheadMs = clock.elapsed() - clock.now();
    const known = Number.isFinite(this.#tightUntil) ? this.#tightUntil : 0;
    this.#tightUntil = limited.reduce((latest, { until }) => Math.max(latest, until + aheadMs), known);
    return limited.length === 0 ? rest : { ...rest, limited };
  }

  /**
   * Counts whom the text goes to, as it was judged. Results in `undefined` when it has to be judged anew.
   *
   * @throws SmsError `SMS_STORE` when a tracked text's mark cannot be written: it must not leave then
   */
  async leave(text: Text): Promise<Text | undefined> {
    const moved = await this.#options.journal.run(leave(text, this.#memory(), this.questions));
    if (moved) return this.#move(moved);
    this.#tightUntil = Number.POSITIVE_INFINITY;
    return undefined;
  }

  /** Nothing of it was sent. */
  async putBack(text: Text): Promise<Text> {
    this.#decided(text.id);
    return this.#move(await this.#options.journal.run(putBack(text, this.#memory())));
  }

  /** It may have been sent, and is to be sent again: what was counted stays so. */
  async sendAgain({ countedAt: _, ...text }: Text): Promise<Text> {
    return this.putBack(text);
  }

  async settle(text: Text, outcome: Outcome): Promise<Text> {
    const step = settle(text, outcome, this.#memory(), this.questions.of(text.id));
    return this.#move(await this.#options.journal.run(step));
  }

  async delivered(text: Text): Promise<void> {
    if (!isTracked(text)) return;
    // At once, so that nobody takes it up again while it is being written.
    this.#texts.delete(text.id);
    const uncertain = await this.#options.journal.run(delivered(text));
    if (uncertain) this.#leaveUndecided(uncertain);
  }

  async discard(text: Text): Promise<void> {
    this.#texts.delete(text.id);
    this.#decided(text.id);
    await this.#options.journal.run(discard(text));
  }

  /** A question has ended; when it has already, nothing changes. */
  async endQuestion(id: string, answer: Answer): Promise<Question | undefined> {
    const question = this.questions.get(id);
    if (!question || question.answer) return undefined;
    const ended = await this.#options.journal.run(endQuestion(question, answer));
    if (ended) this.questions.set(ended);
    return ended;
  }

  /** Takes the replies that other instances have read for questions of this process. */
  async collectLetters(): Promise<Question[]> {
    const answered = await this.#options.journal.run(collectLetters((id) => this.questions.get(id)));
    for (const question of answered) this.answered(question);
    return answered;
  }

  /** The message of the flow that a question was asked with, as far as it is known. */
  carried(question: Question): Promise<string | undefined> {
    return this.#options.journal.run(readCarried(question));
  }

  /** A reply has been written down as the answer to a question of this process. */
  answered(question: Question): void {
    if (this.questions.has(question.id)) this.questions.set(question);
  }

  async forgetQuestion(question: Question): Promise<void> {
    this.questions.delete(question.id);
    const isLast = this.questions.of(question.text).length === 0;
    await this.#options.journal.run(forgetQuestion(question, isLast));
  }

  /**
   * Gives everything to another ledger, and forgets it once that one has it in its store.
   *
   * @throws SmsError `SMS_STORE` when that store does not take it: what is left stays where it is safe
   */
  async handOver(heir: Ledger, isLast: boolean): Promise<void> {
    const { journal } = this.#options;
    if (isLast) this.#heir = heir;
    if (journal.isShared && !isLast) return;
    const items = [...this.#texts.values(), ...this.questions.values()];
    const remembered = await journal.remembered(ledgerPrefixes);
    for (let start = 0; start < Math.max(items.length, remembered.length); start += sliceSize) {
      const part = items.slice(start, start + sliceSize);
      const memory = remembered.slice(start, start + sliceSize);
      await heir.#options.journal.run(adopt(part, memory));
      for (const item of part) this.#forget(item);
      await journal.run(abandon(part, memory));
      heir.#found(part, false, false);
    }
  }

  #memory(): Memory {
    const { dedupeMs, sentMs, limits } = this.#options;
    const moment = this.#createMoment();
    return { now: moment.now, moment, limits: limits() ?? noLimits, dedupeMs: dedupeMs(), sentMs: sentMs() };
  }

  #wanted(): string[] {
    return this.#heir ? this.#heir.#wanted() : this.#options.nodes().map((node) => `node ${node}`);
  }

  #move({ text, asked, unasked }: Moved): Text {
    if (isTracked(text)) this.#texts.set(text.id, text);
    for (const question of asked) this.questions.set(question);
    for (const id of unasked) this.questions.delete(id);
    return text;
  }

  #leaveUndecided(text: Text): void {
    const { clock } = this.#options;
    this.#texts.set(text.id, text);
    const leftMs = Math.min(uncertainMs, Math.max(0, (text.settledAt ?? 0) + uncertainMs - clock.now()));
    const expire = () => void this.discard(text);
    this.#decisions.set(text.id, clock.after(leftMs, expire, true));
  }

  #forget(item: Text | Question): void {
    if (item.kind === 'question') this.questions.delete(item.id);
    else {
      this.#texts.delete(item.id);
      this.#decided(item.id);
    }
  }

  #decided(id: string): void {
    this.#decisions.get(id)?.cancel();
    this.#decisions.delete(id);
  }

  /** The store keeps them until it is opened again. */
  #letGo(isUnsaved: (id: string) => boolean): void {
    for (const { id } of this.#texts.values()) {
      if (isUnsaved(id)) continue;
      this.#texts.delete(id);
      this.#decided(id);
    }
    for (const { id } of this.questions.values()) if (!isUnsaved(id)) this.questions.delete(id);
  }

  #found(items: readonly Item[], isOpening: boolean, isReset: boolean): void {
    const found = items as readonly (Text | Question)[];
    if (isOpening && this.#options.journal.isShared) this.#reconcile(new Set(found.map(({ id }) => id)), isReset);
    const texts = found.filter((item) => item.kind === 'text').filter(({ id }) => !this.#texts.has(id));
    const questions = found.filter((item) => item.kind === 'question').filter(({ id }) => !this.questions.has(id));
    for (const text of texts) {
      if (text.state === 'uncertain') this.#leaveUndecided(text);
      else this.#texts.set(text.id, text);
    }
    for (const question of questions) this.questions.set(question);
    if (texts.length > 0 || questions.length > 0) this.#options.onFound(texts, questions);
  }

  /** What is not among the found has been taken over by another process, or, after a reset, is to be kept anew. */
  #reconcile(found: ReadonlySet<string>, isReset: boolean): void {
    const missing = [...this.#texts.values(), ...this.questions.values()].filter(({ id }) => !found.has(id));
    for (const item of missing) {
      if (isReset) void this.#options.journal.run(keepAnew(item));
      else if (item.kind === 'text') this.#texts.delete(item.id);
      else this.questions.delete(item.id);
    }
  }
}

function keepAnew(item: Item) {
  return {
    keys: [],
    whileFailing: 'apply',
    decide(_look: unknown, changes: { keep: Map<string, Item> }) {
      changes.keep.set(item.id, item);
      return () => {};
    },
  } as const;
}
