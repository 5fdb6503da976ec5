import type { Clock } from '../clock';
import type { Step } from '../journal/journal';
import type { Heritage } from '../outbox/heritage';
import type { Duration } from '../outbox/once';
import type { Changes, Look } from '../store/store';

/** Under this key stands until when anything is remembered of texts that went out. */
export const remembranceKey = 'remembers';

/** What stands there is put off by so much more than is needed, so that it need not be for each text. */
const slackMs = 3_600_000;

/**
 * Knows whether anything is remembered of texts that went out: while nothing is, nothing has to be looked up for what comes in. Of
 * a store that others share only the store knows, in the reading that is made anyway.
 */
export class Remembrance {
  readonly #isShared: boolean;
  readonly #clock: Clock;
  #isKnown = false;
  /** By {@link Clock.elapsed}; never sooner than was said before. */
  #until = 0;

  constructor(isShared: boolean, clock: Clock) {
    this.#isShared = isShared;
    this.#clock = clock;
  }

  /** Whether something may be remembered. */
  get isExpected(): boolean {
    return !this.#isKnown || this.#until > this.#clock.elapsed();
  }

  /** What to look at along with a record while nothing is expected, to learn what others remember. */
  get keys(): readonly string[] {
    return this.#isShared ? [remembranceKey] : [];
  }

  /** A text is about to be remembered. */
  expect({ at, forMs }: Duration): void {
    const leftMs = at + forMs - this.#clock.now();
    this.#until = Math.max(this.#until, this.#clock.elapsed() + leftMs);
  }

  /** Somebody has looked at {@link keys}. Says whether something may be remembered. */
  isRemembered(look: Look): boolean {
    const remembered = look(remembranceKey);
    if (remembered) this.expect(remembered);
    return this.isExpected;
  }

  /** The store has been opened, or others have brought what they remember: finds out what is in it. */
  findOut(): Step<void> {
    this.#isKnown = false;
    return {
      keys: [remembranceKey],
      whileFailing: 'postpone',
      decide: (look) => () => {
        this.isRemembered(look);
        this.#isKnown = true;
      },
    };
  }
}

/** Writes down that something is remembered for so long, where it is not yet. */
export function noteRemembrance({ at, forMs }: Duration, look: Look, changes: Changes): void {
  const remembered = look(remembranceKey);
  if (remembered && endOf(remembered) >= at + forMs) return;
  changes.remember.set(remembranceKey, { at, forMs: forMs + slackMs, value: '' });
}

/** The one that lasts longer. */
export const remembranceHeritage: Heritage = {
  prefix: remembranceKey,
  merge: (own, other) => (endOf(own) >= endOf(other) ? own : other),
};

function endOf({ at, forMs }: Duration): number {
  return at + forMs;
}
