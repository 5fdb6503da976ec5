import { randomUUID } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClassicLevel } from 'classic-level';
import { rememberedAt } from '../receiving/identity';
import type { Changes, Entry, HeldRecords, Leftovers, Store } from './store';

const entryPrefix = 'entry:';
const seenPrefix = 'seen:';
/** The character after `:`, so that a range takes in every key of a prefix. */
const rangeEnd = ';';
const sweepSize = 1_000;
/** Files that hold what is not committed yet, one for each commit under way; LevelDB leaves other names alone. */
const heldPrefix = 'held-';
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
  /** When the oldest was remembered that the round of sweeps under way, or the last one, has found and left. */
  #oldestSeen = Number.NEGATIVE_INFINITY;

  /** @param location folder of its own; created when it is missing */
  constructor(location: string) {
    this.#location = location;
  }

  async open(): Promise<Leftovers> {
    await this.close();
    await mkdir(this.#location, { recursive: true, mode: 0o700 });
    const { ClassicLevel } = await import('classic-level');
    const database = new ClassicLevel(this.#location);
    await database.open();
    this.#database = database;
    if (this.#hasFailed) await this.#probe(database);
    this.#hasFailed = false;
    const values = await database.values({ gt: entryPrefix, lt: entryPrefix.replace(':', rangeEnd) }).all();
    return { entries: values.map((value) => JSON.parse(value) as Entry), held: this.#readHeld() };
  }

  hold(records: HeldRecords): () => void {
    if (!this.#database) return () => {};
    try {
      const file = this.#free.pop() ?? createHoldingFile(this.#location);
      this.#holding.add(file);
      writeSync(file.descriptor, JSON.stringify(records), 0);
      return () => this.#letGo(file);
    } catch {
      // The commit that follows meets the same disk, and reports it.
      return () => {};
    }
  }

  async recall(keys: readonly string[]): Promise<(string | undefined)[]> {
    const database = this.#opened();
    // So few are found before another thread would have begun to look.
    if (keys.length <= fewKeys) return keys.map((key) => database.getSync(seenPrefix + key));
    return database.getMany(keys.map((key) => seenPrefix + key));
  }

  async commit({ keep, drop, remember }: Changes): Promise<void> {
    const batch = this.#opened().batch();
    for (const entry of keep.values()) batch.put(entryPrefix + entry.id, JSON.stringify(entry));
    for (const id of drop) batch.del(entryPrefix + id);
    for (const [key, value] of remember) {
      if (value === undefined) batch.del(seenPrefix + key);
      else batch.put(seenPrefix + key, value);
    }
    try {
      await batch.write({ sync: keep.size > 0 });
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  async sweep(oldest: number): Promise<void> {
    if (this.#sweptTo === seenPrefix) {
      // Nothing has become outdated since the last round, and what came meanwhile is younger than what it saw.
      if (this.#oldestSeen >= oldest) return;
      this.#oldestSeen = Date.now();
    }
    const database = this.#opened();
    const iterator = database.iterator({ gt: this.#sweptTo, lt: seenPrefix.replace(':', rangeEnd), limit: sweepSize });
    const seen = await iterator.all();
    this.#sweptTo = seen.length < sweepSize ? seenPrefix : (seen.at(-1)?.[0] ?? seenPrefix);
    const outdated: string[] = [];
    for (const [key, value] of seen) {
      const at = rememberedAt(value);
      if (at < oldest) outdated.push(key);
      else this.#oldestSeen = Math.min(this.#oldestSeen, at);
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

  #readHeld(): Leftovers['held'] {
    const names = readdirSync(this.#location).filter((name) => name.startsWith(heldPrefix));
    return names.flatMap((name) => {
      const path = join(this.#location, name);
      const letGo = () => rmSync(path, { force: true });
      try {
        return [{ held: JSON.parse(readFileSync(path, 'utf8')) as HeldRecords, letGo }];
      } catch {
        // Empty, or cut off in the middle of being written.
        letGo();
        return [];
      }
    });
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
