import { randomUUID } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClassicLevel } from 'classic-level';
import { formatRemembered, parseItem, parseRemembered } from './format';
import type { Changes, Held, Item, Leftovers, Remembered, Store, StoreEvents } from './store';

const entryPrefix = 'entry:';
const seenPrefix = 'seen:';
/** The character after `:`, so that a range takes in every key of a prefix. */
const rangeEnd = ';';
const sweepSize = 1_000;
/** Files that hold what is not committed yet, one for each commit under way; LevelDB leaves other names alone. */
const heldPrefix = 'held-';
const unreadablePrefix = 'unreadable-';
const fewKeys = 64;
const probeKey = 'probe';
const probeLength = 256 * 1024;

/**
 * Keeps everything in a LevelDB database of its own folder. What is kept is on disk, flushed, before `commit` resolves;
 * what is dropped is written but not flushed, since losing that merely delivers twice.
 */
export class DiskStore implements Store {
  readonly durable = true;
  readonly #location: string;
  #database: ClassicLevel | undefined;
  #hasFailed = false;
  /** Open files that hold something, and those that are free to. */
  readonly #holding = new Set<HoldingFile>();
  readonly #free: HoldingFile[] = [];
  /** Where the next sweep goes on. */
  #sweptTo = seenPrefix;
  /** When the first will be outdated of what the round of sweeps under way, or the last one, has left, and of what came since. */
  #nextOutdated = Number.NEGATIVE_INFINITY;

  /** @param location folder of its own; created when it is missing */
  constructor(location: string) {
    this.#location = location;
  }

  async open({ isReadable, onUnreadable }: StoreEvents): Promise<Leftovers> {
    await this.close();
    await mkdir(this.#location, { recursive: true, mode: 0o700 });
    const { ClassicLevel } = await import('classic-level');
    const database = new ClassicLevel(this.#location);
    await database.open();
    this.#database = database;
    if (this.#hasFailed) await this.#probe(database);
    this.#hasFailed = false;
    const values = await database.values({ gt: entryPrefix, lt: entryPrefix.replace(':', rangeEnd) }).all();
    const items: Item[] = [];
    for (const value of values) {
      const item = parseItem(value, isReadable);
      if (item) items.push(item);
      else onUnreadable(`an entry of ${this.#location}`);
    }
    return { items, held: this.#readHeld() };
  }

  hold(text: string): () => void {
    if (!this.#database) return () => {};
    try {
      const file = this.#free.pop() ?? createHoldingFile(this.#location);
      this.#holding.add(file);
      writeSync(file.descriptor, text, 0);
      return () => this.#letGo(file);
    } catch {
      // The commit that follows meets the same disk, and reports it.
      return () => {};
    }
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const database = this.#opened();
    const prefixed = keys.map((key) => seenPrefix + key);
    // So few are found before another thread would have begun to look.
    const texts =
      keys.length <= fewKeys ? prefixed.map((key) => database.getSync(key)) : await database.getMany(prefixed);
    return texts.map((text) => (text === undefined ? undefined : parseRemembered(text)));
  }

  async commit({ keep, drop, remember }: Changes): Promise<void> {
    const batch = this.#opened().batch();
    for (const item of keep.values()) batch.put(entryPrefix + item.id, JSON.stringify(item));
    for (const id of drop.keys()) batch.del(entryPrefix + id);
    for (const [key, value] of remember) {
      if (value === undefined) {
        batch.del(seenPrefix + key);
      } else {
        batch.put(seenPrefix + key, formatRemembered(value));
        this.#nextOutdated = Math.min(this.#nextOutdated, value.at + value.forMs);
      }
    }
    try {
      await batch.write({ sync: keep.size > 0 });
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  async sweep(now: number): Promise<void> {
    if (this.#sweptTo === seenPrefix) {
      if (this.#nextOutdated >= now) return;
      this.#nextOutdated = Number.POSITIVE_INFINITY;
    }
    const database = this.#opened();
    const iterator = database.iterator({ gt: this.#sweptTo, lt: seenPrefix.replace(':', rangeEnd), limit: sweepSize });
    const seen = await iterator.all();
    this.#sweptTo = seen.length < sweepSize ? seenPrefix : (seen.at(-1)?.[0] ?? seenPrefix);
    const outdated: string[] = [];
    for (const [key, text] of seen) {
      const { at, forMs } = parseRemembered(text);
      if (at + forMs < now) outdated.push(key);
      else this.#nextOutdated = Math.min(this.#nextOutdated, at + forMs);
    }
    if (outdated.length > 0) await database.batch(outdated.map((key) => ({ type: 'del', key })));
  }

  async close(): Promise<void> {
    const database = this.#database;
    this.#database = undefined;
    for (const { descriptor } of this.#holding) closeSync(descriptor);
    for (const { descriptor, path } of this.#free.splice(0)) {
      closeSync(descriptor);
      rmSync(path, { force: true });
    }
    this.#holding.clear();
    await database?.close();
  }

  #letGo(file: HoldingFile): void {
    // After a close the next open finds the file, and that what it holds is committed.
    if (!this.#holding.delete(file)) return;
    try {
      ftruncateSync(file.descriptor);
      this.#free.push(file);
    } catch {
      closeSync(file.descriptor);
    }
  }

  #readHeld(): Held[] {
    const names = readdirSync(this.#location).filter((name) => name.startsWith(heldPrefix));
    return names.flatMap((name) => {
      const path = join(this.#location, name);
      const text = readFileSync(path, 'utf8');
      const letGo = () => rmSync(path, { force: true });
      if (text !== '') return [{ text, letGo, setAside: () => this.#setAside(name) }];
      letGo();
      return [];
    });
  }

  #setAside(name: string): string {
    const aside = join(this.#location, unreadablePrefix + name);
    renameSync(join(this.#location, name), aside);
    return aside;
  }

  /** Makes sure that there is room for more than a few messages, so that a full disk is not tried at every step. */
  async #probe(database: ClassicLevel): Promise<void> {
    await database.put(probeKey, 'x'.repeat(probeLength), { sync: true });
    await database.del(probeKey);
  }

  #opened(): ClassicLevel {
    if (!this.#database) throw new Error('not open');
    return this.#database;
  }
}

interface HoldingFile {
  path: string;
  descriptor: number;
}

function createHoldingFile(folder: string): HoldingFile {
  const path = join(folder, heldPrefix + randomUUID());
  return { path, descriptor: openSync(path, 'wx', 0o600) };
}
