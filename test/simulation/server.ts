import {
  type Changes,
  createChanges,
  dropItem,
  type Item,
  type RecoveredState,
  type Remembered,
  type Store,
  type StoreEvents,
  type StorePage,
} from '../../src/store/store';
import type { Library } from './library';
import {
  Copies,
  createFailure,
  findRemainingItem,
  LoginData,
  MachineStorage,
  ModelStore,
  type StoreCall,
  type StoredItem,
  type StoreSetup,
} from './storage';
import type { Message, World } from './world';

const aliveMs = 30_000;
const heartbeatMs = 10_000;
const graceMs = 15_000;
const claimsMs = aliveMs + graceMs + 2 * heartbeatMs;

type Recalled = ReadonlyMap<string, Remembered | undefined>;

/** A server that several processes use as their store. */
export class Server {
  readonly copies: Copies;
  /** Data by login. */
  readonly spaces = new Map<string, Space>();

  /**
   * @param library module of the tested library, whose class `StoreConflict` and function `applyCounts` the server uses
   */
  constructor(
    readonly world: World,
    readonly library: Library['store'],
  ) {
    this.copies = new Copies(world);
  }

  /** Removes all data, as if the server restarted empty. */
  empty(): void {
    for (const space of this.spaces.values()) space.empty();
  }

  /** Items that processes also have in memory. */
  get itemsInMemory(): string[] {
    return [...this.spaces.values()].flatMap((space) => space.itemsInMemory);
  }
}

/** Data of one login on the server, as `RedisStore` uses it: items, with the instance of each, and heartbeats. */
class Space extends LoginData {
  /** Number that changes when the server loses its data. */
  epoch: number | undefined;
  /** Open stores. Their processes have the items of these stores in memory. */
  readonly users = new Set<ServerModel>();
  #epochs = 0;
  /** Heartbeats by instance. */
  readonly alive = new Map<string, { heartbeat: string; untilMs: number }>();

  get itemsInMemory(): string[] {
    const instances = new Set([...this.users].map(({ instance }) => instance));
    return [...this.items.values()].filter(({ instance }) => instances.has(instance)).map(({ text }) => text);
  }

  /** Returns the items of one instance, with their ids. */
  itemsOf(instance: string): [id: string, item: StoredItem][] {
    return [...this.items].filter(([, item]) => item.instance === instance);
  }

  begin(): number {
    this.epoch ??= ++this.#epochs;
    return this.epoch;
  }

  empty(): void {
    for (const id of [...this.items.keys()]) this.set(id, undefined);
    this.remembered.clear();
    this.alive.clear();
    this.epoch = undefined;
    for (const user of [...this.users]) user.disconnect();
  }

  heartbeatOf(instance: string): string | undefined {
    const found = this.alive.get(instance);
    return found && found.untilMs > this.world.timeline.nowMs ? found.heartbeat : undefined;
  }
}

/** The connection of one machine to the server. */
export class ServerConnection extends MachineStorage {
  constructor(private readonly server: Server) {
    super(server.world, server.copies);
  }

  protected get logins(): Space[] {
    return [...this.server.spaces.values()];
  }

  get leftoverProblem(): string | undefined {
    const remaining = findRemainingItem(
      this.logins.flatMap(({ texts }) => texts),
      this.world,
    );
    return remaining && `an item stays on the server: ${remaining}`;
  }

  createStore(login: string, setup: StoreSetup): ServerModel {
    const { world, copies, spaces, library } = this.server;
    const space = spaces.get(login) ?? new Space(world, copies);
    spaces.set(login, space);
    return new ServerModel(this, space, library, setup);
  }
}

interface Session {
  heartbeat: string;
  openedAtMs: number;
  events: StoreEvents;
}

class ServerModel extends ModelStore implements Store {
  readonly shared = true as const;
  protected readonly failureCode = 'connection closed';
  protected readonly delaysMs = [0, 1, 2, 8];
  readonly instance: string;
  #epoch: number | undefined;
  #session: Session | undefined;
  #sessions = 0;
  #writing: (() => void) | undefined;

  constructor(
    connection: ServerConnection,
    private readonly space: Space,
    private readonly library: Library['store'],
    setup: StoreSetup,
  ) {
    super(connection, setup);
    this.instance = setup.random.hex(8);
  }

  isInMemory(message: Message): boolean {
    const ownTexts = this.#ownItems.map(([, { text }]) => text);
    return this.space.users.has(this) && this.space.copies.isIn(ownTexts, message);
  }

  /** Always 0, because a shared store does not save poll answers ahead. */
  pendingWrites(): number {
    return 0;
  }

  open(events: StoreEvents): Promise<RecoveredState> {
    this.#session = undefined;
    return this.call('open', () => {
      const { timeline } = this.world;
      const session: Session = {
        heartbeat: `${this.instance} ${++this.#sessions}`,
        openedAtMs: timeline.nowMs,
        events,
      };
      this.#session = session;
      const epoch = this.space.begin();
      const isReset = this.#epoch !== undefined && this.#epoch !== epoch;
      this.#epoch = epoch;
      this.space.users.add(this);
      this.space.alive.set(this.instance, { heartbeat: session.heartbeat, untilMs: timeline.nowMs + aliveMs });
      const ownItems = this.#ownItems;
      const claimed = this.#claim(session);
      const items = events.isImport ? [] : [...ownItems.map(([, item]) => readItem(item)), ...claimed];
      this.#beatLater(session);
      return { items, pendingWrites: [], isReset };
    });
  }

