/** Who is told when a signal aborts. */
export interface AbortListener {
  onAbort(): void;
}

const watches = new WeakMap<AbortSignal, AbortWatch>();

/**
 * All that one signal ends, by one listener: a signal looks through its listeners for each that comes or goes, and those that
 * have gone keep the later ones alive until the next full collection of garbage.
 */
export class AbortWatch {
  readonly #listeners: (AbortListener | undefined)[] = [];
  readonly #free: number[] = [];

  private constructor(signal: AbortSignal) {
    const onAbort = () => {
      for (const listener of [...this.#listeners]) listener?.onAbort();
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

  /** Returns the place of a listener, to be given to {@link delete} once. */
  add(listener: AbortListener): number {
    const place = this.#free.pop() ?? this.#listeners.length;
    this.#listeners[place] = listener;
    return place;
  }

  delete(place: number): void {
    this.#listeners[place] = undefined;
    this.#free.push(place);
  }
}
