import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import { SmsError } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import type { Step } from '../journal/journal';
import { digest, type MovedValues } from '../store/store';
import type { OutboxOptions } from './ledger';
import { mayLeaveAt, type RuleSettings } from './rules';
import type { Text } from './text';

/** When a text that waits is given up. By {@link Clock.elapsed}. */
export interface End {
  /** Its own time is over then: never, where it has none. */
  endsAt: number;
  /** Not before that because its node is not here. */
  absentUntil: number;
}

/** When a text is given up, as it stands: its time counts from the first moment at which it may or might leave. */
export function endOf(given: Text, clock: Clock, { quietHours }: Pick<RuleSettings, 'quietHours'>): End {
  const { hastenedAt = Number.POSITIVE_INFINITY, ...text } = given;
  const skew = ClockSkew.of(clock);
  const { expireMs = Number.POSITIVE_INFINITY } = text.options.keep ?? {};
  const elapsed = clock.elapsed();
  const now = clock.now();
  const arrivedAt = skew.timeOf(text.arrivedAt);
  const dueAt = Math.min(skew.timeOf(hastenedAt), mayLeaveAt(text, arrivedAt, quietHours));
  // The clock may have been set since: what is left of its time is never more than the whole.
  const wholeMs = Math.max(0, dueAt - arrivedAt) + expireMs;
  const endsAt = elapsed + Math.min(wholeMs, Math.max(0, dueAt + expireMs - now));
  const absentUntil = dueAt > arrivedAt ? elapsed + dueAt - now + longestAbsenceMs : 0;
  return { endsAt, absentUntil };
}

/** Says within what time a text has not left. */
export function createExpired({ options }: Text): SmsError {
  const expireMs = options.keep?.expireMs ?? 0;
  const minutes = expireMs / 60_000;
  if (Number.isInteger(minutes)) return new SmsError('expired', { params: { minutes } });
  return new SmsError('expiredSeconds', { params: { seconds: Math.max(1, Math.round(expireMs / 1_000)) } });
}

/** What knows of absences needs. */
interface AbsencesOptions extends OutboxOptions {
  /** A node that is here. */
  handlerOf(node: string): unknown;
  /** It is known now that a node has not been here for longer than this process has. */
  onFound(node: string): void;
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
const longestAbsenceMs = 7 * 24 * 3_600_000;

/** It waits for as long as its node is here. */
const endless: End = { endsAt: Number.POSITIVE_INFINITY, absentUntil: 0 };

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

  /** How long something of a node waits from now on, in ms: 0 once its time is over, endless where that never will be. */
  leftMs(node: string, { endsAt, absentUntil }: End = endless): number {
    const { clock, handlerOf } = this.#options;
    const elapsed = clock.elapsed();
    const ownMs = Math.max(0, endsAt - elapsed);
    if (handlerOf(node)) return ownMs;
    const { knownAt, begunAt } = this.#byNode.get(node) ?? this.#begin(node);
    const mostMs = Math.max(begunAt + longestAbsenceMs, absentUntil) - elapsed;
    return Math.max(0, knownAt + longestDeploymentMs - elapsed, Math.min(ownMs, mostMs));
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

/** A node has been absent for as long as either login knows. */
export const movedAbsences: MovedValues = { prefix, merge: (own, other) => (own.at <= other.at ? own : other) };

/**
 * Results in since when a node has been absent, in ms: it may be known for longer, unless it is new.
 *
 * @param since `undefined`: it is here
 */
function note(node: string, since: number | undefined, isNew = false): Step<number | undefined> {
  const key = prefix + digest(node);
  return {
    whileFailing: 'postpone',
    decide(look, changes) {
      const noted = look(key)?.at;
      const at = isNew || noted === undefined || since === undefined ? since : Math.min(noted, since);
      if (at !== noted) changes.remember.set(key, at === undefined ? undefined : { at, forMs: notedMs, value: '' });
      return () => at;
    },
  };
}
