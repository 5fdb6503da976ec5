import { type Clock, nextTurn, wait } from '../clock';
import { isSuperseded, type MessageItem, type StoredOutcome } from './message-item';
import { keysOfOnce } from './once';
import { SendQueue } from './queue';
import type { Acceptance } from './transitions';

/**
 * Interval at which a duplicate asks the store again if another instance has the first message, or if that has just
 * ended.
 */
const otherInstanceMs = 1_000;
/**
 * Interval if this process has the first message. It is longer, because the end of that message wakes the duplicate.
 */
const maxSilenceMs = 60_000;

/** Accepts a duplicate, unless the first message still has no outcome. */
type Accept = (firstId: string) => Promise<Acceptance>;

/** A duplicate that waits for the first message. */
interface Waiting {
  line: Line;
  firstId: string;
  signal: AbortSignal;
  accept: Accept;
}

/** The duplicates that wait for one message. */
interface Line {
  /** Queue in which the duplicates read the store one at a time, in the order of arrival. */
  queue: SendQueue;
  /** The awaited message, if it was replaced or withdrawn: its duplicates end with the same outcome. */
  superseded: { id: string; outcome: StoredOutcome } | undefined;
  /** Wakes the duplicate whose turn it is to ask the store. */
  wake(): void;
}

/**
 * Inputs whose deduplication key belongs to a message without an outcome. These duplicates wait in memory only, so that
 * a restart drops them without an outcome.
 */
export class Duplicates {
  readonly #clock: Clock;
  /** Returns whether this process has the message and the message has no outcome yet. */
  readonly #isUnderWay: (id: string) => boolean;
  /** Groups of waiting duplicates, by deduplication key. */
  readonly #lines = new Map<string, Line>();

  constructor(clock: Clock, isUnderWay: (id: string) => boolean) {
    this.#clock = clock;
    this.#isUnderWay = isUnderWay;
  }

  /**
   * Waits until the message with the key has an outcome, or no message has the key. Then accepts the duplicate.
   *
   * @param firstId id of the message that has the key
   * @param accept asks the store again
   * @throws the reason of `signal`, or SmsError `SMS_CLOSED`, if the wait is aborted; the error of `accept`
   */
  wait(item: MessageItem, firstId: string, signal: AbortSignal, accept: Accept): Promise<Acceptance> {
    const [key = ''] = keysOfOnce(item);
    const line = this.#lines.get(key) ?? this.#createLine();
    this.#lines.set(key, line);
    return line.queue
      .run(() => this.#ask(item, { line, firstId, signal, accept }), { signal })
      .finally(() => {
        if (line.queue.inFlight === 0) this.#lines.delete(key);
      });
  }

  /** Wakes the duplicates of a message that has an outcome or was discarded. */
  ended(item: MessageItem): void {
    const [key = ''] = this.#lines.size > 0 ? keysOfOnce(item) : [];
    const line = this.#lines.get(key);
    if (!line) return;
    const { id, outcome } = item;
    if (outcome && isSuperseded(outcome)) line.superseded = { id, outcome };
    line.wake();
  }

  #createLine(): Line {
    const settings = () => ({ concurrency: 1, queueLimit: Number.POSITIVE_INFINITY });
    return { queue: new SendQueue({ clock: this.#clock, settings }), superseded: undefined, wake() {} };
  }

  async #ask(item: MessageItem, { line, firstId, signal, accept }: Waiting): Promise<Acceptance> {
    // Yields to the event loop, because thousands of duplicates might wait for one message.
    await nextTurn(this.#clock);
    for (let id = firstId; ; ) {
      signal.throwIfAborted();
      const { superseded } = line;
      if (superseded?.id === id) return { verdict: { type: 'ended', outcome: superseded.outcome }, item };
      const taken = await accept(id);
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
