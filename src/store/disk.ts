import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SmsError } from '../errors';
import { levelDb } from './leveldb';
import { sqlite } from './sqlite';
import {
  type Changes,
  type Database,
  describeStoreFailure,
  type Engine,
  formatItem,
  formatRemembered,
  type Item,
  isFlushed,
  isNewerVersion,
  type Operation,
  type PendingWrite,
  parseRemembered,
  type RecoveredState,
  type RecoveredWrite,
  type Remembered,
  readItems,
  type Store,
  type StoreEvents,
  type StorePage,
  unsweptPrefix,
} from './store';

/** Engines in order of preference (docs/adr/0004). */
export const engines: readonly Engine[] = [levelDb, sqlite];

/**
 * Opens the database of a folder that exists: with the engine that has written there, else with the first that there is.
 *
 * @throws SmsError `SMS_STORE` where there is none, or not the one that has written there, and where another process has it
 * open or it is damaged; the folder is left as it is
 */
export async function openDatabase(folder: string, candidates: readonly Engine[]): Promise<Database> {
  const names = await readdir(folder);
  const former = engines.find((engine) => engine.hasWritten(names));
  const usable = former ? candidates.filter(({ name }) => name === former.name) : candidates;
  for (const engine of usable) {
    const open = await engine.load();
    if (open) return open(folder).catch((error: unknown) => Promise.reject(explain(error, folder)));
  }
  const detail = describeLack(former ? [former] : engines);
  throw former
    ? new SmsError('databaseForeign', { params: { detail, folder } })
    : new SmsError('databaseMissing', { params: { detail } });
}

/** What the databases call it, to what a person has to do about it. */
const knownFailures: readonly [RegExp, 'storeLocked' | 'storeDamaged'][] = [
  [/LEVEL_LOCKED|database is locked/, 'storeLocked'],
  [/LEVEL_CORRUPTION|MANIFEST-\d+: No such file|is malformed|is not a database/, 'storeDamaged'],
];

function explain(error: unknown, folder: string): unknown {
  const detail = describeStoreFailure(error);
  // Of a file that is missing the code says no more than that it could not be read.
  const [, reason] = knownFailures.find(([pattern]) => pattern.test(`${detail} ${Object(error).cause}`)) ?? [];
  return reason ? new SmsError(reason, { params: { detail, folder }, cause: error }) : error;
}

function describeLack(missing: readonly Engine[]): string {
  const { platform, arch, versions } = process;
  return `${platform} ${arch}, Node.js ${versions.node}: ${missing.map(({ name }) => `no ${name}`).join(', ')}`;
}

/** What the keys of each kind begin with, and where those end: no text of UTF-8 sorts later. */
const [itemPrefix, rememberedPrefix, unreadablePrefix] = ['!items!', '!remembered!', '!unreadable!'];
const endOf = (prefix: string) => `${prefix}\u{10ffff}`;

