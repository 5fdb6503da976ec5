import type { Journal, Participant } from '../journal/journal';
import type { Circumstances } from '../journal/participant';
import type { Question } from '../questions/question';
import type { Remembrance } from '../questions/sent-index';
import type { Changes, Item } from '../store/store';
import { isLedgerItem } from './ledger';
import type { Text } from './outgoing';
import type { SendingRooms } from './rooms';

/** What the ledger's keeper stands on. */
export interface LedgerKeeperOptions {
  journal: Journal;
  remembrance: Remembrance;
  /** Where its items belong; `undefined` while there are none. */
  rooms(): SendingRooms | undefined;
  /** The same, made when there are none yet. */
  openRooms(): SendingRooms;
}

/** Stands for the ledger in the journal, also before there is one. */
export class LedgerKeeper implements Participant {
  readonly #options: LedgerKeeperOptions;
  /** Who gets what is still found here, since everything else was handed over. */
  #heir: LedgerKeeper | undefined;

  constructor(options: LedgerKeeperOptions) {
    this.#options = options;
    options.journal.join('ledger', this);
  }

  wanted(): string[] {
    const nodes = this.#options.rooms()?.deliveries.nodes ?? [];
    return this.#heir ? this.#heir.wanted() : nodes.map((node) => `node ${node}`);
  }

  isReadable(item: Item): boolean {
    return isLedgerItem(item);
  }

  found(items: readonly Item[], circumstances: Circumstances): void {
    const { journal, remembrance, rooms, openRooms } = this.#options;
    if (circumstances.isOpening) void journal.run(remembrance.findOut());
    const found = items.length > 0 ? openRooms() : rooms();
    if (!circumstances.isOpening) {
      const wanted = new Set(this.wanted());
      const unwanted = (items as readonly (Text | Question)[]).filter(
        ({ takers }) => !takers.some((name) => wanted.has(name)),
      );
      // Nobody has wanted them anywhere for as long as they wait.
      for (const { node } of unwanted) found?.absences.exhaust(node);
    }
    found?.ledger.holdings.found(items, circumstances);
  }

  saved(kept: Changes['keep']): void {
    this.#options.rooms()?.ledger.holdings.saved(kept);
  }

  letGo(): void {
    this.#options.rooms()?.ledger.holdings.letGo();
  }

  /** Takes over what other processes leave for the nodes of another ledger from now on; `undefined`: for its own. */
  yieldTo(heir: LedgerKeeper | undefined): void {
    this.#heir = heir;
  }
}
