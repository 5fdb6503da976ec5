import { type Clock, systemClock, type Timer } from '../clock';
import { asSmsError, isSmsError, type SmsError } from '../errors';

/** Where a loop stands. */
export type PollState =
  | { name: 'connecting' }
  | { name: 'listening' }
  /** `seconds`: whole ones, 0 for less than one. */
  | { name: 'waiting'; seconds: number }
  | { name: 'paused'; unacknowledged: number }
  | { name: 'failing'; error: SmsError };

/** What one poll brought: something new; only what had been polled before; or nothing (204). */
export type PollOutcome = 'new' | 'repeated' | 'empty';

/** What a poll tells before it ends. */
export interface PollEvents {
  /** The request has left on an open connection. */
  onSent(): void;
  /**
   * It has brought something, which is where a crash does not reach it as far as there is such a place, though it is not handed over yet.
   *
   * @param isBack it waits for what somebody else does, which may take a minute
   */
  onHeld(isBack: boolean): void;
}

/** What a loop polls, and how. Read anew before each poll, so that they may change under a running loop. */
export interface PollSource {
  /**
   * Makes one poll and hands over what it brought. It is never aborted: the service marks a message read as it
   * answers (§3), so an answer that nobody awaits is a message lost.
   *
   * @throws SmsError when it failed
   */
  poll(events: PollEvents): Promise<PollOutcome>;
  /** How long to wait after an empty answer (§8). */
  pauseMs(): number;
  /** Polls in flight at once while messages keep coming; 1 keeps their order. */
  parallelPolls(): number;
  /** Polls in flight, and answers that are held, but not back, and not handed over, all in all. Absent: as many as `parallelPolls`. */
  mostUnderWay?(): number;
}

/**
 * Polls a source for as long as it is wanted: again at once after something new, after a pause when there was nothing,
 * and after a growing delay when it failed or brought nothing new. What an answer brought need only be held, not handed
 * over, when the next is asked for. It never ends by itself and never spins.
 *
 * @example
 * ```ts
 * import { PollLoop } from '@messaging-service/node-red-sms';
 *
 * const queue = ['one', 'two'];
 * const source = {
 *   async poll() {
 *     const next = queue.shift();
 *     if (next === undefined) loop.stop();
 *     else console.log(next);
 *     return next === undefined ? ('empty' as const) : ('new' as const);
 *   },
 *   pauseMs: () => 30_000,
 *   parallelPolls: () => 1,
 * };
 * const loop = new PollLoop(source, ({ name }) => console.log(name));
 * loop.start();
 * ```
 */
export class PollLoop {
  readonly #source: PollSource;
  readonly #onState: (state: PollState, previous: PollState) => void;
  readonly #clock: Clock;
  #state: PollState = { name: 'connecting' };
  #wanted = false;
  #held: PollState | undefined;
  #workers = 0;
  #inFlight = 0;
  /** Polls whose answers are held, so that the next may be asked for, and not handed over yet. */
  readonly #handingOver = new Set<Promise<unknown>>();
  /** Those of which that may take a minute. */
  readonly #heldBack = new Set<Promise<unknown>>();
  /** What one of those brought, if not something new, until it has been heeded or something newer is known. */
  #late: PollOutcome | SmsError | undefined;
  /** What it was last seen to fail of, until a poll is in order. */
  #failure: SmsError | undefined;
  /** In a row, until an answer is in order. */
  #failures = 0;
  /** In a row, until one brings something new, or nothing; and hasty ones until one is not. */
  #repeats = 0;
  #hastyAnswers = 0;
  /** Each ends one wait: until a time, and until the loop is resumed. */
  readonly #pausing = new Set<() => void>();
  readonly #onHold = new Set<() => void>();

  constructor(
    source: PollSource,
    onState: (state: PollState, previous: PollState) => void,
    clock: Clock = systemClock,
  ) {
    this.#source = source;
    this.#onState = onState;
    this.#clock = clock;
  }

  get state(): PollState {
    return this.#state;
  }