/** Items read in one turn of the event loop, and what is remembered in one sweep. */
const pageSize = 1_000;
const probeLength = 256 * 1024;
/** Stands while everything is being dropped but what is remembered under the key that it names. */
const clearingKey = '!clearing!';

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
  readonly #location: string;
  readonly #heldFiles: HeldFiles;
  readonly #engines: typeof engines;
  #database: Database | undefined;
  #events: StoreEvents | undefined;
  /** Of the file that is in its place for as long as the database is. */
  #inode: number | undefined;
  /** Its files were deleted, or moved away, while it was open. */
  #isGone = false;
  #hasFailed = false;
  /** Where the next sweep goes on; absent at the beginning of a round. */
  #sweptTo: string | undefined;

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

  async open(events: StoreEvents): Promise<RecoveredState> {
    this.#look();
    await this.close();
    await mkdir(this.#location, { recursive: true, mode: 0o700 });
    const database = await openDatabase(this.#location, this.#engines);
    this.#database = database;
    this.#inode = inodeOf(database.file);
    const held = this.#heldFiles.read();
    if (this.#hasFailed) await probe(database);
    this.#hasFailed = false;
    this.#events = events;
    await this.#finishClearing();
    const items: Item[] = [];
    if (!events.isImport) for await (const page of this.#itemPages()) items.push(...page);
    const isReset = this.#isGone;
    this.#isGone = false;
    return { items, held, isReset };
  }

  hold(text: string): PendingWrite | undefined {
    return this.#database && this.#heldFiles.hold(text);
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const texts = await this.#opened().read(keys.map((key) => rememberedPrefix + key));
    return texts.map((text) => (text === undefined ? undefined : parseRemembered(text)));
  }

  async *pages(): AsyncGenerator<StorePage> {
    for await (const items of this.#itemPages()) yield { items, remembered: [] };
    for await (const page of listPages(this.#opened(), rememberedPrefix)) {
      yield { items: [], remembered: page.map(([key, text]) => [key, parseRemembered(text)]) };
    }
  }

  async clear(key: string, mark: Remembered): Promise<void> {
    const marks: Operation[] = [
      [rememberedPrefix + key, formatRemembered(mark)],
      [clearingKey, key],
    ];
    // From here on all the rest counts as dropped, although that takes several writes.
    await this.#opened().write(marks, { isFlushed: true });
    await this.#finishClearing();
  }

  async commit(changes: Changes): Promise<void> {
    const { keep, drop, remember } = changes;
    try {
      const database = this.#opened();
      const operations: Operation[] = [];
      for (const item of keep.values()) operations.push([itemPrefix + item.id, formatItem(item)]);
      for (const id of drop.keys()) operations.push([itemPrefix + id, undefined]);
      for (const [key, value] of remember) operations.push([rememberedPrefix + key, value && formatRemembered(value)]);
      // Nobody else changes what is only looked at.
      if (operations.length === 0) return;
      const isToFlush = isFlushed(changes);
      await database.write(operations, { isFlushed: isToFlush });
      // Files that were deleted are written without a complaint.
      if (isToFlush) this.#look();
      if (this.#isGone) throw new SmsError('storeGone', { params: { folder: this.#location } });
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  async sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void> {
    const database = this.#opened();
    const from = this.#sweptTo ?? rememberedPrefix;
    const page = await database.list(from, rememberedPrefix + unsweptPrefix, pageSize);
    this.#sweptTo = keyAfter(page);
    const operations: Operation[] = [];
    for (const [key, text] of page) {
      const remembered = parseRemembered(text);
      const renewed = renew(remembered);
      if (renewed !== remembered) operations.push([key, renewed && formatRemembered(renewed)]);
    }
    if (operations.length > 0) await database.write(operations, { isFlushed: false });
  }

  async close(): Promise<void> {
    const database = this.#database;
    this.#database = undefined;
    await database?.close();
  }

  async #finishClearing(): Promise<void> {
    const database = this.#opened();
    const [mark] = await database.read([clearingKey]);
    if (mark === undefined) return;
    for (const prefix of [itemPrefix, rememberedPrefix]) {
      for await (const page of listPages(database, prefix)) {
        const dropped = page.filter(([key, text]) => prefix + key !== rememberedPrefix + mark && !isNewerVersion(text));
        const operations = dropped.map(([key]): Operation => [prefix + key, undefined]);
        if (operations.length > 0) await database.write(operations, { isFlushed: false });
      }
    }
    await database.write([[clearingKey, undefined]], { isFlushed: true });
  }

  /** Reads items in order. Quarantines those that cannot be read. */
  async *#itemPages(): AsyncGenerator<Item[]> {
    const [database, events] = [this.#opened(), this.#events];
    if (!events) return;
    for await (const page of listPages(database, itemPrefix)) {
      yield await readItems(page, events, async (id, text) => {
        const place = unreadablePrefix + id;
        const moved: Operation[] = [
          [place, text],
          [itemPrefix + id, undefined],
        ];
        await database.write(moved, { isFlushed: false });
        return `${database.file} (${place})`;
      });
    }
  }

  #look(): void {
    this.#isGone ||= this.#database !== undefined && inodeOf(this.#database.file) !== this.#inode;
  }

  #opened(): Database {
    if (!this.#database) throw new Error('not open');
    return this.#database;
  }
}

/** `undefined` where there is no such file. */
function inodeOf(file: string): number | undefined {
  return existsSync(file) ? statSync(file).ino : undefined;
}

/** Lists everything under keys of a kind, in order and in pages, without the prefix of the kind. */
async function* listPages(database: Database, kind: string): AsyncGenerator<[string, string][]> {
  for (let from: string | undefined = kind; from !== undefined; ) {
    const page = await database.list(from, endOf(kind), pageSize);
    from = keyAfter(page);
    if (page.length > 0) yield page.map(([key, text]) => [key.slice(kind.length), text]);
  }
}

/** The first key that may come after a page; `undefined` after one with nothing in it, which is the last. */
function keyAfter(page: readonly [string, string][]): string | undefined {
  const [key] = page.at(-1) ?? [];
  return key && `${key}\0`;
}

/** Makes sure that there is room for more than a few messages, so that a full disk is not tried at every step. */
async function probe(database: Database): Promise<void> {
  const key = `${unreadablePrefix}probe`;
  await database.write([[key, 'x'.repeat(probeLength)]], { isFlushed: true });
  await database.write([[key, undefined]], { isFlushed: false });
}

/** The databases leave files of such names alone. */
const heldPrefix = 'held-';
const quarantinePrefix = 'unreadable-';
const numberLength = 15;

/**
 * Files of a folder, one for each text that is not committed yet. Written at once, and not flushed: that outlives the process. Their names
 * ascend in the order in which texts were held. A line ends where a text ends, so that one that was cut off is known.
 */
class HeldFiles {
  readonly #folder: string;
  /** Names of those whose content this process has in hand. */
  readonly #own = new Set<string>();
  /** Of the last text that was held, here or by an earlier process. */
  #lastNumber = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** See {@link Store.hold}. */
  hold(text: string): PendingWrite | undefined {
    const name = heldPrefix + String(++this.#lastNumber).padStart(numberLength, '0');
    const letGo = () => {
      this.#own.delete(name);
      this.#remove(name);
    };
    try {
      writeFileSync(join(this.#folder, name), `${text}\n`, { mode: 0o600 });
    } catch {
      // The commit that follows meets the same disk, and reports it.
      letGo();
      return undefined;
    }
    this.#own.add(name);
    return { letGo };
  }

  /** What an earlier process held, in the order in which it did. */
  read(): RecoveredWrite[] {
    const names = readdirSync(this.#folder).filter((name) => name.startsWith(heldPrefix) && !this.#own.has(name));
    const held: RecoveredWrite[] = [];
    for (const name of names.sort()) {
      this.#lastNumber = Math.max(this.#lastNumber, Number(name.slice(heldPrefix.length)) || 0);
      const letGo = () => this.#remove(name);
      const text = this.#textIn(name);
      // Cut off by a kill, or by a power cut: its message was on its way.
      if (!text.endsWith('\n')) letGo();
      else held.push({ text: text.slice(0, -1), letGo, quarantine: () => this.#quarantine(name) });
    }
    return held;
  }

  /** What cannot be opened reads as what nobody understands. */
  #textIn(name: string): string {
    try {
      return readFileSync(join(this.#folder, name), 'utf8');
    } catch {
      return ' \n';
    }
  }

  /** What stays is found at the next start, and that what it holds is committed. */
  #remove(name: string): void {
    try {
      rmSync(join(this.#folder, name), { force: true });
    } catch {
      // The disk is read-only.
    }
  }

  /** Where that fails, it stays where it is, and is found again. */
  #quarantine(name: string): string {
    const [path, aside] = [join(this.#folder, name), join(this.#folder, quarantinePrefix + name)];
    try {
      renameSync(path, aside);
      return aside;
    } catch {
      return path;
    }
  }
}
