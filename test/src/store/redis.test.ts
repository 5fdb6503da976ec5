import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { systemClock } from '../../../src/clock';
import type { Entry } from '../../../src/inbox/entries';
import { RedisStore, type RedisStoreOptions, type RedisTiming } from '../../../src/store/redis';
import { createChanges, type Item, type Remembered, StoreConflict, type StoreEvents } from '../../../src/store/store';
import { hasProgram, type RedisProgram, RedisServer } from '../../redis-server';
import type { TcpProxy } from '../../tcp-proxy';
import { until } from '../../until';
import { useClosing } from '../closing';
import { testDriver } from './driver-suite';
import { key, prefix, RedisBench, timing } from './redis-bench';
import { requireFrom, runScript } from './run-script';

const root = join(__dirname, '..', '..', '..');
/** Times of an instance that sends one heartbeat, which does not expire. */
const steady = { heartbeatMs: 1e9, aliveMs: 1e9 };
const everything = ['incoming', 'status', 'outbox', 'node node', 'path /path'];

/** Error of an instance that looks dead or lost its inbox. It names the server, both causes and a remedy. */
const lifeless = /^Error: Redis: .*no heartbeat.*cut off.*deleted or evicted.*If this error returns, check/;

/** The tests run on Valkey too if it is installed. */
const programs: RedisProgram[] = hasProgram('valkey-server') ? ['redis-server', 'valkey-server'] : ['redis-server'];

function entry(id: string, fields: Partial<Entry<'incoming'>> = {}): Entry<'incoming'> {
  const record = { messageId: id, from: '6421555001', body: `text ${id}`, isReply: false, via: 'poll' as const };
  const [part, subscribers] = ['inbox' as const, ['incoming']];
  return { id, part, subscribers, channel: 'incoming', kind: 'incoming', record, attempts: 1, ...fields };
}

function remembered(value: string, forMs = 60_000): Remembered {
  return { at: 1, forMs, value };
}

/** Values under keys. `undefined`: nothing is remembered under the key. */
type Values = Record<string, string | undefined>;

function mapOf(values: Values): Map<string, Remembered | undefined> {
  return new Map(
    Object.entries(values).map(([name, value]) => [name, value === undefined ? value : remembered(value)]),
  );
}

interface InstanceOptions extends Partial<RedisTiming>, Pick<Partial<RedisStoreOptions>, 'url' | 'clock'> {
  /** Names (see {@link Item.subscribers}) whose items the instance claims. */
  wants?: string[];
}

/** A store that records the events that it reports. */
class Instance implements StoreEvents {
  readonly store: RedisStore;
  readonly takenOver: Item[] = [];
  readonly unreadable: string[] = [];
  readonly failures: Error[] = [];
  wants: string[];

  constructor({ url = '', clock = systemClock, wants = everything, ...times }: InstanceOptions) {
    this.store = new RedisStore({ url, key, clock, timing: { ...timing, ...times } });
    this.wants = wants;
  }

  onTakenOver(items: readonly Item[]): void {
    this.takenOver.push(...items);
  }

  onFailure(error: unknown): void {
    this.failures.push(error as Error);
  }

  isReadable(item: Item): boolean {
    return item.attempts < 100;
  }

  onUnreadable(detail: string): void {
    this.unreadable.push(detail);
  }

  wantedNames(): string[] {
    return this.wants;
  }

  async open(): Promise<Item[]> {
    return (await this.store.open(this)).items;
  }

  /**
   * Stores and drops items, and sets values, in one commit. Rejects with a conflict if a key does not have its value in
   * `recalled`.
   */
  async commit(
    { keep = [], drop = [], values = {} }: { keep?: Item[]; drop?: string[]; values?: Values },
    recalled: Values = {},
  ): Promise<void> {
    const changes = { ...createChanges(), remember: mapOf(values) };
    for (const one of keep) changes.keep.set(one.id, one);
    for (const id of drop) changes.drop.set(id, 'inbox');
    await this.store.commit(changes, mapOf(recalled));
  }

