import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InboxSubscriber } from '../../../src/delivery/subscribers';
import type { Channel, Entry } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import { MemoryStore } from '../../../src/store/memory';
import { RedisStore, type RedisTiming } from '../../../src/store/redis';
import { formatRemembered, parseRemembered } from '../../../src/store/store';
import { RedisServer } from '../../redis-server';
import { TcpProxy } from '../../tcp-proxy';
import { Closing } from '../closing';
import { createInboxOn, handOver, release } from './inbox-on';

const key = '0123456789abcdef';
const inboxes = `sms:{${key}}:inbox:*`;
const timing: RedisTiming = {
  aliveMs: 30_000,
  heartbeatMs: 100,
  graceMs: 300,
  reservedMs: 1e9,
  commandTimeoutMs: 2_000,
};
const address = { node: 'callback', path: '/path' };

function incoming(messageId: string, fields: Partial<IncomingRecord> = {}): IncomingRecord {
  const messageDate = '2026-03-01T10:00:00.123Z';
  return { messageId, from: '6421555001', body: messageId, messageDate, isReply: false, via: 'poll', ...fields };
}

/** One process: an inbox, with a node for polled messages and one that is called back. */
class Instance {
  readonly inbox: Inbox;
  readonly given: { entry: Entry; attempts: number; taker: InboxSubscriber }[] = [];
  /** Takes over from it. */
  replacedBy: Inbox | undefined;
  #changed = () => {};
  #isFailing = false;

