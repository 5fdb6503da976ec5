import type { Changes, RecoveredState, Remembered, Store } from './store';

/**
 * Keeps everything in this process.
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
  readonly #remembered = new Map<string, Remembered>();

  /** Whoever keeps has what is undone; there is nothing else to find. */
  open(): Promise<RecoveredState> {
    return Promise.resolve({ items: [], held: [] });
  }

  recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    return Promise.resolve(keys.map((key) => this.#remembered.get(key)));
  }

  list(prefixes: readonly string[]): Promise<[string, Remembered][]> {
    return Promise.resolve([...this.#remembered].filter(([key]) => prefixes.some((prefix) => key.startsWith(prefix))));
  }

  async commit({ remember }: Changes): Promise<void> {
    for (const [key, value] of remember) {
      if (value === undefined) this.#remembered.delete(key);
      else this.#remembered.set(key, value);
    }
  }

  async sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void> {
    for (const [key, remembered] of this.#remembered) if (!renew(remembered)) this.#remembered.delete(key);
  }

  async close(): Promise<void> {}
}
