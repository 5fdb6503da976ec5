import type { StoreLifecycle } from '../store/lifecycle';
import type { Held, Item, Page } from '../store/store';
import type { ItemIds } from './item-ids';
import type { Circumstances, Keepers, Sieve } from './keeper';
import type { StepQueue } from './step-queue';
import type { StepWriter } from './writer';

/** What a {@link StoreSession} joins. */
export interface StoreSessionOptions {
  lifecycle: StoreLifecycle;
  keepers: Keepers;
  writer: StepWriter;
  steps: StepQueue;
  ids: ItemIds;
  /** Something in the store could not be read and is set aside; `place` says where it is now, and nothing of its content. */
  onUnreadable(place: string): void;
}

/** Opens the store, tells the keepers what is found there, then and later, reads on what they have put off, and closes it. */
export class StoreSession {
  readonly #options: StoreSessionOptions;
  /** The last time that the store was opened. */
  #opening: object | undefined;
  #isRead = false;

  constructor(options: StoreSessionOptions) {
    this.#options = options;
  }

  /** Whether what the store had has been found, so that keepers know all that there is. */
  get isRead(): boolean {
    return this.#isRead;
  }

  /** Opens the store, unless it is open. Never rejects: failures are told by its lifecycle. */
  async open(): Promise<void> {
    const { lifecycle, keepers, writer, steps, onUnreadable } = this.#options;
    const opening = {};
    const leftovers = await lifecycle.open({
      onTakenOver: (items) =>
        steps.doFirst(async () => {
          // What was taken over before the store failed is found again, or has been taken over by another since.
          if (opening === this.#opening) await this.#find(items, { isReset: false, isOpening: false });
        }),
      wanted: () => keepers.wanted(),
      isReadable: (item) => keepers.isReadable(item),
      onUnreadable,
      sift: (held) => this.#sift(held),
    });
    if (!leftovers) return;
    this.#opening = opening;
    const { items, held, isReset = false } = leftovers;
    await this.#find(items, { isReset, isOpening: true });
    this.#isRead = true;
    // What an earlier process held came before what was put off, and that before what waits.
    const waiting = steps.takeAll();
    for (const one of held) {
      const place = keepers.recover(one);
      if (place !== undefined) onUnreadable(place);
    }
    steps.append([...writer.takePostponed(), ...waiting]);
    if (!writer.hasUnsaved) lifecycle.recovered();
  }

  /** Reads something from a store that is open. Never rejects: failures are told by its lifecycle, and `undefined` is returned. */
  async read(read: () => Promise<Page>): Promise<Page | undefined> {
    const { lifecycle } = this.#options;
    if (lifecycle.mode !== 'open') return undefined;
    try {
      const page = await read();
      return lifecycle.mode === 'open' ? { ...page, items: page.items.filter(this.#isLeft) } : undefined;
    } catch (error) {
      lifecycle.fail(error);
      return undefined;
    }
  }

  /** Closes the store; a durable one keeps what keepers may forget then. Never rejects. */
  async close({ isDurable }: { isDurable: boolean }): Promise<void> {
    const { lifecycle, keepers } = this.#options;
    // One that is open has all that was ever to be written: whoever closes it has waited for that.
    if (lifecycle.mode === 'open' && isDurable) keepers.letGo();
    this.#isRead = false;
    await lifecycle.close();
  }

  async #find(items: readonly Item[], circumstances: Omit<Circumstances, 'unwritten'>): Promise<void> {
    const { keepers, writer, ids } = this.#options;
    ids.follow(items);
    await keepers.found(items.filter(this.#isLeft), { ...circumstances, unwritten: writer.unwritten });
  }

  #sift(held: readonly Held[]): Sieve {
    const { keepers, writer, ids } = this.#options;
    const unwritten = writer.hasUnwritten ? writer.unwritten : undefined;
    const sieve = keepers.sift(
      held.map(({ text }) => text),
      unwritten,
    );
    const isLeft = this.#isLeft;
    return (item) => {
      const isPutOff = isLeft(item) && sieve(item);
      if (isPutOff) ids.follow([item]);
      return isPutOff;
    };
  }

  /** Says of items whether they will still be there when all steps are taken that are known now. */
  get #isLeft(): (item: Item) => boolean {
    const { writer, steps } = this.#options;
    const { drops } = steps;
    return ({ id }) => !drops.has(id) && !writer.isDropped(id);
  }
}