  constructor(
    url: string,
    private readonly isAcknowledgedAtOnce: boolean,
    channels: Channel[] = ['incoming', 'callback'],
    heartbeatMs = timing.heartbeatMs,
  ) {
    this.inbox = createInboxOn({
      store: new RedisStore({ url, key, timing: { ...timing, heartbeatMs, aliveMs: timing.aliveMs + heartbeatMs } }),
      dedupe: () => true,
      dedupeMs: () => 60_000,
      replacedBy: () => this.replacedBy,
      reopenDelayMs: 100,
      onStore: (error) => {
        this.#isFailing = error !== undefined;
        this.#changed();
      },
    });
    for (const channel of channels) this.inbox.attach(channel, this.#createTaker(channel));
  }

  poll(...records: IncomingRecord[]) {
    return this.inbox.accept({ kind: 'incoming', via: 'poll', records });
  }

  callBack(record: IncomingRecord) {
    return this.inbox.accept({ kind: 'incoming', via: 'callback', records: [{ ...record, via: 'callback' }], address });
  }

  /** The flow acknowledges everything. */
  async acknowledge(): Promise<void> {
    for (const { entry, taker } of this.given) this.inbox.done(entry, taker);
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

  /** One more node that is called. */
  attachAt(id: string, path: string): InboxSubscriber {
    const taker = this.#createTaker('callback', id, path);
    this.inbox.attach('callback', taker);
    return taker;
  }

  #createTaker(channel: Channel, id: string = channel, path = address.path): InboxSubscriber {
    const taker: InboxSubscriber = {
      id,
      ...(channel === 'callback' ? { path } : undefined),
      take: (given) => {
        for (const { entry, attempt } of given) {
          if (attempt > entry.attempts) this.inbox.countAttempt(entry, attempt, id);
          this.given.push({ entry, attempts: entry.attempts, taker });
          if (this.isAcknowledgedAtOnce) this.inbox.done(entry, taker);
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
  } = {}): Promise<Instance> {
    const created = new Instance(url, isAcknowledgedAtOnce, channels, heartbeatMs);
    const instance = closing.add(created, ({ inbox }) => inbox.journal.close());
    await instance.inbox.journal.ready();
    return instance;
  }

  /** One whose flow acknowledges nothing by itself, and whose connection can be cut. */
  async function createHolder(): Promise<{ holder: Instance; proxy: TcpProxy }> {
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    return { holder: await create({ url: `redis://127.0.0.1:${proxy.port}`, isAcknowledgedAtOnce: false }), proxy };
  }

  /** Makes whoever is cut off look dead. */
  async function forgetSigns(): Promise<void> {
    for (const name of await redis.client.keys('sms:*:alive:*')) {
      if ((await redis.client.get(name)) !== 'left') await redis.client.del(name);
    }
  }

  /** Has a process that is closed leave so many undelivered. Returns what they are called, in order. */
  async function leave(count: number): Promise<string[]> {
    const { holder } = await createHolder();
    const names = Array.from({ length: count }, (_, index) => `m${index}`);
    await holder.poll(...names.map((name) => incoming(name)));
    await holder.inbox.journal.close();
    return names;
  }

  /** What is held there, by all together. */
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

  describe('duplicates', () => {
    it('delivers in one process what several get at the same moment, by callback and by polling', async () => {
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

    it('recognises without an identifier what another process has delivered', async () => {
      const [one, other] = [await create(), await create()];
      await one.poll(incoming('m', { body: 'hello' }));
      const { messageId: _, ...anonymous } = incoming('m', { body: 'hello', messageDate: '2026-03-01T10:00:00Z' });
      const [acceptance] = await other.callBack(anonymous as IncomingRecord);
      assert.deepEqual(acceptance, { outcome: 'duplicate' });
    });

    it('does not ask the clock of its machine what is outdated', async () => {
      const [one, other] = [await create(), await create()];
      await one.poll(incoming('m'));
      const name = (await redis.client.keys('sms:*:seen:incoming:*'))[0] ?? '';
      const seen = parseRemembered((await redis.client.get(name)) ?? '');
      await redis.client.set(name, formatRemembered({ ...seen, at: 0 }));
      const [acceptance] = await other.callBack(incoming('m'));
      assert.equal(acceptance?.outcome, 'duplicate');
    });
  });

  describe('a callback that a flow has not acknowledged yet', () => {
    it('does not count as delivered when its retry reaches another process', async () => {
      const { holder } = await createHolder();
      const other = await create();
      await holder.callBack(incoming('m'));
      assert.deepEqual(await other.callBack(incoming('m')), [{ outcome: 'duplicate', heldElsewhere: true }]);
      await holder.acknowledge();
      assert.deepEqual(await other.callBack(incoming('m')), [{ outcome: 'duplicate' }]);
      assert.deepEqual(other.given, []);
      assert.ok(await isEmpty());
    });

    it('is new to every process once the flow has refused it', async () => {
      const { holder } = await createHolder();
      const other = await create();
      await holder.callBack(incoming('m'));
      await release(holder.inbox, holder.last.entry);
      const [acceptance] = await other.callBack(incoming('m'));
      assert.equal(acceptance?.outcome, 'new');
      assert.equal(other.given.length, 1);
    });

    it('is new again after a refusal, also when it has no identifier and another process has polled it meanwhile', async () => {
      const { holder } = await createHolder();
      const other = await create();
      const { messageId: _, ...anonymous } = incoming('m');
      await holder.callBack(anonymous as IncomingRecord);
      assert.deepEqual(await other.poll(incoming('m')), [{ outcome: 'duplicate' }]);
      await release(holder.inbox, holder.last.entry);
      const [acceptance] = await other.callBack(anonymous as IncomingRecord);
      assert.equal(acceptance?.outcome, 'new');
    });

    it('is delivered by another process when its holder dies, and counts as delivered only then', async () => {
      const { holder, proxy } = await createHolder();
      const heir = await create({ isAcknowledgedAtOnce: false });
      const other = await create({ channels: ['incoming'] });
      await holder.callBack(incoming('m'));
      proxy.cut();
      await forgetSigns();
      // Whoever lives comes back under a new sign.
      await heir.untilGiven(1);
      assert.equal(heir.last.attempts, 2);
      assert.deepEqual(await other.callBack(incoming('m')), [{ outcome: 'duplicate', heldElsewhere: true }]);
      await heir.acknowledge();
      assert.deepEqual(await other.callBack(incoming('m')), [{ outcome: 'duplicate' }]);
      assert.ok(await isEmpty());
    });
  });

  describe('a callback whose node is gone', () => {
    /** Who holds it, and another process, which polls. */
    async function createStrander(): Promise<{ holder: Instance; other: Instance }> {
      const holder = await create({ isAcknowledgedAtOnce: false });
      const other = await create({ channels: ['incoming'] });
      await holder.callBack(incoming('m'));
      holder.inbox.detach('callback', holder.last.taker);
      return { holder, other };
    }

    it('counts as delivered in every process only when another node that is called has taken it', async () => {
      const { holder, other } = await createStrander();
      const node = holder.attachAt('other', '/other');
      await new Promise(setImmediate);
      const elsewhere = { kind: 'incoming', via: 'callback', address: { node: 'other', path: '/other' } } as const;
      const [acceptance] = await holder.inbox.accept({ ...elsewhere, records: [incoming('m', { via: 'callback' })] });
      assert.deepEqual([acceptance?.entry, holder.last.attempts, holder.last.taker], [holder.last.entry, 2, node]);
      assert.deepEqual(await other.callBack(incoming('m')), [{ outcome: 'duplicate', heldElsewhere: true }]);
      assert.equal(await countHeld(), 1);
      await holder.acknowledge();
      assert.deepEqual(await other.callBack(incoming('m')), [{ outcome: 'duplicate' }]);
      assert.ok(await isEmpty());
    });

    it('goes to those who poll, who alone have it then', async () => {
      const { holder, other } = await createStrander();
      holder.attachAt('other', '/other');
      await new Promise(setImmediate);
      await holder.poll(incoming('m'));
      assert.deepEqual([holder.last.entry.channel, holder.last.attempts], ['incoming', 2]);
      assert.deepEqual(await other.callBack(incoming('m')), [{ outcome: 'duplicate' }]);
      assert.equal(await countHeld(), 1);
      await holder.acknowledge();
      assert.deepEqual(other.given, []);
      assert.ok(await isEmpty());
    });
  });

  describe('a connection that was cut', () => {
    it('delivers at once, marked, what was polled meanwhile, and keeps it when Redis is back', async () => {
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

    it('delivers once what was polled, when the reply to its commit is lost', async () => {
      const { holder, proxy } = await createHolder();
      proxy.mute('HSET');
      const accepted = holder.poll(incoming('m'));
      while ((await countHeld()) === 0) await sleep(5);
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

    it('leaves what another process has remembered meanwhile of the same sender, text and second', async () => {
      const { holder, proxy } = await createHolder();
      const other = await create();
      proxy.cut();
      await holder.untilFailing(true);
      await holder.poll(incoming('early', early));
      const { messageId: _, ...anonymous } = incoming('late', late);
      await other.callBack(anonymous as IncomingRecord);
      proxy.restore();
      await holder.untilFailing(false);
      assert.deepEqual(await holder.poll(incoming('late', late)), [{ outcome: 'duplicate' }]);
      assert.deepEqual(await other.poll(incoming('early', early)), [{ outcome: 'repeated' }]);
    });

    it('takes over what another process has left, though of the same sender, text and second something came meanwhile', async () => {
      const { holder, proxy } = await createHolder();
      const leaver = await create({ isAcknowledgedAtOnce: false });
      proxy.cut();
      await holder.untilFailing(true);
      await holder.poll(incoming('early', early));
      const { messageId: _, ...anonymous } = incoming('late', late);
      await leaver.callBack(anonymous as IncomingRecord);
      await leaver.inbox.journal.close();
      proxy.restore();
      await holder.untilFailing(false);
      await holder.untilGiven(2);
      assert.equal(holder.last.entry.record.messageDate, late.messageDate);
      await holder.acknowledge();
      assert.ok(await isEmpty());
    });

    it('gives up what another process has taken over meanwhile, and tells the service to bring it again', async () => {
      const { holder, proxy } = await createHolder();
      const heir = await create({ isAcknowledgedAtOnce: false });
      await holder.callBack(incoming('m'));
      const ended = holder.inbox.ended(holder.last.entry);
      proxy.cut();
      await holder.untilFailing(true);
      await forgetSigns();
      await heir.untilGiven(1);
      proxy.restore();
      await holder.untilFailing(false);
      assert.equal(await ended, false);
      await holder.acknowledge();
      assert.equal(await isEmpty(), false);
      await heir.acknowledge();
      assert.ok(await isEmpty());
    });

    it('does not make new again, by a refusal of meanwhile, what another process has delivered', async () => {
      const { holder, proxy } = await createHolder();
      const heir = await create();
      await holder.callBack(incoming('m'));
      proxy.cut();
      await holder.untilFailing(true);
      await release(holder.inbox, holder.last.entry);
      await forgetSigns();
      await heir.untilGiven(1);
      proxy.restore();
      await holder.untilFailing(false);
      assert.deepEqual(await holder.callBack(incoming('m')), [{ outcome: 'duplicate' }]);
    });

    it('makes new again what it has refused meanwhile and nobody has taken over', async () => {
      const { holder, proxy } = await createHolder();
      await holder.callBack(incoming('m'));
      proxy.cut();
      await holder.untilFailing(true);
      const ended = holder.inbox.ended(holder.last.entry);
      await release(holder.inbox, holder.last.entry);
      assert.equal(await ended, false);
      proxy.restore();
      await holder.untilFailing(false);
      assert.ok(await isEmpty());
      assert.equal((await holder.callBack(incoming('m')))[0]?.outcome, 'new');
    });
  });

  it('keeps anew what it has in hand when Redis comes back empty', async () => {
    const { holder } = await createHolder();
    await holder.poll(incoming('m'));
    await holder.callBack(incoming('n'));
    await redis.kill();
    await holder.untilFailing(true);
    await redis.run();
    await holder.untilFailing(false);
    assert.equal(await countHeld(), 2);
    await holder.acknowledge();
    assert.ok(await isEmpty());
  });

  it('keeps anew what it has in hand when Redis has lost it, and takes what comes', async () => {
    const holder = await create({ isAcknowledgedAtOnce: false, heartbeatMs: 1e9 });
    const another = await create({ isAcknowledgedAtOnce: false });
    await holder.poll(incoming('polled'));
    await holder.callBack(incoming('called back'));
    await another.poll(incoming("another's"));
    for (const name of await redis.client.keys(inboxes)) await redis.client.del(name);
    assert.equal((await holder.callBack(incoming('new')))[0]?.outcome, 'new');
    while ((await countHeld()) < 4) await sleep(5);
    for (const instance of [holder, another]) await instance.acknowledge();
    const given = [holder, another].map((it) => it.given.map(({ entry }) => entry.record.messageId));
    assert.deepEqual(given, [['polled', 'called back', 'new'], ["another's"]]);
    while (!(await isEmpty())) await sleep(5);
  });

  it('keeps anew what it has in hand when a server takes the place of Redis that has not got the last of it yet', async () => {
    const { holder, proxy } = await createHolder();
    await holder.poll(incoming('first'));
    await holder.poll(incoming('last'));
    proxy.cut();
    await holder.untilFailing(true);
    for (const name of await redis.client.keys(inboxes)) await redis.client.hdel(name, holder.last.entry.id);
    proxy.restore();
    await holder.untilFailing(false);
    assert.equal(await countHeld(), 2);
    await holder.acknowledge();
    assert.equal(holder.given.length, 2);
    assert.ok(await isEmpty());
  });

  /** An inbox that is not shared, with a node that takes everything. */
  function createOther(): { other: Inbox; texts: unknown[] } {
    const texts: unknown[] = [];
    const options = { store: new MemoryStore(), dedupe: () => true, dedupeMs: () => 60_000, onStore: () => {} };
    const other = closing.add(createInboxOn(options), (it) => it.journal.close());
    other.attach('incoming', {
      id: 'node',
      take: (given) => texts.push(...given.map(({ entry }) => entry.record.body)),
    });
    return { other, texts };
  }

  it('hands over to another inbox only what the server does not have', async () => {
    const { holder, proxy } = await createHolder();
    await holder.poll(incoming('stored'));
    proxy.cut();
    await holder.untilFailing(true);
    await holder.poll(incoming('unstored'));
    const { other, texts } = createOther();
    await handOver(holder.inbox, other);
    await other.journal.flush();
    while (texts.length === 0) await sleep(1);
    assert.deepEqual(texts, ['unstored']);
    proxy.restore();
    assert.equal(await countHeld(), 1);
  });

  it('hands over everything when nobody else is to have it, and leaves nothing on the server', async () => {
    const { holder } = await createHolder();
    await holder.poll(incoming('m'));
    const { other, texts } = createOther();
    holder.replacedBy = other;
    await handOver(holder.inbox, other, { isLast: true });
    while (texts.length === 0) await sleep(1);
    assert.deepEqual(texts, ['m']);
    assert.ok(await isEmpty());
  });

  it('hands over what other processes leave, when they have ended and when they are dead', async () => {
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    // Neither takes over what the other leaves.
    const channels: Channel[] = ['callback'];
    const dead = await create({ url: `redis://127.0.0.1:${proxy.port}`, channels });
    const ended = await create({ channels });
    await dead.poll(incoming('dead'));
    await ended.poll(incoming('left'));
    await ended.inbox.journal.close();
    proxy.cut();
    await forgetSigns();
    const last = closing.add(new Instance(redis.url, false, []), ({ inbox }) => inbox.journal.close());
    const { other, texts } = createOther();
    last.replacedBy = other;
    await handOver(last.inbox, other, { isLast: true });
    while (texts.length < 1) await sleep(1);
    assert.deepEqual(texts, ['left']);
    await sleep(timing.graceMs + 2 * timing.heartbeatMs);
    await handOver(last.inbox, other, { isLast: true });
    while (texts.length < 2) await sleep(1);
    assert.deepEqual(texts, ['left', 'dead']);
    assert.ok(await isEmpty());
  });

  it('takes over all that another process has left, in order', async () => {
    const names = await leave(2_500);
    const heir = await create({ isAcknowledgedAtOnce: false, heartbeatMs: 1e9 });
    await heir.untilGiven(2_500);
    await heir.acknowledge();
    assert.deepEqual(
      heir.given.map(({ entry }) => entry.record.messageId),
      names,
    );
    assert.equal(await isEmpty(), true);
  });

  it('leaves what it has not delivered to another process when it is closed', async () => {
    const { holder } = await createHolder();
    await holder.poll(incoming('m'));
    await holder.inbox.journal.close();
    const heir = await create();
    await heir.untilGiven(1);
    assert.equal(heir.last.attempts, 2);
  });
});
