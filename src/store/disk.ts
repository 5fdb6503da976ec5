import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { systemClock, type Timer } from '../clock';
import { SmsError } from '../errors';
import { type Database, isLastPage, type Operation, type Table } from './database';
import { engines, openDatabase } from './engines';
import { formatRemembered, parseItem, parseRemembered } from './format';
import { HeldFiles } from './held-files';
import {
  type Changes,
  type Hold,
  type Item,
  isFlushed,
  type Leftovers,
  type Page,
  type Remembered,
  type Store,
  type StoreEvents,
  timesAsNoted,
  unsweptPrefix,
} from './store';

/** Items read in one turn of the event loop, and what is remembered in one sweep. */
const pageSize = 1_000;
const probeLength = 256 * 1024;

/** Between two looks whether the database is still in its place. */
const watchMs = 5_000;

/**
 * Keeps everything in a database in a folder of its own. What is kept is on disk, flushed, before `commit` resolves;
 * what is dropped is written but not flushed, since losing that merely delivers twice, unless the step is firm.
 *
 * @example
 * ```ts
 * import { DiskStore } from '@messaging-service/node-red-sms';
 *
 * const createStore = (key: string) => new DiskStore(`/var/lib/my-program/${key}`);
 * console.log(createStore('0a8c').durable);
 * ```
 */
