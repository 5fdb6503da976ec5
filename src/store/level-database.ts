import type { ClassicLevel } from 'classic-level';
import { type Database, type Engine, endOf, type KeyRange, type Operation, type Table, tables } from './database';
import { takeOverFirstDatabase } from './first-format';
import { openSublevel, type Sublevel } from './sublevel';

const fewKeys = 8;

/**
 * For what was read, in bytes. What is looked up are digests, which are spread over everything and found in no cache: with
 * LevelDB's own 8 MiB a busy account takes 7 to 12 MiB more, and no less time. A smaller buffer for what is written would spare
 * another 5 MiB and cost half as much processor time again.
 */
const cacheSize = 2 * 1_024 * 1_024;

/** LevelDB. It is native code that comes compiled for most platforms, and is missing on the others. */
export const levelDb: Engine = {
  name: 'LevelDB',
  hasWritten: (names) => names.some((name) => /^(?:CURRENT$|MANIFEST-)/.test(name)),
  load: async () => {
    // Loaded only here, since it may be missing, or not run on this machine.
    const module = await import('classic-level').catch(() => undefined);
    return module && ((folder) => LevelDatabase.open(new module.ClassicLevel(folder, { cacheSize })));
  },
};

class LevelDatabase implements Database {
  readonly #database: ClassicLevel;
  readonly #sublevels: Readonly<Record<Table, Sublevel>>;

  private constructor(database: ClassicLevel, sublevels: Readonly<Record<Table, Sublevel>>) {
    this.#database = database;
    this.#sublevels = sublevels;
  }

  static async open(database: ClassicLevel): Promise<LevelDatabase> {
    await database.open();
    try {
      const opened = tables.map(async (table) => [table, await openSublevel(database, table)] as const);
      const sublevels = Object.fromEntries(await Promise.all(opened)) as Record<Table, Sublevel>;
      await takeOverFirstDatabase(database, sublevels);
      return new LevelDatabase(database, sublevels);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  read(table: Table, keys: readonly string[]): Promise<(string | undefined)[]> {
    const { prefix } = this.#sublevels[table];
    const places = keys.map((key) => prefix + key);
    if (places.length > fewKeys) return this.#database.getMany(places);
    // So few are found before another thread would have begun to look.
    return Promise.resolve(places.map((place) => this.#database.getSync(place)));
  }

  list(table: Table, { after, prefix = '', limit }: KeyRange): Promise<[string, string][]> {
    const from = after === undefined ? { gte: prefix } : { gt: after };
    return this.#sublevels[table].iterator({ ...from, lt: endOf(prefix), limit }).all();
  }

  async write(operations: readonly Operation[], { isFlushed }: { isFlushed: boolean }): Promise<void> {
    const batch = this.#database.batch();
    for (const { table, key, text } of operations) {
      // A sublevel of an operation costs three times as much as what it comes to.
      const place = this.#sublevels[table].prefix + key;
      if (text === undefined) batch.del(place);
      else batch.put(place, text);
    }
    await batch.write({ sync: isFlushed });
  }

  place(table: Table, key: string): string {
    return `${this.#database.location} (${this.#sublevels[table].prefix}${key})`;
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}
