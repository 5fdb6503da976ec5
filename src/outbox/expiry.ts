import type { Clock, Timer } from '../clock';
import { SmsError } from '../errors';
import type { QuietHours } from '../message/times';
import { type Absences, longestAbsenceMs } from './absences';
import { Batched } from './batched';
import { firstMoment } from './due';
import type { Text } from './outgoing';
import { type Placed, PriorityQueue } from './queue';

/** What a watch over the time of texts goes by. */
interface ExpiriesOptions {
  clock: Clock;
  absences: Pick<Absences, 'patience'>;
  /** See {@link RuleSettings}. */
  quietHours(): readonly QuietHours[];
}

/** Whether a text that cannot end yet can do so by now is asked again within so long. */
const postponedMs = 1_000;

/** Not in the queue of its node once it is said that its time is over. */
interface Watched extends Placed {
  readonly id: string;
  readonly node: string;
  /** When its own time is over, by {@link Clock.elapsed}: never, where it has none. */
  readonly endsAt: number;
  /** When it is given up, whatever time it has, if its node is not here. */
  readonly absence: Absent;
  /** Its place among those that end in the same moment. */
  readonly order: number;
}

/** A text among those of its node, should that not come. */
interface Absent extends Placed {
  readonly id: string;
  /** By {@link Clock.elapsed}. */
  readonly endsAt: number;
}

/** The texts of one node: whichever ends first, for all of them alike the node is here or is not. */
interface NodeTexts {
  readonly queue: PriorityQueue<Watched>;
  readonly absent: PriorityQueue<Absent>;
  /** Runs until the first of them may be over. */
  timer?: Timer | undefined;
}

/** Says when kept texts have waited for too long: with one timer for each node, however many it has. */
export class Expiries {
  readonly #clock: Clock;
  readonly #absences: Pick<Absences, 'patience'>;
  readonly #quietHours: () => readonly QuietHours[];
  readonly #onExpired: (id: string) => void;
  readonly #batched: Batched;
  readonly #byId = new Map<string, Watched>();
  readonly #byNode = new Map<string, NodeTexts>();
  #arrivals = 0;
  #postponed: Watched[] = [];
  #again: Timer | undefined;

  constructor({ clock, absences, quietHours }: ExpiriesOptions, onExpired: (id: string) => void) {
    this.#clock = clock;
    this.#absences = absences;
    this.#quietHours = quietHours;
    this.#onExpired = onExpired;
    this.#batched = new Batched(clock);
  }

  /** Begins to watch a text. */
  watch(text: Text): void {
    const { id, node } = text;
    this.forget(id);
    const elapsed = this.#clock.elapsed();
    const now = this.#clock.now();
    const dueAt = firstMoment(text, this.#quietHours());
    const endsAt = elapsed + remainingMs(text, dueAt, now);
    const absence: Absent = { id, endsAt: dueAt > text.arrivedAt ? elapsed + dueAt - now + longestAbsenceMs : 0 };
    const watched: Watched = { id, node, endsAt, absence, order: this.#arrivals++ };
    this.#byId.set(id, watched);
    this.#queueUp(watched);
  }

  /** A node has come or gone: its texts may wait for so long from now on. */
  nodeChanged(node: string): void {
    const texts = this.#byNode.get(node);
    if (!texts) return;
    texts.timer?.cancel();
    texts.timer = undefined;
    const firsts = [texts.queue.first, this.#byId.get(texts.absent.first?.id ?? '')];
    const delayMs = Math.min(...firsts.map((first) => (first ? this.#leftMs(first) : Number.POSITIVE_INFINITY)));
    if (delayMs === Number.POSITIVE_INFINITY) return;
    texts.timer = this.#clock.after(delayMs, () => this.#sayOfAll(node, texts), true);
  }

  /** A text cannot end yet though its time is over: that is said again within a second, if it is still watched. */
  postpone(id: string): void {
    const watched = this.#byId.get(id);
    if (!watched) return;
    this.#postponed.push(watched);
    this.#again ??= this.#clock.after(postponedMs, () => this.#sayAgain(), true);
  }

  /** Says whether a text's time is over, though that may not have been said yet. */
  isOver(id: string): boolean {
    const watched = this.#byId.get(id);
    return watched !== undefined && this.#isOver(watched);
  }

  forget(id: string): void {
    const watched = this.#byId.get(id);
    if (!watched) return;
    this.#byId.delete(id);
    const texts = this.#byNode.get(watched.node);
    texts?.queue.delete(watched);
    texts?.absent.delete(watched.absence);
    // Where others are left, the timer finds at worst that none of them is over yet.
    if (texts?.queue.size !== 0) return;
    texts.timer?.cancel();
    this.#byNode.delete(watched.node);
  }

  clear(): void {
    for (const { timer } of this.#byNode.values()) timer?.cancel();
    this.#again?.cancel();
    this.#again = undefined;
    this.#postponed = [];
    this.#byNode.clear();
    this.#byId.clear();
  }

  #queueUp(watched: Watched): void {
    const { node } = watched;
    const texts: NodeTexts = this.#byNode.get(node) ?? {
      queue: new PriorityQueue<Watched>(endsBefore),
      absent: new PriorityQueue<Absent>((a, b) => a.endsAt < b.endsAt),
    };
    this.#byNode.set(node, texts);
    texts.queue.add(watched);
    texts.absent.add(watched.absence);
    if (texts.queue.first === watched || texts.absent.first === watched.absence) this.nodeChanged(node);
  }

  #sayOfAll(node: string, { queue, absent }: NodeTexts): void {
    const take = (watched: Watched) => {
      queue.delete(watched);
      absent.delete(watched.absence);
      this.#batched.run(() => this.#say(watched));
    };
    for (let { first } = queue; first && this.#isOver(first); { first } = queue) take(first);
    for (let first = this.#byId.get(absent.first?.id ?? ''); first && this.#isOver(first); ) {
      take(first);
      first = this.#byId.get(absent.first?.id ?? '');
    }
    this.nodeChanged(node);
  }

  #sayAgain(): void {
    this.#again = undefined;
    for (const watched of this.#postponed.splice(0)) this.#batched.run(() => this.#say(watched));
  }

  /** It may be watched no more by now, or its node may have come. */
  #say(watched: Watched): void {
    if (this.#byId.get(watched.id) !== watched) return;
    if (this.#isOver(watched)) this.#onExpired(watched.id);
    else this.#queueUp(watched);
  }

  #isOver(watched: Watched): boolean {
    return this.#leftMs(watched) === 0;
  }

  /** How long until it is over: 0 once it is, endless where it never will be. */
  #leftMs({ node, endsAt, absence }: Watched): number {
    const elapsed = this.#clock.elapsed();
    const ownMs = Math.max(0, endsAt - elapsed);
    const patience = this.#absences.patience(node);
    if (!patience) return ownMs;
    const mostMs = Math.max(patience.mostMs, absence.endsAt - elapsed);
    return Math.max(patience.leastMs, Math.min(ownMs, mostMs));
  }
}

function endsBefore(a: Watched, b: Watched): boolean {
  return a.endsAt < b.endsAt || (a.endsAt === b.endsAt && a.order < b.order);
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