  keep(...items: Item[]): Promise<void> {
    return this.commit({ keep: items });
  }

  drop(...ids: string[]): Promise<void> {
    return this.commit({ drop: ids });
  }

  /** Stores a value under a key. Conflicts unless the key still has the value `expected`. */
  remember(name: string, value: string | undefined, expected: string | undefined): Promise<void> {
    return this.commit({ values: { [name]: value } }, { [name]: expected });
  }

  async recall(...keys: string[]): Promise<(string | undefined)[]> {
    return (await this.store.recall(keys)).map((one) => one?.value);
  }
}

for (const program of programs) {
  describe(`RedisStore on ${program}`, () => {
    const bench = new RedisBench(program);
    const { closing, inboxes, signs, forgetSigns, countItems } = bench;

    function create(options: InstanceOptions = {}): Instance {
      return closing.add(new Instance({ url: bench.server.url, ...options }), ({ store }) => store.close());
    }

    async function open(options: InstanceOptions = {}): Promise<Instance> {
      const instance = create(options);
      await instance.open();
      return instance;
    }

    /** Creates an instance whose connection a proxy can interrupt. */
    async function createBehindProxy(options: InstanceOptions = {}): Promise<{ instance: Instance; proxy: TcpProxy }> {
      const { proxy, url } = await bench.startProxy();
      return { instance: create({ url, ...options }), proxy };
    }

    async function openBehindProxy(options?: InstanceOptions): Promise<{ instance: Instance; proxy: TcpProxy }> {
      const { instance, proxy } = await createBehindProxy(options);
      await instance.open();
      return { instance, proxy };
    }

    /** Creates an instance that stores entries and then looks dead to the other instances. */
    async function createDead(...entries: Entry[]): Promise<void> {
      const { instance, proxy } = await openBehindProxy();
      await instance.keep(...entries);
      proxy.cut();
      await forgetSigns();
    }

    const goneMarks = () => bench.server.client.keys(`${prefix}gone:*`);

    const loseItems = async () => void (await bench.server.client.del(...(await inboxes())));

    /** Opens a store again. Returns whether the server has lost its items. */
    const isReset = async (instance: Instance) => (await instance.store.open(instance)).isReset;

    /** Makes an opening fail by cutting the connection. */
    async function failToOpen(instance: Instance, proxy: TcpProxy): Promise<void> {
      proxy.mute('hkeys');
      const opening = assert.rejects(instance.open());
      await until(() => proxy.isMute);
      proxy.cut();
      await opening;
      proxy.restore();
    }

    /** Creates the Redis user of docs/deploying.md, minus the right `lacks` (if any). Returns a URL with its login. */
    async function createUser(name: string, lacks = ''): Promise<string> {
      const documented = /ACL SETUSER node-red (.*)/.exec(
        readFileSync(join(root, 'docs', 'deploying.md'), 'utf8'),
      )?.[1];
      assert.ok(documented, 'docs/deploying.md has no line ACL SETUSER');
      const rights = documented.replace('PASSWORD', 's3cret').split(' ');
      assert.ok(lacks === '' || rights.includes(lacks), lacks);
      const grantedRights = rights.filter((right) => right !== lacks);
      await bench.server.client.call('ACL', ['SETUSER', name, 'reset', ...grantedRights]);
      closing.add(name, () => bench.server.client.call('ACL', ['DELUSER', name]));
      return bench.server.url.replace('redis://', `redis://${name}:s3cret@`);
    }

    testDriver(() => create().store, { isSwept: false });

    const idsOf = (items: readonly Item[]) => items.map(({ id }) => id);

    describe('with shared values', () => {
      it('does not clear the items of another instance', async () => {
        const [instance, other] = [await open(), await open()];
        await instance.keep(entry('1'));
        await other.keep(entry('2'));
        await instance.remember('a', 'A', undefined);
        await instance.store.clear('imported:x', remembered('x'));
        assert.deepEqual([await instance.open(), idsOf(await other.open())], [[], ['2']]);
        assert.deepEqual(await other.recall('a', 'imported:x'), ['A', 'x']);
      });

      it('uses the clock of the Redis server', async () => {
        const hourMs = 3_600_000;
        const instance = create({ clock: { ...systemClock, now: () => Date.now() + hourMs } });
        assert.equal(instance.store.now(), undefined);
        await instance.open();
        const differenceMs = Math.abs((instance.store.now() ?? 0) - Date.now());
        assert.equal(Math.round(differenceMs / hourMs), 0);
      });

      it('expects items to claim until the heartbeat of a dead instance expires', async () => {
        const instance = create(steady);
        // This instance wants no items. Otherwise, its heartbeat could claim the item before `instance` does.
        await open({ wants: [] });
        const livingSigns = await signs();
        const { instance: dead, proxy } = await openBehindProxy();
        await dead.keep(entry('1'));
        proxy.cut();
        const deadSigns = (await signs()).filter((name) => !livingSigns.includes(name));
        await instance.open();
        assert.equal(await instance.store.awaitsClaims(), true);
        await bench.server.client.del(...deadSigns);
        await until(async () => !(await instance.store.awaitsClaims()));
        assert.deepEqual(await instance.open(), [entry('1')]);
      });

      it('refuses a commit based on an outdated value', async () => {
        const [one, other] = [await open(), await open()];
        await one.keep(entry('0'));
        await other.remember('a', 'A', undefined);
        const changes = { keep: [entry('1')], drop: ['0'], values: { b: 'B', a: 'mine' } };
        await assert.rejects(one.commit(changes, { a: undefined, b: undefined }), StoreConflict);
        assert.deepEqual([await one.recall('a', 'b'), await countItems()], [['A', undefined], 1]);
        await one.commit(changes, { a: 'A' });
        assert.deepEqual(await other.recall('a', 'b'), ['mine', 'B']);
      });

      it('makes the server expire each value on time', async () => {
        const instance = await open();
        await instance.remember('a', 'A', undefined);
        const leftMs = await bench.server.client.pttl(`${prefix}seen:a`);
        assert.ok(leftMs > 50_000 && leftMs <= 60_000, `${leftMs} ms`);
        const remember = new Map([['b', remembered('B', 20)]]);
        await instance.store.commit({ ...createChanges(), remember }, new Map());
        await until(async () => (await bench.server.client.exists(`${prefix}seen:b`)) === 0);
        assert.deepEqual(await instance.recall('a', 'b'), ['A', undefined]);
      });

      it('overwrites an unreadable value', async () => {
        const instance = await open();
        await bench.server.client.set(`${prefix}seen:id`, 'foreign', 'PX', 60_000);
        const recalled = new Map([['id', (await instance.store.recall(['id']))[0]]]);
        assert.equal(recalled.get('id')?.forMs, 0);
        const changes = { ...createChanges(), remember: mapOf({ id: 'new' }) };
        await instance.store.commit(changes, recalled);
        assert.deepEqual(await instance.recall('id'), ['new']);
        await assert.rejects(instance.store.commit(changes, recalled), StoreConflict);
      });
    });

    describe('with commits', () => {
      for (const [what, refuse] of [
        ['the server has lost the stored items', loseItems],
        ['the user may not call SET', () => bench.server.client.call('ACL', ['SETUSER', 'gateway', '-set'])],
        ['the user may not call HSET', () => bench.server.client.call('ACL', ['SETUSER', 'gateway', '-hset'])],
        ['the server is out of memory', () => bench.server.client.config('SET', 'maxmemory', '1')],
      ] as const) {
        it(`stores no part of a commit if ${what}`, async () => {
          const instance = await open({ url: await createUser('gateway'), ...steady });
          const commit = () =>
            instance.commit({ keep: [entry('1'), entry('2')], values: { a: 'A' } }, { a: undefined });
          await refuse();
          await assert.rejects(commit(), (error) => {
            assert.match(String(error), /^Error: Redis\b/);
            assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /text 1/);
            return true;
          });
          assert.deepEqual([await countItems(), await bench.server.client.exists(`${prefix}seen:a`)], [0, 0]);
          await createUser('gateway');
          await bench.server.client.config('SET', 'maxmemory', '0');
          assert.deepEqual(await instance.open(), []);
          await commit();
          assert.deepEqual([await countItems(), await instance.open()], [2, [entry('1'), entry('2')]]);
        });
      }

      it('keeps an item that the server refuses to drop', async () => {
        const instance = await open({ url: await createUser('gateway'), ...steady });
        await instance.keep(entry('1'));
        await bench.server.client.call('ACL', ['SETUSER', 'gateway', '-hdel']);
        const refused = instance.commit({ drop: ['1'], keep: [entry('2')], values: { a: 'A' } });
        await assert.rejects(refused, /Redis: ERR The user .* can't run/);
        await createUser('gateway');
        assert.deepEqual([await instance.open(), await instance.recall('a')], [[entry('1'), entry('2')], ['A']]);
      });
    });

    it('reports lost items even if it fails to reopen at first', async () => {
      const { instance, proxy } = await openBehindProxy();
      await instance.keep(entry('1'));
      await loseItems();
      await failToOpen(instance, proxy);
      assert.equal(await isReset(instance), true);
    });

    describe('with a returning instance', () => {
      /** Creates an instance with items 1 and 2, and cuts its connection. */
      async function createCut() {
        const { instance, proxy } = await openBehindProxy();
        await instance.keep(entry('1', { subscribers: ['path /one'] }), entry('2', { subscribers: ['path /other'] }));
        proxy.cut();
        await until(() => instance.failures.length > 0);
        return { instance, proxy };
      }

      /** Makes the instance look dead, and lets another instance claim the items for the names in `wants`. */
      async function claim(wants: string[]): Promise<void> {
        await forgetSigns();
        await open({ wants });
        await until(async () => (await goneMarks()).length > 0);
      }

      async function deleteItems(...ids: string[]): Promise<void> {
        for (const name of await inboxes()) for (const id of ids) await bench.server.client.hdel(name, id);
      }

      for (const [when, deletedBefore, wants, deletedAfter] of [
        ['but never claimed', ['2'], undefined, []],
        ['before an instance could claim them', ['1', '2'], everything, []],
        ['after an instance claimed none', [], [], ['2']],
      ] as const) {
        it(`reports a loss if items were deleted ${when}`, async () => {
          const { instance, proxy } = await createCut();
          await deleteItems(...deletedBefore);
          if (wants) await claim([...wants]);
          await deleteItems(...deletedAfter);
          proxy.restore();
          assert.equal(await isReset(instance), true);
        });
      }

      for (const [what, wants] of [
        ['some', ['path /one']],
        ['all', ['path /one', 'path /other']],
      ] as const) {
        it(`reports no loss if another instance claimed ${what} items`, async () => {
          const { instance, proxy } = await createCut();
          await claim([...wants]);
          proxy.restore();
          await failToOpen(instance, proxy);
          assert.deepEqual([await isReset(instance), await isReset(instance)], [false, true]);
        });
      }
    });

    describe('with several instances', () => {
      it('claims the items of a dead instance only once', async () => {
        const items = [entry('1'), entry('2', { attempts: 3 }), entry('3', { attempts: 0 })];
        await createDead(...items);
        const [one, other] = [await open(), await open()];
        await until(() => one.takenOver.length + other.takenOver.length > 0);
        const [heir, idle] = one.takenOver.length > 0 ? [one, other] : [other, one];
        assert.deepEqual([heir.takenOver, idle.takenOver], [items, []]);
        await heir.drop('1', '2', '3');
        assert.equal(await countItems(), 0);
      });

      it('does not claim the items of a live instance', async () => {
        const holder = await open();
        await holder.keep(entry('1'));
        const other = await open();
        for (const name of await signs()) {
          await bench.server.client.pexpire(name, 20_000);
          await until(async () => (await bench.server.client.pttl(name)) > 20_000);
        }
        assert.deepEqual([other.takenOver, other.failures, holder.failures], [[], [], []]);
        await holder.drop('1');
        assert.equal(await countItems(), 0);
      });

      it('does not claim items before the grace period has passed', async () => {
        await createDead(entry('1'));
        const patient = await open({ graceMs: 1e9 });
        const heir = await open();
        await until(() => heir.takenOver.length > 0);
        assert.deepEqual(patient.takenOver, []);
      });

      it('claims only items for its own nodes', async () => {
        const called = (node: string, path: string): Partial<Entry<'incoming'>> => ({
          channel: 'callback',
          address: { node, path },
          subscribers: [`node ${node}`, `path ${path}`],
        });
        await createDead(
          entry('1'),
          entry('2', { subscribers: ['status'] }),
          entry('3', called('node', '/elsewhere')),
          entry('4', called('another', '/path')),
          entry('5', called('another', '/elsewhere')),
        );
        for (const [wants, ids] of [
          [['incoming'], ['1']],
          [
            ['status', 'node node', 'path /path'],
            ['2', '3', '4'],
          ],
        ]) {
          const { takenOver } = await open({ wants: wants ?? [] });
          await until(() => takenOver.length > 0);
          assert.deepEqual(idsOf(takenOver), ids);
        }
      });

      it('claims messages of a missing node only after a delay', async () => {
        const outgoing = (id: string, node: string) =>
          entry(id, { part: 'outgoing' as 'inbox', subscribers: [`node ${node}`] });
        await createDead(
          outgoing('1', 'gone'),
          entry('2', { subscribers: ['path /elsewhere'] }),
          outgoing('3', 'late'),
        );
        const [one, other] = [await open(), await open()];
        const reservations = () => bench.server.client.keys(`${prefix}reserved:*`);
        await until(async () => (await reservations()).length > 0);
        const late = await open({ wants: ['node late'] });
        await until(() => late.takenOver.length > 0);
        assert.deepEqual([one.takenOver, other.takenOver, late.takenOver], [[], [], [outgoing('3', 'late')]]);
        for (const name of await reservations()) await bench.server.client.del(name);
        const claimedIds = () => [one, other, late].flatMap(({ takenOver }) => idsOf(takenOver));
        await until(() => claimedIds().includes('1'));
        assert.deepEqual(claimedIds().sort(), ['1', '3']);
      });

      it('keeps its items if it returns before they are claimed', async () => {
        const instance = await open({ heartbeatMs: 1e9 });
        await instance.keep(entry('1', { part: 'outgoing' as 'inbox', subscribers: ['node elsewhere'] }));
        await forgetSigns();
        const other = await open();
        const marks = async () => [...(await goneMarks()), ...(await bench.server.client.keys(`${prefix}reserved:*`))];
        await until(async () => (await marks()).length === 2);
        await instance.open();
        assert.deepEqual([await marks(), other.takenOver], [[], []]);
      });

      it('finds the items of its nodes among 11,500 other items', async () => {
        const closedInstance = await open({ aliveMs: 1e9 });
        const names = Array.from({ length: 11_500 }, (_, index) => String(index).padStart(5, '0'));
        await closedInstance.keep(...names.map((name) => entry(name, { subscribers: ['path /elsewhere'] })));
        await closedInstance.keep(entry('wanted'), entry('too'));
        await closedInstance.store.close();
        const heir = create({ wants: ['incoming'] });
        // Claims immediately, because the other instance has closed.
        assert.deepEqual(await heir.open(), [entry('too'), entry('wanted')]);
        heir.wants = ['path /elsewhere'];
        await until(() => heir.takenOver.length > 0);
        assert.deepEqual(idsOf(heir.takenOver), names);
      });

      it('does not commit after its heartbeat has expired', async () => {
        const stalled = await open({ heartbeatMs: 1e9 });
        await stalled.keep(entry('1'));
        await forgetSigns();
        const heir = await open();
        await until(() => heir.takenOver.length > 0);
        await assert.rejects(stalled.drop('1'), lifeless);
        await assert.rejects(stalled.keep(entry('2')), lifeless);
        assert.equal(await countItems(), 1);
        assert.deepEqual(await stalled.open(), []);
        await stalled.drop('1');
        await stalled.keep(entry('2'));
        assert.equal(await countItems(), 2);
      });

      it('does not claim after its heartbeat has expired', async () => {
        const closedInstance = await open();
        await closedInstance.keep(entry('1'));
        await closedInstance.store.close();
        const { instance, proxy } = await createBehindProxy({ heartbeatMs: 1e9 });
        proxy.delay(100);
        const opening = assert.rejects(instance.open(), lifeless);
        // Deletes the heartbeat key during `open`, as if the key had expired while the process was suspended.
        for (let isForgotten = false; !isForgotten; ) {
          for (const name of await signs()) {
            if ((await bench.server.client.get(name)) !== 'left')
              isForgotten = (await bench.server.client.del(name)) > 0;
          }
        }
        await opening;
        assert.equal(await countItems(), 1);
        assert.deepEqual(await create().open(), [entry('1')]);
      });

      it('ignores a delayed commit from before it was reopened', async () => {
        const { instance, proxy } = await openBehindProxy();
        const { isHolding, release } = proxy.keepBack();
        const late = assert.rejects(instance.keep(entry('1')));
        await until(isHolding);
        proxy.cut();
        await late;
        proxy.restore();
        await instance.open();
        await release();
        assert.equal(await countItems(), 0);
      });

      it('quarantines unreadable items of a dead instance', async () => {
        await createDead(entry('1'), entry('2', { attempts: 100 }));
        for (const text of ['{"secret', 'null', '[]', '{"id":"3","part":"inbox","subscribers":"all","attempts":1}']) {
          const [name = ''] = await inboxes();
          await bench.server.client.hset(name, text, text);
        }
        const instance = await open();
        await until(() => instance.takenOver.length > 0 && instance.unreadable.length === 5);
        assert.deepEqual(instance.takenOver, [entry('1')]);
        assert.deepEqual([await bench.server.client.hlen(`${prefix}unreadable`), await countItems()], [5, 1]);
        for (const detail of instance.unreadable) assert.doesNotMatch(detail, /secret|text/);
      });
    });

    describe('with restricted access', () => {
      it('uses only keys with the prefix of the login', async () => {
        await bench.server.client.mset({ other: 'untouched', 'sms:other': 'untouched' });
        await createDead(entry('1'));
        const instance = await open();
        await until(() => instance.takenOver.length > 0);
        await instance.remember('a', 'A', undefined);
        await instance.drop('1');
        const names = (await bench.server.client.keys('*')).map((name) => name.replace(prefix, 'own:').split(':'));
        const kinds = new Set(names.map(([start, kind]) => (start === 'own' ? kind : `${start} ${kind}`)));
        const expected = ['inbox', 'instances', 'seen', 'alive', 'gone', 'other undefined', 'sms other'];
        assert.deepEqual(kinds, new Set(expected));
        assert.deepEqual(await bench.server.client.mget('other', 'sms:other'), ['untouched', 'untouched']);
      });

      it('sets an expiry on all keys except items and instance names', async () => {
        const instance = await open();
        await instance.keep(entry('1'));
        await instance.remember('a', 'A', undefined);
        const names = await bench.server.client.keys('*');
        const times = await Promise.all(names.map((name) => bench.server.client.pttl(name)));
        assert.deepEqual(names.filter((_, index) => (times[index] ?? 0) < 0).sort(), [
          ...(await inboxes()),
          `${prefix}instances`,
        ]);
        assert.equal(names.length, 4);
        for (const name of await signs()) assert.ok((await bench.server.client.pttl(name)) <= timing.aliveMs);
      });

      it('needs only the rights in docs/deploying.md', async () => {
        await bench.server.client.call('ACL', ['LOG', 'RESET']);
        await createDead(entry('1'));
        const instance = await open({ url: await createUser('gateway') });
        await until(() => instance.takenOver.length > 0);
        await instance.keep(entry('1', { attempts: 2 }), entry('2'));
        await instance.remember('a', 'A', undefined);
        await instance.remember('a', undefined, 'A');
        await instance.open();
        await instance.drop('1', '2');
        assert.deepEqual(await instance.recall('a'), [undefined]);
        for await (const page of instance.store.pages()) assert.deepEqual(page.items, []);
        await instance.store.close();
        assert.deepEqual([instance.failures, await bench.server.client.call('ACL', ['LOG'])], [[], []]);
      });

      it('does not open if the user lacks a documented right', async () => {
        for (const right of [
          ...['+set', '+get', '+mget', '+del', '+eval', '+scan'],
          ...['+hset', '+hget', '+hmget', '+hkeys', '+hlen', '+hdel', '+sadd', '+smembers', '+srem'],
        ]) {
          const url = await createUser('gateway', right);
          await assert.rejects(
            create({ url }).open(),
            /^Error: Redis: (NOPERM|ERR) (the|this) user (has no permissions to run|executing the script can't run)/i,
            right,
          );
          assert.equal(await countItems(), 0);
        }
        await (await open()).keep(entry('1'));
        assert.deepEqual([await countItems(), await bench.server.client.scard(`${prefix}instances`)], [1, 1]);
      });
    });

    describe('with a failing server', () => {
      it('reports a lost connection once', async () => {
        const { instance, proxy } = await openBehindProxy();
        proxy.cut();
        await until(() => instance.failures.length > 0);
        await assert.rejects(instance.open(), /Redis/);
        await assert.rejects(instance.keep(entry('1')));
        proxy.restore();
        await instance.open();
        await instance.keep(entry('1'));
        assert.equal(instance.failures.length, 1);
      });

      it('reports a server that does not answer', async () => {
        const { instance, proxy } = await openBehindProxy({ commandTimeoutMs: 2_000 });
        proxy.mute();
        await until(() => instance.failures.length > 0);
        assert.match(String(instance.failures[0]), /Redis: Command timed out/);
      });

      it('releases claimed items if `open` times out', async () => {
        await createDead(entry('1'));
        const { instance, proxy } = await createBehindProxy({ commandTimeoutMs: 600, graceMs: 0 });
        proxy.mute('local claimed');
        await assert.rejects(instance.open(), /Command timed out/);
        await instance.store.close();
        const heir = create();
        assert.deepEqual(await heir.open(), []);
        await forgetSigns();
        await until(() => heir.failures.length > 0);
        assert.deepEqual(await heir.open(), []);
        await until(() => heir.takenOver.length > 0);
        assert.deepEqual(heir.takenOver, [entry('1')]);
      });

      it('does not report a lost connection after `close`', async () => {
        const { instance, proxy } = await openBehindProxy();
        await instance.store.close();
        proxy.cut();
        await assert.rejects(instance.keep(entry('1')), /not open/);
        assert.deepEqual(instance.failures, []);
      });

      it('closes its connection if `open` fails', async () => {
        await bench.server.client.set(`${prefix}instances`, 'no set');
        const countClients = async () => String(await bench.server.client.client('LIST')).split('\n').length;
        const before = await countClients();
        await assert.rejects(create().open(), /Redis: WRONGTYPE/);
        await until(async () => (await countClients()) <= before);
      });
    });

    describe('with a URL', () => {
      let guarded: RedisServer;
      beforeEach(async () => {
        guarded = closing.add(await RedisServer.start(program, { password: 'right' }), (it) => it.stop());
      });

      it('uses the password and database number of the URL', async () => {
        const instance = await open({ url: `${guarded.url}/3` });
        await instance.keep(entry('1'));
        assert.equal(await guarded.client.dbsize(), 0);
        await assert.rejects(create({ url: `${guarded.url}/99` }).open(), /ERR DB index is out of range$/);
      });

      for (const [what, url, expected] of [
        ['a wrong password', (port: number) => `redis://:s3cret@127.0.0.1:${port}`, /WRONGPASS invalid/],
        ['a missing password', (port: number) => `redis://127.0.0.1:${port}`, /NOAUTH Authentication required/],
        ['a server without TLS', (port: number) => `rediss://:s3cret@127.0.0.1:${port}`, /ETIMEDOUT; .*TLS/],
        ['a server that does not run', () => 'redis://u:s3cret@127.0.0.1:1', /Redis: ECONNREFUSED/],
        ['a host that does not exist', () => 'redis://u:s3cret@s3cret.invalid', /Redis: E/],
      ] as const) {
        it(`does not quote the URL in the error about ${what}`, async () => {
          const instance = create({ url: url(guarded.port), commandTimeoutMs: 2_000 });
          await assert.rejects(instance.open(), (error: Error) => {
            assert.match(error.message, expected);
            assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /s3cret/);
            return true;
          });
        });
      }
    });
  });
}

