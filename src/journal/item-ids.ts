import type { Clock } from '../clock';
import type { Item } from '../store/store';

/** Digits of an id that ascend with time. */
const timeLength = 11;

/** Gives items ids that ascend, and that no other process gives. */
export class ItemIds {
  readonly #clock: Clock;
  /** Tells apart the ids of processes that share a store. */
  readonly #suffix: string;
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#suffix = Math.floor(clock.random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  }

  next(): string {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#clock.now() * 1_000));
    return this.#last.toString(36).padStart(timeLength, '0') + this.#suffix;
  }

  /** Gives only ids from now on that come after those of `items`: the clock may have been set back since. */
  follow(items: readonly Item[]): void {
    let latest = '';
    for (const { id } of items) if (id > latest) latest = id;
    const time = parseTime(latest);
    if (time > this.#last) this.#last = time;
  }
}

/** When an item got its id, in ms since 1970: a little later than then where many came at once. */
export function timeOf({ id }: Pick<Item, 'id'>): number {
  return parseTime(id) / 1_000;
}

/** In µs. */
function parseTime(id: string): number {
  return Number.parseInt(id.slice(0, timeLength), 36);
}
