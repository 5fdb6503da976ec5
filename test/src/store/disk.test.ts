import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskStore, engines } from '../../../src/store/disk';
import { sqlite } from '../../../src/store/sqlite';
import {
  createChanges,
  type Database,
  type Engine,
  type Operation,
  type RecoveredState,
  type Remembered,
  type StoreEvents,
} from '../../../src/store/store';
import { hasSqlite } from '../../has-sqlite';
import { createTemporaryFolder } from '../../temporary-folder';
import { useClosing } from '../closing';
import { createItem, events, keepItems, testDriver } from './driver-suite';

const createValue = (at: number): Remembered => ({ at, forMs: 1_000, value: 'value' });
const textsOf = ({ pendingWrites }: RecoveredState) => pendingWrites.map(({ text }) => text);

for (const engine of engines.filter((one) => one !== sqlite || hasSqlite)) {
  describe(`DiskStore on ${engine.name}`, () => testDiskStore(engine));
}

function testDiskStore(engine: Engine): void {
  const closing = useClosing();
  let folder: string;
  let location: string;
  const { NODE_OPTIONS } = process.env;
  before(async () => {
    assert.ok(await engine.load(), `${engine.name} cannot be loaded`);
    // Sets the option without which a thread cannot load TypeScript.
    process.env.NODE_OPTIONS = `${NODE_OPTIONS ?? ''} --require=${require.resolve('tsx/cjs')}`;
  });
  after(() => {
    if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = NODE_OPTIONS;
  });
  beforeEach(() => {
    folder = createTemporaryFolder('sms-disk');
    location = join(folder, 'store');
  });

  const createStore = (path = location, engineOfStore = engine) =>
    closing.add(new DiskStore(path, [engineOfStore]), (store) => store.close());

  /** Creates a store as the next process does, and opens it. */
  async function open(path = location, more: Partial<StoreEvents> = {}) {
    const store = createStore(path);
    return { store, state: await store.open({ ...events, ...more }) };
  }

  async function openDatabase(path = location): Promise<Database> {
    return ((await engine.load()) ?? assert.fail())(path);
  }

  /** Opens the database of a closed store, and reads or changes it. */
  async function edit<T>(change: (database: Database) => Promise<T>): Promise<T> {
    const database = await openDatabase();
    return await change(database).finally(() => database.close());
  }

  testDriver(() => createStore(), { isSwept: true });

  it('creates a folder that only its owner can read', async () => {
    const path = join(folder, 'a', 'b');
    await open(path);
    assert.equal((await stat(path)).mode & 0o077, 0);
  });

  it('checks for data without loading a database', async () => {
    const store = new DiskStore(location, []);
    assert.deepEqual([store.mayHold, existsSync(location)], [false, false]);
    await mkdir(location);
    assert.equal(store.mayHold, true);
  });

  describe('with saved poll answers', () => {
    it('finds the answers in order after crashes', async () => {
      const { store } = await open();
      const [one] = ['one', 'two', 'three'].map((text) => store.saveAhead(text));
      one?.remove();
      one?.remove();
      await store.close();
      const { store: between } = await open();
      between.saveAhead('four');
      await between.close();
      const { store: next, state } = await open();
      assert.deepEqual(textsOf(state), ['two', 'three', 'four']);
      for (const { remove } of state.pendingWrites) remove();
      await next.close();
      assert.deepEqual(textsOf((await open()).state), []);
    });

    it('finds answers that were saved before it opened', async () => {
      for (const text of ['one', 'two', 'three']) createStore().saveAhead(text);
      assert.equal((await stat(location)).mode & 0o077, 0);
      assert.deepEqual(textsOf((await open()).state), ['one', 'two', 'three']);
    });

    it('does not return an answer to the process that saved it', async () => {
      const { store } = await open();
      const one = store.saveAhead('one');
      await store.close();
      assert.deepEqual(textsOf(await store.open(events)), []);
      const two = store.saveAhead('two');
      await store.close();
      one?.remove();
      const { store: next, state } = await open();
      assert.deepEqual(textsOf(state), ['two']);
      await next.close();
      two?.remove();
      assert.deepEqual(textsOf((await open()).state), []);
    });

    it('deletes an answer that a power cut left incomplete', async () => {
      const { store } = await open();
      const path = join(location, 'held-1');
      for (const bytes of ['', '\0'.repeat(100), '{"a', '{"a":"b"}']) {
        await store.close();
        await writeFile(path, bytes);
        assert.deepEqual([textsOf(await store.open(events)), existsSync(path)], [[], false]);
      }
    });

    it('quarantines an unreadable answer without overwriting a file', async () => {
      const { store } = await open();
      for (const text of ['one', 'two']) store.saveAhead(text);
      await store.close();
      const [first = '', second = ''] = (await readdir(location)).filter((name) => name.startsWith('held-')).sort();
      await rm(join(location, first));
      await mkdir(join(location, first));
      const { store: next, state } = await open();
      assert.deepEqual(textsOf(state), [' ', 'two']);
      next.saveAhead('three')?.remove();
      assert.equal(await readFile(join(location, second), 'utf8'), 'two\n');
      await mkdir(join(location, `unreadable-${second}`));
      assert.deepEqual(
        state.pendingWrites.map(({ quarantine }) => quarantine()),
        [join(location, `unreadable-${first}`), join(location, second)],
      );
    });
  });

  it('quarantines an unreadable item', async () => {
    const items = ['1', '2', '3', '4'].map((id) => createItem(id));
    const { store } = await open();
    await store.commit(keepItems(...items));
    await store.close();
    const unreadableItems: Operation[] = [
      ['!items!2', '{"secret'],
      ['!items!5', 'null'],
      ['!items!6', JSON.stringify(createItem('7'))],
    ];
    await edit((database) => database.write(unreadableItems, { isFlushed: false }));
    const reports: string[] = [];
    const listener: StoreEvents = {
      ...events,
      isReadable: ({ id }) => id !== '4',
      onUnreadable: (place) => reports.push(place),
    };
    for (let opening = 0; opening < 2; opening++) {
      assert.deepEqual((await store.open(listener)).items, [items[0], items[2]]);
      assert.equal(reports.length, 4);
    }
    for (const place of reports) assert.ok(place.includes(location) && !place.includes('secret'));
    await store.close();
    const texts = await edit((database) => database.read(['!unreadable!2', '!items!2']));
    assert.deepEqual(texts, ['{"secret', undefined]);
  });

  describe('with a failed commit in its log', () => {
    /** Opens a store whose flushed commits fail, but are in the log of the database when it is opened again. */
    async function openFailing(): Promise<DiskStore> {
      const load = async () => async (path: string) => {
        const database = await openDatabase(path);
        const logged: (readonly Operation[])[] = [];
        const write: Database['write'] = async (operations, options) => {
          if (!options.isFlushed) return database.write(operations, options);
          logged.push(operations);
          throw Object.assign(new Error('flush failed'), { code: 'EIO' });
        };
        const close = async () => {
          for (const operations of logged) await database.write(operations, { isFlushed: true });
          await database.close();
        };
        return { ...database, droppedBytes: 0, write, close };
      };
      const store = createStore(location, { ...engine, load });
      await store.open(events);
      return store;
    }

    it('undoes the commit in the next process', async () => {
      const { store: before } = await open();
      await before.commit(keepItems(createItem('1')));
      await before.close();
      const failing = await openFailing();
      const changes = keepItems(createItem('2'), createItem('1', { attempts: 7 }));
      changes.remember.set('once:a', createValue(5));
      await assert.rejects(failing.commit(changes), { code: 'EIO' });
      await failing.close();
      const { store, state } = await open();
      assert.deepEqual([state.items, await store.recall(['once:a'])], [[createItem('1')], [undefined]]);
    });

    it('stores the commit when the next process repeats it', async () => {
      const failing = await openFailing();
      await assert.rejects(failing.commit(keepItems(createItem('1'))), { code: 'EIO' });
      await failing.close();
      const { store } = await open();
      await store.commit(keepItems(createItem('1')));
      assert.deepEqual((await store.open(events)).items, [createItem('1')]);
    });
  });

  it('finishes clearing its data after a kill', async () => {
    const { store } = await open();
    const changes = keepItems(createItem('1'));
    changes.remember.set('a', createValue(1));
    await store.commit(changes);
    await store.clear('imported:x', createValue(2));
    await store.close();
    // Writes the data that remains if a kill interrupts `clear`.
    const remaining: Operation[] = [
      ['!items!1', JSON.stringify(createItem('1'))],
      ['!clearing!', 'imported:x'],
    ];
    await edit((database) => database.write(remaining, { isFlushed: true }));
    const { store: next, state } = await open();
    assert.deepEqual([state.items, await next.recall(['a', 'imported:x'])], [[], [undefined, createValue(2)]]);
    await next.commit(keepItems(createItem('2')));
    assert.deepEqual((await next.open(events)).items, [createItem('2')]);
  });

  it('reports the number of bytes dropped from a damaged log', async () => {
    const { store } = await open();
    for (let n = 10; n < 90; n++) await store.commit(keepItems(createItem(String(n), { body: 'x'.repeat(100) })));
    // Copies the files as a killed process leaves them.
    for (const name of ['intact', 'damaged']) await cp(location, join(folder, name), { recursive: true });
    const files = await readdir(join(folder, 'damaged'));
    const log = join(folder, 'damaged', files.find((name) => /\.log$|-wal$/.test(name)) ?? assert.fail());
    const bytes = await readFile(log);
    bytes.fill('?', bytes.length / 2, bytes.length / 2 + 16);
    await writeFile(log, bytes);
    const droppedBytes: Record<string, number> = {};
    for (const name of ['intact', 'damaged']) {
      const onDropped = (count: number) => {
        droppedBytes[name] = count;
      };
      const { state } = await open(join(folder, name), { onDropped });
      assert.equal(state.items.length < 80, name === 'damaged', name);
    }
    assert.deepEqual(Object.keys(droppedBytes), ['damaged']);
    assert.ok((droppedBytes.damaged ?? 0) > 1_000, String(droppedBytes.damaged));
  });

  it('names the folder in the error about damaged data', async () => {
    const damage = Object.assign(new Error('Database failed'), { code: 'LEVEL_CORRUPTION' });
    const load = async () => async (path: string) => ({
      ...(await openDatabase(path)),
      read: () => Promise.reject(damage),
    });
    const opening = createStore(location, { ...engine, load }).open(events);
    await assert.rejects(opening, { reason: 'storeDamaged', message: RegExp(location) });
  });

  describe('with deleted files', () => {
    const isGone = { code: 'SMS_STORE', message: /were deleted or moved while Node-RED ran/ };

    it('refuses writes until it is reopened', async () => {
      const { store, state } = await open();
      assert.equal(state.isReset, false);
      await store.commit(keepItems(createItem('1')));
      await rm(location, { recursive: true });
      await assert.rejects(store.commit(keepItems(createItem('2'))), isGone);
      await writeFile(location, 'in its place');
      await assert.rejects(store.open(events));
      await rm(location);
      assert.deepEqual(await store.open(events), { items: [], pendingWrites: [], isReset: true });
      await store.commit(keepItems(createItem('3')));
      assert.deepEqual(await store.open(events), { items: [createItem('3')], pendingWrites: [], isReset: false });
    });

    it('refuses writes even if a copy has replaced the files', async () => {
      const { store } = await open();
      await store.commit(keepItems(createItem('1')));
      await rename(location, `${location}-moved`);
      await cp(`${location}-moved`, location, { recursive: true });
      await assert.rejects(store.commit(keepItems(createItem('2'))), isGone);
      assert.equal((await store.open(events)).isReset, true);
    });
  });

  it('stores each time that the callback of a sweep corrects', async () => {
    const { store } = await open();
    const changes = createChanges();
    changes.remember.set('recent', createValue(5_000));
    await store.commit(changes);
    await store.sweep((remembered) => ({ ...remembered, at: 99_000 }));
    assert.deepEqual(await store.recall(['recent']), [createValue(99_000)]);
  });
}
