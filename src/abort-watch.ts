/** Whom an abort ends: each is called once, unless it has left. */
export abstract class AbortWatch {
  abstract readonly signal: { readonly aborted: boolean };
  readonly #callbacks: ((() => void) | undefined)[] = [];
  readonly #free: number[] = [];

  /** See {@link onceAborted}. */
  add(callback: () => void): () => void {
    const place = this.#free.pop() ?? this.#callbacks.length;
    this.#callbacks[place] = callback;
    return () => {
      this.#callbacks[place] = undefined;
      this.#free.push(place);
    };
  }

  protected callAll(): void {
    // One that leaves on account of another is not called.
    const { length } = this.#callbacks;
    for (let place = 0; place < length; place++) this.#callbacks[place]?.();
  }
}

/**
 * Like an `AbortController`, and its own signal, for what comes with each text. Node's is an event target with tables and listeners of
 * its own, of which 2 KB outlive the text until the next full collection of garbage.
 */
export class Abort extends AbortWatch {
  #aborted = false;

  get signal(): this {
    return this;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.callAll();
  }
}

/** What may abort. */
export type Aborting = AbortSignal | Abort;

const watches = new WeakMap<AbortSignal, SignalWatch>();

/**
 * All that one signal ends, by one listener: a signal looks through its listeners for each that comes or goes, and those that
 * have gone keep the later ones alive until the next full collection of garbage.
 */
class SignalWatch extends AbortWatch {
  readonly signal: AbortSignal;

  private constructor(signal: AbortSignal) {
    super();
    this.signal = signal;
    signal.addEventListener('abort', () => this.callAll(), { once: true });
  }

  /** The one watch of a signal, which lasts as long as the signal. */
  static of(signal: AbortSignal): AbortWatch {
    const existing = watches.get(signal);
    if (existing) return existing;
    const watch = new SignalWatch(signal);
    watches.set(signal, watch);
    return watch;
  }
}

/** Calls back once when a signal aborts, unless it has already. Returns how to leave, to be called at most once. */
export function onceAborted(signal: Aborting, callback: () => void): () => void {
  return (signal instanceof Abort ? signal : SignalWatch.of(signal)).add(callback);
}
