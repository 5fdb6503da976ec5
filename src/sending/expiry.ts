import type { Clock, Timer } from '../clock';
import { SmsError } from '../errors';
import type { Absences } from './absences';
import type { Text } from './outgoing';
import { Paced } from './paced';

/** A text that cannot end yet is asked again so soon whether it can. */
const postponedMs = 1_000;

/** Says when kept texts have waited for too long. */
export class Expiries {
  readonly #clock: Clock;
  readonly #absences: Absences;
  readonly #onExpired: (id: string) => void;
  readonly #paced: Paced;
  readonly #timers = new Map<string, Timer>();
  /** When each is over, by {@link Clock.elapsed}. */
  readonly #ends = new Map<string, number>();

  constructor({ clock, absences }: { clock: Clock; absences: Absences }, onExpired: (id: string) => void) {
    this.#clock = clock;
    this.#absences = absences;
    this.#onExpired = onExpired;
    this.#paced = new Paced(clock);
  }

  /** Begins to watch a text, or watches it otherwise since its node has come or gone. */
  watch(text: Text): void {
    this.forget(text.id);
    const ownMs = remainingMs(text, this.#clock.now());
    const patience = this.#absences.patience(text.node);
    const delayMs = patience ? Math.max(patience.leastMs, Math.min(ownMs ?? patience.mostMs, patience.mostMs)) : ownMs;
    if (delayMs === undefined) return;
    this.#ends.set(text.id, this.#clock.elapsed() + delayMs);
    this.#sayAfter(delayMs, text.id);
  }

  /** A text cannot end yet though its time is over: that is said again in a second, if it is still watched. */
  postpone(id: string): void {
    if (this.#ends.has(id)) this.#sayAfter(postponedMs, id);
  }

  /** Says whether a text's time is over, though that may not have been said yet. */
  isOver(id: string): boolean {
    return this.#clock.elapsed() >= (this.#ends.get(id) ?? Number.POSITIVE_INFINITY);
  }

  forget(id: string): void {
    this.#ends.delete(id);
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
  }

  clear(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#ends.clear();
  }

  #sayAfter(delayMs: number, id: string): void {
    const say = () => {
      if (this.#timers.get(id) === timer) this.#onExpired(id);
    };
    const timer = this.#clock.after(delayMs, () => this.#paced.run(say), true);
    this.#timers.set(id, timer);
  }
}

/** Says within what time a text has not left. */
export function createExpired({ options }: Text): SmsError {
  const expireMs = options.keep?.expireMs ?? 0;
  const minutes = expireMs / 60_000;
  if (Number.isInteger(minutes)) return new SmsError('expired', { params: { minutes } });
  return new SmsError('expiredSeconds', { params: { seconds: Math.max(1, Math.round(expireMs / 1_000)) } });
}

/** How much of its time a text has left. The clock may have been set since: it is never more than the whole. */
function remainingMs({ arrivedAt, options }: Text, now: number): number | undefined {
  const expireMs = options.keep?.expireMs;
  return expireMs === undefined ? undefined : Math.min(expireMs, Math.max(0, arrivedAt + expireMs - now));
}
