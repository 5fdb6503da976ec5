import type { Clock } from '../clock';
import { DueTimes } from './due-times';
import type { Absences } from './expiry';
import type { Ledger } from './ledger';
import type { OutcomeNews, SendHandler } from './send-handler';
import type { SenderRegistration } from './sender-registrations';
import { isKept, type Outcome, parseOutcome, type Text } from './text';

/** Who gave a text, and what with it. */
export interface Given {
  from: SenderRegistration;
  origin: unknown;
}

/** What outcomes are brought into the flow with. */
export interface DeliveriesOptions {
  clock: Clock;
  ledger: Ledger;
  absences: Pick<Absences, 'patience'>;
  /** A node that is here. */
  handlerOf(node: string): SendHandler | undefined;
  /** The outcome of a text has entered the flow, or never will. */
  onDelivered(text: Text): void;
  /** Its node has not been here for too long, and nobody will be told its outcome. */
  onAbandoned(node: string): void;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

/** Brings outcomes into the flow, each to the node that its text is of. */
export class Deliveries {
  /** What nodes gave with texts that are under way. */
  readonly #origins = new Map<string, unknown>();
  readonly #redelivery: Redelivery<Text>;
  readonly #onFault: (error: unknown) => void;

  constructor({ clock, ledger, absences, handlerOf, onDelivered, onAbandoned, onFault }: DeliveriesOptions) {
    const taken = async (text: Text) => {
      await ledger.delivered(text);
      onDelivered(text);
    };
    this.#onFault = onFault;
    this.#redelivery = new Redelivery({
      clock,
      items: ledger.texts,
      isShared: ledger.isShared,
      handlerOf: ({ node }) => handlerOf(node),
      patienceMs: ({ node }) => {
        const patience = absences.patience(node);
        return patience && Math.max(patience.leastMs, patience.mostMs);
      },
      tell: async (handler, text, mayBeKnown) => {
        // It is in memory then, as it came.
        const isHere = this.#origins.get(text.id) !== undefined;
        const carried = isHere ? text.carried : await ledger.carriedOf(text);
        const news = this.#newsOf({ ...text, ...(carried === undefined ? undefined : { carried }) }, mayBeKnown);
        return handler.onOutcome(news);
      },
      taken,
      missed: async (text) => {
        await taken(text);
        // What is unknown is listed from now on, for somebody to decide about.
        if (!ledger.texts.has(text.id)) onAbandoned(text.node);
      },
      onFault,
    });
  }

  /** Remembers what a node gave with a text that may outlast the call that gave it. */
  remember(id: string, origin: unknown): void {
    this.#origins.set(id, origin);
  }

  /** Takes over what nodes gave with some texts, and what is known of their outcomes, from the account of a login that this one replaces. */
  adopt(former: Deliveries, isTheirs: (id: string) => boolean): void {
    this.#redelivery.adopt(former.#redelivery, isTheirs);
    for (const id of [...former.#origins.keys()]) {
      if (!isTheirs(id)) continue;
      this.#origins.set(id, former.#origins.get(id));
      former.#origins.delete(id);
    }
  }

  /** Whether something that a node gave is here: it is in no store, and its node may come back for it. */
  get hasOrigins(): boolean {
    return this.#origins.size > 0;
  }

  originOf(id: string): unknown {
    return this.#origins.get(id);
  }

  /** Lets go of what a node gave with a text, and returns it. */
  forget(id: string): unknown {
    const origin = this.#origins.get(id);
    this.#origins.delete(id);
    return origin;
  }

  /** Tells a node an outcome that is in no store. Never rejects: a node that throws makes no other outcome of it. */
  async tell({ from, origin }: Given, text: Text, outcome: Outcome, duplicate = false): Promise<void> {
    const news = createNews(text, { outcome, origin, redelivered: false, duplicate });
    try {
      if (!(await from.handler.onOutcome(news))) from.handler.onMissed?.(news);
    } catch (error) {
      this.#onFault(error);
    }
  }

  /**
   * Brings the outcome of a settled text into the flow, now or when its node is back. Never rejects.
   *
   * @param mayBeKnown an earlier process may have sent it into the flow
   */
  deliver(text: Text, mayBeKnown: boolean): Promise<void> {
    return this.#redelivery.deliver(text, mayBeKnown);
  }

  /** A node has come, and what ended meanwhile is for it; or it has gone. */
  nodeChanged(node: string): void {
    this.#redelivery.nodeChanged(node);
  }

  /** The store has what is undelivered. */
  close(): void {
    this.#redelivery.close();
  }

  /** Goes on after {@link close}. */
  open(): void {
    this.#redelivery.open();
  }

  #newsOf(text: Text, mayBeKnown: boolean): OutcomeNews {
    const { id, outcome, isReleased, follows } = text;
    if (!outcome) throw new Error('not settled');
    return createNews(text, {
      outcome: parseOutcome(outcome),
      origin: this.#origins.get(id),
      redelivered: mayBeKnown || isReleased === true,
      duplicate: follows === true,
    });
  }
}

