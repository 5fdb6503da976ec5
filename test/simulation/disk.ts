import {
  applyCounts,
  type Changes,
  createChanges,
  dropItem,
  type Item,
  isFlushed,
  type PendingWrite,
  type RecoveredState,
  type RecoveredWrite,
  type Remembered,
  type Store,
  type StoreEvents,
  type StorePage,
  unsweptPrefix,
} from '../../src/store/store';
import type { Random } from './random';
import {
  Copies,
  createFailure,
  findRemainingItem,
  LoginData,
  MachineStorage,
  ModelStore,
  type StoreCall,
  type StoreSetup,
} from './storage';
import type { Kind, Message, World } from './world';

/** A disk. Its content outlives processes, and flushed content outlives a power failure. */
export class Disk extends MachineStorage {
  /** The folder of each login. */
  readonly #folders = new Map<string, Folder>();

  constructor(world: World) {
    super(world, new Copies(world));
  }

  protected get logins(): Folder[] {
    return [...this.#folders.values()];
  }

  override isSavedAhead(message: Message): boolean {
    const keeping = this.loginsWith(message);
    // Ignores the saved answer if another login has stored the message as an item: the message then belongs to that
    // login.
    return this.logins.some((folder) => folder.hasSavedAhead(message) && keeping.every((keeper) => keeper === folder));
  }

  override isCommitted(message: Message): boolean {
    return this.loginsWith(message).length > 0;
  }

  get leftoverProblem(): string | undefined {
    const isMoved = this.#folders.size > 1;
    for (const { texts, remembered, pendingWrites, mayHaveReturned } of this.logins) {
      if (mayHaveReturned) continue;
      // After a change of the login, ignores flow messages that no item needs: an import with several tries can copy a
      // flow message twice.
      const flowMessage = [...remembered.keys()].filter(
        (key) => key.startsWith(`${unsweptPrefix}flowMessage:`) && !isMoved,
      );
      const items = texts.join();
      const orphan = flowMessage.find((key) => !items.includes(`"${key.slice(key.indexOf(':') + 1)}"`));
      if (orphan !== undefined) return `a flow message that nothing needs stays on a disk: ${orphan}`;
      const remaining = findRemainingItem(texts, this.world);
      if (remaining !== undefined) return `an entry stays on a disk: ${remaining}`;
      if (pendingWrites.size > 0) return `${pendingWrites.size} saved answers stay on a disk`;
    }
    return undefined;
  }

  override abandon(login: string): void {
    const folder = this.#folders.get(login);
    if (folder) folder.isAbandoned = true;
  }

  createStore(login: string, setup: StoreSetup): DiskModel {
    const folder = this.#folders.get(login) ?? new Folder(this.world, this.copies);
    this.#folders.set(login, folder);
    folder.isAbandoned = false;
    return new DiskModel(this, folder, setup);
  }

  /** Simulates a power failure: unflushed data may be lost. */
  override loseUnflushed(random: Random): void {
    for (const folder of this.logins) folder.loseUnflushed(random);
  }
}

/** The store of one login. */
class Folder extends LoginData {
  /** Poll answers that a process has saved, but not committed yet. */
  readonly pendingWrites = new Map<number, string>();
  /** Functions that undo the unflushed commits, oldest first. */
  readonly unflushed: (() => void)[] = [];
  /** The store that has opened the folder, if any. No other store may use the folder. */
  owner: object | undefined;
  /** True after the data of this folder was imported elsewhere. From then on, nothing is stored here. */
  isAbandoned = false;
  #hadPowerFailure = false;
  #savedCount = 0;

  /** True if a power failure might have restored items here that another store had already imported. */
  get mayHaveReturned(): boolean {
    return this.isAbandoned && this.#hadPowerFailure;
  }

  saveAhead(text: string): number {
    const key = ++this.#savedCount;
    this.pendingWrites.set(key, text);
    this.copies.count(text, 1);
    return key;
  }

  remove(key: number): void {
    const pendingWrites = this.pendingWrites.get(key);
    if (pendingWrites !== undefined && this.pendingWrites.delete(key)) this.copies.count(pendingWrites, -1);
  }

  /** Whether a message is in a poll answer that is saved, but not committed yet. */
  hasSavedAhead(message: Message): boolean {
    return this.copies.isIn([...this.pendingWrites.values()], message);
  }

  write(changes: Changes): void {
    const { keep, drop, remember } = changes;
    const undo: (() => void)[] = [];
    const set = (id: string, item: Item | undefined) => {
      const before = this.items.get(id);
      undo.push(() => this.set(id, before));
      this.set(id, item && { text: JSON.stringify(item), instance: '' });
    };
    for (const [id, item] of keep) set(id, item);
    for (const id of drop.keys()) set(id, undefined);
    const counted = applyCounts(changes, (key) => this.lookUp(key));
    for (const [key, value] of [...remember, ...counted]) {
      const before = this.remembered.get(key);
      undo.push(() => this.remember(key, before));
      this.remember(key, value && { text: JSON.stringify(value), untilMs: Number.POSITIVE_INFINITY });
    }
    if (isFlushed(changes)) this.unflushed.length = 0;
    else
      this.unflushed.push(() => {
        for (const take of undo.reverse()) take();
      });
  }

  /** Simulates a power failure: the last unflushed commits may be undone, and each saved answer may be lost. */
  loseUnflushed(random: Random): void {
    this.#hadPowerFailure = true;
    for (let count = random.between(0, this.unflushed.length); count > 0; count--) this.unflushed.pop()?.();
    this.unflushed.length = 0;
    for (const key of [...this.pendingWrites.keys()]) {
      if (random.chance(0.5)) this.remove(key);
    }
  }

