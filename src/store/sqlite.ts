import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { type Database, type Engine, maxBytes, type Operation } from './store';

/** Name of the database thread. This module runs in the thread if `workerData` has this value. */
const threadName = 'node-red-sms: SQLite';

const fileName = 'store.sqlite';

/** The SQLite of Node.js 22.13 and later. */
export const sqlite: Engine = {
  name: 'SQLite',
  hasWritten: (names) => names.includes(fileName),
  load: () => Promise.resolve(isBuiltin('node:sqlite') ? openThread : undefined),
};

/**
 * Opens a database on a separate thread, because every call of `node:sqlite` blocks, for tens of milliseconds on a slow
 * disk.
 */
async function openThread(folder: string): Promise<Database> {
  const file = join(folder, fileName);
  // `execArgv` replaces the Node.js options of this process, because a thread does not accept all of them. The option
  // here hides the warning that `node:sqlite` is experimental.
  const worker = new Worker(__filename, {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    workerData: threadName,
  });
  let failure: Error | undefined;
  worker.on('error', (error) => {
    failure ??= error as Error;
  });
  worker.on('exit', () => worker.emit('error', new Error('SQLite: its thread has ended')));
  const call = async <Result>(...request: Call): Promise<Result> => {
    if (failure) throw failure;
    // Keeps the process alive while a call is pending.
    worker.ref();
    worker.postMessage(request);
    const [answer] = (await once(worker, 'message').finally(() => worker.unref())) as [Answer];
    if ('failure' in answer) throw new Error(`SQLite: ${answer.failure}`);
    return answer.result as Result;
  };
  worker.unref();
  const end = () => worker.terminate();
  const droppedBytes = await countDroppedBytes(`${file}-wal`);
  await call('open', file).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return {
    file,
    droppedBytes,
    read: (keys) => call('read', keys),
    list: (...range) => call('list', ...range),
    write: (operations, { isFlushed }) => call('write', operations, isFlushed),
    close: () => (failure ? Promise.resolve() : call<void>('close')).finally(end),
  };
}

const walHeaderSize = 32;
const frameHeaderSize = 24;

/** Counts the bytes that SQLite drops silently when it reads its log: all commits after a damaged frame. */
async function countDroppedBytes(file: string): Promise<number> {
  const log = await readFile(file).catch(() => Buffer.alloc(0));
  if (log.length < walHeaderSize) return 0;
  const frameSize = frameHeaderSize + log.readUInt32BE(8);
  const isBigEndian = (log.readUInt32BE(0) & 1) === 1;
  const salts = log.subarray(16, 24);
  let sum: Checksum = [log.readUInt32BE(24), log.readUInt32BE(28)];
  let [damagedAt, end] = [0, 0];
  for (let at = walHeaderSize; at + frameSize <= log.length; at += frameSize) {
    // The remaining frames belong to an earlier log, because their salts differ.
    if (!log.subarray(at + 8, at + 16).equals(salts)) break;
    const isCommit = log.readUInt32BE(at + 4) > 0;
    if (damagedAt === 0) {
      sum = checksum(log.subarray(at, at + 8), sum, isBigEndian);
      sum = checksum(log.subarray(at + frameHeaderSize, at + frameSize), sum, isBigEndian);
      const isIntact = sum[0] === log.readUInt32BE(at + 16) && sum[1] === log.readUInt32BE(at + 20);
      if (!isIntact) damagedAt = at;
    } else if (isCommit) end = at + frameSize;
  }
  return end === 0 ? 0 : end - damagedAt;
}

type Checksum = [number, number];

/** Computes the checksum of SQLite's log, over pairs of 32-bit words. */
function checksum(bytes: Buffer, [first, second]: Checksum, isBigEndian: boolean): Checksum {
  const read = (at: number) => (isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at));
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + read(at) + second) >>> 0;
    second = (second + read(at + 4) + first) >>> 0;
  }
  return [first, second];
}

/** A request to the thread. The first request opens the database, later ones call methods of {@link TextFile}. */
type Call = [name: 'open' | 'read' | 'list' | 'write' | 'close', ...args: unknown[]];

/** The thread's answer. A failure contains SQLite's message, without any stored data. */
type Answer = { result: unknown } | { failure: string };

interface Row {
  key: string;
  text: string;
}

/** The part of `node:sqlite` that this file uses. The type definitions of Node.js 20 lack this module. */
interface Sqlite {
  DatabaseSync: new (file: string) => SqliteFile;
}

interface SqliteFile {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

interface Statement {
  get(...parameters: (string | number)[]): unknown;
  iterate(...parameters: (string | number)[]): Iterable<unknown>;
  run(...parameters: (string | number)[]): unknown;
}

type TextFile = ReturnType<typeof openDatabase>;

/** Opens a file with one table of texts by key. */
function openDatabase(file: string) {
  const { DatabaseSync } = require('node:sqlite') as Sqlite;
  const database = new DatabaseSync(file);
  // Small pages halve the amount of written data, because a commit writes whole pages. The log can grow to 4,000 pages
  // (4 MiB), the same size as with the default pages.
  database.exec('PRAGMA page_size = 1024; PRAGMA wal_autocheckpoint = 4000');
  // The exclusive lock keeps other processes out. It also avoids shared memory, which some file systems do not support.
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL');
  // Makes each flush reach the disk on macOS, where an ordinary flush leaves data in the cache of the disk.
  database.exec('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
  database.exec('CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID');
  const readStatement = database.prepare('SELECT text FROM texts WHERE key = ?');
  const writeStatement = database.prepare('INSERT OR REPLACE INTO texts VALUES (?, ?)');
  const remove = database.prepare('DELETE FROM texts WHERE key = ?');
  const page = database.prepare('SELECT key, text FROM texts WHERE key >= ? AND key < ? ORDER BY key LIMIT ?');
  return {
    read: (keys: readonly string[]) => keys.map((key) => (readStatement.get(key) as Row | undefined)?.text),
    list(...range: Parameters<Database['list']>): [string, string][] {
      const rows: [string, string][] = [];
      let length = 0;
      for (const row of page.iterate(...range)) {
        const { key, text } = row as Row;
        rows.push([key, text]);
        length += text.length;
        if (length >= maxBytes) break;
      }
      return rows;
    },
    write(operations: readonly Operation[], isFlushed: boolean): void {
      database.exec(`PRAGMA synchronous = ${isFlushed ? 'FULL' : 'NORMAL'}; BEGIN IMMEDIATE`);
      try {
        for (const [key, text] of operations) {
          if (text === undefined) remove.run(key);
          else writeStatement.run(key, text);
        }
        database.exec('COMMIT');
      } catch (error) {
        try {
          database.exec('ROLLBACK');
        } catch {
          // After some failures, SQLite has already rolled back, so that this command fails. Ignores its error.
        }
        throw error;
      }
    },
    close: () => database.close(),
  };
}

let textFile: TextFile | undefined;

function handleCall([name, ...args]: Call): unknown {
  if (name !== 'open') return (textFile?.[name] as ((...args: unknown[]) => unknown) | undefined)?.(...args);
  textFile = openDatabase(String(args[0]));
  return undefined;
}

if (workerData === threadName) {
  parentPort?.on('message', (call: Call) => {
    let reply: Answer;
    try {
      reply = { result: handleCall(call) };
    } catch (error) {
      // `errstr` is SQLite's name of the failure, such as `database or disk is full`.
      const { errstr, message = 'unknown reason' } = error as { errstr?: string; message?: string };
      reply = { failure: errstr ?? message };
    }
    parentPort?.postMessage(reply);
  });
}
