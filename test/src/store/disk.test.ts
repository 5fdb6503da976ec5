import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SmsError } from '../../../src/errors';
import type { Entry } from '../../../src/inbox/entries';
import { DiskStore, engines } from '../../../src/store/disk';
import { sqlite } from '../../../src/store/sqlite';
import type { Database, Engine, Operation } from '../../../src/store/store';
import { type Changes, createChanges, keepItem, type Remembered } from '../../../src/store/store';
import { hasSqlite } from '../../has-sqlite';
import { Closing } from '../closing';
import { events, testDriver } from './driver-suite';

function createEntry(id: string): Entry {
  const record = { messageId: id, from: '6421555001', body: `text of ${id}`, isReply: false, via: 'poll' as const };
  return { id, part: 'inbox', subscribers: ['incoming'], channel: 'incoming', kind: 'incoming', record, attempts: 1 };
}

function keep(id: string): Changes {
  const changes = createChanges();
  keepItem(changes, createEntry(id));
  return changes;
}

function seen(at: number): Remembered {
  return { at, forMs: 1_000, value: JSON.stringify({ polled: true }) };
}

const available = engines.filter((engine) => engine !== sqlite || hasSqlite);
for (const engine of available) describe(`DiskStore on ${engine.name}`, () => testDiskStore(engine));

