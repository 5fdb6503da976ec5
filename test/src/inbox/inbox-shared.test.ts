import assert from 'node:assert/strict';
import type { InboxSubscriber } from '../../../src/delivery/subscribers';
import type { Channel, Entry } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import { RedisStore, type RedisTiming } from '../../../src/store/redis';
import { formatRemembered, parseRemembered } from '../../../src/store/store';
import { RedisServer } from '../../redis-server';
import { TcpProxy } from '../../tcp-proxy';
import { until } from '../../until';
import { Closing } from '../closing';
import { incoming, polled } from './arrivals';
import { createInboxOn } from './inbox-on';

const key = '0123456789abcdef';
const inboxes = `sms:{${key}}:inbox:*`;
const timing: RedisTiming = {
  aliveMs: 30_000,
  heartbeatMs: 100,
  graceMs: 300,
  reservedMs: 1e9,
  commandTimeoutMs: 15_000,
};
const address = { node: 'callback', path: '/path' };

/** One process: an inbox with a polling node and a callback node. */
class Instance {
  readonly inbox: Inbox;
  readonly given: { entry: Entry; attempts: number; taker: InboxSubscriber }[] = [];
  #changed = () => {};
  #isFailing = false;

  constructor(
    url: string,
    private readonly isAcknowledgedAtOnce: boolean,
    channels: Channel[] = ['incoming', 'callback'],
    heartbeatMs = timing.heartbeatMs,
    private readonly hasFilter = false,
  ) {
    this.inbox = createInboxOn({
      store: new RedisStore({ url, key, timing: { ...timing, heartbeatMs, aliveMs: timing.aliveMs + heartbeatMs } }),
      dedupe: () => true,
      dedupeMs: () => 60_000,
      reopenDelayMs: 100,
      onStore: (error) => {
        this.#isFailing = error !== undefined;
        this.#changed();
      },
    });
    for (const channel of channels) this.inbox.attach(channel, this.#createTaker(channel));
  }

  poll(...records: IncomingRecord[]) {
    return this.inbox.accept(polled(...records));
  }

  callBack(record: IncomingRecord) {
    return this.inbox.accept({ kind: 'incoming', via: 'callback', records: [{ ...record, via: 'callback' }], address });
  }

  /** Acknowledges everything that the flow has received. */
  async acknowledge(): Promise<void> {
    for (const { entry, taker } of this.given) this.inbox.acknowledge(entry, taker);
    await this.inbox.journal.flush();
  }

  async untilGiven(count: number): Promise<void> {
    await this.#until(() => this.given.length >= count);
  }

  async untilFailing(isFailing: boolean): Promise<void> {
    await this.#until(() => this.#isFailing === isFailing);
    await this.inbox.journal.flush();
  }

  get last(): { entry: Entry; attempts: number; taker: InboxSubscriber } {
    const gift = this.given.at(-1);
    assert.ok(gift, 'nothing was given');
    return gift;
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** Adds a callback node. */
  attachAt(id: string, path: string): InboxSubscriber {
    const taker = this.#createTaker('callback', id, path);
    this.inbox.attach('callback', taker);
    return taker;
  }

  #createTaker(channel: Channel, id: string = channel, path = address.path): InboxSubscriber {
    const taker: InboxSubscriber = {
      id,
      ...(channel === 'callback' ? { path } : { wants: () => !this.hasFilter }),
      receive: (given) => {
        for (const { entry, attempt } of given) {
          if (attempt > entry.attempts) this.inbox.countAttempt(entry, attempt, id);
          this.given.push({ entry, attempts: entry.attempts, taker });
          if (this.isAcknowledgedAtOnce) this.inbox.acknowledge(entry, taker);
        }
        this.#changed();
      },
    };
    return taker;
  }
}

describe('Inboxes of several processes on one Redis', () => {
  const closing = new Closing();
  let redis: RedisServer;

  before(async () => {
    redis = await RedisServer.start();
  });

  after(() => redis?.stop());

  beforeEach(() => redis.client.flushall());

  afterEach(() => closing.run());

  async function create({
    url = redis.url,
    isAcknowledgedAtOnce = true,
    channels = undefined as Channel[] | undefined,
    heartbeatMs = undefined as number | undefined,
    hasFilter = false,
  } = {}): Promise<Instance> {
    const created = new Instance(url, isAcknowledgedAtOnce, channels, heartbeatMs, hasFilter);
    const instance = closing.add(created, ({ inbox }) => inbox.journal.close());
    await instance.inbox.journal.ready();
    return instance;
  }

  /** Creates an instance whose flow does not acknowledge. The proxy can cut its connection. */
  async function createHolder(): Promise<{ holder: Instance; proxy: TcpProxy }> {
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    return { holder: await create({ url: `redis://127.0.0.1:${proxy.port}`, isAcknowledgedAtOnce: false }), proxy };
  }

  /** Makes a process without connection look dead. */
  async function forgetSigns(): Promise<void> {
    for (const name of await redis.client.keys('sms:*:alive:*')) {
      if ((await redis.client.get(name)) !== 'left') await redis.client.del(name);
    }
  }

  /** Returns the number of entries of all processes. */
  async function countHeld(): Promise<number> {
    let count = 0;
    for (const name of await redis.client.keys(inboxes)) {
      count += (await redis.client.hkeys(name)).filter((id) => id !== '-').length;
    }
    return count;
  }

  async function isEmpty(): Promise<boolean> {
    return (await countHeld()) === 0;
  }

  describe('Inbox with duplicates in several processes', () => {
    it('delivers a record once if several processes receive it simultaneously', async () => {
      const instances = [await create(), await create(), await create()];
      for (let index = 0; index < 50; index++) {
        const record = incoming(`m${index}`);
        await Promise.all(
          instances.map((instance, at) => (at === 0 ? instance.poll(record) : instance.callBack(record))),
        );
      }
      const texts = instances.flatMap(({ given }) => given.map(({ entry }) => entry.record.body));
      assert.equal(texts.length, 50);
      assert.equal(new Set(texts).size, 50);
    });

    it('recognises a message without identifier of another process', async () => {
      const [one, other] = [await create(), await create()];
      await one.poll(incoming('m', { body: 'hello' }));
      const { messageId: _, ...anonymous } = incoming('m', { body: 'hello', messageDate: '2026-03-01T10:00:00Z' });
      assert.deepEqual(await other.callBack(anonymous as IncomingRecord), ['duplicate']);
    });

    it('does not forget messages by the clock of its machine', async () => {
      const [one, other] = [await create(), await create()];
      await one.poll(incoming('m'));
      const name = (await redis.client.keys('sms:*:seen:incoming:*'))[0] ?? '';
      const seen = parseRemembered((await redis.client.get(name)) ?? '');
      await redis.client.set(name, formatRemembered({ ...seen, at: 0 }));
      assert.deepEqual(await other.callBack(incoming('m')), ['duplicate']);
    });
  });

  describe('a callback that the flow has not acknowledged', () => {
    it('is a duplicate in another process that receives the retry', async () => {
      const { holder } = await createHolder();
      const other = await create();
      await holder.callBack(incoming('m'));
      assert.deepEqual(await other.callBack(incoming('m')), ['duplicate']);
      await holder.acknowledge();
      assert.deepEqual(await other.callBack(incoming('m')), ['duplicate']);
      assert.deepEqual(other.given, []);
      assert.ok(await isEmpty());
    });

    it('is claimed and delivered by another process if its own process dies', async () => {
      const { holder, proxy } = await createHolder();
      const heir = await create({ isAcknowledgedAtOnce: false });
      const other = await create({ channels: ['incoming'] });
      await holder.callBack(incoming('m'));
      proxy.cut();
      await forgetSigns();
      await heir.untilGiven(1);
      assert.equal(heir.last.attempts, 2);
      assert.deepEqual(await other.callBack(incoming('m')), ['duplicate']);
      await heir.acknowledge();
      assert.deepEqual(await other.callBack(incoming('m')), ['duplicate']);
      assert.ok(await isEmpty());
    });
  });

  it('deliver a callback of a dead process if no node receives its polled copy', async () => {
    const { holder, proxy } = await createHolder();
    const heir = await create({ hasFilter: true });
    await holder.poll(incoming('m'));
    assert.deepEqual(await heir.callBack(incoming('m')), ['duplicate']);
    proxy.cut();
    await forgetSigns();
    await heir.untilGiven(1);
    assert.equal(heir.last.taker.id, 'callback');
    assert.equal(heir.last.entry.record.via, 'callback');
    await heir.inbox.journal.flush();
    assert.deepEqual(await heir.callBack(incoming('m')), ['duplicate']);
    assert.equal(heir.given.length, 1);
    assert.ok(await isEmpty());
  });

  describe('Inbox on a connection that was cut', () => {
    it('delivers polled records immediately, and keeps them when Redis is back', async () => {
      const { holder, proxy } = await createHolder();
      proxy.cut();
      await holder.untilFailing(true);
      await holder.poll(incoming('m'));
      assert.equal(holder.last.entry.unsure, true);
      await assert.rejects(holder.callBack(incoming('n')), { code: 'SMS_STORE' });
      proxy.restore();
      await holder.untilFailing(false);
      assert.equal(await countHeld(), 1);
      await holder.acknowledge();
      assert.ok(await isEmpty());
    });

    it('delivers a record once if the reply to its commit is lost', async () => {
      const { holder, proxy } = await createHolder();
      proxy.mute('HSET');
      const accepted = holder.poll(incoming('m'));
      await until(async () => (await countHeld()) > 0);
      proxy.cut();
      await accepted;
      proxy.restore();
      await holder.untilFailing(false);
      await holder.acknowledge();
      assert.equal(holder.given.length, 1);
      assert.ok(await isEmpty());
    });

    const early = { body: 'yes', messageDate: '2026-03-01T10:00:00.100Z' };
    const late = { body: 'yes', messageDate: '2026-03-01T10:00:00.900Z' };

    it('merges the memories of two processes', async () => {
      const { holder, proxy } = await createHolder();
      const other = await create();
      proxy.cut();
      await holder.untilFailing(true);
      await holder.poll(incoming('early', early));
      const { messageId: _, ...anonymous } = incoming('late', late);
      await other.callBack(anonymous as IncomingRecord);
      proxy.restore();
      await holder.untilFailing(false);
      assert.deepEqual(await holder.poll(incoming('late', late)), ['duplicate']);
      assert.deepEqual(await other.poll(incoming('early', early)), ['repeated']);
    });
  });

  it('store their entries again if Redis has lost them, and accept more', async () => {
    const holder = await create({ isAcknowledgedAtOnce: false, heartbeatMs: 1e9 });
    const another = await create({ isAcknowledgedAtOnce: false });
    await holder.poll(incoming('polled'));
    await holder.callBack(incoming('called back'));
    await another.poll(incoming("another's"));
    for (const name of await redis.client.keys(inboxes)) await redis.client.del(name);
    assert.deepEqual(await holder.callBack(incoming('new')), ['new']);
    await until(async () => (await countHeld()) === 4);
    for (const instance of [holder, another]) await instance.acknowledge();
    const given = [holder, another].map((it) => it.given.map(({ entry }) => entry.record.messageId));
    assert.deepEqual(given, [['polled', 'called back', 'new'], ["another's"]]);
    await until(isEmpty);
  });
});
