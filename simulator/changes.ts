import type { Change } from './model';

/** Notifies listeners of state changes. A listener runs immediately and must not throw. */
export class Changes {
  readonly #listeners = new Set<(change: Change) => void>();

  emit(change: Change): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** Adds a listener. Returns a function that removes it. */
  listen(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Resolves as soon as `isTrue` returns true, now or after a change. Rejects after `timeoutMs` of real time. */
  until(isTrue: () => boolean, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      if (isTrue()) {
        resolve();
        return;
      }
      const timer = setTimeout(() => {
        stop();
        reject(new Error(`The simulator did not reach the state in ${timeoutMs} ms: ${isTrue.toString()}`));
      }, timeoutMs);
      const stop = this.listen(() => {
        if (!isTrue()) return;
        stop();
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
