import type { Clock, Timer } from '../clock';
import type { Entry } from '../inbox/entry';

/** How an entry is no longer out: the flow has taken it; it was tried too often; the service is to bring it again. */
export type Ending = 'done' | 'exhausted' | 'released';

/** What {@link AckTracker} needs. */
export interface AckTrackerOptions {
  clock: Clock;
  /** How long the flow may take. */
  ackTimeoutMs: number;
  /** What becomes of an entry that the flow could not handle or has not answered in time. */
  onFailure: 'again' | 'release';
  /** Deliveries of one entry before it is given up. */
  maxAttempts: number;
  /** Sends an entry into the flow, which has to bring `ackId` back. Resolves with whether it got there. */
  send(entry: Entry, attempt: number, ackId: string): Promise<boolean>;
  /** An entry is about to be sent. */
  onAttempt(entry: Entry, attempt: number): void;
  /** An entry is out no more. */
  onEnd(entry: Entry, ending: Ending): void;
}

interface Out {
  entry: Entry;
  attempt: number;
  /** Whether the flow has it; otherwise it waits to be sent again. */
  isInFlow: boolean;
  /** The last attempt that got there. */
  arrived: number;
  /** Ends either. */
  timer: Timer | undefined;
}

const firstRetryDelayMs = 250;

/** Entries that are out in the flow until it says what became of them, or its time is up. */
export class AckTracker {
  readonly #options: AckTrackerOptions;
  readonly #out = new Map<string, Out>();

  constructor(options: AckTrackerOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#out.size;
  }

  /** Sends an entry. */
  add(entry: Entry, attempt: number): void {
    const out: Out = { entry, attempt, isInFlow: false, arrived: 0, timer: undefined };
    this.#out.set(entry.id, out);
    this.#send(out);
  }

  /**
   * The flow brought a message back.
   *
   * @param failed the flow could not handle it; of an earlier delivery than the last that says nothing
   * @returns whether the id belongs to an entry that is out here
   */
  acknowledge(ackId: string, failed: boolean): boolean {
    const attempt = ackId.slice(ackId.indexOf('.') + 1);
    const out = this.#out.get(idOf(ackId));
    if (!out) return false;
    if (!failed) this.#end(out, 'done');
    else if (out.isInFlow && Number(attempt) === out.attempt) this.#fail(out);
    return true;
  }

  /** Forgets all of them where they are. */
  clear(): void {
    for (const { timer } of this.#out.values()) timer?.cancel();
    this.#out.clear();
  }

  #send(out: Out): void {
    const { entry, attempt } = out;
    if (attempt > this.#options.maxAttempts) {
      this.#end(out, 'exhausted');
      return;
    }
    this.#options.onAttempt(entry, attempt);
    out.isInFlow = true;
    this.#startTimer(out);
    void this.#options.send(entry, attempt, `${entry.id}.${attempt}`).then((isThere) => {
      if (!isThere || this.#out.get(entry.id) !== out || out.attempt !== attempt) return;
      out.arrived = attempt;
      if (out.isInFlow && !out.timer) this.#startTimer(out);
    });
  }

  #startTimer(out: Out): void {
    out.timer = this.#options.clock.after(this.#options.ackTimeoutMs, () => this.#timeOut(out));
  }

  #timeOut(out: Out): void {
    if (this.#options.onFailure === 'release') this.#end(out, 'released');
    else if (out.arrived === out.attempt) this.#sendAgain(out);
    // It has its time once it is there.
    else out.timer = undefined;
  }

  #fail(out: Out): void {
    out.timer?.cancel();
    out.isInFlow = false;
    if (this.#options.onFailure === 'release') this.#end(out, 'released');
    else if (out.attempt >= this.#options.maxAttempts) this.#end(out, 'exhausted');
    else this.#sendLater(out);
  }

  /** Leaves the flow a moment to recover, a longer one each time. */
  #sendLater(out: Out): void {
    const delayMs = Math.min(this.#options.ackTimeoutMs, firstRetryDelayMs * 2 ** (out.attempt - 1));
    out.timer = this.#options.clock.after(delayMs, () => this.#sendAgain(out));
  }

  #sendAgain(out: Out): void {
    out.attempt++;
    this.#send(out);
  }

  #end(out: Out, ending: Ending): void {
    out.timer?.cancel();
    this.#out.delete(out.entry.id);
    this.#options.onEnd(out.entry, ending);
  }
}

/** The entry that an `ackId` speaks of, which need not be out any more. */
export function idOf(ackId: string): string {
  const [id = ''] = ackId.split('.');
  return id;
}
