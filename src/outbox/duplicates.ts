import { type Clock, nextTurn, wait } from '../clock';
import { isSuperseded, type MessageItem, type StoredOutcome } from './message-item';
import { keysOfOnce } from './once';
import type { Acceptance } from './transitions';

/**
 * Interval at which a duplicate reads the store again if another instance has the first message, or if the first
 * message has just ended, in ms.
 */
const otherInstanceMs = 1_000;
/**
 * Interval if this process has the first message, in ms. It is longer, because the end of the first message wakes the
 * duplicate.
 */
const maxSilenceMs = 60_000;

/** How a duplicate waits. */
interface Waiting {
  /** Id of the message that has the key. */
  firstId: string;
  signal: AbortSignal;
  /** Accepts the duplicate, unless the first message still has no outcome. */
  accept(firstId: string): Promise<Acceptance>;
}

/** The duplicates that wait for one message. */
interface Line {
  size: number;
  /**
   * Settles when the last duplicate has its result. Duplicates read the store one at a time, in the order of arrival.
   */
  last: Promise<unknown>;
  /** The awaited message, if it was replaced or withdrawn: its duplicates end with the same outcome. */
  superseded?: { id: string; outcome: StoredOutcome };
  /** Wakes the duplicate whose turn it is to read the store. */
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
   * @throws the reason of `signal`, if the wait is aborted; the error of `accept`
   */
  wait(item: MessageItem, waiting: Waiting): Promise<Acceptance> {
    const [key = ''] = keysOfOnce(item);
    const line = this.#lines.get(key) ?? { size: 0, last: Promise.resolve(), wake() {} };
    this.#lines.set(key, line);
    line.size++;
    const accepted = line.last.then(() => this.#ask(item, line, waiting));
    line.last = accepted.catch(() => {});
    return accepted.finally(() => {
      if (--line.size === 0) this.#lines.delete(key);
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

  async #ask(item: MessageItem, line: Line, { firstId, signal, accept }: Waiting): Promise<Acceptance> {
    // Yields to the event loop, because thousands of duplicates might wait for one message.
    await nextTurn(this.#clock);
    for (let id = firstId; ; ) {
      signal.throwIfAborted();
      const { superseded } = line;
      if (superseded?.id === id) return { verdict: { type: 'ended', outcome: superseded.outcome }, item };
      const acceptance = await accept(id);
      const { verdict } = acceptance;
      if (verdict.type !== 'underway') return acceptance;
      id = verdict.id;
      const awake = new AbortController();
      line.wake = () => awake.abort();
      const delayMs = this.#isUnderWay(verdict.id) ? maxSilenceMs : otherInstanceMs;
      await wait(this.#clock, delayMs, AbortSignal.any([signal, awake.signal])).catch(() => {});
    }
  }
}
