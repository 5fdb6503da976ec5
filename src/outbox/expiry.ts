import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import { digest } from '../digest';
import { SmsError } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import type { Step } from '../journal/journal';
import type { MovedValues } from '../store/store';
import { DueTimes } from './due-times';
import type { OutboxOptions } from './ledger';
import { firstMoment, type RuleSettings } from './rules';
import type { Text } from './text';

/** What a watch over the time of texts goes by. */
interface ExpiryOptions {
  clock: Clock;
  absences: Pick<Absences, 'patience'>;
  rules: Pick<RuleSettings, 'quietHours'>;
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
    this.#dueTimes = new DueTimes(clock, 'elapsed', (id) => this.#look(id));
  }

  /** Begins to watch a text, or does so anew. */
  watch(given: Text): void {
    const { clock, rules } = this.#options;
    const timeOf = (at: number) => ClockSkew.of(clock).timeOf(at);
    const hastenedAt = given.hastenedAt === undefined ? undefined : timeOf(given.hastenedAt);
    const text = { ...given, arrivedAt: timeOf(given.arrivedAt), ...(hastenedAt !== undefined && { hastenedAt }) };
    const { id, node, arrivedAt } = text;
    const elapsed = clock.elapsed();
    const now = clock.now();
    const dueAt = firstMoment(text, rules.quietHours);
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

/** What knows of absences needs. */
interface AbsencesOptions extends OutboxOptions {
  /** A node that is here. */
  handlerOf(node: string): unknown;
  /** It is known now that a node has not been here for longer than this process has. */
  onFound(node: string): void;
}

/** How long texts of a node that is not here wait for it, in ms. */
export interface Patience {
  leastMs: number;
  mostMs: number;
}

interface Absence {
  /** By {@link Clock.elapsed}: since when it is known here, and since when it has been so. */
  knownAt: number;
  begunAt: number;
  /** The node was here before, in this process: what is written of its absence is of an earlier one. */
  isNew: boolean;
  noting: Timer;
}

/** A text of a node that is not deployed is given up after so long at most. */
export const longestAbsenceMs = 7 * 24 * 3_600_000;

/** An absence is known for longer than any process rests. */
const notedMs = 365 * 24 * 3_600_000;

/** Knows since when nodes have not been here whose texts wait, across restarts. */
export class Absences {
  readonly #options: AbsencesOptions;
  readonly #byNode = new Map<string, Absence>();
  /** Nodes that have been here. */
  readonly #known = new Set<string>();

  constructor(options: AbsencesOptions) {
    this.#options = options;
  }

  /** How long texts wait for a node; `undefined`: it is here. */
  patience(node: string): Patience | undefined {
    const { clock, handlerOf } = this.#options;
    if (handlerOf(node)) return undefined;
    const { knownAt, begunAt } = this.#byNode.get(node) ?? this.#begin(node);
    const elapsed = clock.elapsed();
    return {
      leastMs: Math.max(0, knownAt + longestDeploymentMs - elapsed),
      mostMs: Math.max(0, begunAt + longestAbsenceMs - elapsed),
    };
  }

  /** A node has been nowhere for as long as texts wait for one. */
  exhaust(node: string): void {
    const { clock, handlerOf } = this.#options;
    if (handlerOf(node)) return;
    const absence = this.#byNode.get(node) ?? this.#begin(node);
    absence.begunAt = Math.min(absence.begunAt, clock.elapsed() - longestAbsenceMs);
  }

  /** A node is here. What an earlier process knew of its absence is forgotten, too, if it `usesStore`: else it leaves no texts. */
  end(node: string, usesStore: boolean): void {
    const absence = this.#byNode.get(node);
    absence?.noting.cancel();
    this.#byNode.delete(node);
    this.#known.add(node);
    // Where that cannot be written it is not known either.
    if (absence || usesStore) this.#options.journal.run(note(node, undefined)).catch(() => {});
  }

  /** Nobody waits here any more: it is written who is absent, for whoever waits next. */
  close(): void {
    for (const [node, absence] of this.#byNode) {
      absence.noting.cancel();
      void this.#note(node, absence);
    }
    this.#byNode.clear();
    this.#known.clear();
  }

  #begin(node: string): Absence {
    const { clock } = this.#options;
    const now = clock.elapsed();
    // While others stay, the redeploy of a node is no absence.
    const noting = clock.after(longestDeploymentMs, () => void this.#note(node, absence), true);
    const absence: Absence = { knownAt: now, begunAt: now, isNew: this.#known.has(node), noting };
    this.#byNode.set(node, absence);
    return absence;
  }

  async #note(node: string, absence: Absence): Promise<void> {
    const { clock, journal, onFound } = this.#options;
    const since = clock.now() - (clock.elapsed() - absence.begunAt);
    const noted = await journal.run(note(node, since, absence.isNew)).catch(() => since);
    absence.isNew = false;
    if (noted === undefined || noted >= since || this.#byNode.get(node) !== absence) return;
    absence.begunAt -= since - noted;
    onFound(node);
  }
}

const prefix = 'absent:';
const keyOf = (node: string) => prefix + digest(node);

/** A node has been absent for as long as either login knows. */
export const movedAbsences: MovedValues = { prefix, merge: (own, other) => (own.at <= other.at ? own : other) };

/**
 * Results in since when a node has been absent, in ms: it may be known for longer, unless it is new.
 *
 * @param since `undefined`: it is here
 */
function note(node: string, since: number | undefined, isNew = false): Step<number | undefined> {
  const key = keyOf(node);
  return {
    keys: [key],
    whileFailing: 'postpone',
    decide(look, changes) {
      const noted = look(key)?.at;
      const at = isNew || noted === undefined || since === undefined ? since : Math.min(noted, since);
      if (at !== noted) changes.remember.set(key, at === undefined ? undefined : { at, forMs: notedMs, value: '' });
      return () => at;
    },
  };
}
