import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Case, EvidenceRoom } from './evidence';
import { concernedBy, type Text } from './outgoing';

interface Search {
  readonly opened: Case;
  /** What there is to tell when nothing is found, once the search has been interrupted. */
  error?: SmsError;
}

/** The evidence of texts that are under way, from the moment that each leaves. */
export class Clearing {
  readonly #evidence: EvidenceRoom;
  readonly #clientFor: (node: string) => Client | undefined;
  readonly #searches = new Map<string, Search>();

  /** @param clientFor who can ask the service for a node now: a redeploy ends whoever could before */
  constructor(evidence: EvidenceRoom, clientFor: (node: string) => Client | undefined) {
    this.#evidence = evidence;
    this.#clientFor = clientFor;
  }

  /** Says whether a text is one for which evidence can be looked for. */
  static isFor({ message, options }: Text): boolean {
    return options.resolveMs > 0 && message.messageId !== undefined;
  }

  /** Begins to collect, unless it has begun already; `undefined` for a text that nothing is looked for, or where nobody is who can. */
  open(text: Text, client = this.#clientFor(text.node)): Case | undefined {
    const search = this.#searches.get(text.id) ?? (client && this.#begin(text, client));
    if (!search) return undefined;
    this.#searches.set(text.id, search);
    search.opened.goesTo(concernedBy(text));
    return search.opened;
  }

  /** Somebody else is to go on. */
  interrupt(id: string, error: SmsError): void {
    const search = this.#searches.get(id);
    if (search) search.error = error;
  }

  /** See {@link interrupt}. */
  errorOf(id: string): SmsError | undefined {
    return this.#searches.get(id)?.error;
  }

  /** Whether the service can be asked now about a text, or nothing is to be looked for. */
  canLook(text: Text): boolean {
    return this.#clientFor(text.node) !== undefined || !Clearing.isFor(text);
  }

  close(id: string): void {
    this.#searches.get(id)?.opened.close();
    this.#searches.delete(id);
  }

  #begin(text: Text, client: Client): Search | undefined {
    const { message, node } = text;
    const { messageId } = message;
    if (!Clearing.isFor(text) || messageId === undefined) return undefined;
    const readFeed = () => (this.#clientFor(node) ?? client).readFeed({ type: 'out', size: 300 });
    return { opened: this.#evidence.watch({ message: { ...message, messageId }, readFeed }) };
  }
}