  /** Begins to poll. A poll still in flight from before is taken over instead of making another. */
  start(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#failure = undefined;
    this.#late = undefined;
    this.#failures = 0;
    this.#repeats = 0;
    this.#setState({ name: 'connecting' });
    if (this.#held) this.#setState(this.#held);
    else if (this.#inFlight > 0) this.#setState({ name: 'listening' });
    if (this.#workers === 0) void this.#work();
  }

  /** Makes no further poll. One in flight is left to finish and hand over its answer. */
  stop(): void {
    this.#wanted = false;
    // Whoever starts it again is not told of the end of what those before have seen begin.
    this.#state = { name: 'connecting' };
    wake(this.#pausing);
    wake(this.#onHold);
  }

  /** Makes no further poll until {@link resume}; `state` says why. */
  hold(state: PollState): void {
    this.#held = state;
    if (this.#wanted) this.#setState(state);
  }

  /** Goes on after {@link hold}. */
  resume(): void {
    if (!this.#held) return;
    this.#held = undefined;
    wake(this.#onHold);
    if (!this.#wanted) return;
    if (this.#failure) {
      // It has not been seen to end, and waits its time as if nothing else had been the matter.
      this.#setState({ name: 'failing', error: this.#failure });
    } else {
      this.#setState(this.#inFlight > 0 ? { name: 'listening' } : { name: 'connecting' });
      wake(this.#pausing);
    }
  }

  /** Cuts a wait short, because the pause has become shorter or something is known to be there. */
  nudge(): void {
    if (!this.#isBackingOff) wake(this.#pausing);
  }

  /** Whether it waits longer because of what the service does, not because it was asked to. */
  get #isBackingOff(): boolean {
    return this.#failures > 0 || this.#repeats > 0;
  }

  async #work(): Promise<void> {
    this.#workers++;
    try {
      while (this.#wanted) {
        if (this.#held) {
          await this.#sleep(this.#onHold);
          continue;
        }
        // While it has to wait for what the service does, it wants to know first what an answer brought.
        const most = (this.#isBackingOff ? undefined : this.#source.mostUnderWay?.()) ?? this.#source.parallelPolls();
        if (this.#inFlight + this.#handingOver.size >= Math.max(1, most)) {
          // Whoever has a poll in flight goes on.
          if (this.#handingOver.size === 0) return;
          await Promise.race(this.#handingOver);
          continue;
        }
        const outcome = this.#late ?? (await this.#ask());
        if (outcome === 'new') {
          if (this.#wanted && !this.#held && this.#workers < this.#source.parallelPolls()) void this.#work();
          continue;
        }
        // A helper ends with its first answer that brings nothing, and leaves it to the last one, which stays, to find
        // out whether the service fails.
        if (this.#workers > 1 || !this.#wanted) return;
        this.#late = undefined;
        if (typeof outcome !== 'string') {
          this.#failures++;
          if (!this.#held) {
            this.#failure = outcome;
            this.#setState({ name: 'failing', error: outcome });
          }
        }
        const pauseMs = this.#source.pauseMs();
        const delayMs = this.#delayMs(outcome, pauseMs);
        if (delayMs > 0) {
          // What keeps it from spinning is no wait that anybody has asked for.
          if (outcome === 'empty' && pauseMs > 0 && !this.#held) {
            this.#setState({ name: 'waiting', seconds: delayMs < 1_000 ? 0 : Math.round(delayMs / 1_000) });
          }
          await this.#sleep(this.#pausing, delayMs);
        }
      }
    } finally {
      // In the turn in which it ends, so that of several that end together the last one knows that it is the last.
      this.#workers--;
    }
  }

  /** Makes a poll, and does not wait for what it brings to be handed over, where the next may be asked for before. */
  #ask(): Promise<PollOutcome | SmsError> {
    return new Promise((resolve) => {
      const polling = this.#poll((isBack) => {
        const held = isBack && this.#heldBack.size < mostHeldBack ? this.#heldBack : this.#handingOver;
        held.add(polling);
        void polling.then((outcome) => {
          held.delete(polling);
          this.#late = outcome === 'new' ? undefined : outcome;
        });
        resolve('new');
      });
      void polling.then(resolve);
    });
  }

  async #poll(onHeld: PollEvents['onHeld']): Promise<PollOutcome | SmsError> {
    // Polls that did not know of each other count once.
    const repeats = this.#repeats + 1;
    const startedAt = this.#clock.elapsed();
    let hasAnswer = false;
    this.#inFlight++;
    const answered = () => {
      if (hasAnswer) return;
      hasAnswer = true;
      this.#inFlight--;
      this.#failures = 0;
      this.#failure = undefined;
      if (this.#wanted && !this.#held) this.#setState({ name: 'listening' });
    };
    const onSent = () => {
      if (this.#failures === 0 && this.#wanted && !this.#held) this.#setState({ name: 'listening' });
    };
    try {
      const outcome = await this.#source.poll({
        onSent,
        onHeld: (isBack) => {
          answered();
          onHeld(isBack);
        },
      });
      answered();
      const isHasty = outcome === 'empty' && this.#clock.elapsed() - startedAt < hastyAnswerMs;
      this.#hastyAnswers = isHasty ? this.#hastyAnswers + 1 : 0;
      this.#repeats = outcome === 'repeated' ? Math.max(this.#repeats, repeats) : 0;
      return outcome;
    } catch (error) {
      if (!hasAnswer) this.#inFlight--;
      return asSmsError(error);
    }
  }

  /** @param pauseMs how long to wait after an empty answer (§8) */
  #delayMs(outcome: PollOutcome | SmsError, pauseMs: number): number {
    // Without a pause a few that come at once are asked again at once, and many do not make it spin.
    if (outcome === 'empty') return pauseMs || Math.min(hastyAnswerMs, 20 * (2 ** Math.min(this.#hastyAnswers, 4) - 1));
    const times = outcome === 'repeated' ? this.#repeats : this.#failures;
    return backOffMs(times, this.#clock.random(), isSmsError(outcome, 'SMS_UNAUTHORIZED', 'SMS_FORBIDDEN'));
  }

  /** Resolves after so long, or when woken; without a time only then. */
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
    const previous = this.#state;
    if (isSameState(state, previous)) return;
    this.#state = state;
    this.#onState(state, previous);
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

/** So many answers are held back, and more polls made, at most. */
const mostHeldBack = 100;

const firstDelayMs = 1_000;
const longestDelayMs = 60_000;
const firstRefusedDelayMs = 30_000;
const longestRefusedDelayMs = 300_000;

/** An empty answer that came sooner than this did not wait at the service as §8 says it would. */
const hastyAnswerMs = 250;

/**
 * How long to wait after so many failures in a row, in ms: from 1 s, doubling to at most 60 s, with up to a quarter of
 * jitter; from 30 s to at most 5 min where the service refuses whoever asks.
 *
 * @param random at least 0, less than 1
 */
export function backOffMs(failures: number, random: number, isRefused = false): number {
  const firstMs = isRefused ? firstRefusedDelayMs : firstDelayMs;
  const longestMs = isRefused ? longestRefusedDelayMs : longestDelayMs;
  const delayMs = Math.min(longestMs * 0.8, firstMs * 2 ** Math.min(failures - 1, 30));
  return delayMs * (1 + random / 4);
}
