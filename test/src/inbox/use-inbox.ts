import type { Inbox, InboxState } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import type { Store } from '../../../src/store/store';
import { settle, TurningClock } from '../../virtual-clock';
import { type NodeOptions, RecordingNode } from '../delivery/recording-node';
import { RecordingSubscriber, type SubscriberOptions } from '../delivery/recording-subscriber';
import { FailingStore, type FakeDisk } from '../store/failing-store';
import { calledBack, polled } from './arrivals';
import { createInboxOn } from './inbox-on';

type Options = Partial<Parameters<typeof createInboxOn>[0]>;

/** The inbox of a process. Later processes use the same disk, so that their inboxes find the data of this inbox. */
export class InboxBench {
  clock = new TurningClock();
  store = new FailingStore();
  inbox!: Inbox;
  readonly #stores = new Map<Inbox, Store>();

  constructor(private readonly options: () => Options) {}

  /** Creates the inbox of this process, or of the next one. */
  readonly start = (more: Options = {}): void => {
    const { store = new FailingStore(this.store.disk) } = more;
    if (store instanceof FailingStore) this.store = store;
    this.inbox = createInboxOn({ clock: this.clock, ...this.options(), ...more, store });
    this.#stores.set(this.inbox, store);
  };

  /** Closes the inbox, and opens the inbox of the next process. */
  readonly restart = async (): Promise<void> => {
    await this.inbox.journal.close();
    this.start();
    await this.inbox.journal.ready();
  };

  get disk(): FakeDisk {
    return this.store.disk;
  }

  get state(): InboxState {
    return this.inbox.state;
  }

  /** Advances the clock, and then waits until all work that is due has ended. */
  readonly pass = async (ms = 0): Promise<void> => {
    await this.clock.advance(ms);
    await settle(20);
  };

  /** Receives polled messages, by record or by identifier. */
  readonly receive = async (...records: (IncomingRecord | string)[]): Promise<string[]> => {
    const verdicts = await this.inbox.accept(polled(...records));
    await settle(20);
    return verdicts;
  };

  /** Receives a callback at node `callback`. */
  readonly callBack = async (record?: IncomingRecord): Promise<string[]> => {
    const verdicts = await this.inbox.accept(calledBack(record));
    await settle(20);
    return verdicts;
  };

  /** Attaches a node to the inbox. The node passes its deliveries on to a flow. */
  readonly attach = (options: NodeOptions = {}): RecordingNode => new RecordingNode(this.inbox, options);

  /** Attaches a node that records its entries, without a flow. */
  readonly subscribe = (id?: string, options: SubscriberOptions = {}): RecordingSubscriber =>
    new RecordingSubscriber(this.inbox, id, options);

  /** Writes all changes. Returns the kinds of the stored items. */
  readonly storedParts = async (): Promise<string[]> => {
    await settle(20);
    await this.inbox.journal.flush();
    return this.store.disk.items.map(({ part }) => part);
  };

  reset(): void {
    this.clock = new TurningClock();
    this.store = new FailingStore();
    this.start();
  }

  /** Closes all inboxes, except those of killed processes. */
  async close(): Promise<void> {
    for (const [inbox, store] of this.#stores) {
      if (!(store instanceof FailingStore && store.isDead)) await inbox.journal.close();
    }
    this.#stores.clear();
  }
}

/** Creates an inbox before each test, and closes it afterwards. Calls `options` at the start and after each restart. */
export function useInbox(options: () => Options = () => ({})): InboxBench {
  const bench = new InboxBench(options);
  beforeEach(() => bench.reset());
  afterEach(() => bench.close());
  return bench;
}
