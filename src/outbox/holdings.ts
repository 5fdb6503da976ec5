import type { Clock } from '../clock';
import type { Journal, Step } from '../journal/journal';
import type { Circumstances } from '../journal/step';
import type { Asked, QuestionBook } from '../questions/question';
import type { Remembrance } from '../questions/sent-index';
import { type Changes, type Item, keepItem } from '../store/store';
import { abandon, adopt, adoptAnswers, ledgerPrefixes } from './inheritance';
import type { Text } from './outgoing';
import type { TextBook } from './text-book';

/** What holdings are made of. */
export interface HoldingsOptions {
  journal: Journal;
  clock: Clock;
  texts: TextBook;
  questions: QuestionBook;
  remembrance: Remembrance;
  /** Nobody wants a text any more. */
  discard(text: Text): void;
  /** What an earlier process left, or a dead one held, has been found. */
  onFound(texts: readonly Text[], questions: readonly Asked[]): void;
}

/** How holdings are given to others. */
export interface HoldingsHandOver {
  /** Nobody is to take what a shared store has any more. */
  isLast: boolean;
  /** What is remembered stays there as well as it is given: others may go on with it. */
  keepsMemory?: boolean;
  /** Whether nobody is here who sends it. */
  isWanted(): boolean;
  /** The texts of these ids, or their questions, are the other's now. */
  onGiven(texts: ReadonlySet<string>): void;
}

/** Items handed over in one commit. */
const sliceSize = 500;

/** What a ledger holds as a whole: how it is found in the store, let go of, and given to another ledger. */
export class Holdings {
  readonly #options: HoldingsOptions;
  /** Texts that the store would not take, of which it may have written some all the same. */
  readonly #refused = new Set<string>();
  /** Ids of items that the store has, and that another ledger has not let go of: they are not found before it has. */
  readonly #arriving = new Set<string>();
  /** Ids of items that a shared store has lost, and has not got again. */
  #lost = new Set<string>();

  constructor(options: HoldingsOptions) {
    this.#options = options;
  }

  /** Whether all of it is here, and not some of it in a store that is closed. */
  get isWhole(): boolean {
    return this.#options.journal.mode === 'open';
  }

  /** Whether a text was refused that the store may turn out to have. */
  get hasRefused(): boolean {
    return this.#refused.size > 0;
  }

  /** See {@link Participant.found}. */
  found(items: readonly Item[], { isOpening, isReset }: Pick<Circumstances, 'isOpening' | 'isReset'>): void {
    const { journal, texts: book, questions: questionBook, onFound } = this.#options;
    const found = (items as readonly (Text | Asked)[]).filter(
      (item) => !this.#arriving.has(item.id) && !this.#isRefused(item),
    );
    if (isOpening) this.#refused.clear();
    if (isOpening && (journal.isShared || isReset)) this.#reconcile(new Set(found.map(({ id }) => id)), isReset);
    const texts = found.filter((item) => item.kind === 'text').filter(({ id }) => !book.has(id));
    const questions = found
      .filter((item) => item.kind === 'question' || item.kind === 'report')
      .filter(({ id }) => !questionBook.has(id));
    for (const text of texts) {
      if (text.state === 'uncertain') book.setUndecided(text);
      else book.set(text);
    }
    for (const question of questions) questionBook.set(question);
    if (texts.length > 0 || questions.length > 0) onFound(texts, questions);
  }

  /** See {@link Participant.saved}. */
  saved(kept: Changes['keep']): void {
    this.#options.questions.written(kept);
    if (this.#lost.size > 0) for (const id of kept.keys()) this.#lost.delete(id);
  }

  /** A text has not been taken in: should the store have written it, it is discarded as it is found. */
  refuse({ id }: Text): void {
    this.#refused.add(id);
  }

  /** The store keeps them until it is opened again. */
  letGo(): void {
    for (const item of this.#items()) this.#forget(item);
  }

  /**
   * Gives everything to another ledger, and forgets it once that one has it in its store. What it has not got when that is not
   * wanted any more stays here.
   *
   * @throws SmsError `SMS_STORE` when one of the stores cannot be used: what is left stays where it is safe
   */
  async handOver(heir: Holdings, { isLast, keepsMemory = false, isWanted, onGiven }: HoldingsHandOver): Promise<void> {
    const { journal } = this.#options;
    if (journal.isShared && !isLast) return;
    await journal.ready();
    // What is being taken in may be refused yet.
    await journal.flush();
    // It may have been closed since it was used last.
    await heir.#options.journal.ready();
    const remembered = await journal.remembered(ledgerPrefixes);
    const items = this.#items().map(forAnyService);
    for (let start = 0; start < Math.max(items.length, remembered.length); start += sliceSize) {
      if (!isWanted()) return;
      const part = items.slice(start, start + sliceSize);
      const memory = remembered.slice(start, start + sliceSize);
      const adopted = await heir.#options.journal.run(adopt(part, memory, heir.#options.clock.now()));
      for (const { id } of adopted) heir.#arriving.add(id);
      try {
        await heir.#options.journal.run(heir.#options.remembrance.findOut());
        await this.#followAnswers(adopted, heir);
        if (!isWanted()) {
          await heir.#options.journal.run(abandon(part, []));
          return;
        }
        for (const item of part) this.#forget(item);
        onGiven(new Set(part.map((item) => (item.kind === 'text' ? item.id : item.text))));
        await journal.run(abandon(part, keepsMemory ? [] : memory));
      } finally {
        for (const { id } of adopted) heir.#arriving.delete(id);
      }
      heir.found(adopted, { isOpening: false, isReset: false });
    }
  }

  /** Brings answers along that came while items were being adopted. When it resolves nothing is being written here. */
  async #followAnswers(adopted: (Text | Asked)[], heir: Holdings): Promise<void> {
    for (;;) {
      await this.#options.journal.flush();
      const answered: Asked[] = [];
      for (const [index, { id }] of adopted.entries()) {
        const current = this.#options.questions.get(id);
        if (!current?.answer || current === adopted[index]) continue;
        adopted[index] = current;
        answered.push(current);
      }
      if (answered.length === 0) return;
      await heir.#options.journal.run(adoptAnswers(answered));
    }
  }

  /** Its node has been told that nothing is sent. */
  #isRefused(item: Text | Asked): boolean {
    if (item.kind !== 'text' || !this.#refused.has(item.id)) return false;
    this.#options.discard(item);
    return true;
  }

  #items(): (Text | Asked)[] {
    const { texts, questions } = this.#options;
    return [...texts.values(), ...questions.values()];
  }

  #forget({ kind, id }: Text | Asked): void {
    if (kind === 'text') this.#options.texts.delete(id);
    else this.#options.questions.delete(id);
  }

  /** What is not among the found has been taken over by another process, or, after a reset, is to be kept anew, which may take several tries. */
  #reconcile(found: ReadonlySet<string>, isReset: boolean): void {
    const { journal, questions } = this.#options;
    const lost = new Set<string>();
    for (const item of this.#items()) {
      const { id } = item;
      if (found.has(id) || questions.isUnwritten(id)) continue;
      if (isReset) void journal.run(keepAnew(item));
      if (isReset || this.#lost.has(id)) lost.add(id);
      else this.#forget(item);
    }
    this.#lost = lost;
  }
}

/** What the service wanted, it may not want of another login, which may be at another service. */
function forAnyService<Held extends Text | Asked>(item: Held): Held {
  return item.kind === 'text' && item.retryAfter ? { ...item, retryAfter: undefined } : item;
}

function keepAnew(item: Item): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    decide(_look, changes) {
      keepItem(changes, item);
      return () => {};
    },
  };
}
