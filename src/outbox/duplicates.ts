import { type Clock, nextTurn, wait } from '../clock';
import type { TakenIn } from './arrivals';
import { keysOfOnce } from './once';
import { SendQueue } from './queue';
import { isSuperseded, type StoredOutcome, type Text } from './text';

/** Interval after which a duplicate asks again if another instance has the first message, or if it has just ended. */
const otherInstanceMs = 1_000;
/** The same if this process has the first message, whose end also wakes the duplicate. */
const maxSilenceMs = 60_000;

/** Takes a duplicate in, unless the first message has no outcome yet. */
type TakeIn = (firstId: string) => Promise<TakenIn>;

/** A duplicate that waits. */
interface Waiting {
  line: Line;
  firstId: string;
  signal: AbortSignal;
  takeIn: TakeIn;
}

/** Duplicates of one message. */
interface Line {
  /** One duplicate at a time asks, in the order of arrival. */
  queue: SendQueue;
  /** The message that they waited for, if it was replaced or withdrawn: they end as it did. */
  superseded: { id: string; outcome: StoredOutcome } | undefined;
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
   * @param firstId the message that has the key
   * @param takeIn asks the store again
   * @throws the reason of `signal`, or SmsError `SMS_CLOSED`, if it aborts before; the error of `takeIn`
   */
  wait(text: Text, firstId: string, signal: AbortSignal, takeIn: TakeIn): Promise<TakenIn> {
    const [key = ''] = keysOfOnce(text);
    const line = this.#lines.get(key) ?? this.#createLine();
    this.#lines.set(key, line);
    return line.queue
      .run(() => this.#ask(text, { line, firstId, signal, takeIn }), { signal })
      .finally(() => {
        if (line.queue.inFlight === 0) this.#lines.delete(key);
      });
  }

  /** A message has its outcome, or is discarded. */
  ended(text: Text): void {
    const [key = ''] = this.#lines.size > 0 ? keysOfOnce(text) : [];
    const line = this.#lines.get(key);
    if (!line) return;
    const { id, outcome } = text;
    if (outcome && isSuperseded(outcome)) line.superseded = { id, outcome };
    line.wake();
  }

  #createLine(): Line {
    const settings = () => ({ concurrency: 1, queueLimit: Number.POSITIVE_INFINITY });
    return { queue: new SendQueue({ clock: this.#clock, settings }), superseded: undefined, wake() {} };
  }

  async #ask(text: Text, { line, firstId, signal, takeIn }: Waiting): Promise<TakenIn> {
    // Because thousands may have waited for one message.
    await nextTurn(this.#clock);
    for (let id = firstId; ; ) {
      signal.throwIfAborted();
      const { superseded } = line;
      if (superseded?.id === id) return { verdict: { type: 'ended', outcome: superseded.outcome }, text };
      const taken = await takeIn(id);
      const { verdict } = taken;
      if (verdict.type !== 'underway') return taken;
      id = verdict.id;
      const awake = new AbortController();
      line.wake = () => awake.abort();
      const delayMs = this.#isUnderWay(verdict.id) ? maxSilenceMs : otherInstanceMs;
      await wait(this.#clock, delayMs, AbortSignal.any([signal, awake.signal])).catch(() => {});
    }
  }
}
