import type { Client } from '../http/client';
import type { Case, EvidenceRoom } from './evidence';
import { concernedBy, type Text } from './outgoing';

/** The evidence of texts that are under way, from the moment that each leaves. */
export class Clearing {
  readonly #evidence: EvidenceRoom;
  readonly #cases = new Map<string, Case>();

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
    const opened =
      this.#cases.get(text.id) ??
      this.#evidence.watch({
        message: { ...text.message, messageId },
        readFeed: () => client.readFeed({ type: 'out', size: 300 }),
      });
    opened.goesTo(concernedBy(text));
    this.#cases.set(text.id, opened);
    return opened;
  }

  close(id: string): void {
    this.#cases.get(id)?.close();
    this.#cases.delete(id);
  }
}
