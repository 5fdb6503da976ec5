import {
  applyCounts,
  type Changes,
  type Item,
  type RecoveredState,
  type Remembered,
  type Store,
  type StorePage,
} from './store';

/**
 * Stores everything in this process.
 *
 * @example
 * ```ts
 * import { MemoryStore } from '@messaging-service/node-red-sms';
 *
 * const createStore = () => new MemoryStore();
 * console.log(createStore().durable);
 * ```
 */
export class MemoryStore implements Store {
  readonly durable = false;
  readonly #items = new Map<string, Item>();
  readonly #remembered = new Map<string, Remembered>();

  open(): Promise<RecoveredState> {
    return Promise.resolve({ items: [...this.#items.values()], pendingWrites: [] });
  }

  recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    return Promise.resolve(keys.map((key) => this.#remembered.get(key)));
  }

  async *pages(): AsyncGenerator<StorePage> {
    yield { items: [...this.#items.values()], remembered: [...this.#remembered] };
  }

  async clear(key: string, mark: Remembered): Promise<void> {
    this.#items.clear();
    this.#remembered.clear();
    this.#remembered.set(key, mark);
  }

  async commit(changes: Changes): Promise<void> {
    const { keep, drop, remember } = changes;
    const countedValues = applyCounts(changes, (key) => this.#remembered.get(key));
    for (const [id, item] of keep) this.#items.set(id, item);
    for (const id of drop.keys()) this.#items.delete(id);
    for (const [key, value] of [...remember, ...countedValues]) {
      if (value === undefined) this.#remembered.delete(key);
      else this.#remembered.set(key, value);
    }
  }

  async sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void> {
    for (const [key, remembered] of this.#remembered) if (!renew(remembered)) this.#remembered.delete(key);
  }

  async close(): Promise<void> {}
}