  /** Stored items, in the order of their ids. */
  get sortedItems(): Item[] {
    return [...this.items].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { text }]) => JSON.parse(text) as Item);
  }
}

/** The store of a process on a disk, with the delays and faults of the disk. Calls must not overlap. */
class DiskModel extends ModelStore implements Store {
  protected readonly failureCode = 'ENOSPC';
  protected readonly delaysMs = [0, 0, 1, 3, 12];
  #isOpen = false;
  /** Number of files whose answers were removed. Each keeps its space for a new answer, even if the disk is full. */
  #freeFiles = 0;
  readonly #pendingWrites = new Map<Kind, number>();
  /** Keys of the answers that this store has saved itself. `open` returns only the other answers. */
  readonly #savedKeys = new Set<number>();
  #committing: Changes | undefined;

  constructor(
    disk: Disk,
    private readonly folder: Folder,
    setup: StoreSetup,
  ) {
    super(disk, setup);
  }

  protected get isUsable(): boolean {
    return this.#isOpen && this.folder.owner === this;
  }

  /** Whether the folder has any data. */
  get mayHold(): boolean {
    const { items, remembered, pendingWrites } = this.folder;
    return items.size + remembered.size + pendingWrites.size > 0;
  }

  open({ isImport }: StoreEvents): Promise<RecoveredState> {
    return this.call('open', () => {
      const { owner } = this.folder;
      if (owner && owner !== this) throw createFailure('LEVEL_LOCKED');
      this.folder.owner = this;
      this.#isOpen = true;
      this.#freeFiles = 0;
      const found = [...this.folder.pendingWrites].filter(([key]) => !this.#savedKeys.has(key));
      const pendingWrites = found.map(
        ([key, text]): RecoveredWrite => ({
          text,
          remove: () => {
            if (this.setup.process.isAlive) this.folder.remove(key);
          },
          quarantine: () => {
            this.world.violate('a readable item was quarantined', text);
            return 'unhandled';
          },
        }),
      );
      return { items: isImport ? [] : this.folder.sortedItems, pendingWrites };
    });
  }

  saveAhead(text: string): PendingWrite | undefined {
    if (this.fails('save ahead')) {
      this.hasFailed = true;
      return undefined;
    }
    const key = this.folder.saveAhead(text);
    this.#savedKeys.add(key);
    this.#freeFiles = Math.max(0, this.#freeFiles - 1);
    const { kind } = JSON.parse(text) as { kind?: Kind };
    if (kind) this.#pendingWrites.set(kind, this.pendingWrites(kind) + 1);
    let isSaved = true;
    const remove = () => {
      if (kind && isSaved) this.#pendingWrites.set(kind, this.pendingWrites(kind) - 1);
      isSaved = false;
      if (!this.setup.process.isAlive) return;
      this.folder.remove(key);
      this.#freeFiles++;
    };
    return { remove };
  }

  /** Always false, because a disk keeps its data while the process runs. */
  isInMemory(): boolean {
    return false;
  }

  pendingWrites(kind: Kind): number {
    return this.#pendingWrites.get(kind) ?? 0;
  }

  async *pages(): AsyncGenerator<StorePage> {
    const folder = await this.call('recall', () => this.opened());
    yield { items: folder.sortedItems, remembered: [] };
    yield { items: [], remembered: folder.values };
  }

  clear(key: string, mark: Remembered): Promise<void> {
    const { sortedItems, remembered } = this.folder;
    const changes = createChanges();
    changes.firm = true;
    for (const { id, part } of sortedItems) dropItem(changes, id, part);
    for (const other of remembered.keys()) changes.remember.set(other, undefined);
    changes.remember.set(key, mark);
    return this.commit(changes);
  }

  commit(changes: Changes): Promise<void> {
    // Copies the changes now, because the store must write them as they were at the time of the call.
    const step = structuredClone(changes);
    this.#committing = step;
    return this.call('commit', () => this.opened().write(step));
  }

  sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void> {
    return this.call('sweep', () => {
      const { remembered, values } = this.opened();
      for (const [key, value] of values) if (!renew(value) && !key.startsWith(unsweptPrefix)) remembered.delete(key);
    });
  }

  close(): Promise<void> {
    return this.call('close', () => this.release());
  }

  /** Ends the process. The commit in progress might be on the disk or not. */
  die(): void {
    if (this.running.has('commit') && this.#committing && this.isUsable && this.setup.random.chance(0.5)) {
      this.folder.write(this.#committing);
    }
    this.release();
  }

  /** Allows other processes to open the folder. */
  release(): void {
    this.#isOpen = false;
    if (this.folder.owner === this) this.folder.owner = undefined;
  }

  protected opened(): Folder {
    if (!this.isUsable) throw createFailure('LEVEL_DATABASE_NOT_OPEN');
    return this.folder;
  }

  protected needsRoom(call: StoreCall): boolean {
    return call === 'commit' || call === 'open' || (call === 'save ahead' && this.#freeFiles === 0);
  }

  protected override answersAtOnce(call: StoreCall): boolean {
    return call === 'recall';
  }

  protected override call<Result>(call: StoreCall, work: () => Result): Promise<Result> {
    for (const other of this.running)
      this.world.violate('the store was called before its last call had ended', `${call} during ${other}`);
    return super.call(call, work);
  }
}
