import { type Clock, systemClock, type Timer } from '../clock';
import { asSmsError, isSmsError, type SmsError } from '../errors';
import { parseRetryAfter } from '../wire/retry-after';

/** The state of a poll loop. */
export type PollState =
  | { name: 'connecting' }
  | { name: 'listening' }
  /** `seconds` is a whole number, 0 for less than one second. */
  | { name: 'waiting'; seconds: number }
  | { name: 'paused'; unacknowledged: number }
  | { name: 'failing'; error: SmsError };

/** The outcome of a poll: at least one new record, only records that were polled before, or no records (204). */
export type PollOutcome = 'new' | 'repeated' | 'empty';

/** Events of a poll. */
export interface PollEvents {
  /** Called when the request has been sent on an open connection. */
  onSent(): void;
  /** Called when the answer is saved, so that a crash cannot lose it. Its records are stored later. */
  onSaved(): void;
}

/** Makes the polls of a poll loop. The loop calls these functions before each poll, so their results can change. */
export interface PollSource {
  /**
   * Makes one poll and stores its records. The loop never aborts a poll: the service marks a message as read when it
   * answers (§3), so the message would be lost if the answer were ignored.
   *
   * @throws SmsError if the poll failed
   */
  poll(events: PollEvents): Promise<PollOutcome>;
  /** Returns the wait after an empty answer (§8), in ms. */
  pauseMs(): number;
  /** Returns the maximum number of simultaneous polls while messages keep arriving. 1 keeps the order of messages. */
  parallelPolls(): number;
  /**
   * Returns the maximum number of polls in flight plus saved answers that are not stored yet. Absent: `parallelPolls`.
   */
  maxUnderWay?(): number;
}

/**
 * Polls a source until it is stopped. The time of the next poll depends on the last answer:
 *
 * - New records: immediately. The next poll begins when the answer is saved, before its records are stored.
 * - No records: after a pause. If the pause is 0 and the service answers too fast, after a short delay.
 * - A failure, or only records that were polled before: after a growing delay.
 *
 * @example
 * ```ts
 * import { PollLoop } from '@messaging-service/node-red-sms';
 *
 * const queue = ['one', 'two'];
 * const source = {
 * async poll() {
 * const next = queue.shift();
 * if (next === undefined) loop.stop();
 * else console.log(next);
 * return next === undefined ? ('empty' as const) : ('new' as const);
 *   },
 * pauseMs: () => 30_000,
 * parallelPolls: () => 1,
 * };
 * const loop = new PollLoop(source, ({ name }) => console.log(name));
 * loop.start();
 * ```
 */
export class PollLoop {
  readonly #source: PollSource;
  readonly #onState: (state: PollState, previousState: PollState) => void;
  readonly #clock: Clock;
  #state: PollState = { name: 'connecting' };
  #isStarted = false;
  #pauseState: PollState | undefined;
  /** Number of workers: running calls of `#work`, each with at most one poll in flight. */
  #workers = 0;
  #inFlight = 0;
  /** Polls whose answers are saved, but whose records are not stored yet. */
  readonly #pollsBeingStored = new Set<Promise<unknown>>();
  /**
   * The loop continues as soon as an answer is saved. If the answer then proves to have no new records, or its records
   * cannot be stored, this is the outcome of the poll. The loop pauses before a later poll, unless a newer poll ends
   * first.
   */
  #lateOutcome: PollOutcome | SmsError | undefined;
  /** The last error, until a poll succeeds. */
  #failure: SmsError | undefined;
  /** Number of consecutive failures. */
  #failures = 0;
  /** Number of consecutive polls that returned only records that were polled before. */
  #repeats = 0;
  /** Number of consecutive empty answers faster than {@link hastyAnswerMs}. */
  #hastyAnswers = 0;
  /** Functions that end the pauses of the workers early. */
  readonly #pauseEnds = new Set<() => void>();
  /** Functions that end the waits of the workers when the loop resumes. */
  readonly #resumeWaits = new Set<() => void>();

  constructor(
    source: PollSource,
    onState: (state: PollState, previousState: PollState) => void,
    clock: Clock = systemClock,
  ) {
    this.#source = source;
    this.#onState = onState;
    this.#clock = clock;
  }

  get state(): PollState {
    return this.#state;
  }

