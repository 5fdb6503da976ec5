import { rememberedAt } from '../receiving/identity';
import type { Changes, Leftovers, Store } from './store';

/** Keeps everything in this process. */
export class MemoryStore implements Store {
  readonly durable = false;
  readonly #remembered = new Map<string, string>();

  /** The inbox itself holds what is undelivered; there is nothing else to find. */
  open(): Promise<Leftovers> {
    return Promise.resolve({ entries: [], held: [] });
  }

  hold(): () => void {
    return () => {};
  }

  recall(keys: readonly string[]): Promise<(string | undefined)[]> {
    return Promise.resolve(keys.map((key) => this.#remembered.get(key)));
  }

  commit({ remember }: Changes): Promise<void> {
    for (const [key, value] of remember) {
      // What is remembered anew goes to the end, or the sweep would stop at it.
      this.#remembered.delete(key);
      if (value !== undefined) this.#remembered.set(key, value);
    }
    return Promise.resolve();
  }

  /** A map keeps the order in which keys came, which is the order of their age. */
  sweep(oldest: number): Promise<void> {
    for (const [key, value] of this.#remembered) {
      if (rememberedAt(value) >= oldest) break;
      this.#remembered.delete(key);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
