import type { Clock } from '../clock';

/** A moment by both clocks of a machine: the one that may be set, and the one that passes evenly. */
export interface Moment {
  /** Milliseconds since 1970. */
  now: number;
  /** By how much `now` is ahead of the even clock: it changes when the clock is set, and by nothing else. */
  lead: number;
  /** Names the even clock: another process has another. */
  origin: string;
}

/** Tells the time so that windows outlive the setting of the clock. */
export function createMoments(clock: Clock): () => Moment {
  const origin = Math.floor(clock.random() * 2 ** 48).toString(36);
  return () => {
    const now = clock.now();
    return { now, lead: Math.round(now - clock.elapsed()), origin };
  };
}

/** So many texts went out at a time, or in the time since the entry before. */
type Counted = [at: number, count: number];

/** Where there are more moments, those of one step are put together; a window has so many steps. */
const mostEntries = 400;
const stepsOfWindow = 360;

/** Two clocks tell the time unevenly by a little, though nobody has set one. */
const leastSetMs = 1_000;

/** The clocks of several machines differ by less. A text that is further ahead was counted before the clock was set back. */
const toleratedAheadMs = 60_000;

/**
 * Texts that count at a moment, of those that went out in the last `lengthMs`.
 *
 * It errs on the strict side: up to {@link mostEntries} moments are exact; of more, each counts for a 360th of the window
 * longer at most. When the clock is set while the process runs, they count on as if it had not been. Of what another process
 * has counted, that cannot be known: it goes by the clock, but nothing counts for longer than the window from the time at
 * which it is first seen to lie ahead.
 */
export class SlidingWindow {
  readonly lengthMs: number;
  readonly #moment: Moment;
  readonly #texts: Counted[] = [];
  #count = 0;
  #isChanged = false;

  /** @param value as {@link format} has made it; `undefined`, or what is not such a value, for none */
  constructor(value: string | undefined, lengthMs: number, moment: Moment) {
    this.lengthMs = lengthMs;
    this.#moment = moment;
    const { texts, lead, origin } = parse(value);
    const byMs = origin === moment.origin ? setBy(moment.lead - lead) : 0;
    const latest = moment.now + Math.min(lengthMs, toleratedAheadMs);
    let isSorted = true;
    for (const counted of texts) {
      counted[0] += byMs;
      if (counted[0] > latest) {
        counted[0] = moment.now;
        this.#isChanged = true;
      }
      if (moment.now - counted[0] >= lengthMs) continue;
      isSorted &&= counted[0] >= (this.#texts.at(-1)?.[0] ?? 0);
      this.#texts.push(counted);
      this.#count += counted[1];
    }
    if (!isSorted) this.#texts.sort(([a], [b]) => a - b);
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Whether it has to be written: also when the clock was set back though nothing was counted, or what lies ahead would count
   * until the clock has caught up.
   */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  /** When so few count that one more is within the limit, in ms since 1970. */
  freeAt(limit: number): number {
    let count = this.#count;
    for (const [at, leaving] of this.#texts) {
      if (count < limit) break;
      count -= leaving;
      if (count < limit) return at + this.lengthMs;
    }
    return this.#moment.now;
  }

  /** Counts one that goes out now. */
  add(): void {
    const { now } = this.#moment;
    this.#isChanged = true;
    this.#count++;
    const last = this.#texts.at(-1);
    // One that lies ahead, by the clock of another machine, counts for longer.
    if (last && last[0] >= now) last[1]++;
    else this.#texts.push([now, 1]);
    if (this.#texts.length > mostEntries) this.#putTogether();
  }

  /** Counts one less of those that went out at `at`, if any still do. */
  remove(at: Moment): void {
    const when = at.now + (at.origin === this.#moment.origin ? setBy(this.#moment.lead - at.lead) : 0);
    if (this.#moment.now - when >= this.lengthMs) return;
    // Where several moments were put together, they are under the last of them.
    const index = this.#texts.findIndex(([latest]) => latest >= when);
    const counted = this.#texts[index];
    if (!counted || counted[0] - when >= this.#stepMs) return;
    this.#isChanged = true;
    this.#count--;
    counted[1]--;
    if (counted[1] === 0) this.#texts.splice(index, 1);
  }

  /** Writes it down, `undefined` when nothing counts. */
  format(): string | undefined {
    if (this.#texts.length === 0) return undefined;
    const { lead, origin } = this.#moment;
    return JSON.stringify({ origin, lead, texts: this.#texts });
  }

  get #stepMs(): number {
    return this.lengthMs / stepsOfWindow;
  }

  #putTogether(): void {
    const steps = new Map<number, Counted>();
    for (const [at, count] of this.#texts) {
      const step = Math.floor(at / this.#stepMs);
      steps.set(step, [at, count + (steps.get(step)?.[1] ?? 0)]);
    }
    this.#texts.splice(0, this.#texts.length, ...steps.values());
  }
}

/**
 * The value of a window that counts what both do.
 *
 * @param value of the one whose clock goes on to hold
 */
export function mergeWindows(value: string, other: string): string {
  const { origin, lead, texts } = parse(value);
  return JSON.stringify({ origin, lead, texts: [...texts, ...parse(other).texts] });
}

function setBy(ms: number): number {
  return Math.abs(ms) < leastSetMs ? 0 : ms;
}

function parse(value: string | undefined): { origin?: string; lead: number; texts: Counted[] } {
  try {
    const { origin, lead, texts } = JSON.parse(value ?? '{}');
    if (typeof lead === 'number' && Array.isArray(texts) && texts.every(isCounted)) return { origin, lead, texts };
  } catch {}
  return { lead: 0, texts: [] };
}

function isCounted(entry: unknown): entry is Counted {
  return Array.isArray(entry) && Number.isFinite(entry[0]) && Number.isInteger(entry[1]) && entry[1] > 0;
}
