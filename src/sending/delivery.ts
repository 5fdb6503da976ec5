import type { Attachment } from './attachment';
import type { Ledger } from './ledger';
import { type Outcome, parseOutcome, type Text } from './outgoing';
import type { OutcomeNews, Outlet } from './outlet';

/** Who gave a text, and what with it. */
export interface Given {
  from: Attachment;
  origin: unknown;
}

/** Brings outcomes into the flow, each to the node that its text is of, which may come back later. */
export class Deliveries {
  readonly #ledger: Ledger;
  readonly #onDelivered: (text: Text) => void;
  readonly #onFault: (error: unknown) => void;
  readonly #outlets = new Map<string, Outlet>();
  /** What nodes gave with texts that are under way. */
  readonly #origins = new Map<string, unknown>();
  /** Settled texts that no node has taken yet; `true`: an earlier process may have sent it into the flow. */
  readonly #undelivered = new Map<string, boolean>();
  readonly #delivering = new Set<string>();

  /**
   * @param onDelivered the outcome of a text has entered the flow
   * @param onFault a node has thrown
   */
  constructor(ledger: Ledger, onDelivered: (text: Text) => void, onFault: (error: unknown) => void) {
    this.#ledger = ledger;
    this.#onDelivered = onDelivered;
    this.#onFault = onFault;
  }

  /** Nodes that are here. */
  get nodes(): string[] {
    return [...this.#outlets.keys()];
  }

  outlet(node: string): Outlet | undefined {
    return this.#outlets.get(node);
  }

  /** A node is here; what ended meanwhile is for it. */
  attach(outlet: Outlet): void {
    this.#outlets.set(outlet.id, outlet);
    for (const [id, mayBeKnown] of [...this.#undelivered]) {
      const text = this.#ledger.texts.get(id);
      if (text?.node === outlet.id) void this.deliver(text, mayBeKnown);
    }
  }

  detach(outlet: Outlet): void {
    if (this.#outlets.get(outlet.id) === outlet) this.#outlets.delete(outlet.id);
  }

  /** Remembers what a node gave with a text that may outlast the call that gave it. */
  remember(id: string, origin: unknown): void {
    this.#origins.set(id, origin);
  }

  /** Takes over what nodes gave with some texts, from the account of a login that this one replaces. */
  adopt(former: Deliveries, isTheirs: (id: string) => boolean): void {
    for (const [id, origin] of former.#origins) {
      if (!isTheirs(id)) continue;
      this.#origins.set(id, origin);
      former.#origins.delete(id);
    }
  }

  originOf(id: string): unknown {
    return this.#origins.get(id);
  }

  forget(id: string): void {
    this.#origins.delete(id);
  }

  /** Tells a node an outcome that is in no store. */
  async tell({ from, origin }: Given, text: Text, outcome: Outcome, duplicate = false): Promise<void> {
    const news = createNews(text, { outcome, origin, redelivered: false, duplicate });
    if (!(await from.outlet.onOutcome(news))) from.outlet.onMissed?.(news);
  }

  /**
   * Brings the outcome of a settled text into the flow, now or when its node is back. Never rejects: one whose node throws
   * waits for the next.
   *
   * @param mayBeKnown an earlier process may have sent it into the flow
   */
  async deliver(text: Text, mayBeKnown: boolean): Promise<void> {
    const { id } = text;
    if (!text.outcome || this.#delivering.has(id)) return;
    this.#undelivered.set(id, mayBeKnown);
    const outlet = this.#outlets.get(text.node);
    if (!outlet) return;
    this.#delivering.add(id);
    try {
      const news = createNews(text, {
        outcome: parseOutcome(text.outcome),
        origin: this.#origins.get(id),
        redelivered: mayBeKnown || text.isReleased === true,
        duplicate: text.follows === true,
      });
      if (!(await outlet.onOutcome(news))) return;
      this.#undelivered.delete(id);
      await this.#ledger.delivered(text);
      this.#onDelivered(text);
    } catch (error) {
      this.#onFault(error);
    } finally {
      this.#delivering.delete(id);
    }
    // It came while the one before it was being told.
    if (this.#undelivered.has(id) && this.#outlets.get(text.node) !== outlet) await this.deliver(text, mayBeKnown);
  }

  /** The store has what is undelivered; it is found again when that is opened. */
  letGo(): void {
    this.#undelivered.clear();
  }
}

function createNews(
  { message, encoding, parts, carried }: Text,
  { outcome, origin, redelivered, duplicate }: Pick<OutcomeNews, 'outcome' | 'origin' | 'redelivered' | 'duplicate'>,
): OutcomeNews {
  const news: OutcomeNews = { message, encoding, parts, origin, outcome, redelivered, duplicate };
  if (carried !== undefined) news.carried = carried;
  return news;
}