describe('RedisStore on another kind of server', () => {
  const closing = useClosing();

  /** Opens a store on a server that answers with `answer`. Returns the error of the opening. */
  async function openOn(scheme: string, answer: (received: string) => string): Promise<Error> {
    const other = createServer((socket) => {
      socket.on('error', () => {}).on('data', (data) => socket.write(answer(String(data)), 'latin1'));
    });
    closing.add(other, () => other.close());
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const url = `${scheme}://gateway:gateway%3C.%20s3cret@127.0.0.1:${port}`;
    const instance = closing.add(new Instance({ url }), ({ store }) => store.close());
    const error = await instance.open().then(
      () => assert.fail('opened'),
      (reason: Error) => reason,
    );
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /gateway|s3cret/);
    return error;
  }

  for (const [what, scheme, answer, expected] of [
    ['a web server', 'redis', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'the server does not speak Redis'],
    ['a server without TLS', 'rediss', 'SSH-2.0-OpenSSH_9\r\n', '.*it may not speak TLS'],
  ] as const) {
    it(`does not quote the answer of ${what}`, async () => {
      const { message } = await openOn(scheme, () => answer);
      assert.match(message, RegExp(`^Redis: ${expected}`));
      assert.doesNotMatch(message, /[^ -~]|RESP|report/);
    });
  }

  it('hides a user and a password that the server quotes', async () => {
    for (const quote of [
      (sent: string) => `ERR bad input: ${sent}`,
      (sent: string) => `ERR [${encodeURIComponent(sent)}]`,
      (sent: string) => `ERR ${JSON.stringify(sent)} is none`,
    ]) {
      const { message } = await openOn('redis', (sent) => `-${quote(sent.replace(/[\r\n]+/g, ' '))}\r\n`);
      assert.match(message, /^Redis: (ERR|•••)/);
    }
  });
});

