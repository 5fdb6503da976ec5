import { type Clock, nextTurn, wait } from '../clock';
import { keysOfOnce } from './once';
import { SendQueue } from './queue';
import type { Text } from './text';
import type { TakenIn } from './transitions';

/** Interval after which a duplicate asks again if another instance has the first message, or if it has just ended. */
const otherInstanceMs = 1_000;
/** The same if this process has the first message, whose end also wakes the duplicate. */
const maxSilenceMs = 60_000;

/** Duplicates of one message. */
interface Line {
  /** One duplicate at a time asks, in the order of arrival. */
  queue: SendQueue;
  /** Id of the message that they wait for, if known. */
  firstId: string | undefined;
  /** Wakes the duplicate that asks. */
  wake(): void;
}

/**
 * Inputs with the deduplication key of a message that has no outcome yet. They wait in memory, and are in no store: after a restart
 * they have no outcome of their own.
 */
export class Duplicates {
  readonly #clock: Clock;
  /** Says whether this process has a message that has no outcome yet. */
  readonly #isUnderWay: (id: string) => boolean;
  /** By deduplication key. */
  readonly #lines = new Map<string, Line>();

  constructor(clock: Clock, isUnderWay: (id: string) => boolean) {
    this.#clock = clock;
    this.#isUnderWay = isUnderWay;
  }

  /**
   * Resolves when the message with the key has an outcome, or when no message has the key: then the duplicate is taken in.
   *
   * @param takeIn asks the store again
   * @throws the reason of `signal`, or SmsError `SMS_CLOSED`, if it aborts before; what `takeIn` throws
   */
  wait(text: Text, signal: AbortSignal, takeIn: () => Promise<TakenIn>): Promise<TakenIn> {
    const [key = ''] = keysOfOnce(text);
    const line = this.#lines.get(key) ?? this.#createLine();
    this.#lines.set(key, line);
    return line.queue
      .run(() => this.#ask(line, signal, takeIn), { signal })
      .finally(() => {
        if (line.queue.inFlight === 0) this.#lines.delete(key);
      });
  }

  /** A message has its outcome, or is discarded. */
  ended(text: Text): void {
    const [key = ''] = this.#lines.size > 0 ? keysOfOnce(text) : [];
    this.#lines.get(key)?.wake();
  }

  #createLine(): Line {
    const settings = () => ({ concurrency: 1, queueLimit: Number.POSITIVE_INFINITY });
    return { queue: new SendQueue({ clock: this.#clock, settings }), firstId: undefined, wake() {} };
  }

  async #ask(line: Line, signal: AbortSignal, takeIn: () => Promise<TakenIn>): Promise<TakenIn> {
    // Because thousands may have waited for one message.
    await nextTurn(this.#clock);
    for (;;) {
      signal.throwIfAborted();
      const taken = await takeIn();
      const { verdict } = taken;
      if (verdict.type !== 'underway') return taken;
      line.firstId = verdict.id;
      const awake = new AbortController();
      line.wake = () => awake.abort();
      const delayMs = this.#isUnderWay(verdict.id) ? maxSilenceMs : otherInstanceMs;
      await wait(this.#clock, delayMs, AbortSignal.any([signal, awake.signal])).catch(() => {});
    }
  }
}
