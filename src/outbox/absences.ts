import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import { digest } from '../digest';
import type { Journal, Step } from '../journal/journal';
import type { MovedValues } from '../store/store';

/** What knows of absences needs. */
export interface AbsencesOptions {
  clock: Clock;
  journal: Pick<Journal, 'run'>;
  isHere(node: string): boolean;
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
    const { clock, isHere } = this.#options;
    if (isHere(node)) return undefined;
    const { knownAt, begunAt } = this.#byNode.get(node) ?? this.#begin(node);
    const elapsed = clock.elapsed();
    return {
      leastMs: Math.max(0, knownAt + longestDeploymentMs - elapsed),
      mostMs: Math.max(0, begunAt + longestAbsenceMs - elapsed),
    };
  }

  /** A node has been nowhere for as long as texts wait for one. */
  exhaust(node: string): void {
    const { clock, isHere } = this.#options;
    if (isHere(node)) return;
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
    if (absence || usesStore) this.#options.journal.run(forget(node)).catch(() => {});
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
    if (noted >= since || this.#byNode.get(node) !== absence) return;
    absence.begunAt -= since - noted;
    onFound(node);
  }
}

const prefix = 'absent:';
const keyOf = (node: string) => prefix + digest(node);

/** A node has been absent for as long as either login knows. */
export const movedAbsences: MovedValues = { prefix, merge: (own, other) => (own.at <= other.at ? own : other) };

/** Results in since when a node has been absent, in ms: it may be known for longer, unless it is new. */
function note(node: string, since: number, isNew: boolean): Step<number> {
  const key = keyOf(node);
  return {
    keys: [key],
    whileFailing: 'postpone',
    decide(look, changes) {
      const noted = look(key)?.at;
      const at = isNew || noted === undefined ? since : Math.min(noted, since);
      if (at !== noted) changes.remember.set(key, { at, forMs: notedMs, value: '' });
      return () => at;
    },
  };
}

function forget(node: string): Step<void> {
  const key = keyOf(node);
  return {
    keys: [key],
    whileFailing: 'postpone',
    decide(look, changes) {
      if (look(key)) changes.remember.set(key, undefined);
      return () => {};
    },
  };
}