describe('RedisStore with rediss://', () => {
  const closing = useClosing();

  it('trusts a self-signed certificate in NODE_EXTRA_CA_CERTS', async () => {
    const plain = closing.add(await RedisServer.start(), (it) => it.stop());
    const [certificate, privateKey] = [join(plain.folder, 'cert.pem'), join(plain.folder, 'key.pem')];
    const options = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost';
    const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
    const made = spawnSync('openssl', [...options.split(' '), ...names, '-keyout', privateKey, '-out', certificate]);
    assert.equal(made.status, 0, `openssl is needed: ${made.error?.message ?? made.stderr}`);
    for (const [name, value] of Object.entries({
      'tls-cert-file': certificate,
      'tls-key-file': privateKey,
      'tls-ca-cert-file': certificate,
      'tls-auth-clients': 'no',
      port: '0',
      'tls-port': String(plain.port),
    })) {
      await plain.client.config('SET', name, value);
    }
    const script = `
      const { RedisStore } = ${requireFrom('dist', 'src', 'store', 'redis.js')};
      const store = new RedisStore({ url: 'rediss://localhost:${plain.port}', key: 'k' });
      store.open({ wantedNames: () => [], onFailure() {}, onTakenOver() {} })
        .then(() => 'opened', (error) => error.message)
        .then((result) => { process.stdout.write(result); return store.close(); });`;
    assert.equal(runScript(script, { NODE_EXTRA_CA_CERTS: certificate }).stdout, 'opened');
    assert.equal(runScript(script).stdout, 'Redis: DEPTH_ZERO_SELF_SIGNED_CERT');
  });
});
