import type { Clock } from '../clock';
import { SmsError } from '../errors';
import type { QuietHours } from '../message/times';
import { type Absences, longestAbsenceMs } from './absences';
import { DueTimes } from './due-times';
import { firstMoment } from './rules';
import type { Text } from './text';

/** What a watch over the time of texts goes by. */
interface ExpiryOptions {
  clock: Clock;
  absences: Pick<Absences, 'patience'>;
  /** See {@link RuleSettings}. */
  quietHours(): readonly QuietHours[];
}

/** Whether a text that cannot end yet can do so by now is asked again after so long. */
const postponedMs = 1_000;

interface Watched {
  readonly node: string;
  /** When its own time is over, by {@link Clock.elapsed}: never, where it has none. */
  readonly endsAt: number;
  /** Not before that is it given up because its node is not here, by {@link Clock.elapsed}. */
  readonly absentUntil: number;
}

/** Says when kept texts have waited for too long. */
export class Expiry {
  readonly #options: ExpiryOptions;
  readonly #onExpired: (id: string) => void;
  readonly #byId = new Map<string, Watched>();
  readonly #dueTimes: DueTimes;

  constructor(options: ExpiryOptions, onExpired: (id: string) => void) {
    const { clock } = options;
    this.#options = options;
    this.#onExpired = onExpired;
    this.#dueTimes = new DueTimes(
      clock,
      () => clock.elapsed(),
      (id) => this.#look(id),
    );
  }

  /** Begins to watch a text, or does so anew. */
  watch(text: Text): void {
    const { clock, quietHours } = this.#options;
    const { id, node, arrivedAt } = text;
    const elapsed = clock.elapsed();
    const now = clock.now();
    const dueAt = firstMoment(text, quietHours());
    const endsAt = elapsed + remainingMs(text, dueAt, now);
    const absentUntil = dueAt > arrivedAt ? elapsed + dueAt - now + longestAbsenceMs : 0;
    this.#byId.set(id, { node, endsAt, absentUntil });
    this.#await(id);
  }

  /** A node has come or gone: its texts may wait for so long from now on. */
  nodeChanged(node: string): void {
    for (const [id, watched] of this.#byId) if (watched.node === node) this.#await(id);
  }

  /** A text cannot end yet though its time is over: that is said again a second later, if it is still watched. */
  postpone(id: string): void {
    if (this.#byId.has(id)) this.#dueTimes.set(id, this.#options.clock.elapsed() + postponedMs);
  }

  /** Says whether a text's time is over, though that may not have been said yet. */
  isOver(id: string): boolean {
    return this.#leftMs(id) === 0;
  }

  forget(id: string): void {
    this.#byId.delete(id);
    this.#dueTimes.delete(id);
  }

  clear(): void {
    this.#byId.clear();
    this.#dueTimes.clear();
  }

  #look(id: string): void {
    if (this.isOver(id)) this.#onExpired(id);
    else this.#await(id);
  }

  #await(id: string): void {
    const leftMs = this.#leftMs(id);
    if (leftMs === Number.POSITIVE_INFINITY) this.#dueTimes.delete(id);
    else this.#dueTimes.set(id, this.#options.clock.elapsed() + leftMs);
  }

  /** How long until it is over: 0 once it is, endless where it never will be, or is not watched. */
  #leftMs(id: string): number {
    const { clock, absences } = this.#options;
    const watched = this.#byId.get(id);
    if (!watched) return Number.POSITIVE_INFINITY;
    const { node, endsAt, absentUntil } = watched;
    const elapsed = clock.elapsed();
    const ownMs = Math.max(0, endsAt - elapsed);
    const patience = absences.patience(node);
    if (!patience) return ownMs;
    const mostMs = Math.max(patience.mostMs, absentUntil - elapsed);
    return Math.max(patience.leastMs, Math.min(ownMs, mostMs));
  }
}

/** Says within what time a text has not left. */
export function createExpired({ options }: Text): SmsError {
  const expireMs = options.keep?.expireMs ?? 0;
  const minutes = expireMs / 60_000;
  if (Number.isInteger(minutes)) return new SmsError('expired', { params: { minutes } });
  return new SmsError('expiredSeconds', { params: { seconds: Math.max(1, Math.round(expireMs / 1_000)) } });
}

/**
 * How much of its time a text has left from `dueAt` on, endless where it has none. The clock may have been set since: it is never more
 * than the whole.
 */
function remainingMs({ arrivedAt, options }: Text, dueAt: number, now: number): number {
  const expireMs = options.keep?.expireMs ?? Number.POSITIVE_INFINITY;
  return Math.min(Math.max(0, dueAt - arrivedAt) + expireMs, Math.max(0, dueAt + expireMs - now));
}
