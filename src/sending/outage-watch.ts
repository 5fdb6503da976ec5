import type { Clock } from '../clock';
import type { SmsError } from '../errors';
import { Outage } from './outage';
import type { Outlet } from './outlet';
import type { Waiting, WaitingRoom } from './waiting-room';

/** What a watch over outages needs. */
export interface OutageWatchOptions {
  clock: Clock;
  room: WaitingRoom;
  outlet(node: string): Outlet | undefined;
  /** A text is the one that tries now. */
  onProbe(waiting: Waiting): void;
  /** The service has answered: whoever waited for that may go on. */
  onEnd(): void;
}

/** Knows whether the service is out of reach; chooses then which text tries, and tells each node once. */
export class OutageWatch {
  readonly #options: OutageWatchOptions;
  #outage: Outage | undefined;

  constructor(options: OutageWatchOptions) {
    this.#options = options;
  }

  /** Why the service was out of reach the last time, if it is. */
  get error(): SmsError | undefined {
    return this.#outage?.error;
  }

  /** Whether a text may try now: any while there is no outage. */
  lets({ id }: Waiting): boolean {
    return !this.#outage || this.#outage.probe === id;
  }

  /** Has a text try at once, unless another is about to. */
  hasten({ id }: Waiting): void {
    if (!this.#outage || this.#outage.probe !== undefined) return;
    this.#outage.end();
    this.#outage.probe = id;
  }

  /** A text has found the service out of reach. */
  failed({ id, node }: Waiting, error: SmsError): void {
    if (!this.#outage) this.#outage = new Outage(this.#options.clock, error, () => this.#tryOne());
    else if (this.#outage.probe === id) this.#outage.failed(error);
    this.tell(node);
  }

  /** The turn of a text is over. If it was to try and has found out nothing, another tries. */
  turnOver({ id }: Waiting): void {
    if (this.#outage?.probe !== id) return;
    this.#outage.probe = undefined;
    // Unless it has failed, and another is to try later.
    this.#tryOne();
  }

  /** The service has answered. */
  ended(): void {
    if (!this.#outage) return;
    this.close();
    this.#options.onEnd();
  }

  /** Tells a node, unless it knows. */
  tell(node: string): void {
    const { outlet, room } = this.#options;
    const listener = outlet(node);
    if (!this.#outage || !listener || this.#outage.told.has(node)) return;
    this.#outage.told.add(node);
    listener.onOutage(this.#outage.error.with({ waiting: room.countOf(node) }));
  }

  /** Forgets the outage: the next text finds out for itself. */
  close(): void {
    this.#outage?.end();
    this.#outage = undefined;
  }

  /** The one that would leave first. */
  #tryOne(): void {
    if (!this.#outage?.isDue) return;
    let first: Waiting | undefined;
    for (const waiting of this.#options.room.values()) {
      if (waiting.pause || !this.#options.outlet(waiting.node)) continue;
      if (!first || waiting.priority > first.priority) first = waiting;
    }
    if (!first) {
      this.close();
      return;
    }
    this.#outage.probe = first.id;
    this.#options.onProbe(first);
  }
}
