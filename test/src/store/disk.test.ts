import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { mock } from 'node:test';
import { ClassicLevel } from 'classic-level';
import type { Given, InboxSubscriber } from '../../../src/delivery/subscribers';
import { SmsError } from '../../../src/errors';
import type { Entry } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import { DiskStore, engines } from '../../../src/store/disk';
import { levelDb } from '../../../src/store/leveldb';
import { sqlite } from '../../../src/store/sqlite';
import type { Database, Engine, Operation } from '../../../src/store/store';
import { type Changes, createChanges, keepItem, type Remembered, type StoreEvents } from '../../../src/store/store';
import { hasSqlite } from '../../has-sqlite';
import { skip } from '../../skip';
import { until } from '../../until';
import { Closing } from '../closing';
import { createInboxOn } from '../inbox/inbox-on';
import { testDriver } from './driver-suite';

function createEntry(id: string): Entry {
  const record = { messageId: id, from: '6421555001', body: `text of ${id}`, isReply: false, via: 'poll' as const };
  return { id, part: 'inbox', subscribers: ['incoming'], channel: 'incoming', kind: 'incoming', record, attempts: 1 };
}

function keep(id: string): Changes {
  const changes = createChanges();
  keepItem(changes, createEntry(id));
  return changes;
}

function incoming(messageId: string, body = messageId): IncomingRecord {
  return { messageId, from: '6421555001', body, isReply: false, via: 'poll' };
}

function seen(at: number): Remembered {
  return { at, forMs: 1_000, value: JSON.stringify({ polled: true }) };
}

/** Lets a sweep delete the values that expired before `now`. */
const goneBy = (now: number) => (noted: Remembered) => (noted.at + noted.forMs < now ? undefined : noted);

const events: StoreEvents = {
  onTakenOver: () => {},
  wanted: () => [],
  onFailure: () => {},
  isReadable: () => true,
  onUnreadable: () => {},
};

class Node implements InboxSubscriber {
  readonly taken: Entry[] = [];

  constructor(readonly id = 'node') {}

  take(given: readonly Given[]): void {
    this.taken.push(...given.map(({ entry }) => entry));
  }
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

  function createInbox(
    store: DiskStore,
    states: (string | undefined)[] = [],
    onDamaged: (error: SmsError) => void = () => {},
  ): Inbox {
    return closing.add(
      createInboxOn({
        store,
        dedupe: () => true,
        dedupeMs: () => 1_000_000_000,
        onStore: (error) => states.push(error?.message),
        onDamaged,
      }),
      (inbox) => inbox.journal.close(),
    );
  }

  testDriver(() => createStore());

  describe('with more than a page of items', () => {
    const count = 2_500;
    const id = (index: number) => String(index).padStart(11, '0');
    const ids = (start: number, end: number) => Array.from({ length: end - start }, (_, index) => id(start + index));

    async function keepMany(store: DiskStore): Promise<void> {
      await store.open(events);
      const changes = createChanges();
      for (let index = 0; index < count; index++) changes.keep.set(id(index), createEntry(id(index)));
      await store.commit(changes);
    }

    it('finds all items in order', async () => {
      const store = createStore();
      await keepMany(store);
      await store.close();
      const { items } = await store.open(events);
      assert.deepEqual(
        items.map((item) => item.id),
        ids(0, count),
      );
    });

    it('skips and reports unreadable items', async () => {
      const store = createStore();
      await keepMany(store);
      await store.close();
      const unreadable = [id(3), id(999)];
      const said: string[] = [];
      const { items } = await store.open({
        ...events,
        isReadable: (item) => !unreadable.includes(item.id),
        onUnreadable: (place) => said.push(place),
      });
      assert.deepEqual([items.length, said.length], [count - 2, 2]);
    });
  });

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

