import type { Client } from '../http/client';
import type { Case, EvidenceRoom, Suspect } from './evidence';
import { concernedBy, type Text } from './outgoing';

/** A search, and who reads the feed for it. */
interface Search {
  readonly opened: Case;
  /** Of those that a redeploy brings, each has connections of its own. */
  client: Client;
}

/** The evidence of texts that are under way, from the moment that each leaves. */
export class Clearing {
  readonly #evidence: EvidenceRoom;
  readonly #searches = new Map<string, Search>();

  constructor(evidence: EvidenceRoom) {
    this.#evidence = evidence;
  }

  /** Says whether a text is one for which evidence can be looked for. */
  static isFor({ message, options }: Text): boolean {
    return options.resolveMs > 0 && message.messageId !== undefined;
  }

  /** Begins to collect, unless it has begun already; `undefined` for a text that nothing is looked for. */
  open(text: Text, client: Client): Case | undefined {
    const { messageId } = text.message;
    if (!Clearing.isFor(text) || messageId === undefined) return undefined;
    const search = this.#searches.get(text.id) ?? this.#begin({ ...text.message, messageId }, client);
    search.client = client;
    search.opened.goesTo(concernedBy(text));
    this.#searches.set(text.id, search);
    return search.opened;
  }

  close(id: string): void {
    this.#searches.get(id)?.opened.close();
    this.#searches.delete(id);
  }

  #begin(message: Suspect['message'], client: Client): Search {
    const readFeed = () => search.client.readFeed({ type: 'out', size: 300 });
    const search: Search = { opened: this.#evidence.watch({ message, readFeed }), client };
    return search;
  }
}
