import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type Clock, systemClock } from '../../../src/clock';
import type { Entry } from '../../../src/inbox/entries';
import type { StatusRecord } from '../../../src/model';
import { RedisStore, type RedisStoreOptions, type RedisTiming } from '../../../src/store/redis';
import { createChanges, type Item, type Remembered, StoreConflict, type StoreEvents } from '../../../src/store/store';
import { hasProgram, type RedisProgram, RedisServer } from '../../redis-server';
import { TcpProxy } from '../../tcp-proxy';
import { until } from '../../until';
import { Closing } from '../closing';
import { testDriver } from './driver-suite';

const root = join(__dirname, '..', '..', '..');
const key = '0123456789abcdef';
const prefix = `sms:{${key}}:`;
/** A pause of this process on a busy machine is shorter than `aliveMs`. Tests let heartbeats expire instead. */
const timing: RedisTiming = {
  aliveMs: 30_000,
  heartbeatMs: 100,
  graceMs: 300,
  reservedMs: 1e9,
  commandTimeoutMs: 15_000,
};
const everything = ['incoming', 'status', 'outbox', 'node node', 'path /path'];

/** Creates a program that opens a store of the build, and prints the result. */
function createOpening(url: string): string {
  return `
    const { RedisStore } = require(${JSON.stringify(join(root, 'dist', 'src', 'store', 'redis.js'))});
    const store = new RedisStore({ url: '${url}', key: 'k' });
    store.open({ wantedNames: () => [], onFailure() {}, onTakenOver() {} })
      .then(() => 'opened', (error) => error.message)
      .then((result) => { process.stdout.write(result); return store.close(); });`;
}

/** Error of an instance that looks dead or lost its inbox. It names the server, both causes and a remedy. */
const lifeless = /^Error: Redis: .*no heartbeat.*cut off.*deleted or evicted.*If this error returns, check/;

/** The tests run on Valkey too if it is installed. */
const programs: RedisProgram[] = hasProgram('valkey-server') ? ['redis-server', 'valkey-server'] : ['redis-server'];

function entry(id: string, fields: Partial<Entry<'incoming'>> = {}): Entry<'incoming'> {
  const record = { messageId: id, from: '6421555001', body: `text ${id}`, isReply: false, via: 'poll' as const };
  const [part, subscribers] = ['inbox' as const, ['incoming']];
  return { id, part, subscribers, channel: 'incoming', kind: 'incoming', record, attempts: 1, ...fields };
}

function remembered(value: string, forMs?: number): Remembered;
function remembered(value: string | undefined, forMs?: number): Remembered | undefined;
function remembered(value: string | undefined, forMs = 60_000): Remembered | undefined {
  return value === undefined ? undefined : { at: 1, forMs, value };
}

/** A store that records the events that it reports. */
class Instance implements StoreEvents {
  readonly store: RedisStore;
  readonly takenOver: Item[] = [];
  readonly unreadable: string[] = [];
  readonly failures: Error[] = [];
  wants = everything;

