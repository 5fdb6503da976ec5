import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskStore, openDatabase } from '../../../src/store/disk';
import { levelDb } from '../../../src/store/leveldb';
import { sqlite } from '../../../src/store/sqlite';
import type { Database, Engine } from '../../../src/store/store';
import { hasSqlite } from '../../has-sqlite';
import { createTemporaryFolder } from '../../temporary-folder';
import { createItem, events, keepItems } from './driver-suite';
import { requireFrom, runScript } from './run-script';

/** Creates an engine that records its opened databases. */
function createEngine({ name, hasWritten }: Engine, opened: string[]): Engine {
  const open = () => {
    opened.push(name);
    return Promise.resolve({} as Database);
  };
  return { name, hasWritten, load: () => Promise.resolve(open) };
}

/** Returns a copy of an engine that cannot be loaded. */
function without(engine: Engine): Engine {
  return { ...engine, load: () => Promise.resolve(undefined) };
}

describe('openDatabase', () => {
  let folder: string;
  let opened: string[];
  beforeEach(() => {
    opened = [];
    folder = createTemporaryFolder('sms-engines');
  });

  const openBy = (...candidates: Engine[]) => openDatabase(folder, candidates);
  const refusal = (reason: string) => ({ code: 'SMS_STORE', reason });

  /** Creates the files of a store with one message. */
  async function fillBy(engine: Engine): Promise<void> {
    const store = new DiskStore(folder, [engine]);
    await store.open(events);
    await store.commit(keepItems(createItem('1')));
    await store.close();
  }

  async function contents(): Promise<Map<string, string>> {
    const files = new Map<string, string>();
    for (const name of await readdir(folder)) files.set(name, await readFile(join(folder, name), 'latin1'));
    return files;
  }

  it('uses SQLite only if LevelDB cannot be loaded', async () => {
    await openBy(createEngine(levelDb, opened), createEngine(sqlite, opened));
    await openBy(without(levelDb), createEngine(sqlite, opened));
    assert.deepEqual(opened, ['LevelDB', 'SQLite']);
  });

  it('names a remedy if no engine can be loaded', async () => {
    await assert.rejects(openBy(without(levelDb), without(sqlite)), {
      ...refusal('databaseMissing'),
      message: /no LevelDB, no SQLite\).*Node\.js 22\.13 or later/,
    });
    assert.deepEqual(await readdir(folder), []);
  });

  it('leaves a LevelDB folder unchanged if LevelDB is missing', async () => {
    await fillBy(levelDb);
    const before = await contents();
    await assert.rejects(openBy(without(levelDb), createEngine(sqlite, opened)), refusal('databaseForeign'));
    assert.deepEqual(opened, []);
    assert.deepEqual(await contents(), before);
    await openBy(createEngine(levelDb, opened), createEngine(sqlite, opened));
    assert.deepEqual(opened, ['LevelDB']);
  });

  it('keeps using SQLite although LevelDB can now be loaded', async () => {
    const files = ['store.sqlite'];
    assert.ok(sqlite.hasWritten(files) && !levelDb.hasWritten(files));
    await writeFile(join(folder, 'store.sqlite'), '');
    await openBy(createEngine(levelDb, opened), createEngine(sqlite, opened));
    await assert.rejects(openBy(createEngine(levelDb, opened), without(sqlite)), refusal('databaseForeign'));
    assert.deepEqual(opened, ['SQLite']);
  });

  for (const [what, damage] of [
    ['a damaged', (file: string) => writeFile(file, 'damaged '.repeat(1_000))],
    ['an incomplete', (file: string) => rm(file)],
  ] as const) {
    it(`names the folder of ${what} database in the error`, async () => {
      await fillBy(levelDb);
      for (const name of await readdir(folder)) {
        if (name.startsWith('MANIFEST-')) await damage(join(folder, name));
      }
      await assert.rejects(openBy(levelDb), { ...refusal('storeDamaged'), message: RegExp(folder) });
      assert.ok((await readdir(folder)).length > 0);
    });
  }

  it('recognises SQLite errors about damage and locks', async () => {
    for (const [words, reason] of [
      ['file is not a database', 'storeDamaged'],
      ['database disk image is malformed', 'storeDamaged'],
      ['database is locked', 'storeLocked'],
    ] as const) {
      const fail = () => Promise.reject(new Error(`SQLite: ${words}`));
      await assert.rejects(openBy({ ...sqlite, load: () => Promise.resolve(fail) }), refusal(reason));
    }
  });

  it('reports that another process has the database open', async () => {
    const database = await openBy(levelDb);
    try {
      await assert.rejects(openBy(levelDb), refusal('storeLocked'));
    } finally {
      await database.close();
    }
  });

  it('does not load LevelDB if its binary fits another machine', async () => {
    const { platform, arch } = process;
    const prebuilds = join(folder, 'prebuilds', `${platform}-${arch}`);
    const script = `${requireFrom('src', 'store', 'leveldb.ts')}.levelDb.load()
      .then((open) => process.stdout.write(String(open)));`;
    const load = () => runScript(script, { CLASSIC_LEVEL_PREBUILD: folder }).stdout;
    assert.equal(load(), 'undefined');
    await mkdir(prebuilds, { recursive: true });
    await writeFile(join(prebuilds, 'node.napi.node'), 'of another machine');
    assert.equal(load(), 'undefined');
  });

  if (hasSqlite) {
    it('runs SQLite in a separate thread', async () => {
      const script = `
      const { sqlite } = ${requireFrom('src', 'store', 'sqlite.ts')};
      const isLoaded = () => process.moduleLoadList.some((name) => / sqlite$/.test(name));
      sqlite.load().then(async (open) => {
        const database = await open(${JSON.stringify(folder)});
        await database.write([['1', 'one']], { isFlushed: true });
        const texts = await database.read(['1']);
        await database.close();
        const before = isLoaded();
        process.emitWarning = () => {};
        require('node:sqlite');
        process.stdout.write(JSON.stringify([texts, before, isLoaded()]));
      });`;
      assert.deepEqual(runScript(script), { stdout: '[["one"],false,true]', stderr: '' });
    });

    it('reports that the SQLite thread has ended', async () => {
      const script = `
      const threads = require('node:worker_threads');
      let thread;
      threads.Worker = class extends threads.Worker {
        constructor(...options) {
          super(...options);
          thread = this;
        }
      };
      const { sqlite } = ${requireFrom('src', 'store', 'sqlite.ts')};
      sqlite.load().then(async (open) => {
        const database = await open(${JSON.stringify(folder)});
        await thread.terminate();
        await database.read(['1']).catch(({ message }) => process.stdout.write(message));
        await database.close();
      });`;
      assert.deepEqual(runScript(script), { stdout: 'SQLite: its thread has ended', stderr: '' });
    });
  }
});