  it('can be opened and closed again and again', async () => {
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

  if (engine === levelDb)
    it("uses the key layout of LevelDB's sublevels", async () => {
      const location = join(folder, 'store');
      const opened = async () => {
        const database = new ClassicLevel(location);
        const items = database.sublevel('items');
        const remembered = database.sublevel('remembered');
        await Promise.all([items.open(), remembered.open()]);
        return { database, items, remembered };
      };
      const before = await opened();
      await before.items.put('1', JSON.stringify(createEntry('1')));
      await before.remembered.put('id:1', '5 1000 {"polled":true}');
      await before.database.close();
      const store = createStore(location);
      assert.deepEqual((await store.open(events)).items, [createEntry('1')]);
      assert.deepEqual(await store.recall(['id:1']), [seen(5)]);
      const changes = createChanges();
      changes.drop.set('1', 'inbox');
      changes.keep.set('2', createEntry('2'));
      await store.commit(changes);
      await store.close();
      const after = await opened();
      assert.deepEqual(await after.items.keys().all(), ['2']);
      assert.deepEqual(await after.remembered.keys().all(), ['id:1']);
      await after.database.close();
    });

  describe('held answers', () => {
    it('are found after a crash, until they are released', async () => {
      const store = createStore();
      await store.open(events);
      const one = store.hold('one');
      store.hold('two');
      one?.letGo();
      one?.letGo();
      await store.close();
      const next = createStore();
      const { held: found } = await next.open(events);
      assert.deepEqual(
        found.map(({ text }) => text),
        ['two'],
      );
      for (const { letGo: finish } of found) finish();
      await next.close();
      assert.deepEqual((await createStore().open(events)).held, []);
    });

    it('are not found again by the process that has them in memory', async () => {
      const store = createStore();
      await store.open(events);
      const one = store.hold('one');
      await store.close();
      assert.deepEqual((await store.open(events)).held, []);
      const two = store.hold('two');
      await store.close();
      one?.letGo();
      const next = createStore();
      assert.deepEqual(
        (await next.open(events)).held.map(({ text }) => text),
        ['two'],
      );
      await next.close();
      two?.letGo();
      assert.deepEqual((await createStore().open(events)).held, []);
    });

    it('are found in order, even if several processes held them', async () => {
      const store = createStore();
      await store.open(events);
      const holds = ['one', 'two', 'three', 'four', 'five'].map((text) => store.hold(text));
      holds[1]?.letGo();
      store.hold('six');
      await store.close();
      const next = createStore();
      await next.open(events);
      next.hold('seven');
      next.hold('eight');
      await next.close();
      assert.deepEqual(
        (await createStore().open(events)).held.map(({ text }) => text),
        ['one', 'three', 'four', 'five', 'six', 'seven', 'eight'],
      );
    });

    it('survive a process that is killed', async () => {
      const store = createStore();
      await store.open(events);
      store.hold('long '.repeat(1_000))?.letGo();
      store.hold('é');
      const name = (await readdir(join(folder, 'store'))).find((one) => one.startsWith('held-')) ?? '';
      const bytes = await readFile(join(folder, 'store', name));
      await store.close();
      await writeFile(join(folder, 'store', name), bytes);
      assert.deepEqual(
        (await createStore().open(events)).held.map(({ text }) => text),
        ['é'],
      );
    });

    it('are ignored and deleted if a power cut left their file incomplete', async () => {
      const store = createStore();
      await store.open(events);
      await store.close();
      const path = join(folder, 'store', 'held-1');
      for (const bytes of ['', '\0'.repeat(100), '{"a', '{"a":"b"}']) {
        await writeFile(path, bytes);
        assert.deepEqual((await store.open(events)).held, []);
        await store.close();
        assert.ok(!existsSync(path));
      }
    });

    it('are not found again after they were quarantined in the named place', async () => {
      const store = createStore();
      await store.open(events);
      await store.close();
      await writeFile(join(folder, 'store', 'held-broken'), '{"kind":"incoming","records":[{"mess\n');
      const [broken] = (await store.open(events)).held;
      const place = broken?.quarantine() ?? '';
      assert.equal(await readFile(place, 'utf8'), '{"kind":"incoming","records":[{"mess\n');
      await store.close();
      assert.deepEqual((await store.open(events)).held, []);
      assert.ok((await stat(place)).isFile());
    });

    it('are quarantined if unreadable, and never overwrite another file', async () => {
      const store = createStore();
      await store.open(events);
      for (const text of ['one', 'two']) store.hold(text);
      await store.close();
      const location = join(folder, 'store');
      const [first = '', second = ''] = (await readdir(location)).filter((name) => name.startsWith('held-')).sort();
      await rm(join(location, first));
      await mkdir(join(location, first));
      const next = createStore();
      const { held } = await next.open(events);
      assert.deepEqual(
        held.map(({ text }) => text),
        [' ', 'two'],
      );
      next.hold('three')?.letGo();
      assert.equal(await readFile(join(location, second), 'utf8'), 'two\n');
      await mkdir(join(location, `unreadable-${second}`));
      assert.deepEqual(
        held.map(({ quarantine }) => quarantine()),
        [join(location, `unreadable-${first}`), join(location, second)],
      );
    });

    it('do not accumulate files', async () => {
      const store = createStore();
      await store.open(events);
      for (let round = 0; round < 50; round++) {
        const held = [1, 2, 3].map((n) => store.hold(String(n)));
        for (const one of held) one?.letGo();
      }
      await store.close();
      assert.deepEqual(
        (await readdir(join(folder, 'store'))).filter((name) => name.startsWith('held-')),
        [],
      );
    });
  });

  describe('with an unreadable entry', () => {
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
      const said: string[] = [];
      const open = () =>
        store.open({ ...events, isReadable: ({ id }) => id !== '4', onUnreadable: (detail) => said.push(detail) });
      assert.deepEqual((await open()).items, [createEntry('1'), createEntry('3')]);
      assert.equal(said.length, 4);
      for (const detail of said) assert.ok(detail.includes(location) && !detail.includes('secret'));
      await open();
      assert.equal(said.length, 4);
      await store.close();
      assert.deepEqual(await edit(location, (database) => database.read(['!unreadable!2'])), ['{"secret']);
      assert.deepEqual(await edit(location, (database) => database.read(['!items!2'])), [undefined]);
    });

    it('reports it and an unreadable held file, and finds the other items', async () => {
      const location = join(folder, 'store');
      const before = createInbox(createStore(location));
      await before.accept({ kind: 'incoming', via: 'poll', records: [incoming('1'), incoming('2')] });
      await before.journal.close();
      await edit(location, async (database) => {
        const [[id, text] = assert.fail()] = await database.list('!items!', '!items!~', 1);
        const [[seen] = assert.fail()] = await database.list('!remembered!incoming:', '!remembered!incoming;', 1);
        const broken = JSON.stringify({ ...JSON.parse(text), record: null });
        await database.write(
          [
            [id, broken],
            [seen, 'nonsense'],
          ],
          { isFlushed: false },
        );
      });
      for (const [name, text] of [
        ['cut-off', '{"kind":"incoming","records":[{"mess'],
        ['no-kind', '{"kind":"other","records":[]}'],
        ['no-records', '{"kind":"incoming","records":{}}'],
        ['no-record', '{"kind":"incoming","records":[null]}'],
        ['good', JSON.stringify({ kind: 'incoming', records: [incoming('held')] })],
      ] as const) {
        await writeFile(join(location, `held-${name}`), `${text}\n`);
      }
      const said: string[] = [];
      const [states, node] = [[] as (string | undefined)[], new Node()];
      const inbox = createInbox(createStore(location), states, ({ params }) => said.push(String(params.place)));
      inbox.attach('incoming', node);
      await until(() => node.taken.length === 2);
      const outcomes = await inbox.accept({
        kind: 'incoming',
        via: 'poll',
        records: [incoming('3'), incoming('held')],
      });
      assert.deepEqual(
        [outcomes, node.taken.map(({ record }) => record.messageId).sort()],
        [
          ['new', 'repeated'],
          ['2', '3', 'held'],
        ],
      );
      assert.deepEqual([states, said.length], [[], 5]);
      await inbox.journal.flush();
      const names = await readdir(location);
      assert.deepEqual(
        names.filter((name) => /^(unreadable|held)-/.test(name)),
        ['cut-off', 'no-kind', 'no-record', 'no-records'].map((name) => `unreadable-held-${name}`),
      );
    });
  });

