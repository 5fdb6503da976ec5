import type { Question } from './question';

/** The questions of this process that have not entered the flow, found by id, text and node. */
export class QuestionBook {
  readonly #byId = new Map<string, Question>();
  readonly #byText = new Map<string, Set<string>>();
  /** What the store has never had. */
  readonly #unwritten = new Set<string>();
  readonly #countByNode = new Map<string, number>();
  readonly #onCount: (node: string) => void;

  /** @param onCount a node has more or fewer questions */
  constructor(onCount: (node: string) => void) {
    this.#onCount = onCount;
  }

  get size(): number {
    return this.#byId.size;
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

  /** How many a node has. */
  countOf(node: string): number {
    return this.#countByNode.get(node) ?? 0;
  }

  /**
   * Adds a question, or puts it in the place of an earlier state of it.
   *
   * @param isWritten the store has it
   */
  set(question: Question, isWritten = true): void {
    const { id, text, node } = question;
    const isNew = !this.#byId.has(id);
    this.#byId.set(id, question);
    if (!isNew) return;
    if (!isWritten) this.#unwritten.add(id);
    this.#byText.set(text, (this.#byText.get(text) ?? new Set()).add(id));
    this.#count(node, 1);
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
    this.#count(question.node, -1);
  }

  /** These are in the store now. */
  written(kept: ReadonlyMap<string, unknown>): void {
    if (this.#unwritten.size > 0) for (const id of kept.keys()) this.#unwritten.delete(id);
  }

  /** Whether the store has never had a question, so that no other process can have taken it over. */
  isUnwritten(id: string): boolean {
    return this.#unwritten.has(id);
  }

  #count(node: string, more: 1 | -1): void {
    this.#countByNode.set(node, this.countOf(node) + more);
    this.#onCount(node);
  }
}
