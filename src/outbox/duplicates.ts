import { type Clock, onceAborted, wait } from '../clock';
import { SmsError } from '../errors';
import type { Ledger } from './ledger';
import { formatOutcome, type StoredOutcome, type Text } from './text';

/** How soon it is asked again what became of a text that is not in hand here. */
const otherInstanceMs = 1_000;

/** How a kept text waits for the one that has its key. */
export interface Following {
  /** Ends it. */
  readonly stop: AbortController;
  /** Id of the text that has the key, as far as is known. */
  leader?: string | undefined;
  /** Not while it is found out, or written, what becomes of it. */
  isAtRest: boolean;
}

/** Those who wait for the outcome of a text, because theirs has the same key. */
export class Followers {
  readonly #clock: Clock;
  readonly #ledger: Ledger;
  /** By the text that they wait for, and their own ids, in the order in which they came. */
  readonly #waiting = new Map<string, Map<string, () => void>>();

  constructor(clock: Clock, ledger: Ledger) {
    this.#clock = clock;
    this.#ledger = ledger;
  }

  /**
   * Resolves when it is worth asking the store what became of a text: when it has ended here; after a second when it has just ended
   * or another instance has it in hand, which the store alone knows, and when not even its id is known, since the store fails. Whoever
   * then neither follows again nor is sent has to tell that by {@link ended}: others may have been left to wait for it.
   *
   * @param own id of the text that waits
   * @throws the reason of `signal` when it aborts before
   */
  follow(own: string, id: string | undefined, signal: AbortSignal): Promise<void> {
    this.ended(own);
    if (id === undefined || !this.#ledger.texts.isUnderWay(id)) return wait(this.#clock, otherInstanceMs, signal);
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const others = this.#waiting.get(id) ?? new Map<string, () => void>();
      this.#waiting.set(id, others);
      const onEnded = () => {
        leave();
        resolve();
      };
      const leave = onceAborted(signal, () => {
        others.delete(own);
        reject(signal.reason);
      });
      others.set(own, onEnded);
    });
  }

  /**
   * Has a kept text wait until the one that has its key has an outcome, which is its own then. Resolves without one when the text is to
   * be sent itself.
   *
   * @throws the reason of the signal when that aborts before
   */
  async await(given: Text, following: Following): Promise<{ text: Text; outcome?: StoredOutcome }> {
    const { signal } = following.stop;
    for (let text = given; ; ) {
      const taken = await this.#ledger.takeIn(text).catch(() => undefined);
      signal.throwIfAborted();
      if (taken) text = taken.text;
      const { verdict } = taken ?? {};
      if (verdict?.type === 'new') return { text };
      if (verdict?.type === 'ended') return { text, outcome: verdict.outcome };
      if (verdict?.type === 'taken')
        return { text, outcome: formatOutcome(new SmsError('onceTaken', { field: 'once' })) };
      following.leader = verdict?.id ?? following.leader;
      following.isAtRest = true;
      await this.follow(text.id, verdict?.id, signal);
      following.isAtRest = false;
    }
  }

  /** A text has ended, or waits for another itself. */
  ended(id: string): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    for (const onEnded of waiting?.values() ?? []) onEnded();
  }

  /** A text has its outcome. Where nobody was accepted its key is free: the first of those who wait may have it, and the others wait for that one. */
  settled(id: string, isAccepted: boolean): void {
    const waiting = this.#waiting.get(id);
    const [first] = isAccepted ? [] : (waiting ?? []);
    if (!waiting || !first) {
      this.ended(id);
      return;
    }
    const [own, onEnded] = first;
    this.#waiting.delete(id);
    waiting.delete(own);
    if (waiting.size > 0) this.#waiting.set(own, waiting);
    onEnded();
  }
}
