import {
  applyCounts,
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
import { stagedIn } from './disk';
import type { StoreTrouble } from './plan';
import {
  Copies,
  failure,
  findRemainingItem,
  MachineStorage,
  ModelStore,
  type StoreCall,
  type StoreSetup,
} from './storage';
import type { Message, World } from './world';

const aliveMs = 30_000;
const heartbeatMs = 10_000;
const graceMs = 15_000;
const claimsMs = aliveMs + graceMs + 2 * heartbeatMs;

type Recalled = ReadonlyMap<string, Remembered | undefined>;

interface StoredItem {
  text: string;
  /** Id of the instance that must deliver the item. */
  instance: string;
}

/** A server that several processes use as their store. */
export class Server {
  readonly copies: Copies;
  /** Data by login. */
  readonly #spaces = new Map<string, Space>();

  /** @param createConflict creates the library's error for a commit that conflicts with another process */
  constructor(
    readonly world: World,
    readonly createConflict: () => Error,
  ) {
    this.copies = new Copies(world);
  }

  spaceOf(login: string): Space {
    const space = this.#spaces.get(login) ?? new Space(this);
    this.#spaces.set(login, space);
    return space;
  }

  /** Removes all data, as if the server restarted empty. */
  empty(): void {
    for (const space of this.#spaces.values()) space.empty();
  }

  /** Whether a process that stores a message here also has it in memory. */
  isInMemory(message: Message): boolean {
    return [...this.#spaces.values()].some((space) => space.isInMemory(message));
  }

  /** Items that processes also have in memory. */
  get itemsInMemory(): string[] {
    return [...this.#spaces.values()].flatMap((space) => space.itemsInMemory);
  }

  isInTwoLogins(message: Message): boolean {
    return [...this.#spaces.values()].filter(({ texts }) => this.copies.isIn(texts, message)).length > 1;
  }

  get texts(): string[] {
    return [...this.#spaces.values()].flatMap(({ texts }) => texts);
  }
}

/** Data of one login on the server, as `RedisStore` uses it: items, their holders and the heartbeats. */
class Space {
  readonly items = new Map<string, StoredItem>();
  readonly remembered = new Map<string, { text: string; untilMs: number }>();
  /** Number that changes when the server loses its data. */
  epoch: number | undefined;
  /** Open stores, whose processes have their items in memory. */
  readonly users = new Set<ServerModel>();
  #epochs = 0;
  /** Heartbeats by instance. */
  readonly alive = new Map<string, { heartbeat: string; untilMs: number }>();
  readonly world: World;
  readonly copies: Copies;

  constructor(readonly server: Server) {
    this.world = server.world;
    this.copies = server.copies;
  }

  lookUpAll(keys: Iterable<string>): Map<string, Remembered | undefined> {
    const found = [...keys].map((key) => [key, this.lookUp(key)] as const);
    return new Map(
      found.map(([key, text]) => [key, text === undefined ? undefined : (JSON.parse(text) as Remembered)]),
    );
  }

  isInMemory(message: Message): boolean {
    return this.itemsInMemory.some((text) => this.copies.in(text).includes(message));
  }

  get texts(): string[] {
    return [...this.items.values()].map(({ text }) => text);
  }

  get itemsInMemory(): string[] {
    const instances = new Set([...this.users].map(({ instance }) => instance));
    return [...this.items.values()].filter(({ instance }) => instances.has(instance)).map(({ text }) => text);
  }

  /** Returns the items of one instance, with their ids. */
  itemsOf(instance: string): [id: string, item: StoredItem][] {
    return [...this.items].filter(([, item]) => item.instance === instance);
  }

  remember(key: string, value: { text: string; untilMs: number } | undefined): void {
    const before = this.remembered.get(key);
    if (before) for (const item of stagedIn(key, before.text)) this.copies.count(item, -1);
    if (value) this.remembered.set(key, value);
    else this.remembered.delete(key);
    if (value) for (const item of stagedIn(key, value.text)) this.copies.count(item, 1);
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

  lookUp(key: string): string | undefined {
    const found = this.remembered.get(key);
    return found && found.untilMs > this.world.timeline.nowMs ? found.text : undefined;
  }

  set(id: string, item: StoredItem | undefined): void {
    const before = this.items.get(id);
    if (before) this.copies.count(before.text, -1);
    if (item) {
      this.items.set(id, item);
      this.copies.count(item.text, 1);
      this.copies.commit(item.text);
    } else {
      this.items.delete(id);
    }
  }
}

/** The connection of one machine to the server. */
export class ServerConnection extends MachineStorage {
  readonly #server: Server;

  constructor(server: Server) {
    super(server.world, server.copies);
    this.#server = server;
  }

  /** Returns all faults, because a fault of the server affects every login. */
  troublesOf(): Set<StoreTrouble> {
    return this.troubles;
  }

  get leftoverProblem(): string | undefined {
    const remaining = findRemainingItem(this.#server.texts, this.world);
    return remaining && `an item stays on the server: ${remaining}`;
  }

  isInTwoLogins(message: Message): boolean {
    return this.#server.isInTwoLogins(message);
  }

  createStore(login: string, setup: StoreSetup): ServerModel {
    return new ServerModel(this.#server.spaceOf(login), this.troubles, setup);
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
  readonly #space: Space;
  readonly #troubles: ReadonlySet<StoreTrouble>;
  readonly instance: string;
  #epoch: number | undefined;
  #session: Session | undefined;
  #sessions = 0;
  #writing: (() => void) | undefined;

  constructor(space: Space, troubles: ReadonlySet<StoreTrouble>, setup: StoreSetup) {
    super(space.world, setup);
    this.#space = space;
    this.#troubles = troubles;
    this.instance = setup.random.hex(8);
  }

  isInMemory(message: Message): boolean {
    return (
      this.#space.users.has(this) &&
      this.#ownItems.some(([, { text }]) => this.#space.copies.in(text).includes(message))
    );
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
      const epoch = this.#space.begin();
      const isReset = this.#epoch !== undefined && this.#epoch !== epoch;
      this.#epoch = epoch;
      this.#space.users.add(this);
      this.#space.alive.set(this.instance, { heartbeat: session.heartbeat, untilMs: timeline.nowMs + aliveMs });
      const ownItems = this.#ownItems;
      const claimed = this.#claim(session);
      const items = events.isImport ? [] : [...ownItems.map(([, item]) => readItem(item)), ...claimed];
      this.#beatLater(session);
      return { items, pendingWrites: [], isReset };
    });
  }

  async awaitsClaims(): Promise<boolean> {
    const { openedAtMs } = this.#opened();
    return this.#ownItems.length < this.#space.items.size && this.world.timeline.nowMs - openedAtMs < claimsMs;
  }

  recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    return this.call('recall', () => {
      this.#opened();
      return [...this.#space.lookUpAll(keys).values()];
    });
  }

  async *pages(): AsyncGenerator<StorePage> {
    const page = await this.call('recall', () => {
      this.#opened();
      const remembered = [...this.#space.remembered.keys()].flatMap((key) => {
        const text = this.#space.lookUp(key);
        return text === undefined ? [] : [[key, JSON.parse(text) as Remembered] as [string, Remembered]];
      });
      return { items: this.#ownItems.map(([, item]) => readItem(item)), remembered };
    });
    yield page;
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
      if (!session || this.#space.heartbeatOf(this.instance) !== session.heartbeat)
        throw failure('the heartbeat has expired');
      if ([...compared].some(([key, expected]) => this.#space.lookUp(key) !== expected)) {
        throw this.#space.server.createConflict();
      }
      const counted = this.#applyCounts(counting);
      for (const [key, value] of [...remember, ...counted]) {
        if (value === undefined) this.#space.remember(key, undefined);
        else {
          const text = JSON.stringify(value);
          this.#space.remember(key, { text, untilMs: world.timeline.nowMs + value.forMs });
          // This instance passes the reply to the instance with the reply request. A consent word in the reply applies
          // from now on.
          if (key.startsWith('reply:')) this.#space.copies.commit(value.value);
        }
      }
      for (const { id, text } of keep) this.#space.set(id, { text, instance: this.instance });
      for (const id of drop) if (this.#space.items.get(id)?.instance === this.instance) this.#space.set(id, undefined);
    };
    this.#writing = write;
    return this.call('commit', write);
  }

  /** Counts messages on the server. Throws the library's error for a conflict if a limit is reached. */
  #applyCounts(changes: Changes): [string, Remembered | undefined][] {
    try {
      const stored = this.#space.lookUpAll(changes.count.keys());
      return applyCounts(changes, (key) => stored.get(key));
    } catch {
      throw this.#space.server.createConflict();
    }
  }

  sweep(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    const session = this.#session;
    this.#space.users.delete(this);
    return this.call('close', () => {
      this.#session = undefined;
      if (session && this.#space.heartbeatOf(this.instance) === session.heartbeat && !this.isCutOff) {
        const untilMs = this.world.timeline.nowMs + aliveMs;
        this.#space.alive.set(this.instance, { heartbeat: 'left', untilMs });
      }
    });
  }

  /** Simulates a lost connection. */
  disconnect(): void {
    const session = this.#session;
    if (!session) return;
    this.#session = undefined;
    this.noteFailure();
    session.events.onFailure(failure('connection closed'));
  }

  die(): void {
    this.#space.users.delete(this);
    try {
      if (this.setup.random.chance(0.5) && this.running.has('commit')) this.#writing?.();
    } catch {
      // Nothing was written, because another instance has committed first or the heartbeat has expired.
    }
    this.#session = undefined;
  }

  get #ownItems(): [id: string, item: StoredItem][] {
    return this.#space.itemsOf(this.instance);
  }

  protected get isUsable(): boolean {
    return this.#session !== undefined;
  }

  protected has(trouble: StoreTrouble): boolean {
    return this.#troubles.has(trouble);
  }

  protected needsRoom(call: StoreCall): boolean {
    return call === 'commit';
  }

  protected override isConflict(error: unknown): boolean {
    return (error as Error).constructor === this.#space.server.createConflict().constructor;
  }

  #opened(): Session {
    if (!this.#session) throw failure('not open');
    return this.#session;
  }

  #beatLater(session: Session): void {
    const { timeline } = this.world;
    timeline.outside(
      heartbeatMs,
      () => {
        if (this.#session !== session) return;
        if (this.isCutOff || this.#space.heartbeatOf(this.instance) !== session.heartbeat) {
          this.disconnect();
          return;
        }
        this.#space.alive.set(this.instance, { heartbeat: session.heartbeat, untilMs: timeline.nowMs + aliveMs });
        const claimedItems = this.#claim(session);
        if (claimedItems.length > 0) session.events.onTakenOver(claimedItems);
        this.#beatLater(session);
      },
      this.setup.process,
    );
  }

  /** Claims items of instances that have left and, after a grace period, of instances without a heartbeat. */
  #claim({ events, openedAtMs }: Session): Item[] {
    const { world, items } = this.#space;
    const isPatient = world.timeline.nowMs - openedAtMs >= graceMs;
    const wanted = new Set(events.wantedNames());
    const claimedItems: Item[] = [];
    for (const [id, { text, instance }] of items) {
      if (instance === this.instance) continue;
      const heartbeat = this.#space.heartbeatOf(instance);
      if (heartbeat !== 'left' && !(isPatient && heartbeat === undefined)) continue;
      const item = JSON.parse(text) as Item;
      if (!item.subscribers.some((subscriber) => wanted.has(subscriber))) continue;
      this.#space.set(id, { text, instance: this.instance });
      const messages = this.#space.copies.in(text);
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
