/** Those who wait for the outcome of a text, because theirs has the same key. */
export class Followers {
  readonly #waiting = new Map<string, Set<() => void>>();

  /**
   * Resolves when the text has ended.
   *
   * @throws the reason of `signal` when it aborts before
   */
  follow(id: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const others = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, others);
      const onAbort = () => {
        others.delete(onEnded);
        reject(signal.reason);
      };
      const onEnded = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      others.add(onEnded);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** A text has ended. */
  ended(id: string): void {
    const waiting = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    for (const onEnded of waiting) onEnded();
  }
}
