import { type Clock, nextTurn, wait } from '../clock';
import { isSuperseded, type MessageItem, type StoredOutcome } from './message-item';
import { keysOfOnce } from './once';
import type { Acceptance } from './transitions';

/**
 * Interval at which a waiting duplicate reads the store again if this process does not have the first message, in ms.
 */
const otherInstanceMs = 1_000;
/**
 * Interval at which a waiting duplicate reads the store again if this process has the first message, in ms. It is
 * longer, because the end of the first message wakes the duplicate.
 */
const maxSilenceMs = 60_000;

/** The wait of a duplicate for the first message with its deduplication key. */
interface Waiting {
  /** Id of the first message. */
  firstId: string;
  signal: AbortSignal;
  /** Tries to accept the duplicate. The verdict is `underway` while the first message has no outcome. */
  accept(firstId: string): Promise<Acceptance>;
}

/** A queue of duplicates that wait for the same message. */
interface Line {
  size: number;
  /**
   * Settles when the last duplicate of the queue has its result. Each duplicate waits for the one before it, so that
   * only one at a time reads the store.
   */
  last: Promise<unknown>;
  /** The first message, if it was replaced or withdrawn. Its duplicates end with the same outcome. */
  superseded?: { id: string; outcome: StoredOutcome };
  /** Wakes the duplicate whose turn it is to read the store. */
  wake(): void;
}

/**
 * Inputs that wait until an earlier message with the same deduplication key has an outcome. They wait only in memory,
 * so a restart loses them, and they get no outcome.
 */
export class Duplicates {
  readonly #clock: Clock;
  /** Returns whether this process has the message and the message has no outcome yet. */
  readonly #isUnderWay: (id: string) => boolean;
  /** Queues of waiting duplicates, by deduplication key. */
  readonly #lines = new Map<string, Line>();

  constructor(clock: Clock, isUnderWay: (id: string) => boolean) {
    this.#clock = clock;
    this.#isUnderWay = isUnderWay;
  }

  /**
   * Waits while another message has the deduplication key and no outcome yet. Then accepts the duplicate.
   *
   * @throws the reason of `signal` if the wait is aborted, or the error of `accept`
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
