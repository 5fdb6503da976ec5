import assert from 'node:assert/strict';
import { createAccounts } from '../../../src/account/accounts';
import type { ConnectionSettings } from '../../../src/account/settings';
import type { SmsError } from '../../../src/errors';
import { type Connections, createConnections } from '../../../src/http/connections';
import type { Entry } from '../../../src/inbox/entries';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { startRawService } from '../raw-service';
import { sendText } from '../sending/sending-side';
import { FailingServer } from '../store/failing-store';
import { attachSender, Listener, onDisk, useJoining } from './joining';

describe('an account', () => {
  const joining = useJoining();
  const { closing, enter, receive, subscribe, isPolling } = joining;
  const polls = () => joining.simulator.requests.filter(({ endpoint }) => endpoint === 'incoming').length;

  describe('with several account nodes', () => {
    it('has one poll loop', async () => {
      const [one, two] = [enter(), enter({ pauseMs: 60_000, concurrency: 1 })];
      const { apiKey } = joining.simulator.credentials;
      const elsewhere = enter({ baseUrl: 'http://127.0.0.1:1', authentication: { type: 'bearer', apiKey } });
      assert.deepEqual([one.inbox === two.inbox, one.inbox === elsewhere.inbox], [true, false]);
      const [a, b] = [new Listener('a'), new Listener('b')];
      subscribe(one, a);
      subscribe(two, b);
      await until(isPolling);
      for (const body of ['1', '2', '3']) receive(body);
      await until(() => b.deliveries.length === 3);
      assert.deepEqual([a.bodies, b.bodies], [a.bodies, ['1', '2', '3']]);
      await until(isPolling);
      assert.equal(polls(), 4);
    });

    it('polls with the settings of the first listening account node', async () => {
      const one = enter({ pauseMs: 600_000, method: 'GET' });
      const two = enter({ pauseMs: 0, ...onDisk().changes });
      const { simulator } = joining;
      simulator.fault('incoming', { status: 204 });
      const [a, b] = [new Listener('a'), new Listener('b')];
      const first = subscribe(two, a);
      subscribe(one, b);
      await until(() => polls() > 3);
      assert.equal(one.state().store.kind, 'disk');
      assert.ok(!a.stateNames.includes('waiting'));
      assert.deepEqual(new Set(simulator.requests.map(({ method }) => method)), new Set(['POST']));
      simulator.fault('incoming', null);
      await until(isPolling);
      first.close();
      await two.leave();
      // A poll in flight keeps its settings. The next poll uses the settings of the remaining member `one`.
      receive('1');
      await until(() => b.bodies.length === 1 && isPolling());
      assert.equal(simulator.requests.at(-1)?.method, 'GET');
      simulator.fault('incoming', { status: 204 });
      receive('2');
      await until(() => b.stateNames.includes('waiting'));
      assert.deepEqual(b.states.at(-1), { name: 'waiting', seconds: 600 });
    });

    it('polls only while a receiving node listens', async () => {
      const one = enter();
      assert.equal(polls(), 0);
      const subscription = subscribe(one, new Listener('a'));
      await until(isPolling);
      const late = new Listener('late');
      subscribe(one, late).close();
      assert.deepEqual(late.stateNames, ['listening']);
      subscription.close();
      receive('1');
      await until(() => joining.simulator.polling('incoming') === 0);
      const b = new Listener('b');
      subscribe(one, b);
      await until(() => b.deliveries.length === 1);
      assert.deepEqual(b.bodies, ['1']);
    });

    it('shares one send queue', async () => {
      const [one, two] = [enter({ concurrency: 1, queueLimit: 1 }), enter({ concurrency: 8, queueLimit: 8 })];
      joining.simulator.fault('send', { delayMs: 50 });
      const [first, second] = [attachSender(one, '1'), attachSender(two, '2')];
      for (const [node, messageId] of [
        [first, '1'],
        [second, '2'],
        [second, '3'],
      ] as const) {
        sendText(node, 'x', { messageId });
      }
      await until(() => first.ends.length + second.ends.length === 3);
      assert.deepEqual([first.ends, second.ends], [['to 6421555123'], ['SMS_BUSY', 'to 6421555123']]);
      assert.deepEqual(
        joining.simulator.messages.map(({ messageId }) => messageId),
        ['1', '2'],
      );
    });

    describe('when it connects', () => {
      /**
       * Returns functions that open connections with different names. Records the names of the open connections, and
       * the name of the connection that each request used.
       */
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

      it('uses the connection settings of the first account node', async () => {
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
        assert.equal(joining.simulator.requests.filter(({ aborted }) => aborted).length, 0);
      });

      it('refuses an account node with an invalid proxy', () => {
        enter({ id: 'one' });
        assert.throws(() => enter({ id: 'two', proxy: { url: 'ftp://proxy.test' } }), { code: 'SMS_CONFIG' });
      });
    });
  });

  it('reports a failing poll once to each node', async () => {
    await joining.simulator.setOnline(false);
    const clock = new VirtualClock();
    const one = enter({ clock });
    const [gone, a, b, late] = ['gone', 'a', 'b', 'late'].map((id) => new Listener(id)) as Listener[];
    assert.ok(gone && a && b && late);
    const subscription = subscribe(one, gone);
    for (const node of [a, b]) subscribe(one, node);
    await until(() => a.failures.length === 1);
    assert.deepEqual(gone.stateNames, ['failing'], 'not listening before');
    subscription.close();
    subscribe(one, late);
    assert.equal(late.failures.length, 1);
    await joining.simulator.setOnline(true);
    receive('1');
    await joining.passUntil(clock, () => a.deliveries.length === 1);
    for (const { failures } of [gone, a, b, late]) assert.equal(failures.length, 1);
    assert.deepEqual([gone.recoveries, a.recoveries, b.recoveries, late.recoveries], [0, 1, 0, 0]);
    assert.deepEqual([b.bodies, late.bodies], [['1'], ['1']]);
  });

  describe('during a redeploy', () => {
    it('waits for the rest of an answer that has begun to arrive', async () => {
      let finish = () => {};
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        incoming.resume();
        outgoing.writeHead(200, { 'content-type': 'application/x-www-form-urlencoded' });
        outgoing.write('messageId=1&from=6421555001&');
        finish = () => outgoing.end('body=whole');
      });
      const { disk, changes } = onDisk();
      const one = enter({ baseUrl, ...changes });
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
        disk.items.map((item) => (item as Entry).record.body),
        ['whole'],
      );
      const b = new Listener('b');
      subscribe(enter({ baseUrl, ...changes }), b);
      await until(() => b.deliveries.length === 1);
    });
  });

  describe('with a store', () => {
    it('continues after it quarantines unreadable data', async () => {
      const { disk, changes } = onDisk();
      disk.hold('{"kind":"incoming","records":[{"mess');
      const places: string[] = [];
      const onDamaged = ({ params }: SmsError) => void places.push(String(params.place));
      const member = enter({ ...changes, onDamaged });
      const a = new Listener('a');
      subscribe(member, a);
      receive('1');
      await until(() => a.deliveries.length === 1);
      assert.deepEqual([places, disk.quarantined.length], [['a place'], 1]);
      const { store } = member.state();
      assert.deepEqual([store.ok, store.error?.reason], [true, 'storeUnreadable']);
    });

    it('keeps data in memory while it has no account node', async () => {
      const [clock, process] = [new VirtualClock(), createAccounts()];
      const join = (from = process) => from.join(joining.settings({ clock }));
      const one = join();
      await one.changeOptOuts(['6421555001'], 'out');
      await Promise.all([one.leave(), clock.advance(3_600_000)]);
      const [two, other] = [join(), join(createAccounts())];
      assert.deepEqual([(await two.optOuts()).total, (await other.optOuts()).total], [1, 0]);
      await Promise.all([two.leave(), other.leave(), clock.advance(1_000)]);
    });

    it('keeps data in memory if the store fails', async () => {
      const { stores, changes } = onDisk();
      const one = enter(changes);
      const a = Object.assign(new Listener('a'), { acknowledge: 'flow' as const });
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

    it('uses the clock of the server if its store is shared', async () => {
      class Server extends FailingServer {
        now(): number {
          return 1_000_000;
        }
      }
      const member = enter({ storeName: 'server', createStore: () => new Server() });
      await member.changeOptOuts(['6421555001'], 'out');
      assert.equal((await member.optOuts()).optouts[0]?.at, 1_000_000);
    });
  });

  it('keeps the limits of an account node while a deploy replaces that node', async () => {
    const limits = { perHandset: 1, perHandsetMs: 3_600_000 };
    const node = attachSender(enter({ id: 'first' }));
    const send = async () => {
      const before = node.ends.length;
      sendText(node, 'x', { to: ['6421555001'] });
      await until(() => node.ends.length > before);
      return node.ends.at(-1);
    };
    let settle = () => {};
    const returning = () =>
      new Promise<void>((resolve) => {
        settle = resolve;
      });
    const second = enter({ id: 'second', limits });
    assert.equal(await send(), 'to 6421555001');
    void second.leave(returning());
    assert.equal(await send(), 'SMS_LIMIT');
    const back = enter({ id: 'second', limits: { ...limits, perHandset: 2 } });
    assert.equal(await send(), 'to 6421555001');
    settle();
    assert.equal(await send(), 'SMS_LIMIT');
    void back.leave(returning());
    assert.equal(await send(), 'SMS_LIMIT');
    settle();
    assert.equal(await send(), 'to 6421555001');
    const removed = enter({ id: 'removed', limits });
    assert.equal(await send(), 'SMS_LIMIT');
    await removed.leave();
    assert.equal(await send(), 'to 6421555001');
    await node.node.close();
  });
});
