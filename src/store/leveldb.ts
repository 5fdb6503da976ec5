import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClassicLevel } from 'classic-level';
import {
  type Database,
  type Engine,
  endOf,
  type KeyRange,
  mostBytes,
  type Operation,
  type Table,
  tables,
} from './store';

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

/** What the keys of each table begin with. */
type Prefixes = Readonly<Record<Table, string>>;

class LevelDatabase implements Database {
  readonly file: string;
  readonly #database: ClassicLevel;
  readonly #prefixes: Prefixes;

  private constructor(
    database: ClassicLevel,
    prefixes: Prefixes,
    readonly lost: string | undefined,
  ) {
    this.file = join(database.location, 'LOCK');
    this.#database = database;
    this.#prefixes = prefixes;
  }

  static async open(database: ClassicLevel): Promise<LevelDatabase> {
    const isCutOff = await endsInZeros(database.location);
    await database.open();
    try {
      const lost = isCutOff ? undefined : await readLost(database.location);
      return new LevelDatabase(database, await findPrefixes(database), lost);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  read(table: Table, keys: readonly string[]): Promise<(string | undefined)[]> {
    const prefix = this.#prefixes[table];
    const places = keys.map((key) => prefix + key);
    if (places.length > fewKeys) return this.#database.getMany(places);
    // So few are found before another thread would have begun to look.
    return Promise.resolve(places.map((place) => this.#database.getSync(place)));
  }

  async list(
    table: Table,
    { after, prefix = '', before = endOf(prefix), limit }: KeyRange,
  ): Promise<[string, string][]> {
    const start = this.#prefixes[table];
    const from = after === undefined ? { gte: start + prefix } : { gt: start + after };
    const iterator = this.#database.iterator({ ...from, lt: start + before, limit, highWaterMarkBytes: mostBytes });
    const found = await iterator.nextv(limit).finally(() => iterator.close());
    return found.map(([place, text]) => [place.slice(start.length), text]);
  }

  async write(operations: readonly Operation[], { isFlushed }: { isFlushed: boolean }): Promise<void> {
    const batch = this.#database.batch();
    for (const { table, key, text } of operations) {
      const place = this.#prefixes[table] + key;
      if (text === undefined) batch.del(place);
      else batch.put(place, text);
    }
    await batch.write({ sync: isFlushed });
  }

  place(table: Table, key: string): string {
    return `${this.#database.location} (${this.#prefixes[table]}${key})`;
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

/**
 * Whether the newest log was cut off by a power cut: some file systems have lengthened a file by then, and have not written what it was
 * to hold. Nothing that is kept ends so. LevelDB says of what is simply missing at the end nothing, and of this that it is damaged.
 */
async function endsInZeros(folder: string): Promise<boolean> {
  const newest = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name)).sort();
  return newest.length > 0 && (await readFile(join(folder, newest[newest.length - 1] ?? ''))).at(-1) === 0;
}

/** LevelDB goes on without what it finds damaged in its newest log, and says so only in a file, which it begins anew as it opens. */
async function readLost(folder: string): Promise<string | undefined> {
  const said = await readFile(join(folder, 'LOG'), 'utf8');
  const bytes = [...said.matchAll(/dropping (\d+) bytes; Corruption/g)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
  return bytes > 0 ? `LevelDB: ${bytes} bytes` : undefined;
}

/**
 * Each table is a sublevel of LevelDB's own, which is asked where its keys stand and let go of: the objects that one consists of take
 * 6 KiB in every account, and a third of the time of a write.
 */
async function findPrefixes(database: ClassicLevel): Promise<Prefixes> {
  const found = tables.map(async (table) => {
    const sublevel = database.sublevel(table);
    await sublevel.close();
    return [table, sublevel.prefix] as const;
  });
  return Object.fromEntries(await Promise.all(found)) as Record<Table, string>;
}