export class DiskStore implements Store {
  readonly durable = true;
  readonly pages = { size: pageSize, read: (after: string) => this.#readPage(after) };
  readonly #location: string;
  readonly #heldFiles: HeldFiles;
  readonly #engines: typeof engines;
  #database: Database | undefined;
  #events: StoreEvents | undefined;
  /** See {@link Database.file}, while it is open. */
  #file: { path: string; inode: number } | undefined;
  #watch: Timer | undefined;
  /** Its files are not in their place any more. */
  #isGone = false;
  #hasFailed = false;
  /** Where the next sweep goes on; absent at the beginning of a round. */
  #sweptTo: string | undefined;
  /** When the first will be outdated of what the round of sweeps under way, or the last one, has left, and of what came since. */
  #nextOutdated = Number.NEGATIVE_INFINITY;

  /**
   * @param location folder of its own; created when it is missing
   * @param candidates engines that it may use, the one to be preferred first; all that are known when absent
   */
  constructor(location: string, candidates = engines) {
    this.#location = location;
    this.#engines = candidates;
    this.#heldFiles = new HeldFiles(location);
  }

  /** Whoever has never kept anything pays for no database. */
  get mayHold(): boolean {
    return existsSync(this.#location);
  }

  async open(events: StoreEvents): Promise<Leftovers> {
    await this.#isInPlace();
    await this.close();
    await mkdir(this.#location, { recursive: true, mode: 0o700 });
    const database = await openDatabase(this.#location, this.#engines);
    this.#database = database;
    this.#file = { path: database.file, inode: (await stat(database.file)).ino };
    if (this.#hasFailed) await probe(database);
    this.#hasFailed = false;
    this.#events = events;
    const held = this.#heldFiles.read();
    const isPutOff = events.sift?.(held) ?? (() => false);
    const items: Item[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page: Page = await this.#readPage(after);
      for (const item of page.items) if (!isPutOff(item)) items.push(item);
      after = page.next;
    }
    const isReset = this.#isGone;
    this.#isGone = false;
    this.#watchLater(events);
    const { lost: detail } = database;
    const damage =
      detail === undefined ? undefined : new SmsError('storeLost', { params: { detail, folder: this.#location } });
    return { items, held, isReset, damage };
  }

  hold(text: string, notes?: string): Hold | undefined {
    return this.#database && this.#heldFiles.hold(text, notes);
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const texts = await this.#opened().read('remembered', keys);
    return texts.map((text) => (text === undefined ? undefined : parseRemembered(text)));
  }

  async list(prefixes: readonly string[]): Promise<[string, Remembered][]> {
    const database = this.#opened();
    const found: [string, Remembered][] = [];
    for (const prefix of prefixes) {
      for await (const page of listPages(database, 'remembered', prefix)) {
        for (const [key, text] of page) found.push([key, parseRemembered(text)]);
      }
    }
    return found;
  }

  async commit(changes: Changes): Promise<void> {
    const { keep, drop, remember } = changes;
    const operations: Operation[] = [];
    for (const item of keep.values()) operations.push({ table: 'items', key: item.id, text: JSON.stringify(item) });
    for (const id of drop.keys()) operations.push({ table: 'items', key: id, text: undefined });
    for (const [key, value] of remember) {
      operations.push({ table: 'remembered', key, text: value && formatRemembered(value) });
      if (value) this.#nextOutdated = Math.min(this.#nextOutdated, value.at + value.forMs);
    }
    try {
      const database = this.#opened();
      // Nobody else changes what is only looked at.
      if (operations.length === 0) return;
      const isToFlush = isFlushed(changes);
      await database.write(operations, { isFlushed: isToFlush });
      // Files that were deleted are written without a complaint.
      if (isToFlush && !(await this.#isInPlace())) throw this.#gone();
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  async sweep(now: number, times = timesAsNoted): Promise<void> {
    if (this.#sweptTo === undefined) {
      if (this.#nextOutdated >= now) return;
      this.#nextOutdated = Number.POSITIVE_INFINITY;
    }
    const database = this.#opened();
    const page = await database.list('remembered', {
      after: this.#sweptTo,
      before: unsweptPrefix,
      limit: pageSize,
    });
    this.#sweptTo = isLastPage(page, pageSize) ? undefined : page.at(-1)?.[0];
    const operations: Operation[] = [];
    for (const [key, text] of page) {
      const remembered = parseRemembered(text);
      const { at, forMs } = times.read(remembered);
      if (at + forMs < now) operations.push({ table: 'remembered', key, text: undefined });
      else {
        this.#nextOutdated = Math.min(this.#nextOutdated, at + forMs);
        const corrected = times.correct(remembered);
        if (corrected !== remembered) operations.push({ table: 'remembered', key, text: formatRemembered(corrected) });
      }
    }
    if (operations.length > 0) await database.write(operations, { isFlushed: false });
  }

  async close(): Promise<void> {
    const database = this.#database;
    this.#database = undefined;
    this.#file = undefined;
    this.#watch?.cancel();
    this.#heldFiles.close();
    await database?.close();
  }

  /** What cannot be read is set aside. */
  async #readPage(after: string): Promise<Page> {
    const database = this.#opened();
    const listed = await database.list('items', { after, limit: pageSize });
    const items: Item[] = [];
    for (const [id, text] of listed) {
      const item = parseItem(text, (one) => this.#events?.isReadable(one) ?? true);
      if (item?.id === id) items.push(item);
      else this.#events?.onUnreadable(await setAside(database, id, text));
    }
    const last = listed.at(-1);
    return last && !isLastPage(listed, pageSize) ? { items, next: last[0] } : { items };
  }

  /** Whether the files of a database that is open are still in their place: they may have been deleted, or moved away. */
  async #isInPlace(): Promise<boolean> {
    const file = this.#file;
    if (file) this.#isGone ||= await stat(file.path).then(({ ino }) => ino !== file.inode, isMissing);
    return !this.#isGone;
  }

  #watchLater(events: StoreEvents): void {
    const database = this.#database;
    this.#watch = systemClock.after(
      watchMs,
      async () => {
        const isInPlace = await this.#isInPlace();
        if (this.#database !== database) return;
        if (isInPlace) this.#watchLater(events);
        else events.onFailure(this.#gone());
      },
      true,
    );
  }

  #gone(): SmsError {
    this.#watch?.cancel();
    return new SmsError('storeGone', { params: { folder: this.#location } });
  }

  #opened(): Database {
    if (!this.#database) throw new Error('not open');
    return this.#database;
  }
}

/** What cannot be asked for another reason may be there. */
function isMissing(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ENOENT' || error.code === 'ENOTDIR';
}

/** Returns where it is then. */
async function setAside(database: Database, id: string, text: string): Promise<string> {
  const operations: Operation[] = [
    { table: 'unreadable', key: id, text },
    { table: 'items', key: id, text: undefined },
  ];
  await database.write(operations, { isFlushed: false });
  return database.place('unreadable', id);
}

/** Everything of a table under keys that begin so, in pages. */
async function* listPages(database: Database, table: Table, prefix = ''): AsyncGenerator<[string, string][]> {
  for (let after: string | undefined; ; ) {
    const page = await database.list(table, { after, prefix, limit: pageSize });
    yield page;
    if (isLastPage(page, pageSize)) return;
    after = page.at(-1)?.[0];
  }
}

/** Makes sure that there is room for more than a few messages, so that a full disk is not tried at every step. */
async function probe(database: Database): Promise<void> {
  const place = { table: 'unreadable', key: 'probe' } as const;
  await database.write([{ ...place, text: 'x'.repeat(probeLength) }], { isFlushed: true });
  await database.write([{ ...place, text: undefined }], { isFlushed: false });
}
