import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Dispatcher } from 'undici';
import { type Simulator, startSimulator } from '../../../simulator';
import { type Accounts, createAccounts } from '../../../src/account/accounts';
import type { JoinedMembership, OutboxSubscriber, Subscriber, Subscription } from '../../../src/account/membership';
import type { AccountSettings, ConnectionSettings } from '../../../src/account/settings';
import { onceAborted } from '../../../src/clock';
import type { FlowDelivery } from '../../../src/delivery/poll-subscription';
import { maxOutstanding } from '../../../src/delivery/poll-subscription';
import type { SmsError } from '../../../src/errors';
import { type Connections, createConnections } from '../../../src/http/connections';
import type { Entry } from '../../../src/inbox/entries';
import { QuietHours } from '../../../src/message/times';
import type { OutboxRecord } from '../../../src/model';
import type { OutcomeEvent } from '../../../src/outbox/sender-registrations';
import type { PollState } from '../../../src/polling/poll-loop';
import { DiskStore } from '../../../src/store/disk';
import { MemoryStore } from '../../../src/store/memory';
import type { Changes, RecoveredState, StoreEvents } from '../../../src/store/store';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
import { startRawService } from '../raw-service';
import { forever, sendText } from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';

/** A listening node that records its events. */
class Listener implements Subscriber {
  readonly deliveries: FlowDelivery[] = [];
  readonly states: PollState[] = [];
  readonly failures: SmsError[] = [];
  recoveries = 0;
  undelivered = 0;
  acknowledge: 'auto' | 'flow' = 'auto';
  ackTimeoutMs = 60_000;
  maxAttempts = 5;

  constructor(readonly id: string) {}

  get bodies(): unknown[] {
    return this.deliveries.map(({ record }) => record.body);
  }

  get stateNames(): string[] {
    return this.states.map(({ name }) => name);
  }

  wants(): boolean {
    return true;
  }

  send(delivery: FlowDelivery): Promise<boolean> {
    this.deliveries.push(delivery);
    return Promise.resolve(true);
  }

  onUndelivered(): void {
    this.undelivered++;
  }

  onState(state: PollState): void {
    this.states.push(state);
  }

  onFailing(error: SmsError): void {
    this.failures.push(error);
  }

  onRecovered(): void {
    this.recoveries++;
  }
}

