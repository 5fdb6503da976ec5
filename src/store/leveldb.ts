import { join } from 'node:path';
import type { ClassicLevel } from 'classic-level';
import { type Database, type Engine, mostBytes } from './store';

/**
 * Size of the read cache, in bytes. It is small, because lookups of digests are spread over all keys and miss any cache: LevelDB's
 * default of 8 MiB costs a busy account 7 to 12 MiB and saves no time. A smaller write buffer would save another 5 MiB, but take
 * half as much processor time again.
 */
const cacheSize = 2 * 1_024 * 1_024;

/** LevelDB, native code that is prebuilt for most platforms and missing on the others. */
export const levelDb: Engine = {
  name: 'LevelDB',
  hasWritten: (names) => names.some((name) => /^(?:CURRENT$|MANIFEST-)/.test(name)),
  load: async () => {
    // It is loaded here, because it might be missing or not run on this machine.
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