  constructor(url: string, options: Partial<RedisStoreOptions> = {}) {
    this.store = new RedisStore({ url, key, timing, ...options });
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

  async keep(...entries: Entry[]): Promise<void> {
    const changes = createChanges();
    for (const one of entries) changes.keep.set(one.id, one);
    await this.store.commit(changes, new Map());
  }

  async drop(...ids: string[]): Promise<void> {
    const changes = createChanges();
    for (const id of ids) changes.drop.set(id, 'inbox');
    await this.store.commit(changes, new Map());
  }

  /** Stores a value under a key. The commit conflicts unless the key still has the value `expected`. */
  async remember(name: string, value: string | undefined, expected: string | undefined): Promise<void> {
    const changes = createChanges();
    changes.remember.set(name, remembered(value));
    await this.store.commit(changes, new Map([[name, remembered(expected)]]));
  }
}

for (const program of programs) {
  describe(`RedisStore on ${program}`, () => {
    const closing = new Closing();
    let server: RedisServer;

    before(async () => {
      server = await RedisServer.start(program);
    });

    after(() => server?.stop());

    beforeEach(() => server.client.flushall());

    afterEach(() => closing.run());

    function create(url = server.url, options: Partial<RedisStoreOptions> = {}): Instance {
      const instance = new Instance(url, options);
      return closing.add(instance, ({ store }) => store.close());
    }

    /** Creates an instance whose connection a proxy can interrupt. */
    async function createBehindProxy({
      url = server.url,
      ...times
    }: Partial<RedisTiming> & { url?: string } = {}): Promise<{ instance: Instance; proxy: TcpProxy }> {
      const proxy = closing.add(await TcpProxy.start(server.port), (it) => it.close());
      const proxied = url.replace(String(server.port), String(proxy.port));
      return { instance: create(proxied, { timing: { ...timing, ...times } }), proxy };
    }

    /** Creates an instance that stores entries and then looks dead to the other instances. */
    async function createDead(...entries: Entry[]): Promise<void> {
      const { instance, proxy } = await createBehindProxy();
      await instance.open();
      await instance.keep(...entries);
      proxy.cut();
      await forgetSigns();
    }

    /** Lets every heartbeat expire. */
    async function forgetSigns(): Promise<void> {
      for (const name of await server.client.keys(`${prefix}alive:*`)) await server.client.del(name);
    }

    /** Names of the Redis keys that contain items. */
    function inboxes(): Promise<string[]> {
      return server.client.keys(`${prefix}inbox:*`);
    }

    /** Counts the items of all instances. */
    async function countHeld(): Promise<number> {
      let count = 0;
      for (const name of await inboxes()) {
        count += (await server.client.hkeys(name)).filter((id) => id !== '-').length;
      }
      return count;
    }

    /** Creates the user of docs/deploying.md without one of its rights. */
    async function createUser(name: string, lacks = ''): Promise<string> {
      const documented = /ACL SETUSER node-red (.*)/.exec(
        readFileSync(join(root, 'docs', 'deploying.md'), 'utf8'),
      )?.[1];
      assert.ok(documented, 'docs/deploying.md has no line ACL SETUSER');
      const rights = documented.replace('PASSWORD', 's3cret').split(' ');
      assert.ok(lacks === '' || rights.includes(lacks), lacks);
      const grantedRights = rights.filter((right) => right !== lacks);
      await server.client.call('ACL', ['SETUSER', name, 'reset', ...grantedRights]);
      closing.add(name, () => server.client.call('ACL', ['DELUSER', name]));
      return server.url.replace('redis://', `redis://${name}:s3cret@`);
    }

    testDriver(() => create().store, { isSwept: false });

    describe('RedisStore and its remembered values', () => {
      it('clears the items of one instance, and nothing that instances share', async () => {
        const [instance, other] = [create(), create()];
        for (const one of [instance, other]) await one.open();
        await instance.keep(entry('1'));
        await other.keep(entry('2'));
        await instance.remember('a', 'A', undefined);
        await instance.store.clear('imported:x', remembered('x'));
        assert.deepEqual(await instance.open(), []);
        assert.deepEqual(
          (await other.open()).map(({ id }) => id),
          ['2'],
        );
        assert.deepEqual(await other.store.recall(['a', 'imported:x']), [remembered('A'), remembered('x')]);
      });

      it('uses the time of the server if the machine has another time', async () => {
        const hourMs = 3_600_000;
        const clock: Clock = { ...systemClock, now: () => Date.now() + hourMs };
        const instance = create(server.url, { clock });
        assert.equal(instance.store.now(), undefined);
        await instance.open();
        const differenceMs = Math.abs((instance.store.now() ?? 0) - Date.now());
        assert.equal(Math.round(differenceMs / hourMs), 0);
      });

      it('knows when no more items of a dead instance can appear', async () => {
        const instance = create(server.url, { timing: { ...timing, heartbeatMs: 1e9, aliveMs: 1e9 } });
        const living = create();
        // Otherwise, its heartbeat could claim the item first. The other instance has no heartbeat.
        living.wants = [];
        await living.open();
        const signs = () => server.client.keys(`${prefix}alive:*`);
        const livingSigns = await signs();
        const { instance: dead, proxy } = await createBehindProxy();
        await dead.open();
        await dead.keep(entry('1'));
        proxy.cut();
        const deadSigns = (await signs()).filter((name) => !livingSigns.includes(name));
        await instance.open();
        assert.equal(await instance.store.awaitsClaims(), true);
        await server.client.del(...deadSigns);
        await until(async () => !(await instance.store.awaitsClaims()));
        assert.deepEqual(await instance.open(), [entry('1')]);
      });

      it('refuses a commit if another instance changed a value it depends on', async () => {
        const [one, other] = [create(), create()];
        await one.open();
        await other.open();
        await one.keep(entry('0'));
        await other.remember('a', 'A', undefined);
        const changes = createChanges();
        changes.keep.set('1', entry('1'));
        changes.drop.set('0', 'inbox');
        changes.remember.set('b', remembered('B')).set('a', remembered('mine'));
        const recalled = new Map([
          ['a', undefined],
          ['b', undefined],
        ]);
        await assert.rejects(one.store.commit(changes, recalled), StoreConflict);
        assert.deepEqual(await one.store.recall(['a', 'b']), [remembered('A'), undefined]);
        assert.equal(await countHeld(), 1);
        await one.store.commit(changes, new Map([['a', remembered('A')]]));
        assert.deepEqual(await other.store.recall(['a', 'b']), [remembered('mine'), remembered('B')]);
      });

      it('lets the server expire each value in its time', async () => {
        const hours = create();
        await hours.open();
        await hours.remember('a', 'A', undefined);
        const leftMs = await server.client.pttl(`${prefix}seen:a`);
        assert.ok(leftMs > 50_000 && leftMs <= 60_000, `${leftMs} ms`);
        const changes = createChanges();
        changes.remember.set('b', remembered('B', 20));
        await hours.store.commit(changes, new Map());
        await until(async () => (await server.client.exists(`${prefix}seen:b`)) === 0);
        assert.deepEqual(await hours.store.recall(['a', 'b']), [remembered('A'), undefined]);
      });
    });

    describe('a commit that fails halfway', () => {
      for (const [what, refuse] of [
        ['its items were deleted', async () => server.client.del(...(await inboxes()))],
        ['SET is no longer allowed', () => server.client.call('ACL', ['SETUSER', 'gateway', '-set'])],
        ['HSET is no longer allowed', () => server.client.call('ACL', ['SETUSER', 'gateway', '-hset'])],
        ['the server has no memory left', () => server.client.config('SET', 'maxmemory', '1')],
      ] as const) {
        it(`leaves nothing behind and can be repeated if ${what}`, async () => {
          const instance = create(await createUser('gateway'), {
            timing: { ...timing, heartbeatMs: 1e9, aliveMs: 1e9 },
          });
          await instance.open();
          const changes = createChanges();
          changes.keep.set('1', entry('1')).set('2', entry('2'));
          changes.remember.set('a', remembered('A'));
          const recalled = new Map([['a', undefined]]);
          await refuse();
          await assert.rejects(instance.store.commit(changes, recalled), (error) => {
            assert.match(String(error), /^Error: Redis\b/);
            assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /text 1/);
            return true;
          });
          assert.equal(await countHeld(), 0);
          assert.equal(await server.client.exists(`${prefix}seen:a`), 0);
          await createUser('gateway');
          await server.client.config('SET', 'maxmemory', '0');
          assert.deepEqual(await instance.open(), []);
          await instance.store.commit(changes, recalled);
          assert.equal(await countHeld(), 2);
          assert.deepEqual(await instance.open(), [entry('1'), entry('2')]);
        });
      }

      it('keeps the items it should drop if the server refuses to drop them', async () => {
        const instance = create(await createUser('gateway'), { timing: { ...timing, heartbeatMs: 1e9, aliveMs: 1e9 } });
        await instance.open();
        await instance.keep(entry('1'));
        const changes = createChanges();
        changes.drop.set('1', 'inbox');
        changes.keep.set('2', entry('2'));
        changes.remember.set('a', remembered('A'));
        await server.client.call('ACL', ['SETUSER', 'gateway', '-hdel']);
        await assert.rejects(instance.store.commit(changes, new Map()), /Redis: ERR The user .* can't run/);
        await createUser('gateway');
        assert.deepEqual(await instance.open(), [entry('1'), entry('2')]);
        assert.deepEqual(await instance.store.recall(['a']), [remembered('A')]);
      });
    });

    describe('data that the server has lost', () => {
      const lose = async () => void (await server.client.del(...(await inboxes())));

      it('makes a commit fail that depends on it', async () => {
        const instance = create(server.url, { timing: { ...timing, heartbeatMs: 1e9, aliveMs: 1e9 } });
        await instance.open();
        await instance.keep(entry('1'));
        await lose();
        await assert.rejects(instance.drop('1'), lifeless);
        assert.equal((await instance.store.open(instance)).isReset, true);
        await instance.keep(entry('1'));
        assert.equal(await countHeld(), 1);
        await instance.drop('1');
        assert.equal(await countHeld(), 0);
      });

      it('is reported by the next opening that succeeds', async () => {
        const { instance, proxy } = await createBehindProxy();
        await instance.open();
        await instance.keep(entry('1'));
        await lose();
        proxy.mute('hkeys');
        const opening = assert.rejects(instance.open());
        await until(() => proxy.isMute);
        proxy.cut();
        await opening;
        proxy.restore();
        assert.equal((await instance.store.open(instance)).isReset, true);
      });
    });

    describe('missing items of an instance that is back', () => {
      /** Creates an instance with two items, cuts its connection, and lets another instance claim the wanted items. */
      async function createTaken(wants: string[], isShortlyBack = false) {
        const { instance, proxy } = await createBehindProxy();
        await instance.open();
        await instance.keep(entry('1', { subscribers: ['path /one'] }), entry('2', { subscribers: ['path /other'] }));
        proxy.cut();
        await until(() => instance.failures.length > 0);
        if (isShortlyBack) return { instance, proxy };
        await forgetSigns();
        const heir = create();
        heir.wants = wants;
        await heir.open();
        await until(async () => (await server.client.keys(`${prefix}gone:*`)).length > 0);
        return { instance, proxy };
      }

      const isLostFor = async (instance: Instance) => (await instance.store.open(instance)).isReset;

      it('are lost if no instance has claimed any', async () => {
        for (const isShortlyBack of [true, false]) {
          const { instance, proxy } = await createTaken([], isShortlyBack);
          for (const name of await inboxes()) await server.client.hdel(name, '2');
          proxy.restore();
          assert.equal(await isLostFor(instance), true);
          await instance.store.close();
          await server.client.flushall();
        }
      });

      it('are lost although other instances found nothing to claim', async () => {
        const { instance, proxy } = await createTaken([], true);
        for (const name of await inboxes()) await server.client.hdel(name, '1', '2');
        await forgetSigns();
        await create().open();
        await until(async () => (await server.client.keys(`${prefix}gone:*`)).length > 0);
        proxy.restore();
        assert.equal(await isLostFor(instance), true);
      });

      for (const [what, wants] of [
        ['some', ['path /one']],
        ['all', ['path /one', 'path /other']],
      ] as const) {
        it(`belong to other instances that have claimed ${what} of them`, async () => {
          const { instance, proxy } = await createTaken([...wants]);
          proxy.restore();
          proxy.mute('hkeys');
          const opening = assert.rejects(instance.open());
          await until(() => proxy.isMute);
          proxy.cut();
          await opening;
          proxy.restore();
          assert.equal(await isLostFor(instance), false);
          assert.equal(await isLostFor(instance), true);
        });
      }
    });

    describe('several instances with RedisStore', () => {
      it('claim the items of a dead instance once, with their attempts', async () => {
        await createDead(entry('1'), entry('2', { attempts: 3 }), entry('3', { attempts: 0 }));
        const [one, other] = [create(), create()];
        await one.open();
        await other.open();
        await until(() => one.takenOver.length + other.takenOver.length > 0);
        const [heir, idle] = one.takenOver.length > 0 ? [one, other] : [other, one];
        assert.deepEqual(heir.takenOver, [entry('1'), entry('2', { attempts: 3 }), entry('3', { attempts: 0 })]);
        assert.deepEqual(idle.takenOver, []);
        await heir.drop('1', '2', '3');
        assert.equal(await countHeld(), 0);
      });

      it('do not claim the items of a live instance', async () => {
        const holder = create();
        await holder.open();
        await holder.keep(entry('1'));
        const other = create();
        await other.open();
        for (const name of await server.client.keys(`${prefix}alive:*`)) {
          await server.client.pexpire(name, 20_000);
          await until(async () => (await server.client.pttl(name)) > 20_000);
        }
        assert.deepEqual([other.takenOver, other.failures, holder.failures], [[], [], []]);
        await holder.drop('1');
        assert.equal(await countHeld(), 0);
      });

      it('claim immediately from an instance that has closed', async () => {
        const closedInstance = create();
        await closedInstance.open();
        await closedInstance.keep(entry('1'));
        await closedInstance.store.close();
        const heir = create(server.url, { timing: { ...timing, graceMs: 1e9 } });
        assert.deepEqual(await heir.open(), [entry('1')]);
      });

      it('wait for each other to return after an outage of all instances', async () => {
        await createDead(entry('1'));
        const patient = create(server.url, { timing: { ...timing, graceMs: 1e9 } });
        assert.deepEqual(await patient.open(), []);
        const heir = create();
        await heir.open();
        await until(() => heir.takenOver.length > 0);
        assert.deepEqual(patient.takenOver, []);
      });

      it('claim only items for their own nodes', async () => {
        const called = (node: string, path: string): Partial<Entry<'incoming'>> => ({
          channel: 'callback',
          address: { node, path },
          subscribers: [`node ${node}`, `path ${path}`],
        });
        const record: StatusRecord = { messageId: '2', from: '6421555001', statusCode: 'RCV', via: 'poll' };
        await createDead(
          entry('1'),
          { id: '2', part: 'inbox', subscribers: ['status'], channel: 'status', kind: 'status', record, attempts: 1 },
          entry('3', called('node', '/elsewhere')),
          entry('4', called('another', '/path')),
          entry('5', called('another', '/elsewhere')),
        );
        const polling = create();
        polling.wants = ['incoming'];
        await polling.open();
        await until(() => polling.takenOver.length > 0);
        assert.deepEqual(
          polling.takenOver.map(({ id }) => id),
          ['1'],
        );
        const calledBack = create();
        calledBack.wants = ['status', 'node node', 'path /path'];
        await calledBack.open();
        await until(() => calledBack.takenOver.length > 0);
        assert.deepEqual(
          calledBack.takenOver.map(({ id }) => id),
          ['2', '3', '4'],
        );
      });

      it('claim messages of missing nodes once, after the time for their return', async () => {
        const outgoing = (id: string, node: string) =>
          entry(id, { part: 'outgoing' as 'inbox', subscribers: [`node ${node}`] });
        await createDead(
          outgoing('1', 'gone'),
          entry('2', { subscribers: ['path /elsewhere'] }),
          outgoing('3', 'late'),
        );
        const [one, other, late] = [create(), create(), create()];
        late.wants = ['node late'];
        for (const instance of [one, other]) assert.deepEqual(await instance.open(), []);
        const reservations = () => server.client.keys(`${prefix}reserved:*`);
        await until(async () => (await reservations()).length > 0);
        await late.open();
        await until(() => late.takenOver.length > 0);
        assert.deepEqual([one.takenOver, other.takenOver, late.takenOver], [[], [], [outgoing('3', 'late')]]);
        for (const name of await reservations()) await server.client.del(name);
        const all = [one, other, late];
        const idsOf = (...instances: Instance[]) => instances.flatMap(({ takenOver }) => takenOver.map(({ id }) => id));
        await until(() => idsOf(...all).includes('1'));
        assert.deepEqual(idsOf(...all).sort(), ['1', '3']);
      });

      it('keep their unclaimed items if they return after they looked dead', async () => {
        const instance = create(server.url, { timing: { ...timing, heartbeatMs: 1e9 } });
        await instance.open();
        await instance.keep(entry('1', { part: 'outgoing' as 'inbox', subscribers: ['node elsewhere'] }));
        await forgetSigns();
        const other = create();
        await other.open();
        const marks = async () => [
          ...(await server.client.keys(`${prefix}gone:*`)),
          ...(await server.client.keys(`${prefix}reserved:*`)),
        ];
        await until(async () => (await marks()).length === 2);
        await instance.open();
        assert.deepEqual([await marks(), other.takenOver], [[], []]);
      });

      it('find the items of their nodes behind any number of others', async () => {
        const closedInstance = create(server.url, { timing: { ...timing, aliveMs: 1e9 } });
        await closedInstance.open();
        const names = Array.from({ length: 11_500 }, (_, index) => String(index).padStart(5, '0'));
        await closedInstance.keep(...names.map((name) => entry(name, { subscribers: ['path /elsewhere'] })));
        await closedInstance.keep(entry('wanted'), entry('too'));
        await closedInstance.store.close();
        const heir = create(server.url, { timing: { ...timing, aliveMs: 30_000 } });
        heir.wants = ['incoming'];
        assert.deepEqual(await heir.open(), [entry('too'), entry('wanted')]);
        heir.wants = ['path /elsewhere'];
        await until(() => heir.takenOver.length > 0);
        assert.deepEqual(
          heir.takenOver.map(({ id }) => id),
          names,
        );
      });

      it('do not commit after their heartbeat has expired', async () => {
        const stalled = create(server.url, { timing: { ...timing, heartbeatMs: 1e9 } });
        await stalled.open();
        await stalled.keep(entry('1'));
        await forgetSigns();
        const heir = create();
        await heir.open();
        await until(() => heir.takenOver.length > 0);
        await assert.rejects(stalled.drop('1'), lifeless);
        await assert.rejects(stalled.keep(entry('2')), lifeless);
        assert.equal(await countHeld(), 1);
        assert.deepEqual(await stalled.open(), []);
        await stalled.drop('1');
        await stalled.keep(entry('2'));
        assert.equal(await countHeld(), 2);
      });

      it('do not claim after their heartbeat has expired', async () => {
        const closedInstance = create();
        await closedInstance.open();
        await closedInstance.keep(entry('1'));
        await closedInstance.store.close();
        const { instance, proxy } = await createBehindProxy({ heartbeatMs: 1e9 });
        proxy.delay(100);
        const opening = assert.rejects(instance.open(), lifeless);
        // Deletes the heartbeat key during `open`, as if the process had been suspended until it expired.
        for (let isForgotten = false; !isForgotten; ) {
          for (const name of await server.client.keys(`${prefix}alive:*`)) {
            if ((await server.client.get(name)) !== 'left') isForgotten = (await server.client.del(name)) > 0;
          }
        }
        await opening;
        assert.equal(await countHeld(), 1);
        assert.deepEqual(await create().open(), [entry('1')]);
      });

      it('refuse a commit from before a reopening', async () => {
        const { instance, proxy } = await createBehindProxy();
        await instance.open();
        const { isHolding, release } = proxy.keepBack();
        const late = assert.rejects(instance.keep(entry('1')));
        await until(isHolding);
        proxy.cut();
        await late;
        proxy.restore();
        await instance.open();
        await release();
        assert.equal(await countHeld(), 0);
      });
    });

    describe('unreadable data', () => {
      it('is quarantined and reported once without its content', async () => {
        await createDead(entry('1'), entry('2', { attempts: 100 }));
        for (const text of ['{"secret', 'null', '[]', '{"id":"3","part":"inbox","subscribers":"all","attempts":1}']) {
          const [name = ''] = await inboxes();
          await server.client.hset(name, text, text);
        }
        const instance = create();
        await instance.open();
        await until(() => instance.takenOver.length > 0 && instance.unreadable.length === 5);
        assert.deepEqual(instance.takenOver, [entry('1')]);
        assert.equal(await server.client.hlen(`${prefix}unreadable`), 5);
        assert.equal(await countHeld(), 1);
        for (const detail of instance.unreadable) assert.doesNotMatch(detail, /secret|text/);
      });
    });

    it('is overwritten by a new value', async () => {
      const instance = create();
      await instance.open();
      await server.client.set(`${prefix}seen:id`, 'foreign', 'PX', 60_000);
      const recall = async () => new Map([['id', (await instance.store.recall(['id']))[0]]]);
      const recalled = await recall();
      assert.equal(recalled.get('id')?.forMs, 0);
      const changes = createChanges();
      changes.remember.set('id', remembered('new'));
      await instance.store.commit(changes, recalled);
      assert.deepEqual((await recall()).get('id'), remembered('new'));
      await assert.rejects(instance.store.commit(changes, recalled), StoreConflict);
    });

    describe('the keys of RedisStore', () => {
      it('have the prefix of the login and one cluster slot', async () => {
        await server.client.set('other', 'untouched');
        await server.client.set('sms:other', 'untouched');
        await createDead(entry('1'));
        const instance = create();
        await instance.open();
        await until(() => instance.takenOver.length > 0);
        await instance.remember('a', 'A', undefined);
        await instance.drop('1');
        const keys = (await server.client.keys('*')).filter((name) => !['other', 'sms:other'].includes(name));
        assert.deepEqual(
          keys.filter((name) => !name.startsWith(prefix)),
          [],
        );
        assert.deepEqual(
          new Set(keys.map((name) => name.slice(prefix.length).replace(/:.*/, ''))),
          new Set(['inbox', 'instances', 'seen', 'alive', 'gone']),
        );
        assert.deepEqual(await server.client.mget('other', 'sms:other'), ['untouched', 'untouched']);
      });

      it('expire, except items and the names of instances', async () => {
        const instance = create();
        await instance.open();
        await instance.keep(entry('1'));
        await instance.remember('a', 'A', undefined);
        const names = await server.client.keys('*');
        const lasting: string[] = [];
        for (const name of names) if ((await server.client.pttl(name)) < 0) lasting.push(name);
        assert.equal(names.length, 4);
        for (const name of await server.client.keys(`${prefix}alive:*`)) {
          assert.ok((await server.client.pttl(name)) <= timing.aliveMs);
        }
        assert.deepEqual(lasting.sort(), [...(await inboxes()), `${prefix}instances`]);
      });

      it('need only the rights in docs/deploying.md', async () => {
        await server.client.call('ACL', ['LOG', 'RESET']);
        const url = await createUser('gateway');
        await createDead(entry('1'));
        const instance = create(url);
        await instance.open();
        await until(() => instance.takenOver.length > 0);
        await instance.keep(entry('1', { attempts: 2 }), entry('2'));
        await instance.remember('a', 'A', undefined);
        await instance.remember('a', undefined, 'A');
        await instance.open();
        await instance.drop('1', '2');
        assert.deepEqual(await instance.store.recall(['a']), [undefined]);
        for await (const page of instance.store.pages()) assert.deepEqual(page.items, []);
        await instance.store.close();
        assert.deepEqual(instance.failures, []);
        const log = (await server.client.call('ACL', ['LOG'])) as unknown[];
        assert.deepEqual(log, []);
      });

      it('cannot be opened by a user without one of these rights', async () => {
        for (const right of [
          ...['+set', '+get', '+mget', '+del', '+eval', '+scan'],
          ...['+hset', '+hget', '+hmget', '+hkeys', '+hlen', '+hdel', '+sadd', '+smembers', '+srem'],
        ]) {
          const url = await createUser('gateway', right);
          await assert.rejects(
            create(url).open(),
            /^Error: Redis: (NOPERM|ERR) (the|this) user (has no permissions to run|executing the script can't run)/i,
            right,
          );
          assert.equal(await countHeld(), 0);
        }
        const instance = create();
        await instance.open();
        await instance.keep(entry('1'));
        assert.equal(await countHeld(), 1);
        assert.equal(await server.client.scard(`${prefix}instances`), 1);
      });
    });

    describe('logging in to Redis', () => {
      it('uses password and database number, and reports a wrong password', async () => {
        const guarded = closing.add(await RedisServer.start(program, { password: 'right' }), (it) => it.stop());
        const instance = create(`${guarded.url}/3`);
        await instance.open();
        await instance.keep(entry('1'));
        assert.equal(await guarded.client.dbsize(), 0);
        await assert.rejects(create(`${guarded.url}/99`).open(), /ERR DB index is out of range$/);
        await assert.rejects(create(`${guarded.url}/3`.replace('right', 'wrong')).open(), /WRONGPASS/);
      });
    });

    describe('failures of RedisStore', () => {
      it('report a lost connection once, and end with a reopening', async () => {
        const { instance, proxy } = await createBehindProxy();
        await instance.open();
        proxy.cut();
        await until(() => instance.failures.length > 0);
        await assert.rejects(instance.open(), /Redis/);
        await assert.rejects(instance.keep(entry('1')));
        proxy.restore();
        await instance.open();
        await instance.keep(entry('1'));
        assert.equal(instance.failures.length, 1);
      });

      it('include a server that does not answer', async () => {
        const { instance, proxy } = await createBehindProxy({ commandTimeoutMs: 2_000 });
        await instance.open();
        proxy.mute();
        await until(() => instance.failures.length > 0);
        assert.match(String(instance.failures[0]), /Redis: Command timed out/);
      });

      it('leave claimed items to other instances if `open` timed out', async () => {
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

      it('are not reported after it was closed', async () => {
        const { instance, proxy } = await createBehindProxy();
        await instance.open();
        await instance.store.close();
        proxy.cut();
        await assert.rejects(instance.keep(entry('1')), /not open/);
        assert.deepEqual(instance.failures, []);
      });

      it('leave no open connection', async () => {
        await server.client.set(`${prefix}instances`, 'no set');
        const before = await countClients();
        await assert.rejects(create().open(), /Redis: WRONGTYPE/);
        await until(async () => (await countClients()) <= before);
      });

      async function countClients(): Promise<number> {
        return String(await server.client.client('LIST'))
          .trim()
          .split('\n').length;
      }

      for (const [what, url, expected] of [
        ['a wrong password', (port: number) => `redis://:s3cret@127.0.0.1:${port}`, /WRONGPASS invalid/],
        ['a wrong user', (port: number) => `redis://s3cret:s3cret@127.0.0.1:${port}`, /WRONGPASS invalid/],
        ['no password', (port: number) => `redis://127.0.0.1:${port}`, /NOAUTH Authentication required/],
        ['a server without TLS', (port: number) => `rediss://:s3cret@127.0.0.1:${port}`, /ETIMEDOUT; .*TLS/],
        ['a server that does not run', () => 'redis://u:s3cret@127.0.0.1:1', /Redis: ECONNREFUSED/],
        ['a host that does not exist', () => 'redis://u:s3cret@s3cret.invalid', /Redis: E/],
      ] as const) {
        it(`name the cause without quoting the URL: ${what}`, async () => {
          const guarded = closing.add(await RedisServer.start(program, { password: 'right' }), (it) => it.stop());
          const ownTiming = { ...timing, commandTimeoutMs: 2_000 };
          await assert.rejects(create(url(guarded.port), { timing: ownTiming }).open(), (error: Error) => {
            assert.match(error.message, expected);
            assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /s3cret/);
            return true;
          });
        });
      }
    });
  });
}

describe('a server other than Redis', () => {
  const closing = new Closing();

  afterEach(() => closing.run());

  /** Opens a store on a server that answers in this way. Returns the error. */
  async function openOn(scheme: string, answer: (received: string) => string): Promise<Error> {
    const other = createServer((socket) => {
      socket.on('error', () => {}).on('data', (data) => socket.write(answer(String(data)), 'latin1'));
    });
    closing.add(other, () => other.close());
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const url = `${scheme}://gateway:gateway%3C.%20s3cret@127.0.0.1:${port}`;
    const instance = closing.add(new Instance(url), ({ store }) => store.close());
    const error = await instance.open().then(
      () => assert.fail('opened'),
      (reason: Error) => reason,
    );
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /gateway|s3cret/);
    return error;
  }

  for (const [what, scheme, answer, expected] of [
    ['is a web server', 'redis', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'the server does not speak Redis'],
    ['does not speak TLS', 'rediss', 'SSH-2.0-OpenSSH_9\r\n', '.*it may not speak TLS'],
  ] as const) {
    it(`raises an error without quoting the answer if it ${what}`, async () => {
      const { message } = await openOn(scheme, () => answer);
      assert.match(message, RegExp(`^Redis: ${expected}`));
      assert.doesNotMatch(message, /[^ -~]|RESP|report/);
    });
  }

  it('is reported without user and password, even if it quotes the commands', async () => {
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

describe('rediss://', () => {
  const closing = new Closing();

  afterEach(() => closing.run());

  it('trusts only the certificates of NODE_EXTRA_CA_CERTS', async () => {
    const plain = closing.add(await RedisServer.start(), (it) => it.stop());
    const [certificate, privateKey] = [join(plain.folder, 'cert.pem'), join(plain.folder, 'key.pem')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2'];
    const made = spawnSync('openssl', [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-keyout',
      privateKey,
      '-out',
      certificate,
      ...subject,
    ]);
    assert.equal(made.status, 0, `openssl is needed: ${made.error?.message ?? made.stderr}`);
    for (const [name, value] of [
      ['tls-cert-file', certificate],
      ['tls-key-file', privateKey],
      ['tls-ca-cert-file', certificate],
      ['tls-auth-clients', 'no'],
      ['port', '0'],
      ['tls-port', String(plain.port)],
    ] as const) {
      await plain.client.config('SET', name, value);
    }
    const script = createOpening(`rediss://localhost:${plain.port}`);
    const run = (env: NodeJS.ProcessEnv) => {
      const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8' });
      return stdout || stderr;
    };
    const { NODE_EXTRA_CA_CERTS: _, NODE_V8_COVERAGE: __, ...env } = process.env;
    assert.equal(run({ ...env, NODE_EXTRA_CA_CERTS: certificate }), 'opened');
    assert.equal(run(env), 'Redis: DEPTH_ZERO_SELF_SIGNED_CERT');
  });
});

describe('the Redis client', () => {
  it('is loaded only if an account with the store redis opens it', () => {
    const script = `
      const { RedisStore } = require(${JSON.stringify(join(root, 'dist', 'src'))});
      const isLoaded = () => Object.keys(require.cache).some((file) => /[\\\\/]ioredis[\\\\/]/.test(file));
      const before = isLoaded();
      const events = { wantedNames: () => [], onFailure() {}, onTakenOver() {} };
      new RedisStore({ url: 'redis://127.0.0.1:1', key: 'k' }).open(events).catch(() => {}).then(() => {
        process.stdout.write(JSON.stringify([before, isLoaded()]));
      });`;
    const { NODE_V8_COVERAGE: _, ...env } = process.env;
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', env });
    assert.equal(stdout, '[false,true]', stderr);
  });
});
