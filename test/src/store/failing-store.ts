import {
  applyCounts,
  type Changes,
  formatRemembered,
  type Item,
  isFlushed,
  type PendingWrite,
  parseRemembered,
  type RecoveredState,
  type Remembered,
  type Store,
  type StoreEvents,
  type StorePage,
  unsweptPrefix,
} from '../../../src/store/store';

type Step = 'open' | 'recall' | 'pages' | 'clear' | 'commit' | 'sweep' | 'close';

/** Data that survives the process. It is stored as text, so that no object reference can change it. */
export class FakeDisk {
  readonly entries = new Map<string, string>();
  readonly remembered = new Map<string, string>();
  readonly pendingWrites = new Map<number, string>();
  readonly quarantined: string[] = [];
  /** The store that opened the disk last. Only this store can use it. */
  owner: object | undefined;
  /** Functions that undo each unflushed commit, the latest last. */
  readonly #unflushed: (() => void)[] = [];
  #lastHeld = 0;

  /** Items in the order of their ids. */
  get items(): Item[] {
    return [...this.entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => JSON.parse(text) as Item);
  }

  hold(text: string): number {
    this.pendingWrites.set(++this.#lastHeld, text);
    return this.#lastHeld;
  }

  /** Writes a commit. The value `undefined` deletes a key. */
  write(
    entries: readonly (readonly [string, string | undefined])[],
    remembered: readonly (readonly [string, string | undefined])[],
    isFlushed: boolean,
  ): void {
    const undo = [...put(this.entries, entries), ...put(this.remembered, remembered)];
    if (isFlushed) this.#unflushed.length = 0;
    else for (const take of undo) this.#unflushed.push(take);
  }

  /** Undoes all unflushed commits, as a power cut would. */
  loseUnflushed(): void {
    for (const take of this.#unflushed.splice(0).reverse()) take();
  }
}

/** Applies changes, and returns functions that undo them. */
function put(map: Map<string, string>, changes: readonly (readonly [string, string | undefined])[]): (() => void)[] {
  const set = (key: string, value: string | undefined) =>
    void (value === undefined ? map.delete(key) : map.set(key, value));
  return changes.map(([key, value]) => {
    const before = map.get(key);
    set(key, value);
    return () => set(key, before);
  });
}

/** A store whose steps fail on demand. It counts commits and sweeps. */
export class FailingStore implements Store {
  readonly durable = true;
  readonly failing = new Set<Step>();
  /** If true, a failing commit still writes its data. */
  failsAfterwards = false;
  /** Called before each commit, which waits for the returned promise. */
  beforeCommit: (changes: Changes) => unknown = () => {};
  /** Number of the commit that gets no answer, as if the process died at this moment. */
  unansweredCommit = 0;
  /** Called before each step of the store. */
  onCall: (step: Step) => void = () => {};
  /** Duration of every call, in turns of the event loop. */
  turns = 0;
  commits = 0;
  sweeps = 0;
  isOpen = false;
  /** Event handlers of the last call of `open`. */
  events: Partial<StoreEvents> | undefined;
  isDead = false;
  #underWay = 0;
  /** Keys of the pending writes of this process. `open` returns only those of other processes. */
  readonly #own = new Set<number>();

  constructor(readonly disk = new FakeDisk()) {}

  get mayHold(): boolean | undefined {
    return this.disk.entries.size + this.disk.remembered.size > 0;
  }

  async open(events?: Partial<StoreEvents>): Promise<RecoveredState> {
    this.events = events;
    return this.#call('open', () => {
      if (this.disk.owner && this.disk.owner !== this) throw failure('LEVEL_LOCKED');
      this.disk.owner = this;
      this.isOpen = true;
      const foreignWrites = [...this.disk.pendingWrites].filter(([key]) => !this.#own.has(key));
      const pendingWrites = foreignWrites.map(([key, text]) => {
        const remove = () => void this.disk.pendingWrites.delete(key);
        const quarantine = () => {
          remove();
          this.disk.quarantined.push(text);
          return 'a place';
        };
        return { text, remove, quarantine };
      });
      return { items: this.disk.items, pendingWrites };
    });
  }

  saveAhead(text: string): PendingWrite | undefined {
    if (this.isDead || this.failing.has('commit')) return undefined;
    const key = this.disk.hold(text);
    this.#own.add(key);
    return { remove: () => void this.disk.pendingWrites.delete(key) };
  }

  async *pages(): AsyncGenerator<StorePage> {
    const { items, remembered } = await this.#call('pages', () => this.#opened());
    for (const item of items) yield { items: [item], remembered: [] };
    for (const [key, text] of remembered) yield { items: [], remembered: [[key, parseRemembered(text)]] };
  }

  clear(key: string, mark: Remembered): Promise<void> {
    return this.#call('clear', () => {
      const disk = this.#opened();
      const items = [...disk.entries.keys()].map((id) => [id, undefined] as const);
      const values = [...disk.remembered.keys()].map((other) => [other, undefined] as const);
      disk.write(items, [...values, [key, formatRemembered(mark)]], true);
    });
  }

  recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    return this.#call('recall', () =>
      keys.map((key) => {
        const text = this.#opened().remembered.get(key);
        return text === undefined ? undefined : parseRemembered(text);
      }),
    );
  }

  async commit(changes: Changes): Promise<void> {
    const number = ++this.commits;
    // Copies the data now, because the store must write it as it was at the time of the call.
    const keptTexts = [...changes.keep].map(([id, entry]) => [id, JSON.stringify(entry)] as const);
    const dropped = [...changes.drop.keys()].map((id) => [id, undefined] as const);
    const values = [...changes.remember];
    const counting = { ...changes, count: new Map(changes.count) };
    const isFirm = isFlushed(changes);
    const write = () => {
      const disk = this.#opened();
      const counted = applyCounts(counting, (key) => {
        const text = disk.remembered.get(key);
        return text === undefined ? undefined : parseRemembered(text);
      });
      const remembered = [...values, ...counted].map(
        ([key, value]) => [key, value && formatRemembered(value)] as const,
      );
      disk.write([...keptTexts, ...dropped], remembered, isFirm);
    };
    await this.beforeCommit(changes);
    if (this.failsAfterwards && this.failing.has('commit')) write();
    await this.#call('commit', write);
    if (number === this.unansweredCommit) await new Promise(() => {});
  }

  sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void> {
    this.sweeps++;
    return this.#call('sweep', () => {
      for (const [key, text] of this.#opened().remembered) {
        if (!renew(parseRemembered(text)) && !key.startsWith(unsweptPrefix)) this.disk.remembered.delete(key);
      }
    });
  }

  close(): Promise<void> {
    return this.#call('close', () => {
      this.isOpen = false;
      if (this.disk.owner === this) this.disk.owner = undefined;
    });
  }

  /** Simulates a killed process: its later calls do not reach the disk, and another process can open the disk. */
  kill(): void {
    this.isDead = true;
    this.isOpen = false;
    if (this.disk.owner === this) this.disk.owner = undefined;
  }

  #opened(): FakeDisk {
    if (!this.isOpen || this.disk.owner !== this) throw failure('LEVEL_DATABASE_NOT_OPEN');
    return this.disk;
  }

  async #call<T>(step: Step, work: () => T): Promise<T> {
    this.onCall(step);
    if (++this.#underWay > 1) throw new Error('calls of the store overlap');
    try {
      for (let turn = 0; turn < this.turns && !this.isDead; turn++) await new Promise(setImmediate);
      await undefined;
      if (this.isDead) return await new Promise<never>(() => {});
      if (this.failing.has(step)) throw failure('ENOSPC');
      return work();
    } finally {
      this.#underWay--;
    }
  }
}

/** A failing store on a server that other processes share. */
export class FailingServer extends FailingStore {
  readonly shared = true as const;

  /** Always undefined: the server may have data of other processes. */
  override get mayHold(): undefined {
    return undefined;
  }

  /** Does nothing: only a store on disk can save poll answers before they are committed. */
  override saveAhead(): undefined {}

  /** Subscriber names whose items this process would claim if another process died, see {@link Item.subscribers}. */
  get wanted(): readonly string[] {
    return this.events?.wantedNames?.() ?? [];
  }

  /** Simulates a lost connection. */
  disconnect(): void {
    this.events?.onFailure?.(failure('ECONNRESET'));
  }

  /** Simulates that this process claims items of a dead process. */
  takeOver(items: readonly Item[]): void {
    for (const item of items) this.disk.entries.set(item.id, JSON.stringify(item));
    this.events?.onTakenOver?.(items);
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(`made to fail with ${code}`), { code });
}
