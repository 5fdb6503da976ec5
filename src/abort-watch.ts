const watches = new WeakMap<AbortSignal, AbortWatch>();

/**
 * All that one signal ends, by one listener: a signal looks through its listeners for each that comes or goes, and those that
 * have gone keep the later ones alive until the next full collection of garbage.
 */
export class AbortWatch {
  readonly signal: AbortSignal;
  readonly #callbacks: ((() => void) | undefined)[] = [];
  readonly #free: number[] = [];

  private constructor(signal: AbortSignal) {
    this.signal = signal;
    const onAbort = () => {
      // One that leaves on account of another is not called.
      const { length } = this.#callbacks;
      for (let place = 0; place < length; place++) this.#callbacks[place]?.();
    };
    signal.addEventListener('abort', onAbort, { once: true });
  }

  /** The one watch of a signal, which lasts as long as the signal. */
  static of(signal: AbortSignal): AbortWatch {
    const existing = watches.get(signal);
    if (existing) return existing;
    const watch = new AbortWatch(signal);
    watches.set(signal, watch);
    return watch;
  }

  /** See {@link onceAborted}. */
  add(callback: () => void): () => void {
    const place = this.#free.pop() ?? this.#callbacks.length;
    this.#callbacks[place] = callback;
    return () => {
      this.#callbacks[place] = undefined;
      this.#free.push(place);
    };
  }
}

/** Calls back once when a signal aborts, unless it has already. Returns how to leave, to be called at most once. */
export function onceAborted(signal: AbortSignal, callback: () => void): () => void {
  return AbortWatch.of(signal).add(callback);
}