  /** Starts polling. If an earlier poll is still in flight, waits for it first. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#failure = undefined;
    this.#lateOutcome = undefined;
    this.#failures = 0;
    this.#repeats = 0;
    this.#setState({ name: 'connecting' });
    if (this.#pauseState) this.#setState(this.#pauseState);
    else if (this.#inFlight > 0) this.#setState({ name: 'listening' });
    if (this.#workers === 0) void this.#work();
  }

  /** Stops polling. A poll in flight continues, and its answer is stored. */
  stop(): void {
    this.#isStarted = false;
    // Forgets the failure, because a failure after the next start must be reported again.
    this.#state = { name: 'connecting' };
    wake(this.#pauseEnds);
    wake(this.#resumeWaits);
  }

  /** Pauses polling until {@link resume}. `state` is the reason that is shown. */
  pause(state: PollState): void {
    this.#pauseState = state;
    if (this.#isStarted) this.#setState(state);
  }

  /** Resumes polling after {@link pause}. */
  resume(): void {
    if (!this.#pauseState) return;
    this.#pauseState = undefined;
    wake(this.#resumeWaits);
    if (!this.#isStarted) return;
    if (this.#failure) {
      // Shows the failure again, because the delay after the failure still runs.
      this.#setState({ name: 'failing', error: this.#failure });
    } else {
      this.#setState(this.#inFlight > 0 ? { name: 'listening' } : { name: 'connecting' });
      wake(this.#pauseEnds);
    }
  }

  /**
   * Ends a pause early, because a node wants a shorter one. Does not end a delay after failures or repeated answers.
   */
  nudge(): void {
    if (!this.#isBackingOff) wake(this.#pauseEnds);
  }

  /** Whether the loop waits because of failures or repeated answers. */
  get #isBackingOff(): boolean {
    return this.#failures > 0 || this.#repeats > 0;
  }

  async #work(): Promise<void> {
    this.#workers++;
    try {
      while (this.#isStarted) {
        if (this.#pauseState) {
          await this.#sleep(this.#resumeWaits);
          continue;
        }
        // After failures or repeated answers, allows fewer polls at a time, because the loop must know before the next
        // poll whether the last answer contained new records.
        const max = (this.#isBackingOff ? undefined : this.#source.maxUnderWay?.()) ?? this.#source.parallelPolls();
        if (this.#inFlight + this.#pollsBeingStored.size >= Math.max(1, max)) {
          // Ends this worker if the limit is used up by polls in flight. The workers of these polls continue the loop.
          if (this.#pollsBeingStored.size === 0) return;
          await Promise.race(this.#pollsBeingStored);
          continue;
        }
        const outcome = this.#lateOutcome ?? (await this.#pollOnce());
        if (outcome === 'new') {
          if (this.#isStarted && !this.#pauseState && this.#workers < this.#source.parallelPolls()) void this.#work();
          continue;
        }
        // Ends additional workers at the first answer without new records. The last worker stays, and detects whether
        // the service fails.
        if (this.#workers > 1 || !this.#isStarted) return;
        this.#lateOutcome = undefined;
        if (typeof outcome !== 'string') {
          this.#failures++;
          if (!this.#pauseState) {
            this.#failure = outcome;
            this.#setState({ name: 'failing', error: outcome });
          }
        }
        const pauseMs = this.#source.pauseMs();
        const delayMs = this.#delayMs(outcome, pauseMs);
        if (delayMs > 0) {
          // Does not show a short delay that only prevents busy polling.
          if (outcome === 'empty' && pauseMs > 0 && !this.#pauseState) {
            this.#setState({ name: 'waiting', seconds: delayMs < 1_000 ? 0 : Math.round(delayMs / 1_000) });
          }
          await this.#sleep(this.#pauseEnds, delayMs);
        }
      }
    } finally {
      // Counts down in the same turn of the event loop, so that if several workers end together, the last one detects
      // that it is the last.
      this.#workers--;
    }
  }

  /** Makes a poll. Resolves as soon as the next poll can start. */
  #pollOnce(): Promise<PollOutcome | SmsError> {
    return new Promise((resolve) => {
      const polling = this.#poll(() => {
        this.#pollsBeingStored.add(polling);
        void polling.then((outcome) => {
          this.#pollsBeingStored.delete(polling);
          this.#lateOutcome = outcome === 'new' ? undefined : outcome;
        });
        resolve('new');
      });
      void polling.then(resolve);
    });
  }

  async #poll(onSaved: PollEvents['onSaved']): Promise<PollOutcome | SmsError> {
    // Reads the number of repeats before the poll, so that several simultaneous polls with only repeated records count
    // as one.
    const repeats = this.#repeats + 1;
    const startedAt = this.#clock.elapsed();
    let hasAnswer = false;
    this.#inFlight++;
    const noteAnswer = () => {
      if (hasAnswer) return;
      hasAnswer = true;
      this.#inFlight--;
      this.#failures = 0;
      this.#failure = undefined;
      if (this.#isStarted && !this.#pauseState) this.#setState({ name: 'listening' });
    };
    const onSent = () => {
      if (this.#failures === 0 && this.#isStarted && !this.#pauseState) this.#setState({ name: 'listening' });
    };
    try {
      const outcome = await this.#source.poll({
        onSent,
        onSaved: () => {
          noteAnswer();
          onSaved();
        },
      });
      noteAnswer();
      const isHasty = outcome === 'empty' && this.#clock.elapsed() - startedAt < hastyAnswerMs;
      this.#hastyAnswers = isHasty ? this.#hastyAnswers + 1 : 0;
      this.#repeats = outcome === 'repeated' ? Math.max(this.#repeats, repeats) : 0;
      return outcome;
    } catch (error) {
      if (!hasAnswer) this.#inFlight--;
      return asSmsError(error);
    }
  }

  /** Returns the delay before the next poll, in ms. `pauseMs` is the delay after an empty answer (§8). */
  #delayMs(outcome: PollOutcome | SmsError, pauseMs: number): number {
    // If `pauseMs` is 0, the loop polls again immediately. If the service then answers too fast, a short delay prevents
    // busy polling.
    if (outcome === 'empty') return pauseMs || Math.min(hastyAnswerMs, 20 * (2 ** Math.min(this.#hastyAnswers, 4) - 1));
    const times = outcome === 'repeated' ? this.#repeats : this.#failures;
    const retryAfterMs = isRetryAfter(outcome) ? parseRetryAfter(outcome.retryAfter, this.#clock.now()) : 0;
    if (retryAfterMs > 0) return Math.min(retryAfterMs, maxRetryAfterMs);
    return backOffMs(times, this.#clock.random(), isSmsError(outcome, 'SMS_UNAUTHORIZED', 'SMS_FORBIDDEN'));
  }

  /**
   * Resolves after `delayMs`, or earlier if {@link wake} ends the wait. Without `delayMs`, only {@link wake} ends it.
   */
  #sleep(sleepers: Set<() => void>, delayMs?: number): Promise<void> {
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const end = () => {
        timer?.cancel();
        sleepers.delete(end);
        resolve();
      };
      sleepers.add(end);
      if (delayMs !== undefined) timer = this.#clock.after(delayMs, end);
    });
  }

  #setState(state: PollState): void {
    const previousState = this.#state;
    if (isSameState(state, previousState)) return;
    this.#state = state;
    this.#onState(state, previousState);
  }
}

function wake(sleepers: ReadonlySet<() => void>): void {
  for (const end of sleepers) end();
}

function isSameState(a: PollState, b: PollState): boolean {
  return (
    a.name === b.name &&
    (a.name !== 'paused' || a.unacknowledged === (b as typeof a).unacknowledged) &&
    (a.name !== 'failing' || a.error.message === (b as typeof a).error.message)
  );
}

/** Whether the service asks the client to poll later (429, or 503). */
function isRetryAfter(outcome: PollOutcome | SmsError): outcome is SmsError & { retryAfter: string } {
  if (typeof outcome === 'string' || outcome.retryAfter === undefined) return false;
  return outcome.statusCode === 429 || outcome.statusCode === 503;
}

const maxRetryAfterMs = 3_600_000;

const firstDelayMs = 1_000;
const maxDelayMs = 60_000;
const firstRefusedDelayMs = 30_000;
const maxRefusedDelayMs = 300_000;

/** If an empty answer arrives within this time, in ms, the service did not wait for messages as §8 requires. */
const hastyAnswerMs = 250;

/**
 * Returns the delay after consecutive failures, in ms. It doubles with each failure, plus up to a quarter of jitter. It
 * grows from 1 s to at most 60 s. If the service refuses the login, it grows from 30 s to at most 5 min.
 *
 * @param random at least 0, less than 1
 */
export function backOffMs(failures: number, random: number, isRefused = false): number {
  const firstMs = isRefused ? firstRefusedDelayMs : firstDelayMs;
  const maxMs = isRefused ? maxRefusedDelayMs : maxDelayMs;
  const delayMs = Math.min(maxMs * 0.8, firstMs * 2 ** Math.min(failures - 1, 30));
  return delayMs * (1 + random / 4);
}