describe('Account', () => {
  const closing = new Closing();
  const accounts = createAccounts();
  let simulator: Simulator;
  beforeEach(() => serve({ waitMs: 15_000 }));
  afterEach(() => closing.run());

  async function serve({ waitMs }: { waitMs: number }): Promise<void> {
    const options = { waitMs, statusDelayMs: Number.POSITIVE_INFINITY };
    simulator = closing.add(await startSimulator(options), (it) => it.close());
  }

  function settings(changes: Partial<AccountSettings> = {}): AccountSettings {
    return {
      id: 'account',
      baseUrl: simulator.baseUrl,
      authentication: { type: 'bearer', apiKey: simulator.credentials.apiKey },
      method: 'POST',
      timeoutMs: 5_000,
      concurrency: 8,
      queueLimit: 100,
      pauseMs: 0,
      parallelPolls: 1,
      dedupe: true,
      dedupeMs: 1_000_000,
      storeName: 'memory',
      createStore: () => new MemoryStore(),
      ...changes,
    };
  }

  /** Joins an account. The test leaves it before the service stops, so that the service ends the poll. */
  function enter(changes: Partial<AccountSettings> = {}): JoinedMembership {
    return closing.add(accounts.join(settings(changes)), async (membership) => {
      await membership.leave();
    });
  }

  function subscribe(
    membership: JoinedMembership,
    listener: Listener,
    kind: 'incoming' | 'status' = 'incoming',
  ): Subscription {
    return closing.add(membership.subscribe(kind, listener), (it) => it.close());
  }

  const receive = (body: string) => simulator.receive({ from: '6421555001', to: '642100000001', body });
  const polls = () => simulator.requests.filter(({ endpoint }) => endpoint === 'incoming').length;
  const isPolling = () => simulator.polling('incoming') === 1;

  async function leaveWhilePolling(member: JoinedMembership): Promise<void> {
    const subscription = subscribe(member, new Listener('a'));
    await until(isPolling);
    subscription.close();
    await member.leave();
  }

  describe('members', () => {
    it('share one poll loop per login, and all get every message', async () => {
      const [one, two] = [enter(), enter({ pauseMs: 60_000, concurrency: 1 })];
      assert.equal(one.inbox, two.inbox);
      const [a, b] = [new Listener('a'), new Listener('b')];
      subscribe(one, a);
      subscribe(two, b);
      await until(isPolling);
      for (const body of ['1', '2', '3']) receive(body);
      await until(() => b.deliveries.length === 3);
      assert.deepEqual(a.bodies, ['1', '2', '3']);
      assert.deepEqual(b.bodies, ['1', '2', '3']);
      await until(isPolling);
      assert.equal(polls(), 4);
    });

    it('are one login with basic and form of one user, but not with a key', () => {
      const { userId, password, apiKey } = simulator.credentials;
      const basic = enter({ authentication: { type: 'basic', userId, password } });
      const form = enter({ authentication: { type: 'form', userId, password } });
      const other = enter({ authentication: { type: 'form', userId: 'other', password } });
      const bearer = enter({ authentication: { type: 'bearer', apiKey: userId } });
      const elsewhere = enter({ baseUrl: 'http://127.0.0.1:1', authentication: { type: 'bearer', apiKey } });
      assert.equal(basic.inbox, form.inbox);
      assert.equal(new Set([basic, other, bearer, elsewhere].map(({ inbox }) => inbox)).size, 4);
    });

    it('use the settings of the member that started the poll loop, then of the next', async () => {
      const [one, two] = [enter({ pauseMs: 600_000, method: 'GET' }), enter({ pauseMs: 0 })];
      simulator.fault('incoming', { status: 204 });
      const [a, b] = [new Listener('a'), new Listener('b')];
      const first = subscribe(two, a);
      subscribe(one, b);
      await until(() => polls() > 3);
      assert.ok(!a.stateNames.includes('waiting'));
      assert.deepEqual(new Set(simulator.requests.map(({ method }) => method)), new Set(['POST']));
      simulator.fault('incoming', null);
      await until(isPolling);
      first.close();
      await two.leave();
      // A poll in flight keeps its settings. The next poll uses the settings of the other member.
      receive('1');
      await until(() => b.bodies.length === 1 && isPolling());
      assert.equal(simulator.requests.at(-1)?.method, 'GET');
      simulator.fault('incoming', { status: 204 });
      receive('2');
      await until(() => b.stateNames.includes('waiting'));
      assert.deepEqual(b.states.at(-1), { name: 'waiting', seconds: 600 });
    });

    it('use the store of the first member', async () => {
      const stores: string[] = [];
      const name = (storeName: string): Partial<AccountSettings> => ({
        storeName,
        createStore: () => {
          stores.push(storeName);
          return new MemoryStore();
        },
      });
      const [one, two] = [enter(name('one')), enter(name('two'))];
      subscribe(two, new Listener('a'));
      subscribe(one, new Listener('b'));
      assert.deepEqual(stores, ['two']);
    });

    it('run a poll loop only while a node watches', async () => {
      const one = enter();
      assert.equal(polls(), 0);
      const subscription = subscribe(one, new Listener('a'));
      await until(isPolling);
      subscription.close();
      receive('1');
      await until(() => simulator.polling('incoming') === 0);
      const b = new Listener('b');
      subscribe(one, b);
      await until(() => b.deliveries.length === 1);
      assert.deepEqual(b.bodies, ['1']);
    });

    it('report its state to a node that joins a running loop', async () => {
      const one = enter();
      subscribe(one, new Listener('a'));
      await until(isPolling);
      const b = new Listener('b');
      subscribe(one, b);
      assert.deepEqual(b.stateNames, ['listening']);
    });

    describe('connections', () => {
      /** Creates connections by name. Records the open ones, and the connections that each request used. */
      function openers() {
        const [open, used]: [Set<string>, string[]] = [new Set(), []];
        const opener = (name: string) => (options: ConnectionSettings) => {
          const connections = createConnections(options);
          open.add(name);
          return {
            dispatch(...exchange: Parameters<Connections['dispatch']>) {
              used.push(name);
              return connections.dispatch(...exchange);
            },
            close: () => connections.close().then(() => void open.delete(name)),
          };
        };
        return { open, used, opener };
      }

      it('are those of the first member, and close when the last request ends', async () => {
        const { open, used, opener } = openers();
        const one = enter({ id: 'one', createConnections: opener('one') });
        const two = enter({ id: 'two', createConnections: opener('two') });
        const a = new Listener('a');
        subscribe(two, a);
        await until(isPolling);
        await two.client.readFeed();
        await one.leave();
        assert.deepEqual([...open], ['one', 'two']);
        await two.client.readFeed();
        assert.deepEqual(used, ['one', 'one', 'two']);
        receive('1');
        await until(() => a.deliveries.length === 1);
        await until(() => !open.has('one'));
        await until(isPolling);
        assert.deepEqual(used, ['one', 'one', 'two', 'two']);
        assert.equal(simulator.requests.filter(({ aborted }) => aborted).length, 0);
      });

      it('stay open if the next member has the same settings', async () => {
        const { open, used, opener } = openers();
        const way = () => ({
          proxy: { url: 'http://proxy.test', noProxy: ['127.0.0.1'] },
          tls: { ca: Buffer.from('ca') },
        });
        const createConnections = opener('both');
        const one = enter({ id: 'one', createConnections, ...way() });
        const two = enter({ id: 'two', createConnections, ...way() });
        await one.leave();
        await enter({ id: 'one', createConnections, ...way() }).client.readFeed();
        await two.client.readFeed();
        assert.deepEqual([[...open], used], [['both'], ['both', 'both']]);
      });

      it('need usable settings of each member', () => {
        enter({ id: 'one' });
        const isRefused = ({ code }: SmsError) => code === 'SMS_CONFIG';
        assert.throws(() => enter({ id: 'two', proxy: { url: 'ftp://proxy.test' } }), isRefused);
      });
    });

    it('shares one queue among all sends', async () => {
      const [one, two] = [enter({ concurrency: 1, queueLimit: 1 }), enter({ concurrency: 8, queueLimit: 8 })];
      simulator.fault('send', { delayMs: 50 });
      const send = (membership: JoinedMembership, messageId: string) =>
        new Promise<void>((resolve, reject) => {
          const node = membership.attachSender({
            id: messageId,
            usesStore: false,
            onOutcome: ({ outcome }) => {
              if (outcome instanceof Error) reject(outcome);
              else resolve();
              return Promise.resolve(true);
            },
            onAnswer: () => Promise.resolve(true),
            onReport: () => Promise.resolve(true),
            onDiscarded: () => {},
            onOutage: () => {},
            onRecovered: () => {},
            onState: () => {},
          });
          node.send({
            message: { to: ['6421555123'], body: 'x', messageId },
            encoding: 'GSM-7',
            parts: 1,
            options: { retries: 0, retryUncertain: false, resolveMs: 0, priority: 0, unlimited: false },
            origin: undefined,
            flowMessage: () => '',
          });
        });
      const [first, second] = [send(one, '1'), send(two, '2')];
      await assert.rejects(send(two, '3'), { code: 'SMS_BUSY' });
      await Promise.all([first, second]);
      assert.deepEqual(
        simulator.messages.map(({ messageId }) => messageId),
        ['1', '2'],
      );
    });

    it('runs separate loops for statuses and incoming messages', async () => {
      const one = enter();
      const [a, b] = [new Listener('a'), new Listener('a')];
      subscribe(one, a);
      subscribe(one, b, 'status');
      simulator.status({ messageId: 'm', msisdn: '6421555001', statusCode: 'RCV' });
      receive('1');
      await until(() => a.deliveries.length + b.deliveries.length === 2);
      assert.equal(b.deliveries[0]?.record.statusCode, 'RCV');
    });
  });

  describe('failures', () => {
    it('are reported once to each node, and their end to the first', async () => {
      simulator.fault('incoming', { status: 500 }, 2);
      const one = enter();
      const [a, b] = [new Listener('a'), new Listener('b')];
      subscribe(one, a);
      subscribe(one, b);
      await until(() => a.failures.length === 1);
      const late = new Listener('late');
      subscribe(one, late);
      assert.equal(late.failures.length, 1);
      receive('1');
      await until(() => a.deliveries.length === 1);
      for (const { failures } of [a, b, late]) assert.equal(failures.length, 1);
      assert.deepEqual([a.recoveries, b.recoveries, late.recoveries], [1, 0, 0]);
      assert.deepEqual([a.bodies, b.bodies, late.bodies], [['1'], ['1'], ['1']]);
    });

    it('are reported as ended to the next node if the first has left', async () => {
      simulator.fault('incoming', { status: 500 }, 2);
      const one = enter();
      const [a, b, c] = [new Listener('a'), new Listener('b'), new Listener('c')];
      const subscription = subscribe(one, a);
      subscribe(one, b);
      subscribe(one, c);
      await until(() => a.failures.length === 1);
      subscription.close();
      receive('1');
      await until(() => b.deliveries.length === 1);
      assert.deepEqual([a.recoveries, b.recoveries, c.recoveries], [0, 1, 0]);
    });

    it('are not followed by a state listening', async () => {
      await simulator.setOnline(false);
      const a = new Listener('a');
      subscribe(enter(), a);
      await until(() => a.failures.length === 1);
      assert.deepEqual(a.stateNames, ['failing']);
    });

    it('are reported to new nodes after a redeploy, without a recovery', async () => {
      simulator.fault('incoming', { status: 500 });
      const one = enter();
      const before = new Listener('a');
      const subscription = subscribe(one, before);
      await until(() => before.failures.length === 1);
      subscription.close();
      const after = new Listener('a');
      subscribe(one, after);
      await until(() => after.failures.length === 1);
      assert.equal(after.recoveries, 0);
    });
  });

  describe('a redeploy', () => {
    it('gives a poll in flight to the next member of the login', async () => {
      const one = enter();
      await leaveWhilePolling(one);
      const two = enter();
      assert.equal(two.inbox, one.inbox);
      const b = new Listener('a');
      subscribe(two, b);
      receive('1');
      await until(() => b.deliveries.length === 1);
      assert.deepEqual(b.bodies, ['1']);
      assert.equal(simulator.requests.filter(({ aborted }) => aborted).length, 0);
    });

    it('keeps messages that arrive without members for the next member', async () => {
      const one = enter();
      await leaveWhilePolling(one);
      receive('1');
      await until(() => simulator.requests.some(({ ended }) => ended));
      const b = new Listener('b');
      subscribe(enter(), b);
      await until(() => b.deliveries.length === 1);
      assert.deepEqual(b.bodies, ['1']);
    });

    it('never causes two polls at the same time', async () => {
      let most = 0;
      simulator.on('change', () => {
        most = Math.max(most, simulator.polling('incoming'));
      });
      const listeners: Listener[] = [];
      for (let index = 0; index < 10; index++) {
        const member = accounts.join(settings());
        const listener = new Listener('a');
        listeners.push(listener);
        const subscription = member.subscribe('incoming', listener);
        if (index % 2) await until(isPolling);
        receive(String(index));
        if (index % 3) await new Promise(setImmediate);
        subscription.close();
        await member.leave();
      }
      const last = new Listener('a');
      listeners.push(last);
      subscribe(enter(), last);
      await until(() => new Set(listeners.flatMap(({ bodies }) => bodies)).size === 10);
      assert.equal(most, 1);
    });

    it('waits for the rest of an answer that has begun to arrive', async () => {
      let finish = () => {};
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        incoming.resume();
        outgoing.writeHead(200, { 'content-type': 'application/x-www-form-urlencoded' });
        outgoing.write('messageId=1&from=6421555001&');
        finish = () => outgoing.end('body=whole');
      });
      const disk = new FakeDisk();
      const changes = { baseUrl, storeName: 'failing', createStore: () => new FailingStore(disk) };
      const one = enter(changes);
      let isArriving = false;
      const poll = one.client.pollIncoming.bind(one.client);
      one.client.pollIncoming = (options) =>
        poll({
          ...options,
          onAnswer: () => {
            isArriving = true;
            options?.onAnswer?.();
          },
        });
      const subscription = subscribe(one, new Listener('a'));
      await until(() => isArriving);
      subscription.close();
      let hasLeft = false;
      const leaving = one.leave().then(() => {
        hasLeft = true;
      });
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
      assert.equal(hasLeft, false);
      finish();
      await leaving;
      assert.deepEqual(
        [...disk.entries.values()].map((text) => (JSON.parse(text) as Entry).record.body),
        ['whole'],
      );
      const b = new Listener('b');
      subscribe(enter(changes), b);
      await until(() => b.deliveries.length === 1);
    });

    it('ignores a second call of leave', async () => {
      const [one, two] = [enter(), enter()];
      await Promise.all([one.leave(), one.leave()]);
      const a = new Listener('a');
      subscribe(two, a);
      receive('1');
      await until(() => a.deliveries.length === 1);
    });
  });

  it('reports the place of unreadable data, and continues', async () => {
    const disk = new FakeDisk();
    disk.hold('{"kind":"incoming","records":[{"mess');
    const places: string[] = [];
    const onDamaged = ({ params }: SmsError) => void places.push(String(params.place));
    const member = enter({ storeName: 'failing', createStore: () => new FailingStore(disk), onDamaged });
    const a = new Listener('a');
    subscribe(member, a);
    receive('1');
    await until(() => a.deliveries.length === 1);
    assert.deepEqual([places, disk.quarantined.length], [['a place'], 1]);
    const { store } = member.state();
    assert.deepEqual([store.ok, store.error?.reason], [true, 'storeUnreadable']);
  });

  describe('the store', () => {
    const failing = (disk: FakeDisk) => {
      const stores: FailingStore[] = [];
      const createStore = () => {
        const store = new FailingStore(disk);
        stores.push(store);
        return store;
      };
      return { stores, changes: { storeName: 'failing', createStore } };
    };

    it('stops polls without a loss while it fails, and recovers', async function () {
      this.timeout(30_000);
      const { stores, changes } = failing(new FakeDisk());
      const one = enter(changes);
      const a = new Listener('a');
      subscribe(one, a);
      await until(isPolling);
      stores[0]?.failing.add('commit');
      receive('1');
      await until(() => a.failures.length === 1);
      receive('2');
      assert.deepEqual(a.bodies, ['1']);
      assert.equal(a.failures[0]?.code, 'SMS_STORE');
      assert.equal(a.stateNames.at(-1), 'failing');
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(simulator.polling('incoming'), 0);
      const late = new Listener('late');
      subscribe(one, late);
      assert.equal(late.failures.length, 1);
      stores[0]?.failing.clear();
      await until(() => a.deliveries.length === 2);
      assert.deepEqual(a.bodies, ['1', '2']);
      assert.deepEqual([a.failures.length, a.recoveries], [1, 1]);
    });

    const read = () => simulator.incoming.filter((message) => message.read).length;
    /** `parallelPolls` + 2. */
    const mostUnderWay = 3;

    it('lets a few polls run ahead while it writes, in order', async () => {
      const disk = new FakeDisk();
      const { stores, changes } = failing(disk);
      const a = new Listener('a');
      subscribe(enter(changes), a);
      await until(isPolling);
      const [store] = stores;
      assert.ok(store);
      store.turns = Number.POSITIVE_INFINITY;
      const bodies = Array.from({ length: 20 }, (_, index) => `${index}`);
      bodies.forEach(receive);
      await until(() => disk.held.size === mostUnderWay);
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.deepEqual([read(), simulator.polling('incoming'), a.bodies], [mostUnderWay, 0, []]);
      store.turns = 0;
      await until(() => a.deliveries.length === 20);
      assert.deepEqual(a.bodies, bodies);
    });

    it('keeps messages that were being polled when it failed', async function () {
      this.timeout(30_000);
      const { stores, changes } = failing(new FakeDisk());
      const a = new Listener('a');
      subscribe(enter(changes), a);
      await until(isPolling);
      const [store] = stores;
      assert.ok(store);
      store.turns = Number.POSITIVE_INFINITY;
      const bodies = Array.from({ length: 20 }, (_, index) => `${index}`);
      bodies.forEach(receive);
      await until(() => read() === mostUnderWay);
      store.failing.add('commit');
      store.turns = 0;
      await until(() => a.failures.length === 1 && a.deliveries.length === mostUnderWay);
      assert.equal(read(), mostUnderWay);
      store.failing.clear();
      await until(() => a.deliveries.length === 20);
      assert.deepEqual(a.bodies, bodies);
    });

    it('does not poll ahead of the limit of unacknowledged messages', async () => {
      const { stores, changes } = failing(new FakeDisk());
      const a = new Listener('a');
      a.acknowledge = 'flow';
      subscribe(enter({ ...changes, parallelPolls: 4 }), a);
      await until(isPolling);
      for (const store of stores) store.turns = 20;
      for (let index = 0; index < maxOutstanding + 20; index++) receive(`${index}`);
      await until(() => a.deliveries.length === maxOutstanding && a.stateNames.at(-1) === 'paused');
      assert.equal(read(), maxOutstanding);
    });

    it('prevents the first poll if it cannot be opened', async () => {
      const disk = new FakeDisk();
      const { stores, changes } = failing(disk);
      const one = enter(changes);
      // The first access to the inbox creates the store.
      assert.equal(one.inbox.journal.failure, undefined);
      stores[0]?.failing.add('open');
      const a = new Listener('a');
      subscribe(one, a);
      await until(() => a.failures.length === 1);
      assert.equal(polls(), 0);
      assert.equal(a.failures[0]?.code, 'SMS_STORE');
    });

    it('continues for a later account of the login, on disk', async () => {
      const folder = closing.add(await mkdtemp(join(tmpdir(), 'account-')), (path) =>
        rm(path, { recursive: true, force: true }),
      );
      const keys = new Set<string>();
      const changes = {
        storeName: 'disk',
        createStore: (key: string) => {
          keys.add(key);
          return new DiskStore(join(folder, key));
        },
      };
      const one = enter(changes);
      const a = new Listener('a');
      a.acknowledge = 'flow';
      const subscription = subscribe(one, a);
      receive('1');
      await until(() => a.deliveries.length === 1 && isPolling());
      subscription.close();
      await one.leave();
      receive('2');
      let two = accounts.join(settings(changes));
      while (two.inbox === one.inbox) {
        await two.leave();
        two = accounts.join(settings(changes));
      }
      closing.add(two, (it) => it.leave());
      const b = new Listener('a');
      subscribe(two, b);
      await until(() => b.deliveries.length === 2);
      assert.deepEqual(
        b.deliveries.map(({ record, redelivered }) => [record.body, redelivered]),
        [
          ['1', true],
          ['2', false],
        ],
      );
      assert.equal(keys.size, 1);
      assert.match([...keys].join(), /^[0-9a-f]{32}$/);
    });

    it('is released by an account without members if it is durable', async () => {
      const { changes } = failing(new FakeDisk());
      const seen = new Set<unknown>();
      for (let index = 0; index < 3; index++) {
        const member = accounts.join(settings(changes));
        seen.add(member.inbox);
        await member.inbox.journal.ready();
        await member.leave();
      }
      assert.equal(seen.size, 3);
    });

    it('keeps its data in memory without members', async () => {
      const [clock, process] = [new VirtualClock(), createAccounts()];
      const join = () => process.join(settings({ clock }));
      const one = join();
      await one.changeOptOuts(['6421555001'], 'out');
      await Promise.all([one.leave(), clock.advance(3_600_000)]);
      const two = join();
      assert.equal((await two.optOuts()).total, 1);
      await Promise.all([two.leave(), clock.advance(1_000)]);
    });

    it('does not report a missing node while it has no members', async () => {
      const [clock, process] = [new VirtualClock(), createAccounts()];
      const untaken: string[] = [];
      const join = () => process.join(settings({ clock, onUntaken: (kind) => untaken.push(kind) }));
      const one = join();
      const node = Object.assign(new Listener('a'), { acknowledge: 'flow' as const, path: '/sms' });
      const subscription = one.subscribe('callback', node);
      const record = { from: '6421555001', body: '1', isReply: false, via: 'callback' } as const;
      const accepting = subscription.accept({ kind: 'incoming', records: [record] });
      await Promise.all([accepting, clock.advance(100)]);
      assert.equal(node.deliveries.length, 1);
      subscription.close();
      await Promise.all([one.leave(), clock.advance(100)]);
      await clock.advance(60_000);
      assert.deepEqual(untaken, []);
      const two = join();
      await two.inbox.journal.ready();
      await clock.advance(60_000);
      assert.deepEqual([untaken, two.state().inbox.unhandled], [['incoming'], 1]);
      await Promise.all([two.leave(), clock.advance(100)]);
    });

    it('keeps unwritten data in memory if it cannot write', async () => {
      const disk = new FakeDisk();
      const { stores, changes } = failing(disk);
      const one = enter(changes);
      const a = new Listener('a');
      a.acknowledge = 'flow';
      const subscription = subscribe(one, a);
      await until(isPolling);
      stores[0]?.failing.add('commit');
      receive('1');
      await until(() => a.deliveries.length === 1);
      subscription.close();
      await one.leave();
      stores[0]?.failing.clear();
      const two = enter(changes);
      assert.equal(two.inbox, one.inbox);
      const b = new Listener('a');
      subscribe(two, b);
      await until(() => b.deliveries.length === 1);
      assert.deepEqual([b.bodies, b.deliveries[0]?.redelivered], [['1'], true]);
    });
  });

  describe('acknowledge flow', () => {
    it('pauses at 100 unacknowledged messages, and continues later', async () => {
      const one = enter();
      const a = new Listener('a');
      a.acknowledge = 'flow';
      const subscription = subscribe(one, a);
      for (let index = 0; index < 105; index++) receive(String(index));
      await until(() => a.states.at(-1)?.name === 'paused');
      assert.deepEqual(a.states.at(-1), { name: 'paused', unacknowledged: 100 });
      assert.equal(a.deliveries.length, 100);
      assert.equal(simulator.polling('incoming'), 0);
      assert.equal(subscription.acknowledge(a.deliveries[0]?.ackId ?? '', false), true);
      await until(() => a.deliveries.length === 101);
      await until(() => a.states.at(-1)?.name === 'paused');
      for (const { ackId } of a.deliveries) subscription.acknowledge(ackId ?? '', false);
      await until(() => a.deliveries.length === 105);
      assert.deepEqual(
        a.bodies,
        Array.from({ length: 105 }, (_, index) => String(index)),
      );
    });

    it('continues if their node is removed', async () => {
      const one = enter();
      const [a, b] = [new Listener('a'), new Listener('b')];
      a.acknowledge = 'flow';
      const subscription = subscribe(one, a);
      subscribe(one, b);
      for (let index = 0; index < 102; index++) receive(String(index));
      await until(() => a.states.at(-1)?.name === 'paused');
      subscription.close();
      await until(() => b.deliveries.length === 102);
    });
  });

  describe('its clock and connections', () => {
    /** Refuses every connection. */
    class NoConnections extends Dispatcher {
      asked = 0;
      isClosed = false;

      override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
        this.asked++;
        handler.onResponseError?.(undefined as never, Object.assign(new Error('none'), { code: 'ECONNREFUSED' }));
        return true;
      }

      override close(): Promise<void> {
        this.isClosed = true;
        return Promise.resolve();
      }
    }

    it('are those passed as options', async () => {
      const [clock, connections] = [new VirtualClock(), new NoConnections()];
      const one = enter({ baseUrl: 'http://sms.test', clock, createConnections: () => connections, pauseMs: 600_000 });
      const a = new Listener('a');
      const subscription = subscribe(one, a);
      await clock.advance(3_600_000);
      assert.ok(connections.asked > 60 && connections.asked < 80, `${connections.asked} polls in an hour`);
      assert.deepEqual(a.stateNames, ['failing']);
      subscription.close();
      const leaving = one.leave();
      await clock.advance(1);
      await leaving;
      assert.ok(connections.isClosed);
    });

    /** Attaches a sending node that records its outcomes. */
    function attachSender(membership: JoinedMembership, { id = 'send', usesStore = true } = {}) {
      const outcomes: OutcomeEvent[] = [];
      const node = membership.attachSender({
        id,
        usesStore,
        onOutcome: (news) => {
          outcomes.push(news);
          return Promise.resolve(true);
        },
        onAnswer: () => Promise.resolve(true),
        onReport: () => Promise.resolve(true),
        onDiscarded: () => {},
        onOutage: () => {},
        onRecovered: () => {},
        onState: () => {},
      });
      return { node, outcomes };
    }

    it('applies the limits of another member, also during its redeploy', async () => {
      const limits = { perHandset: 1, perHandsetMs: 3_600_000 };
      const { node, outcomes } = attachSender(enter({ id: 'first' }));
      const send = async () => {
        const before = outcomes.length;
        sendText({ node }, 'x', { to: ['6421555001'] });
        await until(() => outcomes.length > before);
        return codeOf(outcomes.at(-1) as OutcomeEvent);
      };
      let settle = () => {};
      const returning = () =>
        new Promise<void>((resolve) => {
          settle = resolve;
        });
      const second = enter({ id: 'second', limits });
      assert.equal(await send(), undefined);
      void second.leave(returning());
      assert.equal(await send(), 'SMS_LIMIT');
      const back = enter({ id: 'second', limits: { ...limits, perHandset: 2 } });
      assert.equal(await send(), undefined);
      settle();
      assert.equal(await send(), 'SMS_LIMIT');
      void back.leave(returning());
      assert.equal(await send(), 'SMS_LIMIT');
      settle();
      assert.equal(await send(), undefined);
      await node.close();
    });

    it('checks scheduled messages only if quiet hours change', async () => {
      const quietHours = { from: 1_260, to: 420, timeZone: 'UTC' };
      const { node } = attachSender(enter({ id: 'first', quietHours }));
      const other = enter({ id: 'second', quietHours });
      const tomorrow = { time: Date.now() + 24 * 3_600_000, keep: forever };
      for (let count = 0; count < 10; count++) sendText({ node }, 'x', { at: tomorrow });
      await until(() => other.state().sends.scheduled === 10);
      const { endOf } = QuietHours.prototype;
      let looks = 0;
      closing.add(endOf, () => {
        QuietHours.prototype.endOf = endOf;
      });
      QuietHours.prototype.endOf = function (instant) {
        looks++;
        return endOf.call(this, instant);
      };
      await other.leave();
      await enter({ id: 'third', quietHours }).leave();
      assert.equal(looks, 0);
      enter({ id: 'fourth', quietHours: { ...quietHours, to: 480 } });
      assert.ok(looks >= 10);
      await node.close();
    });

    /** Settings with one store per login. Its data outlives the account. */
    function onDisk(turns = 0): Pick<AccountSettings, 'storeName' | 'createStore'> {
      const stores = new Map<string, FailingStore>();
      const createStore = (key: string) => {
        const store = new FailingStore(stores.get(key)?.disk);
        store.turns = turns;
        stores.set(key, store);
        return store;
      };
      return { storeName: 'disk', createStore };
    }

    const codeOf = ({ outcome }: OutcomeEvent) => ('code' in outcome ? outcome.code : undefined);

    describe('a stored message', () => {
      const minute = 60_000;

      /** Joins an account whose service is unreachable. */
      function enterAlone(clock: VirtualClock, changes: Partial<AccountSettings> = {}, process = createAccounts()) {
        const abandoned: string[] = [];
        const membership = process.join(
          settings({
            baseUrl: 'http://sms.test',
            clock,
            createConnections: () => new NoConnections(),
            onAbandoned: (node) => abandoned.push(node),
            ...changes,
          }),
        );
        const leave = () => Promise.all([membership.leave(), clock.advance(20_000)]);
        return { membership, abandoned, leave };
      }

      it('expires in its time if its node was removed', async () => {
        const [clock, process] = [new VirtualClock(), createAccounts()];
        const one = enterAlone(clock, {}, process);
        const { node, outcomes } = attachSender(one.membership);
        sendText({ node }, 'x', { keep: { expireMs: 5 * minute } });
        await clock.advance(1_000);
        await Promise.all([node.close(), one.leave()]);
        const two = enterAlone(clock, {}, process);
        await clock.advance(4 * minute);
        assert.deepEqual([two.membership.state().sends.kept, two.abandoned], [1, []]);
        await clock.advance(2 * minute);
        assert.deepEqual([two.membership.state().sends.kept, two.abandoned, outcomes], [0, ['send'], []]);
        await two.leave();
      });

      it('is followed for 7 s after a stop if it has left', async () => {
        const clock = new VirtualClock();
        const { membership } = enterAlone(clock);
        const { client } = membership;
        client.pollIncoming = ({ onAnswer } = {}) => {
          onAnswer?.();
          return new Promise(() => {});
        };
        client.send = async (_message, { beforeLeaving, signal } = {}) => {
          await beforeLeaving?.();
          return new Promise((_, reject) => {
            if (signal) onceAborted(signal, () => reject(createError('uncertain')));
          });
        };
        const subscription = subscribe(membership, new Listener('a'));
        const { node } = attachSender(membership);
        sendText({ node }, 'x', { keep: forever });
        await clock.advance(100);
        subscription.close();
        const stoppedAt = clock.elapsed();
        let tookMs = 0;
        const leaving = Promise.all([node.close(), membership.leave()]).then(() => {
          tookMs = clock.elapsed() - stoppedAt;
        });
        await clock.advance(20_000);
        await leaving;
        assert.ok(tookMs >= 7_000 && tookMs < 7_100, `${tookMs} ms`);
      });

      it('gets its outcome if all members leave during its request', async () => {
        const [clock, process, disk] = [new VirtualClock(), createAccounts(), onDisk()];
        const one = enterAlone(clock, disk, process);
        let endPoll = () => {};
        one.membership.client.pollIncoming = () =>
          new Promise((resolve) => {
            endPoll = () => resolve([]);
          });
        const subscription = subscribe(one.membership, new Listener('a'));
        await clock.advance(100);
        subscription.close();
        await Promise.all([one.membership.leave(), clock.advance(100)]);

        const two = enterAlone(clock, disk, process);
        let answer: (() => void) | undefined;
        two.membership.client.send = async ({ to }, { beforeLeaving } = {}) => {
          await beforeLeaving?.();
          return new Promise((resolve) => {
            answer = () => resolve({ statusCode: 200, recipients: [], accepted: [...to], failed: [] });
          });
        };
        const { node } = attachSender(two.membership);
        sendText({ node }, 'x', { keep: forever });
        await clock.advance(100);
        await until(() => answer !== undefined);
        const leaving = Promise.all([node.close(), two.membership.leave()]);
        await clock.advance(10);
        endPoll();
        await clock.advance(100);
        answer?.();
        await clock.advance(100);
        await leaving;

        const three = enterAlone(clock, disk, process);
        const { outcomes } = attachSender(three.membership);
        await clock.advance(1_000);
        assert.deepEqual(
          outcomes.map(({ outcome }) => ('code' in outcome ? outcome.code : outcome.accepted)),
          [['6421555123']],
        );
        await three.leave();
      });

      describe('without its node', () => {
        /** Leaves a stored message in a store, and closes the node and the account. */
        async function leave(clock: VirtualClock, process: Accounts) {
          const store = new FailingStore();
          const changes = { storeName: 'disk', createStore: () => new FailingStore(store.disk) };
          const one = enterAlone(clock, changes, process);
          const { node } = attachSender(one.membership);
          sendText({ node }, 'x', { keep: { expireMs: 5 * minute } });
          await clock.advance(1_000);
          await Promise.all([node.close(), one.leave()]);
          assert.equal(store.disk.entries.size, 1);
          return changes;
        }

        for (const isRestarted of [false, true]) {
          it(`expires if a node without keep is left${isRestarted ? ', after a restart' : ''}`, async () => {
            const [clock, process] = [new VirtualClock(), createAccounts()];
            const changes = await leave(clock, process);
            const two = enterAlone(clock, changes, isRestarted ? createAccounts() : process);
            attachSender(two.membership, { id: 'other', usesStore: false });
            await clock.advance(1_000);
            assert.equal(two.membership.state().sends.kept, 1);
            await clock.advance(6 * minute);
            assert.deepEqual([two.membership.state().sends.kept, two.abandoned], [0, ['send']]);
            await two.leave();
          });
        }

        it('is found after a restart in a shared store', async () => {
          const [clock, disk] = [new VirtualClock(), new FakeDisk()];
          const changes = { storeName: 'server', createStore: () => new FailingServer(disk) };
          const one = enterAlone(clock, changes);
          const { node } = attachSender(one.membership);
          sendText({ node }, 'x', { keep: { expireMs: 5 * minute } });
          await clock.advance(1_000);
          await Promise.all([node.close(), one.leave()]);
          const two = enterAlone(clock, changes);
          const { outcomes } = attachSender(two.membership, { usesStore: false });
          await clock.advance(minute);
          assert.equal(two.membership.state().sends.kept, 1);
          await clock.advance(6 * minute);
          assert.deepEqual(outcomes.map(codeOf), ['SMS_EXPIRED']);
          await two.leave();
        });

        it('does not open an empty store', async () => {
          const [clock, process, store] = [new VirtualClock(), createAccounts(), new FailingStore()];
          for (const usesStore of [false, true, false]) {
            const one = enterAlone(clock, { storeName: 'a store', createStore: () => store }, process);
            const { node } = attachSender(one.membership, { usesStore });
            await clock.advance(minute);
            assert.equal(store.isOpen, usesStore);
            await Promise.all([node.close(), one.leave()]);
          }
        });

        for (const [isTakenOver, what] of [
          [false, 'stored it'],
          [true, 'claimed it'],
        ] as const) {
          it(`expires at the process that ${what}, in a shared store`, async () => {
            const [clock, disk] = [new VirtualClock(), new FakeDisk()];
            /** A server that returns the items of this process, and the wanted items of other processes. */
            class Server extends FailingServer {
              readonly #own = new Set<string>();

              override async open(events: StoreEvents): Promise<RecoveredState> {
                const { items, ...rest } = await super.open(events);
                const wanted = new Set(events.wanted());
                const found = items.filter(
                  ({ id, subscribers }) => this.#own.has(id) || subscribers.some((name) => wanted.has(name)),
                );
                for (const { id } of found) this.#own.add(id);
                return { ...rest, items: found };
              }

              override commit(changes: Changes): Promise<void> {
                for (const id of changes.keep.keys()) this.#own.add(id);
                return super.commit(changes);
              }
            }
            const changes = { storeName: 'server', createStore: () => new Server(disk) };
            let process = createAccounts();
            const one = enterAlone(clock, changes, process);
            const { node } = attachSender(one.membership);
            sendText({ node }, 'x', { keep: { expireMs: 8 * minute } });
            await clock.advance(1_000);
            await Promise.all([node.close(), one.leave()]);
            if (isTakenOver) {
              process = createAccounts();
              const heir = enterAlone(clock, changes, process);
              const { node: same } = attachSender(heir.membership);
              await clock.advance(1_000);
              await Promise.all([same.close(), heir.leave()]);
            }
            const two = enterAlone(clock, changes, process);
            attachSender(two.membership, { id: 'other', usesStore: false });
            await clock.advance(1_000);
            // At first the account leaves the message to a process that might have its node.
            assert.equal(two.membership.state().sends.kept, 0);
            await clock.advance(minute);
            assert.equal(two.membership.state().sends.kept, 1);
            await clock.advance(8 * minute);
            assert.deepEqual([two.membership.state().sends.kept, two.abandoned], [0, ['send']]);
            await two.leave();
          });
        }

        it('expires if no sending node is left', async () => {
          const [clock, process] = [new VirtualClock(), createAccounts()];
          const two = enterAlone(clock, await leave(clock, process), process);
          await clock.advance(minute);
          assert.equal(two.membership.state().sends.kept, 1);
          await clock.advance(6 * minute);
          assert.deepEqual([two.membership.state().sends.kept, two.abandoned], [0, ['send']]);
          await two.leave();
        });
      });

      it('waits for Retry-After although its account has no members', async () => {
        const tries: number[] = [];
        const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
          tries.push(performance.now());
          outgoing.writeHead(503, { 'Retry-After': '1' }).end();
        });
        const store = new FailingStore();
        for (let deployed = 1; deployed <= 2; deployed++) {
          const createStore = () => new FailingStore(store.disk);
          const membership = enter({ baseUrl, storeName: 'disk', createStore });
          const { node } = attachSender(membership);
          if (deployed === 1) sendText({ node }, 'x', { keep: { expireMs: undefined } });
          await until(() => tries.length === deployed);
          await Promise.all([node.close(), membership.leave()]);
        }
        const [first = 0, second = 0] = tries;
        assert.ok(second - first >= 990, `after ${second - first} ms`);
      });

      for (const [awayMs, what] of [
        [15_000, 'gets its outcome with the input in memory'],
        [2 * minute, 'gets its outcome with the stored flow message'],
      ] as const) {
        it(`${what} if its node returns after ${awayMs / 1_000} s`, async () => {
          const [clock, process, store] = [new VirtualClock(), createAccounts(), new FailingStore()];
          const changes = { storeName: 'disk', createStore: () => new FailingStore(store.disk) };
          const one = enterAlone(clock, changes, process);
          const { node } = attachSender(one.membership);
          sendText({ node }, 'x', { keep: { expireMs: 5 * minute } });
          await clock.advance(1_000);
          await Promise.all([node.close(), one.membership.leave(), clock.advance(100)]);
          await clock.advance(awayMs);
          const two = enterAlone(clock, changes, process);
          const { outcomes } = attachSender(two.membership);
          await clock.advance(5 * minute);
          assert.deepEqual(
            outcomes.map((news) => [codeOf(news), news.origin, news.flowMessage]),
            [['SMS_EXPIRED', awayMs < minute ? { body: 'x' } : undefined, '{"payload":"x"}']],
          );
          await two.leave();
        });
      }

      it('waits in memory for its node without members', async () => {
        const [clock, process] = [new VirtualClock(), createAccounts()];
        const one = enterAlone(clock, {}, process);
        const { node } = attachSender(one.membership);
        sendText({ node }, 'x', { keep: { expireMs: undefined } });
        await clock.advance(1_000);
        await Promise.all([node.close(), one.leave()]);
        await clock.advance(10 * minute);
        const two = enterAlone(clock, {}, process);
        assert.equal(two.membership.state().sends.kept, 1);
        await two.leave();
      });
    });

    it('uses the time of the server for a shared store', async () => {
      class Server extends FailingServer {
        now(): number {
          return 1_000_000;
        }
      }
      const member = enter({ storeName: 'server', createStore: () => new Server() });
      await member.changeOptOuts(['6421555001'], 'out');
      assert.equal((await member.optOuts()).optouts[0]?.at, 1_000_000);
    });

    it('shares nothing between two processes', () => {
      const members = [createAccounts(), createAccounts()].map((accounts) => accounts.join(settings()));
      for (const member of members) closing.add(member, (it) => it.leave());
      assert.notEqual(members[0]?.inbox, members[1]?.inbox);
    });
  });

  describe('the outbox', () => {
    const message = { to: ['6421555123'], body: 'x' };

    class Taken extends Listener {
      readonly ids: unknown[] = [];
      readonly contexts: unknown[] = [];

      /** Subscribes to the outbox, either at an interval or on demand. */
      subscriber(intervalMs?: number): OutboxSubscriber {
        return {
          id: this.id,
          onState: (state) => this.onState(state),
          onFailing: (error) => this.onFailing(error),
          onRecovered: () => this.onRecovered(),
          ...(intervalMs === undefined ? undefined : { intervalMs }),
          send: ({ records, context }) => this.take(records, context),
        };
      }

      take(records: readonly OutboxRecord[], context: unknown): Promise<boolean> {
        for (const { messageId } of records) {
          this.ids.push(messageId);
          this.contexts.push(context);
        }
        return Promise.resolve(true);
      }
    }

    it('gives the records of a poll on demand to its input, once', async () => {
      const one = enter();
      const taker = new Taken('asker');
      const outbox = closing.add(one.subscribe('outbox', taker.subscriber()), (it) => it.close());
      await one.client.send({ ...message, messageId: '1' });
      await one.client.send({ ...message, messageId: '2' });
      const found = await Promise.all([outbox.poll('first'), outbox.poll('second')]);
      assert.deepEqual(found, [2, 0]);
      assert.deepEqual(taker.ids, ['1', '2']);
      assert.deepEqual(taker.contexts, ['first', 'first']);
    });

    it('shares one poll at the shortest interval', async () => {
      const one = enter();
      const [a, b] = [new Taken('a'), new Taken('b')];
      closing.add(one.subscribe('outbox', a.subscriber(600_000)), (it) => it.close());
      await until(() => a.stateNames.includes('waiting'));
      const quick = one.subscribe('outbox', b.subscriber(10));
      await one.client.send({ ...message, messageId: '1' });
      await until(() => a.ids.length === 1);
      assert.deepEqual(b.ids, ['1']);
      quick.close();
    });

    it('waits an interval below a second', async () => {
      const taken = new Taken('a');
      closing.add(enter().subscribe('outbox', taken.subscriber(20)), (it) => it.close());
      await until(() => taken.stateNames.filter((name) => name === 'waiting').length > 1);
    });

    it('rejects a failed poll on demand', async () => {
      const one = enter();
      const taker = new Taken('asker');
      const outbox = closing.add(one.subscribe('outbox', taker.subscriber()), (it) => it.close());
      simulator.fault('outbox', { status: 500 }, 1);
      await assert.rejects(outbox.poll(undefined), { code: 'SMS_SERVICE' });
      assert.equal(await outbox.poll(undefined), 0);
    });
  });
});
