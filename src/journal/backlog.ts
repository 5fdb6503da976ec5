import type { Page, Store } from '../store/store';

/** What a {@link Backlog} stands on. */
export interface BacklogOptions {
  store: Store;
  /** Whether the store is open, and nobody closes it. */
  isUsable(): boolean;
  /** Has a page read between two steps; `take` gets `undefined` when it cannot be. */
  read(reading: { read(): Promise<Page>; take(page: Page | undefined): void }): void;
}

/** What a store has that it has not given yet: what participants have put off, and what dead processes hold. */
export class Backlog {
  readonly #options: BacklogOptions;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** So many items are read at a time of what was put off; absent: the store lets nothing be put off. */
  get pageSize(): number | undefined {
    return this.#options.store.pages?.size;
  }

  /** Whether there may be something of an earlier process; `undefined`: nobody knows before it is open. */
  get mayHold(): boolean | undefined {
    return this.#options.store.mayHold;
  }

  /** Whether it can be asked for anything now. */
  get isUsable(): boolean {
    return this.#options.isUsable();
  }

  /**
   * Reads a page of items of all parts, and has it taken before any later step. Resolves with whether it was: not while the store
   * fails or is being closed. All that was put off is sifted anew when it is opened again.
   *
   * @param after asked for the id after which the page begins when the time has come
   */
  readPage(after: () => string, take: (page: Page) => void): Promise<boolean> {
    const { pages } = this.#options.store;
    if (!pages || !this.isUsable) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#options.read({
        read: () => pages.read(after()),
        take: (page) => {
          if (page) take(page);
          resolve(page !== undefined);
        },
      });
    });
  }

  /** How long after its opening a store has taken over everything that dead processes held, but for what there is more than it takes at a time. */
  get takeOverMs(): number {
    return this.#options.store.takeOverMs ?? 0;
  }

  /** See {@link Store.takeMore}. */
  get takeMore(): (() => void) | undefined {
    return this.isUsable ? this.#options.store.takeMore : undefined;
  }
}
