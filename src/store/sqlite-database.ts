import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Database, Engine, KeyRange, Operation, Table } from './database';
import type { Answer, Call } from './sqlite-thread';

const fileName = 'store.sqlite';

/** The SQLite that Node.js brings from 22.13 on. */
export const sqlite: Engine = {
  name: 'SQLite',
  hasWritten: (names) => names.includes(fileName),
  load: () => Promise.resolve(isBuiltin('node:sqlite') ? (folder) => SqliteDatabase.open(folder) : undefined),
};

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** On a thread of its own: every call of `node:sqlite` blocks, a flush to a slow disk for tens of milliseconds. */
class SqliteDatabase implements Database {
  readonly file: string;
  lost: string | undefined;
  readonly #worker: Worker;
  /** The thread answers in order. */
  readonly #waiting: Waiting[] = [];
  #failure: Error | undefined;

  private constructor(folder: string) {
    this.file = join(folder, fileName);
    // Without the options of the process, some of which no thread may have.
    this.#worker = new Worker(require.resolve('./sqlite-thread'), { execArgv: [] });
    this.#worker.unref();
    this.#worker.on('message', (answer: Answer) => this.#settle(answer));
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', () => this.#fail(new Error('SQLite: its thread has ended')));
  }

  static async open(folder: string): Promise<SqliteDatabase> {
    const database = new SqliteDatabase(folder);
    try {
      database.lost = await database.#call({ name: 'open', file: database.file });
      return database;
    } catch (error) {
      await database.#worker.terminate();
      throw error;
    }
  }

  read(table: Table, keys: readonly string[]): Promise<(string | undefined)[]> {
    return this.#call({ name: 'read', table, keys });
  }

  list(table: Table, range: KeyRange): Promise<[string, string][]> {
    return this.#call({ name: 'list', table, range });
  }

  write(operations: readonly Operation[], { isFlushed }: { isFlushed: boolean }): Promise<void> {
    return this.#call({ name: 'write', operations, isFlushed });
  }

  place(table: Table, key: string): string {
    return `${this.file} (${table} ${key})`;
  }

  async close(): Promise<void> {
    try {
      if (!this.#failure) await this.#call({ name: 'close' });
    } finally {
      await this.#worker.terminate();
    }
  }

  #call<Result>(call: Call): Promise<Result> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise<Result>((resolve, reject) => {
      // Nothing ends the process while somebody waits.
      if (this.#waiting.length === 0) this.#worker.ref();
      this.#waiting.push({ resolve: resolve as (result: unknown) => void, reject });
      this.#worker.postMessage(call);
    });
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#worker.unref();
    if ('failure' in answer) waiting?.reject(new Error(`SQLite: ${answer.failure}`));
    else waiting?.resolve(answer.result);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
