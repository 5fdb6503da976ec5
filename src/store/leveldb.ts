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
  const database = new Level(folder, { cacheSize });
  await database.open();
  return {
    file: join(folder, 'LOCK'),
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
