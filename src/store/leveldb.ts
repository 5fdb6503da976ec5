import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClassicLevel } from 'classic-level';
import { type Database, type Engine, mostBytes, type Operation } from './store';

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
  readonly file: string;
  readonly #database: ClassicLevel;

  private constructor(
    database: ClassicLevel,
    readonly lost: string | undefined,
  ) {
    this.file = join(database.location, 'LOCK');
    this.#database = database;
  }

  static async open(database: ClassicLevel): Promise<LevelDatabase> {
    const isCutOff = await endsInZeros(database.location);
    await database.open();
    return new LevelDatabase(database, isCutOff ? undefined : await readLost(database.location));
  }

  read(keys: string[]): Promise<(string | undefined)[]> {
    return this.#database.getMany(keys);
  }

  async list(from: string, before: string, limit: number): Promise<[string, string][]> {
    const iterator = this.#database.iterator({ gte: from, lt: before, limit, highWaterMarkBytes: mostBytes });
    return iterator.nextv(limit).finally(() => iterator.close());
  }

  async write(operations: readonly Operation[], { isFlushed }: { isFlushed: boolean }): Promise<void> {
    const batch = this.#database.batch();
    for (const [key, text] of operations) {
      if (text === undefined) batch.del(key);
      else batch.put(key, text);
    }
    await batch.write({ sync: isFlushed });
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
