import type { Entry } from '../inbox/entry';
import type { Kind } from '../model';

/** Where entries stand in what came together, when that is given in several turns of the event loop. */
export interface Slice {
  /** The same for all that came together, and for nothing else. */
  group: string;
  /** How many come before them. */
  index: number;
  /** Of the whole. */
  count: number;
  isLast: boolean;
}

/** One node, as the inbox sees it, and what it takes. */
export interface Taker<K extends Kind = Kind> {
  /** The node's id: a node that comes back under it after a redeploy gets what it was owed. */
  readonly id: string;
  /** On channel `callback`: the path it answers. */
  readonly path?: string;
  /** Gets only what it asked for itself, and what is left that nobody else takes. */
  readonly onDemand?: boolean;
  /** Says by {@link Inbox.countAttempt} when it sends an entry; otherwise taking one counts. */
  readonly countsAttempts?: boolean;
  /**
   * Gets entries that came together, or a slice of them, in order. Each has to be answered by {@link Inbox.done}, or, where the service
   * shall bring it again, by {@link Inbox.release}.
   *
   * @param context what {@link Arrival.context} said
   * @param slice absent when these are all
   */
  take(entries: readonly Entry<K>[], context?: unknown, slice?: Slice): void;
}
