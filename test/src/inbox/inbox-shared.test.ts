import assert from 'node:assert/strict';
import type { Channel } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import { RedisStore } from '../../../src/store/redis';
import type { TcpProxy } from '../../tcp-proxy';
import { until } from '../../until';
import { RecordingSubscriber } from '../delivery/recording-subscriber';
import { key, RedisBench, timing } from '../store/redis-bench';
import { calledBack, incoming, polled } from './arrivals';
import { createInboxOn } from './inbox-on';

interface InstanceOptions {
  /** Whether each node acknowledges an entry immediately. */
  acknowledges?: boolean;
  /** Whether the polling node has a filter that rejects all records. */
  hasFilter?: boolean;
  heartbeatMs?: number;
}

/** One process: an inbox with a polling node and a callback node. */
class Instance {
  readonly inbox: Inbox;
  readonly nodes: RecordingSubscriber[];
  isFailing = false;

  constructor(url: string, options: InstanceOptions) {
    const { acknowledges = true, hasFilter = false, heartbeatMs = timing.heartbeatMs } = options;
    this.inbox = createInboxOn({
      store: new RedisStore({ url, key, timing: { ...timing, heartbeatMs, aliveMs: timing.aliveMs + heartbeatMs } }),
      onStore: (error) => {
        this.isFailing = error !== undefined;
      },
    });
    const channels: Channel[] = ['incoming', 'callback'];
    this.nodes = channels.map((channel) => {
      const wants = () => channel === 'callback' || !hasFilter;
      const node = new RecordingSubscriber(this.inbox, channel, { channel, wants });
      if (acknowledges) node.onReceive = (entries) => node.acknowledge(entries);
      return node;
    });
  }

  get received() {
    return this.nodes.flatMap(({ received }) => received);
  }

  poll(record: IncomingRecord) {
    return this.inbox.accept(polled(record));
  }

  callBack(record: IncomingRecord) {
    return this.inbox.accept(calledBack(record));
  }

  async acknowledgeAll(): Promise<void> {
    for (const node of this.nodes) node.acknowledge(node.received.map(({ entry }) => entry));
    await this.inbox.journal.flush();
  }

  async untilFailing(isFailing: boolean): Promise<void> {
    await until(() => this.isFailing === isFailing);
    await this.inbox.journal.flush();
  }
}

describe('Inbox on a shared Redis', () => {
  const bench = new RedisBench();
  const { closing, inboxes, countItems } = bench;

  async function create(options: InstanceOptions = {}, url = bench.server.url): Promise<Instance> {
    const instance = closing.add(new Instance(url, options), ({ inbox }) => inbox.journal.close());
    await instance.inbox.journal.ready();
    return instance;
  }

  /** Creates an instance whose flow does not acknowledge. The proxy can cut its connection. */
  async function createHolder(): Promise<{ holder: Instance; proxy: TcpProxy }> {
    const { proxy, url } = await bench.startProxy();
    return { holder: await create({ acknowledges: false }, url), proxy };
  }

  /** Cuts the connection of a process, and makes the process look dead. */
  async function die(proxy: TcpProxy): Promise<void> {
    proxy.cut();
    await bench.forgetSigns();
  }

  it('delivers a record once if three processes receive it', async () => {
    const instances = [await create(), await create(), await create()];
    for (let index = 0; index < 50; index++) {
      const record = incoming(`m${index}`);
      await Promise.all(
        instances.map((instance, at) => (at === 0 ? instance.poll(record) : instance.callBack(record))),
      );
    }
    const bodies = instances.flatMap(({ received }) => received.map(({ entry }) => entry.record.body));
    assert.deepEqual([bodies.length, new Set(bodies).size], [50, 50]);
  });

  it('delivers a callback if the process that polled its copy dies', async () => {
    const { holder, proxy } = await createHolder();
    const heir = await create({ hasFilter: true });
    await holder.poll(incoming('m'));
    assert.deepEqual(await heir.callBack(incoming('m')), ['duplicate']);
    await die(proxy);
    await until(() => heir.received.length > 0);
    assert.deepEqual(
      heir.nodes.map(({ received }) => received.map(({ entry }) => entry.record.via)),
      [[], ['callback']],
    );
    await heir.inbox.journal.flush();
    assert.deepEqual(await heir.callBack(incoming('m')), ['duplicate']);
    assert.deepEqual([heir.received.length, await countItems()], [1, 0]);
  });

  describe('when its connection is cut', () => {
    it('delivers a record once if the answer to a commit is lost', async () => {
      const { holder, proxy } = await createHolder();
      proxy.mute('HSET');
      const accepted = holder.poll(incoming('m'));
      await until(async () => (await countItems()) > 0);
      proxy.cut();
      await accepted;
      proxy.restore();
      await holder.untilFailing(false);
      await holder.acknowledgeAll();
      assert.deepEqual([holder.received.length, await countItems()], [1, 0]);
    });

    it('merges its memory of duplicates when Redis is back', async () => {
      const [body, second] = ['yes', '2026-03-01T10:00:00'];
      const early = incoming('early', { body, messageDate: `${second}.100Z` });
      const { messageId: _, ...late } = incoming('late', { body, messageDate: `${second}.900Z` });
      const { holder, proxy } = await createHolder();
      const other = await create();
      proxy.cut();
      await holder.untilFailing(true);
      await holder.poll(early);
      assert.equal(holder.received[0]?.entry.unsure, true);
      await other.callBack(late);
      await other.acknowledgeAll();
      proxy.restore();
      await holder.untilFailing(false);
      assert.equal(await countItems(), 1);
      assert.deepEqual(await holder.poll({ ...late, messageId: 'late' }), ['duplicate']);
      assert.deepEqual(await other.poll(early), ['repeated']);
    });
  });

  it('stores its entries again after Redis lost them', async () => {
    const holder = await create({ acknowledges: false, heartbeatMs: 1e9 });
    const another = await create({ acknowledges: false });
    await holder.poll(incoming('polled'));
    await holder.callBack(incoming('called back'));
    await another.poll(incoming("another's"));
    await bench.server.client.del(...(await inboxes()));
    assert.deepEqual(await holder.callBack(incoming('new')), ['new']);
    await until(async () => (await countItems()) === 4);
    for (const instance of [holder, another]) await instance.acknowledgeAll();
    const bodies = [holder, another].map(({ received }) => received.map(({ entry }) => entry.record.body));
    assert.deepEqual(bodies, [['polled', 'called back', 'new'], ["another's"]]);
    await until(async () => (await countItems()) === 0);
  });
});
