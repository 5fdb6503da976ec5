import { EntryOrder, type EntryPage } from './entry-order';

/** What somebody may decide about: a text that waits, or one whose outcome is unknown. */
export type TextEntryState = 'kept' | 'uncertain';

/** As what a text is listed, and since when: when it came, or when its outcome became unknown; in ms. */
export interface TextEntryPlace {
  state: TextEntryState;
  at: number;
}

/** Which texts somebody may decide about, by id, and in order. */
export class TextEntries {
  readonly #places = new Map<string, TextEntryPlace>();
  readonly #orders: Readonly<Record<TextEntryState, EntryOrder>> = {
    kept: new EntryOrder(),
    uncertain: new EntryOrder(),
  };

  /** Lists a text, wherever it was before. */
  put(id: string, place: TextEntryPlace): void {
    const former = this.#places.get(id);
    if (former?.state === place.state && former.at === place.at) return;
    this.remove(id);
    this.#places.set(id, place);
    this.#orders[place.state].add(id, place.at);
  }

  remove(id: string): void {
    const former = this.#places.get(id);
    if (!former) return;
    this.#places.delete(id);
    this.#orders[former.state].delete(id, former.at);
  }

  get(id: string): TextEntryPlace | undefined {
    return this.#places.get(id);
  }

  count(state: TextEntryState): number {
    return this.#orders[state].size;
  }

  /** Those of a state that come first, or after an earlier page. See {@link EntryOrder.page}. */
  page(state: TextEntryState, most: number, after?: string): EntryPage {
    return this.#orders[state].page(most, after);
  }
}