  async awaitsClaims(): Promise<boolean> {
    const { items } = this.opened();
    const openMs = this.world.timeline.nowMs - (this.#session?.openedAtMs ?? 0);
    return this.#ownItems.length < items.size && openMs < claimsMs;
  }

  async *pages(): AsyncGenerator<StorePage> {
    yield await this.call('recall', () => {
      const remembered = this.opened().values;
      return { items: this.#ownItems.map(([, item]) => readItem(item)), remembered };
    });
  }

  clear(key: string, mark: Remembered): Promise<void> {
    const changes = createChanges();
    for (const [id, item] of this.#ownItems) dropItem(changes, id, readItem(item).part);
    changes.remember.set(key, mark);
    return this.commit(changes, new Map());
  }

  commit(changes: Changes, recalled: Recalled): Promise<void> {
    const keep = [...changes.keep].map(([id, item]) => ({ id, text: JSON.stringify(item) }));
    const drop = [...changes.drop.keys()];
    const counting = { ...changes, count: new Map(changes.count) };
    const remember = [...changes.remember];
    const compared = new Map(
      [...recalled]
        .filter(([key]) => changes.remember.has(key) || changes.compare.has(key))
        .map(([key, value]) => [key, value && JSON.stringify(value)]),
    );
    const session = this.#session;
    const write = () => {
      const { world } = this;
      if (!session || this.space.heartbeatOf(this.instance) !== session.heartbeat)
        throw createFailure('the heartbeat has expired');
      if ([...compared].some(([key, expected]) => this.space.textOf(key) !== expected)) {
        throw new this.library.StoreConflict();
      }
      const counted = this.library.applyCounts(counting, (key) => this.space.lookUp(key));
      for (const [key, value] of [...remember, ...counted]) {
        if (value === undefined) this.space.remember(key, undefined);
        else {
          const text = JSON.stringify(value);
          this.space.remember(key, { text, untilMs: world.timeline.nowMs + value.forMs });
          // This value passes a reply to the instance that has the reply request. A consent word in the reply applies
          // from this commit on.
          if (key.startsWith('reply:')) this.space.copies.commit(value.value);
        }
      }
      for (const { id, text } of keep) this.space.set(id, { text, instance: this.instance });
      for (const id of drop) if (this.space.items.get(id)?.instance === this.instance) this.space.set(id, undefined);
    };
    this.#writing = write;
    return this.call('commit', write);
  }

  sweep(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    const session = this.#session;
    this.space.users.delete(this);
    return this.call('close', () => {
      this.#session = undefined;
      if (session && this.space.heartbeatOf(this.instance) === session.heartbeat && !this.isCutOff) {
        const untilMs = this.world.timeline.nowMs + aliveMs;
        this.space.alive.set(this.instance, { heartbeat: 'left', untilMs });
      }
    });
  }

  /** Simulates a lost connection. */
  disconnect(): void {
    const session = this.#session;
    if (!session) return;
    this.#session = undefined;
    this.noteFailure();
    session.events.onFailure(createFailure('connection closed'));
  }

  die(): void {
    this.space.users.delete(this);
    try {
      if (this.setup.random.chance(0.5) && this.running.has('commit')) this.#writing?.();
    } catch {
      // Nothing was written: another instance has committed first, or the heartbeat has expired.
    }
    this.#session = undefined;
  }

  get #ownItems(): [id: string, item: StoredItem][] {
    return this.space.itemsOf(this.instance);
  }

  protected get isUsable(): boolean {
    return this.#session !== undefined;
  }

  protected needsRoom(call: StoreCall): boolean {
    return call === 'commit';
  }

  protected override isConflict(error: unknown): boolean {
    return error instanceof this.library.StoreConflict;
  }

  protected opened(): Space {
    if (!this.#session) throw createFailure('not open');
    return this.space;
  }

  #beatLater(session: Session): void {
    const { timeline } = this.world;
    timeline.outside(
      heartbeatMs,
      () => {
        if (this.#session !== session) return;
        if (this.isCutOff || this.space.heartbeatOf(this.instance) !== session.heartbeat) {
          this.disconnect();
          return;
        }
        this.space.alive.set(this.instance, { heartbeat: session.heartbeat, untilMs: timeline.nowMs + aliveMs });
        const claimedItems = this.#claim(session);
        if (claimedItems.length > 0) session.events.onTakenOver(claimedItems);
        this.#beatLater(session);
      },
      this.setup.process,
    );
  }

  /** Claims items of instances that have left and, after a grace period, of instances without a heartbeat. */
  #claim({ events, openedAtMs }: Session): Item[] {
    const { world, items } = this.space;
    const isPatient = world.timeline.nowMs - openedAtMs >= graceMs;
    const wanted = new Set(events.wantedNames());
    const claimedItems: Item[] = [];
    for (const [id, { text, instance }] of items) {
      if (instance === this.instance) continue;
      const heartbeat = this.space.heartbeatOf(instance);
      if (heartbeat !== 'left' && !(isPatient && heartbeat === undefined)) continue;
      const item = JSON.parse(text) as Item;
      if (!item.subscribers.some((subscriber) => wanted.has(subscriber))) continue;
      this.space.set(id, { text, instance: this.instance });
      const messages = this.space.copies.in(text);
      world.say(() => `${this.setup.process.name} claims ${messages.map(({ name }) => name)}`);
      this.setup.onTakenOver(messages);
      claimedItems.push(item);
    }
    return claimedItems;
  }
}

function readItem({ text }: StoredItem): Item {
  return JSON.parse(text) as Item;
}
