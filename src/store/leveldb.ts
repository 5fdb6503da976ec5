import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClassicLevel } from 'classic-level';
import { type Database, type Engine, mostBytes } from './store';

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
    return module && ((folder) => openLevel(module.ClassicLevel, folder));
  },
};

async function openLevel(Level: typeof ClassicLevel, folder: string): Promise<Database> {
  const isCutOff = await endsInZeros(folder);
  // It begins to open by itself, and to change the files.
  const database = new Level(folder, { cacheSize });
  await database.open();
  return {
    file: join(folder, 'LOCK'),
    lost: isCutOff ? undefined : await readLost(folder),
    read: (keys) => database.getMany([...keys]),
    async list(from, before, limit) {
      const iterator = database.iterator({ gte: from, lt: before, limit, highWaterMarkBytes: mostBytes });
      return iterator.nextv(limit).finally(() => iterator.close());
    },
    async write(operations, { isFlushed }) {
      const batch = database.batch();
      for (const [key, text] of operations) {
        if (text === undefined) batch.del(key);
        else batch.put(key, text);
      }
      await batch.write({ sync: isFlushed });
    },
    close: () => database.close(),
  };
}

/**
 * Whether the newest log was cut off by a power cut: some file systems have lengthened a file by then, and have not written what it was
 * to hold. Nothing that is kept ends so. LevelDB says of what is simply missing at the end nothing, and of this that it is damaged.
 */
async function endsInZeros(folder: string): Promise<boolean> {
  const newest = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name)).sort();
  return newest.length > 0 && (await readFile(join(folder, newest[newest.length - 1] ?? ''))).at(-1) === 0;
}

/**
 * LevelDB goes on without what it finds damaged in its newest log, and says so only in a file, which it begins anew as it opens. Where
 * that could not be written, or is deleted already, nobody can tell: what is open stays open all the same.
 */
async function readLost(folder: string): Promise<string | undefined> {
  const said = await readFile(join(folder, 'LOG'), 'utf8').catch(() => '');
  const bytes = [...said.matchAll(/dropping (\d+) bytes; Corruption/g)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
  return bytes > 0 ? `LevelDB: ${bytes} bytes` : undefined;
}
