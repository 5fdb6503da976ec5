import type { IncomingRecord } from '../model';
import { NodeCounts } from '../outbox/counts';
import type { Heritage } from '../outbox/heritage';
import type { Item } from '../store/store';

/** Why no reply comes. */
export type NoReply = { reason: 'timeout' | 'undelivered'; statusCode?: string };

/** How a question ended: with its first reply, or with none. */
export type Answer = { reply: IncomingRecord } | NoReply;

/** A question to one recipient. Plain data. */
export interface Question extends Item {
  part: 'ledger';
  kind: 'question';
  /** Id of the sending node. */
  node: string;
  /** Id of the text that asks, under which the message of the flow is remembered. */
  text: string;
  /** See `referenceOf` in `sent.ts`. */
  reference: string;
  messageId?: string;
  recipient: string;
  waitMs: number;
  /** When the wait began, in ms; absent while the text's outcome is not known. */
  askedAt?: number;
  /** Not sent into the flow yet. */
  answer?: Answer;
}

/** A question and what the flow sent with it stay for so long after its time, should nobody be there to take its end. */
export const questionGraceMs = 7 * 24 * 3_600_000;

const askedPrefix = 'asked:';

/** The messages of the flow that questions are asked with. */
export const askedHeritage: Heritage = { prefix: askedPrefix };

/** The key of the flow's message that questions are asked with. */
export function askedKey(text: string): string {
  return askedPrefix + text;
}

/**
 * How much of a wait is left. The clock may have been set meanwhile: it is never more than the whole.
 *
 * @param now in ms
 */
export function remainingMs(question: Question, now: number): number {
  return remainingOf(question.waitMs, question, now);
}

/** How long a question that has ended stays yet; see {@link remainingMs}. */
export function remainingGraceMs(question: Question, now: number): number {
  return remainingOf(question.waitMs + questionGraceMs, question, now);
}

function remainingOf(wholeMs: number, { askedAt }: Question, now: number): number {
  return askedAt === undefined ? wholeMs : Math.min(wholeMs, Math.max(0, askedAt + wholeMs - now));
}

/** The questions of this process that have not entered the flow, found by id, text and node. */
export class QuestionBook {
  readonly #byId = new Map<string, Question>();
  readonly #byText = new Map<string, Set<string>>();
  /** What the store has never had. */
  readonly #unwritten = new Set<string>();
  /** Those that have no answer yet. */
  readonly #open = new NodeCounts();
  readonly #onCount: (node: string) => void;

  /** @param onCount a node has more or fewer open questions */
  constructor(onCount: (node: string) => void) {
    this.#onCount = onCount;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** How many have no answer yet. */
  get open(): number {
    return this.#open.total;
  }

  /** In the order in which they were added. */
  values(): IterableIterator<Question> {
    return this.#byId.values();
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  get(id: string): Question | undefined {
    return this.#byId.get(id);
  }

  /** Those of a text. */
  of(text: string): Question[] {
    const ids = [...(this.#byText.get(text) ?? [])];
    return ids.map((id) => this.#byId.get(id)).filter((question) => question !== undefined);
  }

  /** Whether a text has any. */
  hasOf(text: string): boolean {
    return this.#byText.has(text);
  }

  /** How many of a node have no answer yet. */
  openOf(node: string): number {
    return this.#open.of(node);
  }

  /**
   * Adds a question, or puts it in the place of an earlier state of it.
   *
   * @param isWritten the store has it
   */
  set(question: Question, isWritten = true): void {
    const { id, text, node } = question;
    const former = this.#byId.get(id);
    this.#byId.set(id, question);
    if (!former) {
      if (!isWritten) this.#unwritten.add(id);
      this.#byText.set(text, (this.#byText.get(text) ?? new Set()).add(id));
    }
    this.#count(node, openness(question) - openness(former));
  }

  /** Puts a question in the place of an earlier state of it, unless that is gone. */
  update(question: Question): void {
    if (this.has(question.id)) this.set(question);
  }

  delete(id: string): void {
    const question = this.#byId.get(id);
    if (!question) return;
    this.#byId.delete(id);
    this.#unwritten.delete(id);
    const others = this.#byText.get(question.text);
    others?.delete(id);
    if (others?.size === 0) this.#byText.delete(question.text);
    this.#count(question.node, -openness(question));
  }

  /** These are in the store now. */
  written(kept: ReadonlyMap<string, unknown>): void {
    if (this.#unwritten.size > 0) for (const id of kept.keys()) this.#unwritten.delete(id);
  }

  /** Whether the store has never had a question, so that no other process can have taken it over. */
  isUnwritten(id: string): boolean {
    return this.#unwritten.has(id);
  }

  #count(node: string, more: number): void {
    if (more === 0) return;
    this.#open.add(node, more);
    this.#onCount(node);
  }
}

/** As how many open ones a question counts. */
function openness(question: Question | undefined): number {
  return question && !question.answer ? 1 : 0;
}