  describe('with large items', () => {
    it('finds all of them', async () => {
      const store = createStore();
      await store.open(events);
      const changes = createChanges();
      const ids = Array.from({ length: 20 }, (_, index) => String(index).padStart(2, '0'));
      for (const id of ids) changes.keep.set(id, Object.assign(createEntry(id), { ballast: 'x'.repeat(200_000) }));
      await store.commit(changes);
      await store.close();
      const { items } = await store.open(events);
      assert.deepEqual(
        items.map(({ id }) => id),
        ids,
      );
    });
  });

  describe('with a commit that fails but is in the log', () => {
    /** A store whose flushed commits fail from now on, but are in the log when the database is reopened. */
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

  it('keeps and reports an item of a later version', async () => {
    const location = join(folder, 'store');
    const newer = JSON.stringify({ v: 2, ...createEntry('1') });
    await edit(location, (database) => database.write([['!items!1', newer]], { isFlushed: true }));
    const store = createStore(location);
    let reports = 0;
    const onNewerVersion = () => reports++;
    assert.deepEqual((await store.open({ ...events, onNewerVersion })).items, []);
    await store.clear('imported:x', seen(2));
    await store.close();
    assert.equal(reports, 1);
    assert.deepEqual(await edit(location, (database) => database.read(['!items!1'])), [newer]);
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

  it('explains damage that it finds when it reads, with the folder', async () => {
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

  describe('with files that are deleted while they are open', () => {
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

    it('creates new files with the items in memory', async () => {
      const states: (string | undefined)[] = [];
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const inbox = createInbox(createStore(), states);
        const accept = (id: string) => inbox.accept({ kind: 'incoming', via: 'poll', records: [incoming(id)] });
        await accept('1');
        await rm(location(), { recursive: true });
        await accept('2');
        assert.match(states[0] ?? '', /were deleted or moved while Node-RED ran/);
        await inbox.journal.ready();
        assert.equal(states.length, 2);
        await inbox.journal.close();
        const { items } = await createStore().open(events);
        assert.deepEqual(
          (items as Entry[]).map(({ record }) => record.messageId),
          ['1', '2'],
        );
      } finally {
        mock.timers.reset();
      }
    });
  });

  describe('sweep (dedupeHours)', () => {
    it('drops older identifiers in parts, and keeps the rest and the entries', async () => {
      const store = createStore();
      await store.open(events);
      const changes = createChanges();
      changes.keep.set('1', createEntry('1'));
      for (let index = 0; index < 3_500; index++) {
        changes.remember.set(`id:${index}`, seen(index % 2 ? 100 : 200));
      }
      await store.commit(changes);
      for (let round = 0; round < 5; round++) await store.sweep(goneBy(1_150));
      const keys = Array.from({ length: 3_500 }, (_, index) => `id:${index}`);
      const left = await store.recall(keys);
      assert.deepEqual(
        left.map((value) => value !== undefined),
        keys.map((_, index) => index % 2 === 0),
      );
      await store.close();
      assert.equal((await store.open(events)).items.length, 1);
    });

    it('uses the elapsed time if the clock was set, and stores it', async () => {
      const store = createStore();
      await store.open(events);
      const changes = createChanges();
      changes.remember.set('recent', seen(5_000));
      changes.remember.set('old', seen(100));
      await store.commit(changes);
      await store.sweep((noted) => (noted.at === 5_000 ? { ...noted, at: 99_000 } : undefined));
      assert.deepEqual(await store.recall(['recent', 'old']), [seen(99_000), undefined]);
    });

    it('drops each identifier in its time, over several rounds', async () => {
      const store = createStore();
      await store.open(events);
      const remember = async (key: string, at: number) => {
        const changes = createChanges();
        changes.remember.set(key, seen(at));
        await store.commit(changes);
      };
      const isLeft = async () => (await store.recall(['a', 'b'])).map((value) => value !== undefined);
      await remember('a', 100);
      for (const now of [1_050, 1_100]) await store.sweep(goneBy(now));
      const later = Date.now() + 1;
      await remember('b', later);
      assert.deepEqual(await isLeft(), [true, true]);
      // The last sweep of a round finds no more keys.
      for (const now of [1_101, 1_101]) await store.sweep(goneBy(now));
      assert.deepEqual(await isLeft(), [false, true]);
      for (const now of [later + 1_001, later + 1_001]) await store.sweep(goneBy(now));
      assert.deepEqual(await isLeft(), [false, false]);
    });
  });

  describe('under an inbox', () => {
    it('opens as soon as the file that blocks its folder is deleted', async () => {
      const location = join(folder, 'store');
      await writeFile(location, 'a file');
      const states: (string | undefined)[] = [];
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const inbox = createInbox(createStore(location), states);
        const node = new Node();
        inbox.attach('incoming', node);
        await inbox.accept({ kind: 'incoming', via: 'poll', records: [incoming('1')] });
        assert.equal(node.taken.length, 1);
        assert.match(states[0] ?? '', /EEXIST|ENOTDIR/);
        await rm(location);
        mock.timers.tick(5_000);
        await until(() => states.length === 2);
        assert.equal(states[1], undefined);
        await inbox.journal.close();
        assert.equal((await createStore(location).open(events)).items.length, 1);
      } finally {
        mock.timers.reset();
      }
    });

    it('reports a damaged database, leaves it unchanged, and opens when it is deleted', async () => {
      const location = join(folder, 'store');
      await edit(location, () => Promise.resolve());
      const main = engine === levelDb ? 'CURRENT' : 'store.sqlite';
      await writeFile(join(location, main), 'garbage'.repeat(1_000));
      const states: (string | undefined)[] = [];
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const inbox = createInbox(createStore(location), states);
        await assert.rejects(inbox.journal.ready(), { code: 'SMS_STORE' });
        assert.equal(await readFile(join(location, main), 'utf8'), 'garbage'.repeat(1_000));
        await rm(location, { recursive: true });
        mock.timers.tick(5_000);
        await until(() => states.length === 2);
        await inbox.journal.ready();
      } finally {
        mock.timers.reset();
      }
    });

    it('waits for another process that has locked the database', async () => {
      const location = join(folder, 'store');
      const other = createStore(location);
      await other.open(events);
      const states: (string | undefined)[] = [];
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const inbox = createInbox(createStore(location), states);
        await assert.rejects(inbox.journal.ready(), { code: 'SMS_STORE' });
        assert.match(states[0] ?? '', /locked/i);
        await other.close();
        mock.timers.tick(5_000);
        await until(() => states.length === 2);
        await inbox.journal.ready();
      } finally {
        mock.timers.reset();
      }
    });

    it('recovers from a full disk without a loss', async function () {
      this.timeout(60_000);
      const location = await mountSmallDisk(closing, join(folder, 'small'));
      if (!location) return skip(this, 'this user cannot mount a file system');
      const states: (string | undefined)[] = [];
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const inbox = createInbox(createStore(join(location, 'store')), states);
        const node = new Node();
        inbox.attach('incoming', node);
        await inbox.journal.ready();
        const filler = join(location, 'filler');
        await writeFile(filler, Buffer.alloc(1024 * 1024)).catch(() => {});
        const ids: string[] = [];
        for (let index = 0; states.length === 0 && index < 5_000; index++) {
          ids.push(String(index));
          await inbox.accept({
            kind: 'incoming',
            via: 'poll',
            records: [incoming(String(index), 'x'.repeat(10_000) + Math.random())],
          });
        }
        assert.equal(states.length, 1);
        assert.equal(inbox.journal.failure?.code, 'SMS_STORE');
        await rm(filler, { force: true });
        execFileSync('mount', ['-o', 'remount,size=200m', location]);
        mock.timers.tick(5_000);
        await until(() => states.length === 2);
        assert.equal(states[1], undefined);
        await until(() => node.taken.length === ids.length);
        await inbox.journal.close();
        const { items } = await createStore(join(location, 'store')).open(events);
        assert.deepEqual(
          (items as Entry[]).map(({ record }) => record.messageId),
          ids,
        );
        await createStore(join(location, 'store')).close();
      } finally {
        mock.timers.reset();
      }
    });

    it('has the accepted messages of a process that was killed while writing', async function () {
      this.timeout(60_000);
      const location = join(folder, 'store');
      const accepted = new Set<string>();
      const asked = new Set<string>();
      for (let round = 0; round < 3; round++) {
        const child = startAccepting(engine, location, round);
        const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
        const killAt = 30 + round * 25;
        let count = 0;
        for await (const line of lines) {
          const [what, id] = line.split(' ');
          if (id === undefined) continue;
          if (what === 'asked') asked.add(id);
          if (what === 'accepted') {
            accepted.add(id);
            if (++count === killAt) child.kill('SIGKILL');
          }
        }
        assert.ok(count >= killAt, `the process ended after ${count}`);
      }
      const inbox = createInbox(createStore(location));
      const node = new Node();
      inbox.attach('incoming', node);
      await inbox.journal.ready();
      await inbox.journal.flush();
      await until(() => node.taken.length >= accepted.size);
      const found = new Set(node.taken.map(({ record }) => record.messageId));
      // Each process reports `asked` before it calls accept, so its last message might not be accepted.
      assert.deepEqual(
        [...accepted].filter((id) => !found.has(id)),
        [],
      );
      assert.ok([...asked].filter((id) => !found.has(id)).length <= 3);
      assert.equal(found.size, node.taken.length);
    });
  });
}

/** Starts a process that accepts messages, four at a time, and prints their ids. */
function startAccepting({ name }: Engine, location: string, round: number): ChildProcess {
  const script = `
    const { writeSync } = require('node:fs');
    const { createInboxOn } = require(${JSON.stringify(resolve(__dirname, '../inbox/inbox-on.ts'))});
    const { DiskStore } = require(${JSON.stringify(resolve(__dirname, '../../../src/store/disk.ts'))});
    const { engines } = require(${JSON.stringify(resolve(__dirname, '../../../src/store/disk.ts'))});
    const candidates = engines.filter(({ name }) => name === ${JSON.stringify(name)});
    const store = new DiskStore(${JSON.stringify(location)}, candidates);
    const inbox = createInboxOn({ store, dedupe: () => true, dedupeMs: () => 1e9, onStore: (error) => { if (error) throw error; } });
    const run = async (lane) => {
      for (let index = 0; ; index++) {
        const messageId = ['${round}', lane, index].join('-');
        writeSync(1, 'asked ' + messageId + '\\n');
        const record = { messageId, from: '6421555001', body: messageId, isReply: false, via: 'poll' };
        await inbox.accept({ kind: 'incoming', via: 'poll', records: [record] });
        writeSync(1, 'accepted ' + messageId + '\\n');
      }
    };
    inbox.journal.ready().then(() => Promise.all([0, 1, 2, 3].map(run)));
  `;
  return spawn(process.execPath, ['--require', 'tsx/cjs', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: resolve(__dirname, '../../..'),
  });
}

/** Mounts a disk of 4 MiB. Returns undefined if this process cannot mount one. */
async function mountSmallDisk(closing: Closing, location: string): Promise<string | undefined> {
  await mkdir(location);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', location], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  return closing.add(location, (path) => execFileSync('umount', ['-l', path], { stdio: 'ignore' }));
}
