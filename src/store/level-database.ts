import type { ClassicLevel } from 'classic-level';
import { type Database, type Engine, endOf, type KeyRange, type Operation, type Table } from './database';
import { takeOverFirstDatabase } from './first-format';

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

  private constructor(database: ClassicLevel) {
    this.#database = database;
  }

  static async open(database: ClassicLevel): Promise<LevelDatabase> {
    await database.open();
    try {
      await takeOverFirstDatabase(database, placeOf);
      return new LevelDatabase(database);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  read(table: Table, keys: readonly string[]): Promise<(string | undefined)[]> {
    const places = keys.map((key) => placeOf(table, key));
    if (places.length > fewKeys) return this.#database.getMany(places);
    // So few are found before another thread would have begun to look.
    return Promise.resolve(places.map((place) => this.#database.getSync(place)));
  }

  async list(table: Table, { after, prefix = '', limit }: KeyRange): Promise<[string, string][]> {
    const from = after === undefined ? { gte: placeOf(table, prefix) } : { gt: placeOf(table, after) };
    const found = await this.#database.iterator({ ...from, lt: placeOf(table, endOf(prefix)), limit }).all();
    const { length } = placeOf(table, '');
    return found.map(([place, text]) => [place.slice(length), text]);
  }

  async write(operations: readonly Operation[], { isFlushed }: { isFlushed: boolean }): Promise<void> {
    const batch = this.#database.batch();
    for (const { table, key, text } of operations) {
      if (text === undefined) batch.del(placeOf(table, key));
      else batch.put(placeOf(table, key), text);
    }
    await batch.write({ sync: isFlushed });
  }

  place(table: Table, key: string): string {
    return `${this.#database.location} (${placeOf(table, key)})`;
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

/**
 * Where a key of a table stands: as LevelDB's own sublevels have it, which are objects of many parts. They take memory of every account,
 * and a third of the time of a write.
 */
function placeOf(table: Table, key: string): string {
  return `!${table}!${key}`;
}
