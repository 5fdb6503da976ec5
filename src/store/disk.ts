import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SmsError } from '../errors';
import { levelDb } from './leveldb';
import { sqlite } from './sqlite';
import {
  applyCounts,
  type Changes,
  type Database,
  describeStoreFailure,
  type Engine,
  formatRemembered,
  type Item,
  isFlushed,
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
 * Opens the database in an existing folder. Uses the engine that wrote the database, or the first available engine.
 *
 * @throws SmsError `SMS_STORE` if the engine is not available, another process has the database open, or the database
 * is damaged. The folder stays unchanged
 */
export async function openDatabase(folder: string, candidates: readonly Engine[]): Promise<Database> {
  const names = await readdir(folder);
  const formerEngine = engines.find((engine) => engine.hasWritten(names));
  const usableEngines = formerEngine ? candidates.filter(({ name }) => name === formerEngine.name) : candidates;
  for (const engine of usableEngines) {
    const open = await engine.load();
    if (open) return explainErrorsOf(await explainRejection(open(folder), folder), folder);
  }
  const detail = describeMissing(formerEngine ? [formerEngine] : engines);
  throw formerEngine
    ? new SmsError('databaseForeign', { params: { detail, folder } })
    : new SmsError('databaseMissing', { params: { detail } });
}

/** Patterns of the failures that databases report, and the matching error reasons. */
const knownFailures: readonly [RegExp, 'storeLocked' | 'storeDamaged'][] = [
  [/LEVEL_LOCKED|database is locked/, 'storeLocked'],
  [/LEVEL_CORRUPTION|MANIFEST-\d+: No such file|is malformed|is not a database/, 'storeDamaged'],
];

/** Returns the same database with better errors: they name the folder, and tell the user how to solve the problem. */
function explainErrorsOf(database: Database, folder: string): Database {
  return {
    file: database.file,
    droppedBytes: database.droppedBytes,
    read: (keys) => explainRejection(database.read(keys), folder),
    list: (...range) => explainRejection(database.list(...range), folder),
    write: (operations, options) => explainRejection(database.write(operations, options), folder),
    close: () => database.close(),
  };
}

function explainRejection<T>(result: Promise<T>, folder: string): Promise<T> {
  return result.catch((error: unknown) => Promise.reject(explain(error, folder)));
}

function explain(error: unknown, folder: string): unknown {
  const detail = describeStoreFailure(error);
  // Also checks the cause: if a file is missing, the error code only says that reading failed.
  const [, reason] = knownFailures.find(([pattern]) => pattern.test(`${detail} ${Object(error).cause}`)) ?? [];
  return reason ? new SmsError(reason, { params: { detail, folder }, cause: error }) : error;
}

function describeMissing(missingEngines: readonly Engine[]): string {
  const { platform, arch, versions } = process;
  return `${platform} ${arch}, Node.js ${versions.node}: ${missingEngines.map(({ name }) => `no ${name}`).join(', ')}`;
}

/** Prefixes of the keys of items, remembered values and unreadable items. */
const [itemPrefix, rememberedPrefix, unreadablePrefix] = ['!items!', '!remembered!', '!unreadable!'];
/** Returns a text that sorts after all keys with a prefix, because U+10FFFF is the last character in UTF-8 order. */
const endOf = (prefix: string) => `${prefix}\u{10ffff}`;

/** Maximum number of items or values that are read from the database at once. */
const pageSize = 1_000;
/** Length of the text with which {@link probe} checks the disk. */
const probeLength = 256 * 1024;
/**
 * Key that exists while {@link DiskStore.clear} drops the data. Its value is the key of the remembered value that
 * `clear` keeps.
 */
const clearingKey = '!clearing!';

/**
 * Stores everything in a database in its own folder. `commit` flushes stored items to the disk, but not drops, because
 * a lost drop only causes a redelivery. For exceptions, see {@link Changes.loose} and {@link Changes.firm}.
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
  readonly #savedFiles: SavedFiles;
  readonly #engines: typeof engines;
  readonly #undo: UndoFile;
  #database: Database | undefined;
  #events: StoreEvents | undefined;
  /** Inode of {@link Database.file} when the database was opened. */
  #inode: number | undefined;
  /** Whether the files of the store were deleted or moved while it was open. */
  #isDeleted = false;
  #hasFailed = false;
  /** Key at which the next sweep continues. Absent: the next sweep begins at the first key. */
  #nextSweepKey: string | undefined;

  /**
   * @param location folder of the store, which the store creates if necessary
   * @param candidates engines in order of preference; default: all engines
   */
  constructor(location: string, candidates = engines) {
    this.#location = location;
    this.#engines = candidates;
    this.#savedFiles = new SavedFiles(location);
    this.#undo = new UndoFile(location);
  }

  /** Returns whether the folder of the database exists, without loading the database. */
  get mayHold(): boolean {
    return existsSync(this.#location);
  }

  async open(events: StoreEvents): Promise<RecoveredState> {
    this.#checkFile();
    await this.close();
    await mkdir(this.#location, { recursive: true, mode: 0o700 });
    const database = await openDatabase(this.#location, this.#engines);
    this.#database = database;
    this.#inode = inodeOf(database.file);
    if (database.droppedBytes > 0) events.onDropped?.(database.droppedBytes, this.#location);
    await this.#undo.apply(database);
    const pendingWrites = this.#savedFiles.read();
    if (this.#hasFailed) await probe(database);
    this.#hasFailed = false;
    this.#events = events;
    await this.#finishClearing();
    const items: Item[] = [];
    if (!events.isImport) for await (const page of this.#itemPages()) items.push(...page);
    const isReset = this.#isDeleted;
    this.#isDeleted = false;
    return { items, pendingWrites, isReset };
  }

  saveAhead(text: string): PendingWrite | undefined {
    return this.#savedFiles.saveAhead(text);
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const texts = await this.#requireDatabase().read(keys.map((key) => rememberedPrefix + key));
    return texts.map((text) => (text === undefined ? undefined : parseRemembered(text)));
  }

  async *pages(): AsyncGenerator<StorePage> {
    for await (const items of this.#itemPages()) yield { items, remembered: [] };
    for await (const page of listPages(this.#requireDatabase(), rememberedPrefix)) {
      yield { items: [], remembered: page.map(([key, text]) => [key, parseRemembered(text)]) };
    }
  }

  async clear(key: string, mark: Remembered): Promise<void> {
    const marks: Operation[] = [
      [rememberedPrefix + key, formatRemembered(mark)],
      [clearingKey, key],
    ];
    // After this write, everything except `mark` counts as dropped. If the process ends before all data is removed, the
    // next opening removes the rest.
    await this.#requireDatabase().write(marks, { isFlushed: true });
    await this.#finishClearing();
  }

  async commit(changes: Changes): Promise<void> {
    const { keep, drop, remember, count } = changes;
    const operations: Operation[] = [];
    try {
      const database = this.#requireDatabase();
      const keys = [...count.keys()];
      const earlierValues = new Map(
        (keys.length > 0 ? await this.recall(keys) : []).map((value, index) => [keys[index], value]),
      );
      const countedValues = applyCounts(changes, (key) => earlierValues.get(key));
      for (const item of keep.values()) operations.push([itemPrefix + item.id, JSON.stringify(item)]);
      for (const id of drop.keys()) operations.push([itemPrefix + id, undefined]);
      for (const [key, value] of [...remember, ...countedValues]) {
        operations.push([rememberedPrefix + key, value && formatRemembered(value)]);
      }
      // Does not check `changes.compare`, because no other process can change the values.
      if (operations.length === 0) return;
      const isToFlush = isFlushed(changes);
      await database.write(operations, { isFlushed: isToFlush });
      // Checks the file, because the operating system lets a process write to a deleted file without an error.
      if (isToFlush) this.#checkFile();
      if (this.#isDeleted) throw new SmsError('storeGone', { params: { folder: this.#location } });
    } catch (error) {
      this.#hasFailed = true;
      if (this.#database && !this.#isDeleted) await this.#undo.note(this.#database, operations);
      throw error;
    }
  }

  async sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void> {
    const database = this.#requireDatabase();
    const startKey = this.#nextSweepKey ?? rememberedPrefix;
    const page = await database.list(startKey, rememberedPrefix + unsweptPrefix, pageSize);
    this.#nextSweepKey = keyAfter(page);
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
    const database = this.#requireDatabase();
    const [mark] = await database.read([clearingKey]);
    if (mark === undefined) return;
    for (const prefix of [itemPrefix, rememberedPrefix]) {
      for await (const page of listPages(database, prefix)) {
        const entriesToDrop = page.filter(([key]) => prefix + key !== rememberedPrefix + mark);
        const operations = entriesToDrop.map(([key]): Operation => [prefix + key, undefined]);
        if (operations.length > 0) await database.write(operations, { isFlushed: false });
      }
    }
    await database.write([[clearingKey, undefined]], { isFlushed: true });
  }

  /** Reads items in order, and quarantines unreadable ones. */
  async *#itemPages(): AsyncGenerator<Item[]> {
    const [database, events] = [this.#requireDatabase(), this.#events];
    if (!events) return;
    for await (const page of listPages(database, itemPrefix)) {
      yield await readItems(page, events, async (id, text) => {
        const quarantineKey = unreadablePrefix + id;
        const moveOperations: Operation[] = [
          [quarantineKey, text],
          [itemPrefix + id, undefined],
        ];
        await database.write(moveOperations, { isFlushed: false });
        return `${database.file} (${quarantineKey})`;
      });
    }
  }

  #checkFile(): void {
    this.#isDeleted ||= this.#database !== undefined && inodeOf(this.#database.file) !== this.#inode;
  }

  #requireDatabase(): Database {
    if (!this.#database) throw new Error('not open');
    return this.#database;
  }
}

/** Returns the identity of a file, or `undefined` if it does not exist. */
function inodeOf(file: string): number | undefined {
  return existsSync(file) ? statSync(file).ino : undefined;
}

/** Lists all keys of a kind in order, page by page, without the prefix of the kind. */
async function* listPages(database: Database, kind: string): AsyncGenerator<[string, string][]> {
  for (let startKey: string | undefined = kind; startKey !== undefined; ) {
    const page = await database.list(startKey, endOf(kind), pageSize);
    startKey = keyAfter(page);
    if (page.length > 0) yield page.map(([key, text]) => [key.slice(kind.length), text]);
  }
}

/** Returns the key at which the next page starts, or `undefined` after an empty page, because no keys are left. */
function keyAfter(page: readonly [string, string][]): string | undefined {
  const [key] = page.at(-1) ?? [];
  return key && `${key}\0`;
}

/**
 * Called when the store is opened after a failure. Checks that the disk has room for more than a few messages. Without
 * this check, the store would open, and then fail again with almost every step.
 */
async function probe(database: Database): Promise<void> {
  const key = `${unreadablePrefix}probe`;
  await database.write([[key, 'x'.repeat(probeLength)]], { isFlushed: true });
  await database.write([[key, undefined]], { isFlushed: false });
}

/**
 * File that undoes a failed commit: it contains the values from before the commit. It is needed if the data was written
 * and only the flush failed. The commit is then reported as failed, but the database would find the data in its log at
 * the next opening.
 */
class UndoFile {
  readonly #path: string;

  constructor(folder: string) {
    this.#path = join(folder, 'undo');
  }

  /**
   * Writes the file without a flush. A power cut can lose the file, but it then also loses the commit, which was not
   * flushed.
   */
  async note(database: Database, operations: readonly Operation[]): Promise<void> {
    try {
      const texts = await database.read(operations.map(([key]) => key));
      const formerTexts = operations.map(([key], index) => [key, texts[index] ?? null]);
      writeFileSync(this.#path, JSON.stringify(formerTexts), { mode: 0o600 });
    } catch {
      // Ignores the error: if the disk cannot store this file, it has not stored the commit either.
    }
  }

  async apply(database: Database): Promise<void> {
    if (!existsSync(this.#path)) return;
    const operations = parseUndo(readFileSync(this.#path, 'utf8'));
    if (operations.length > 0) await database.write(operations, { isFlushed: true });
    rmSync(this.#path, { force: true });
  }
}

/**
 * Parses the undo file. Returns nothing for a truncated file: the process was killed before it could report the commit
 * as failed, so the commit need not be undone.
 */
function parseUndo(text: string): Operation[] {
  try {
    return (JSON.parse(text) as [string, string | null][]).map(([key, formerText]) => [key, formerText ?? undefined]);
  } catch {
    return [];
  }
}

/** Start of the names of {@link SavedFiles}. The databases ignore these files. */
const pendingPrefix = 'held-';
/** Prefix of the names of files that were quarantined. */
const quarantinePrefix = 'unreadable-';
const numberLength = 15;

/**
 * Files in the folder of the store, one for each text of {@link Store.saveAhead}. They are written synchronously, so
 * that they survive the end of the process. They are not flushed. Their names ascend in the order of the texts. Each
 * text ends with a line break, so that a truncated text can be recognised.
 */
class SavedFiles {
  readonly #folder: string;
  /** Names of the files that this process wrote and that are not removed yet. */
  readonly #ownNames = new Set<string>();
  /** Number of the last saved text, of this process or of an earlier one. */
  #lastNumber = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** See {@link Store.saveAhead}. */
  saveAhead(text: string): PendingWrite | undefined {
    let remove = () => {};
    try {
      // Before the first save, lists the files of earlier processes, so that the new file gets a higher number.
      if (this.#lastNumber === 0) {
        mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
        this.#list();
      }
      const name = pendingPrefix + String(++this.#lastNumber).padStart(numberLength, '0');
      remove = () => {
        this.#ownNames.delete(name);
        this.#remove(name);
      };
      writeFileSync(join(this.#folder, name), `${text}\n`, { mode: 0o600 });
      this.#ownNames.add(name);
      return { remove };
    } catch {
      // Does not report this failure, because the next commit fails on the same disk and reports it.
      remove();
      return undefined;
    }
  }

  /** Returns the saved texts of earlier processes in order. */
  read(): RecoveredWrite[] {
    const pendingWrites: RecoveredWrite[] = [];
    for (const name of this.#list()) {
      const remove = () => this.#remove(name);
      const text = this.#textIn(name);
      // Drops a text that a kill or a power cut has truncated.
      if (!text.endsWith('\n')) remove();
      else pendingWrites.push({ text: text.slice(0, -1), remove, quarantine: () => this.#quarantine(name) });
    }
    return pendingWrites;
  }

  /**
   * Returns the names of the files of earlier processes, in order. Also ensures that the next file gets a higher
   * number.
   */
  #list(): string[] {
    const names = readdirSync(this.#folder).filter(
      (name) => name.startsWith(pendingPrefix) && !this.#ownNames.has(name),
    );
    for (const name of names) {
      this.#lastNumber = Math.max(this.#lastNumber, Number(name.slice(pendingPrefix.length)) || 0);
    }
    return names.sort();
  }

  /**
   * Returns the text of a file. For an unreadable file, returns a text that no participant can parse, so that the file
   * is quarantined.
   */
  #textIn(name: string): string {
    try {
      return readFileSync(join(this.#folder, name), 'utf8');
    } catch {
      return ' \n';
    }
  }

  /**
   * Deletes a file. If that fails, the next start finds the file, but recognises that its text is already committed.
   */
  #remove(name: string): void {
    try {
      rmSync(join(this.#folder, name), { force: true });
    } catch {
      // Ignores the error: the disk might be read-only.
    }
  }

  /** Moves a file. If that fails, the file stays and the next start finds it again. */
  #quarantine(name: string): string {
    const [path, quarantinePath] = [join(this.#folder, name), join(this.#folder, quarantinePrefix + name)];
    try {
      renameSync(path, quarantinePath);
      return quarantinePath;
    } catch {
      return path;
    }
  }
}