function testDiskStore(engine: Engine): void {
  const closing = new Closing();
  let folder: string;
  const { NODE_OPTIONS } = process.env;
  before(async () => {
    assert.ok(await engine.load(), `${engine.name} cannot be loaded`);
    // A thread can load TypeScript only with this option.
    process.env.NODE_OPTIONS = `${NODE_OPTIONS ?? ''} --require=${require.resolve('tsx/cjs')}`;
  });
  after(() => {
    if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = NODE_OPTIONS;
  });
  beforeEach(async () => {
    folder = closing.add(await mkdtemp(join(tmpdir(), 'inbox-')), (path) => rm(path, { recursive: true, force: true }));
  });
  afterEach(() => closing.run());

  const createStore = (location = join(folder, 'store')) =>
    closing.add(new DiskStore(location, [engine]), (store) => store.close());

  /** Opens the database of a closed store, and reads or changes it. */
  async function edit<T>(location: string, change: (database: Database) => Promise<T>): Promise<T> {
    await mkdir(location, { recursive: true });
    const open = (await engine.load()) ?? assert.fail();
    const database = await open(location);
    try {
      return await change(database);
    } finally {
      await database.close();
    }
  }

  testDriver(() => createStore(), { isSwept: true });

  it('creates a folder that only its owner can read', async () => {
    await createStore(join(folder, 'a', 'b')).open(events);
    assert.equal((await stat(join(folder, 'a', 'b'))).mode & 0o077, 0);
  });

  it('reports whether it might have data, without loading a database', async () => {
    const location = join(folder, 'other');
    const store = new DiskStore(location, []);
    assert.equal(store.mayHold, false);
    assert.ok(!existsSync(location));
    await mkdir(location);
    assert.equal(store.mayHold, true);
  });

  it('can be opened and closed repeatedly', async () => {
    const store = createStore();
    for (let index = 0; index < 3; index++) {
      await store.open(events);
      await store.open(events);
      await store.close();
      await store.close();
    }
    await assert.rejects(store.recall(['x']));
    await assert.rejects(store.commit(createChanges()));
  });

  describe('poll answers that a disk store saves', () => {
    it('are found in order after crashes, until they are released', async () => {
      const store = createStore();
      await store.open(events);
      const [one] = ['one', 'two', 'three'].map((text) => store.saveAhead(text));
      one?.remove();
      one?.remove();
      await store.close();
      const between = createStore();
      await between.open(events);
      between.saveAhead('four');
      await between.close();
      const next = createStore();
      const { pendingWrites: found } = await next.open(events);
      assert.deepEqual(
        found.map(({ text }) => text),
        ['two', 'three', 'four'],
      );
      for (const { remove: finish } of found) finish();
      await next.close();
      assert.deepEqual((await createStore().open(events)).pendingWrites, []);
    });

    it('are not found again by the process that has them in memory', async () => {
      const store = createStore();
      await store.open(events);
      const one = store.saveAhead('one');
      await store.close();
      assert.deepEqual((await store.open(events)).pendingWrites, []);
      const two = store.saveAhead('two');
      await store.close();
      one?.remove();
      const next = createStore();
      assert.deepEqual(
        (await next.open(events)).pendingWrites.map(({ text }) => text),
        ['two'],
      );
      await next.close();
      two?.remove();
      assert.deepEqual((await createStore().open(events)).pendingWrites, []);
    });

    it('are ignored and deleted if a power cut left their file incomplete', async () => {
      const store = createStore();
      await store.open(events);
      await store.close();
      const path = join(folder, 'store', 'held-1');
      for (const bytes of ['', '\0'.repeat(100), '{"a', '{"a":"b"}']) {
        await writeFile(path, bytes);
        assert.deepEqual((await store.open(events)).pendingWrites, []);
        await store.close();
        assert.ok(!existsSync(path));
      }
    });

    it('are quarantined if unreadable, and never overwrite another file', async () => {
      const store = createStore();
      await store.open(events);
      for (const text of ['one', 'two']) store.saveAhead(text);
      await store.close();
      const location = join(folder, 'store');
      const [first = '', second = ''] = (await readdir(location)).filter((name) => name.startsWith('held-')).sort();
      await rm(join(location, first));
      await mkdir(join(location, first));
      const next = createStore();
      const { pendingWrites: held } = await next.open(events);
      assert.deepEqual(
        held.map(({ text }) => text),
        [' ', 'two'],
      );
      next.saveAhead('three')?.remove();
      assert.equal(await readFile(join(location, second), 'utf8'), 'two\n');
      await mkdir(join(location, `unreadable-${second}`));
      assert.deepEqual(
        held.map(({ quarantine }) => quarantine()),
        [join(location, `unreadable-${first}`), join(location, second)],
      );
    });
  });

  describe('a disk store with an unreadable entry', () => {
    it('quarantines and reports it without its content, and continues', async () => {
      const location = join(folder, 'store');
      const store = createStore(location);
      await store.open(events);
      const changes = createChanges();
      for (const id of ['1', '2', '3', '4']) changes.keep.set(id, createEntry(id));
      await store.commit(changes);
      await store.close();
      await edit(location, (database) =>
        database.write(
          [
            ['!items!2', '{"secret'],
            ['!items!5', 'null'],
            ['!items!6', JSON.stringify(createEntry('7'))],
          ],
          { isFlushed: false },
        ),
      );
      const reports: string[] = [];
      const open = () =>
        store.open({ ...events, isReadable: ({ id }) => id !== '4', onUnreadable: (detail) => reports.push(detail) });
      assert.deepEqual((await open()).items, [createEntry('1'), createEntry('3')]);
      assert.equal(reports.length, 4);
      for (const detail of reports) assert.ok(detail.includes(location) && !detail.includes('secret'));
      await open();
      assert.equal(reports.length, 4);
      await store.close();
      assert.deepEqual(await edit(location, (database) => database.read(['!unreadable!2'])), ['{"secret']);
      assert.deepEqual(await edit(location, (database) => database.read(['!items!2'])), [undefined]);
    });
  });

  describe('a commit that fails but is in the log of a disk store', () => {
    /** Creates a store whose flushed commits fail from now on, but are in the log when the database is reopened. */
    async function createFailing(location: string): Promise<DiskStore> {
      const open = (await engine.load()) ?? assert.fail();
      const failing: Engine = {
        ...engine,
        load: async () => async (path) => {
          const database = await open(path);
          const logged: (readonly Operation[])[] = [];
          return {
            ...database,
            droppedBytes: 0,
            async write(operations, options) {
              if (!options.isFlushed) return database.write(operations, options);
              logged.push(operations);
              throw Object.assign(new Error('flush failed'), { code: 'EIO' });
            },
            async close() {
              for (const operations of logged) await database.write(operations, { isFlushed: true });
              await database.close();
            },
          };
        },
      };
      return new DiskStore(location, [failing]);
    }

    it('leaves nothing behind in the next process', async () => {
      const location = join(folder, 'store');
      const before = createStore(location);
      await before.open(events);
      await before.commit(keep('1'));
      await before.close();
      const failing = await createFailing(location);
      await failing.open(events);
      const changes = keep('2');
      keepItem(changes, { ...createEntry('1'), attempts: 7 });
      changes.remember.set('once:a', seen(5));
      await assert.rejects(failing.commit(changes), { code: 'EIO' });
      await failing.close();
      const after = createStore(location);
      assert.deepEqual((await after.open(events)).items, [createEntry('1')]);
      assert.deepEqual(await after.recall(['once:a']), [undefined]);
    });

    it('is written when the store recovers', async () => {
      const location = join(folder, 'store');
      const failing = await createFailing(location);
      await failing.open(events);
      await assert.rejects(failing.commit(keep('1')), { code: 'EIO' });
      await failing.close();
      const store = createStore(location);
      await store.open(events);
      await store.commit(keep('1'));
      assert.deepEqual((await store.open(events)).items, [createEntry('1')]);
    });
  });

  it('clears the rest after a kill in the middle of clearing', async () => {
    const location = join(folder, 'store');
    const store = createStore(location);
    await store.open(events);
    const changes = keep('1');
    changes.remember.set('a', seen(1));
    await store.commit(changes);
    await store.clear('imported:x', seen(2));
    await store.close();
    // A kill interrupted the deletion, so only a part is deleted.
    await edit(location, (database) =>
      database.write(
        [
          ['!items!1', JSON.stringify(createEntry('1'))],
          ['!clearing!', 'imported:x'],
        ],
        { isFlushed: true },
      ),
    );
    const after = createStore(location);
    assert.deepEqual((await after.open(events)).items, []);
    assert.deepEqual(await after.recall(['a', 'imported:x']), [undefined, seen(2)]);
    await after.commit(keep('2'));
    assert.deepEqual((await after.open(events)).items, [createEntry('2')]);
  });

  it('reports how many bytes of a damaged log it has dropped', async () => {
    const location = join(folder, 'store');
    const store = createStore(location);
    await store.open(events);
    for (let n = 10; n < 90; n++) await store.commit(keep(String(n)));
    // Copies the files as a killed process leaves them.
    for (const name of ['intact', 'damaged']) await cp(location, join(folder, name), { recursive: true });
    const files = await readdir(join(folder, 'damaged'));
    const log = join(folder, 'damaged', files.find((name) => /\.log$|-wal$/.test(name)) ?? assert.fail());
    const bytes = await readFile(log);
    bytes.fill('?', bytes.length / 2, bytes.length / 2 + 16);
    await writeFile(log, bytes);
    const dropped: Record<string, number> = {};
    for (const name of ['intact', 'damaged']) {
      const copy = createStore(join(folder, name));
      const onDropped = (count: number) => {
        dropped[name] = count;
      };
      const { items } = await copy.open({ ...events, onDropped });
      assert.equal(items.length < 80, name === 'damaged', name);
    }
    assert.deepEqual(Object.keys(dropped), ['damaged']);
    assert.ok((dropped.damaged ?? 0) > 1_000, String(dropped.damaged));
  });

  it('names the folder in the error if a read finds damage', async () => {
    const location = join(folder, 'store');
    const damaged = Object.assign(new Error('Database failed'), { code: 'LEVEL_CORRUPTION' });
    const open = (await engine.load()) ?? assert.fail();
    const load = async () => async (path: string) => ({ ...(await open(path)), read: () => Promise.reject(damaged) });
    const store = closing.add(new DiskStore(location, [{ ...engine, load }]), (it) => it.close());
    await assert.rejects(store.open(events), (error) => {
      assert.ok(error instanceof SmsError && error.reason === 'storeDamaged', String(error));
      return error.message.includes(location);
    });
  });

  describe('a disk store whose open files are deleted', () => {
    const location = () => join(folder, 'store');
    const keep = (id: string) => {
      const changes = createChanges();
      changes.keep.set(id, createEntry(id));
      return changes;
    };

    it('refuses writes, and starts with an empty store', async () => {
      const store = createStore();
      assert.equal((await store.open(events)).isReset, false);
      await store.commit(keep('1'));
      await rm(location(), { recursive: true });
      const isGone = { code: 'SMS_STORE', message: /were deleted or moved while Node-RED ran/ };
      await assert.rejects(store.commit(keep('2')), isGone);
      await writeFile(location(), 'in its place');
      await assert.rejects(store.open(events));
      await rm(location());
      const { items, isReset } = await store.open(events);
      assert.deepEqual([items, isReset], [[], true]);
      await store.commit(keep('3'));
      const again = await store.open(events);
      assert.deepEqual([again.items, again.isReset], [[createEntry('3')], false]);
    });

    it('refuses writes if other files take their place', async () => {
      const store = createStore();
      await store.open(events);
      await store.commit(keep('1'));
      await rename(location(), `${location()}-moved`);
      await cp(`${location()}-moved`, location(), { recursive: true });
      await assert.rejects(store.commit(keep('2')), {
        code: 'SMS_STORE',
        message: /were deleted or moved while Node-RED ran/,
      });
      assert.equal((await store.open(events)).isReset, true);
    });
  });

  it('stores the corrected time of a value in a sweep', async () => {
    const store = createStore();
    await store.open(events);
    const changes = createChanges();
    changes.remember.set('recent', seen(5_000));
    await store.commit(changes);
    await store.sweep((noted) => ({ ...noted, at: 99_000 }));
    assert.deepEqual(await store.recall(['recent']), [seen(99_000)]);
  });
}