function createNews(
  text: Text,
  { outcome, origin, redelivered, duplicate }: Pick<OutcomeNews, 'outcome' | 'origin' | 'redelivered' | 'duplicate'>,
): OutcomeNews {
  const { message, encoding, parts, carried } = text;
  const news: OutcomeNews = { message, encoding, parts, origin, outcome, redelivered, duplicate, isKept: isKept(text) };
  if (carried !== undefined) news.carried = carried;
  return news;
}

/** What can be told to the flow. */
interface Told {
  id: string;
  /** Id of the node that it is for. */
  node: string;
}

/** What tells things of one kind to the flow. */
export interface RedeliveryOptions<Item extends Told> {
  clock: Clock;
  /** All that there is of their kind. */
  items: { get(id: string): Item | undefined };
  /** Others may deliver it once this is closed. */
  isShared: boolean;
  /** Who can take it now. */
  handlerOf(item: Item): SendHandler | undefined;
  /** How long it waits from now on for somebody who takes it, in ms; `undefined`: for as long as its node is here. */
  patienceMs(item: Item): number | undefined;
  /** Resolves with whether it got into the flow. */
  tell(handler: SendHandler, item: Item, mayBeKnown: boolean): Promise<boolean>;
  taken(item: Item): Promise<void>;
  /** Nobody has taken it in time. */
  missed(item: Item): Promise<void>;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

/** Tells the flow what has ended, each to the node that it is for, now or when that is back. */
export class Redelivery<Item extends Told> {
  readonly #options: RedeliveryOptions<Item>;
  /** What no node has taken yet, by id: whether an earlier process may have sent it into the flow. */
  readonly #waiting = new Map<string, boolean>();
  /** When it is given up. */
  readonly #deadlines: DueTimes;
  /** Ids of what a node is being told. */
  readonly #told = new Set<string>();
  #isClosed = false;

  constructor(options: RedeliveryOptions<Item>) {
    const { clock } = options;
    this.#options = options;
    this.#deadlines = new DueTimes(
      clock,
      () => clock.elapsed(),
      (id) => void this.#miss(id),
    );
  }

  /**
   * Tells it, now or when its node is back. Never rejects: what a node throws at waits for the next.
   *
   * @param mayBeKnown an earlier process may have sent it into the flow
   */
  async deliver(item: Item, mayBeKnown: boolean): Promise<void> {
    const { items, isShared, handlerOf, tell, taken, onFault } = this.#options;
    const { id } = item;
    if (this.#isClosed && isShared) return;
    const isKnown = this.#waiting.get(id) ?? mayBeKnown;
    this.#waiting.set(id, isKnown);
    if (this.#isClosed) return;
    this.#setDeadline(item);
    const handler = handlerOf(item);
    if (!handler || this.#told.has(id)) return;
    this.#told.add(id);
    try {
      if (await tell(handler, item, isKnown)) {
        this.#forget(id);
        await taken(item);
      }
    } catch (error) {
      onFault(error);
    } finally {
      this.#told.delete(id);
    }
    const current = this.#waiting.has(id) && items.get(id);
    // Another came, or went, while this one was being told.
    if (current && handlerOf(current) !== handler) await this.deliver(current, isKnown);
  }

  /** A node has come, and can take what is for it; or it has gone, and that waits for so long from now on. */
  nodeChanged(node: string): void {
    for (const [id, mayBeKnown] of [...this.#waiting]) {
      const item = this.#options.items.get(id);
      if (item?.node === node) void this.deliver(item, mayBeKnown);
    }
  }

  /** Takes over what is known of some, from another who told them. */
  adopt(former: Redelivery<Item>, isTheirs: (id: string) => boolean): void {
    for (const [id, mayBeKnown] of [...former.#waiting]) {
      if (!isTheirs(id)) continue;
      this.#waiting.set(id, mayBeKnown);
      former.#forget(id);
    }
  }

  /** Nothing is told any more: the store has it. What has not entered the flow yet is known to whoever opens this. */
  close(): void {
    const { items, isShared } = this.#options;
    this.#isClosed = true;
    this.#deadlines.clear();
    for (const id of [...this.#waiting.keys()]) if (isShared || !items.get(id)) this.#waiting.delete(id);
  }

  /** Goes on after {@link close} with what is delivered from now on. */
  open(): void {
    this.#isClosed = false;
  }

  #setDeadline(item: Item): void {
    const { clock, patienceMs } = this.#options;
    const forMs = patienceMs(item);
    if (forMs === undefined) this.#deadlines.delete(item.id);
    else this.#deadlines.set(item.id, clock.elapsed() + forMs);
  }

  async #miss(id: string): Promise<void> {
    const { items, missed, onFault } = this.#options;
    const item = items.get(id);
    // While a node is being told, that decides.
    if (this.#told.has(id)) return;
    this.#forget(id);
    try {
      if (item) await missed(item);
    } catch (error) {
      onFault(error);
    }
  }

  #forget(id: string): void {
    this.#deadlines.delete(id);
    this.#waiting.delete(id);
  }
}
