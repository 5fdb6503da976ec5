import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClassicLevel } from 'classic-level';
import { type Database, type Engine, maxBytes } from './store';

/**
 * Size of the read cache, in bytes. It is small, because lookups by digest are spread over all keys, so a cache rarely
 * helps. LevelDB's default of 8 MiB would cost a busy account 7 to 12 MiB and save no time. The write buffer keeps its
 * default size: a smaller one would save 5 MiB, but take 50% more processor time.
 */
const cacheSize = 2 * 1_024 * 1_024;

/** LevelDB. Native code, prebuilt for most platforms and missing on the others. */
export const levelDb: Engine = {
  name: 'LevelDB',
  hasWritten: (names) => names.some((name) => /^(?:CURRENT$|MANIFEST-)/.test(name)),
  load: async () => {
    // Loads the module here, because it might be missing or might not run on this machine.
    const module = await import('classic-level').catch(() => undefined);
    return module && ((folder) => openLevel(module.ClassicLevel, folder));
  },
};

async function openLevel(Level: typeof ClassicLevel, folder: string): Promise<Database> {
  const droppedBytes = await countDroppedBytes(folder);
  const database = new Level(folder, { cacheSize });
  await database.open();
  return {
    file: join(folder, 'LOCK'),
    droppedBytes,
    read: (keys) => database.getMany([...keys]),
    async list(from, before, limit) {
      const iterator = database.iterator({ gte: from, lt: before, limit, highWaterMarkBytes: maxBytes });
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

const blockSize = 32_768;
const headerSize = 7;

/**
 * Counts the bytes that LevelDB drops silently when it reads its logs: from a damaged record to the end of its block.
 */
async function countDroppedBytes(folder: string): Promise<number> {
  const names = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name));
  let dropped = 0;
  for (const name of names) dropped += countDamaged(await readFile(join(folder, name)));
  return dropped;
}

function countDamaged(log: Buffer): number {
  let damagedBytes = 0;
  for (let start = 0; start < log.length; start += blockSize) {
    const end = Math.min(start + blockSize, log.length);
    for (let at = start; at + headerSize <= end; ) {
      const next = endOfRecord(log, at);
      if (next <= end && isIntact(log, at, next)) {
        at = next;
        continue;
      }
      // Does not count two harmless cases: zeros at the end of a full block, and an incomplete last record. The process
      // was writing that record when it ended.
      const isFilling = log.readUInt32LE(at) === 0 && next === at + headerSize;
      const isCutOff = end === log.length && next > end && !hasRecord(log, at + 1, end);
      if (!isFilling && !isCutOff) damagedBytes += end - at;
      break;
    }
  }
  return damagedBytes;
}

function hasRecord(log: Buffer, from: number, end: number): boolean {
  for (let at = from; at + headerSize < end; at++) {
    const next = endOfRecord(log, at);
    if (next <= end && next > at + headerSize && isIntact(log, at, next)) return true;
  }
  return false;
}

function endOfRecord(log: Buffer, at: number): number {
  return at + headerSize + log.readUInt16LE(at + 4);
}

function isIntact(log: Buffer, at: number, next: number): boolean {
  const type = log[at + 6] ?? 0;
  return type >= 1 && type <= 4 && unmask(log.readUInt32LE(at)) === crc32c(log.subarray(at + 6, next));
}

/** Decodes a checksum as LevelDB stores it. */
function unmask(masked: number): number {
  const rotated = (masked - 0xa282ead8) >>> 0;
  return ((rotated >>> 17) | (rotated << 15)) >>> 0;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

function crc32c(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crcTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
