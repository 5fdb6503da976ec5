import assert from 'node:assert/strict';
import { createAccounts } from '../../../src/account/accounts';
import type { JoinedMembership, Subscriber, Subscription } from '../../../src/account/membership';
import type { AccountState } from '../../../src/account/stats';
import { until } from '../../until';
import { forever, type SendTextOptions, sendText } from '../sending/sending-side';
import { FailingStore, FakeDisk } from '../store/failing-store';
import { attachSender, Listener, useJoining } from './joining';

describe('the state of an account', () => {
  let disk: FakeDisk;
  let store: FailingStore;
  /** Subscription of the last listening node. */
  let subscription: Subscription;
  let discarded: string[];

  const joining = useJoining(
    () => ({
      storeName: 'disk /somewhere',
      createStore: () => {
        store = new FailingStore(disk);
        return store;
      },
      onDiscarded: (node) => discarded.push(node),
    }),
    50,
  );
  const { closing, enter, receive } = joining;

  beforeEach(() => {
    disk = new FakeDisk();
    discarded = [];
  });

  /** Subscribes a node whose flow does not acknowledge, so that its messages soon become unhandled. */
  function listen(
    membership: JoinedMembership,
    changes: Partial<Subscriber> = {},
    kind: 'incoming' | 'status' = 'incoming',
  ) {
    const usual = { acknowledge: 'flow', ackTimeoutMs: 20, maxAttempts: 2 } as const;
    const listener = Object.assign(new Listener('node'), usual, changes);
    subscription = joining.subscribe(membership, listener, kind);
    return listener.deliveries;
  }

  it('is empty before a node uses the account', () => {
    const membership = enter();
    const { counts, ...rest } = membership.state();
    assert.deepEqual(rest, {
      polls: [],
      inbox: { undelivered: 0, unhandled: 0 },
      sends: { inFlight: 0, waiting: 0, kept: 0, scheduled: 0, uncertain: 0, awaitingReply: 0, awaitingReport: 0 },
      consent: { optedOut: 0 },
      store: { kind: 'disk', ok: true },
    });
    assert.ok(Object.values(counts).every((count) => count === 0));
    assert.deepEqual(membership.entries('kept', { limit: 200 }), { entries: [], total: 0 });
  });

  it('shows when each poll last changed its state', async () => {
    const startedAt = Date.now();
    const membership = enter();
    listen(membership);
    const poll = () => membership.state().polls[0];
    await until(() => poll()?.lastAnswerAt !== undefined);
    const { kind, state, since = 0, lastAnswerAt = 0 } = poll() ?? {};
    assert.deepEqual([kind, state], ['incoming', 'listening']);
    assert.ok(since >= startedAt && since <= lastAnswerAt && lastAnswerAt <= Date.now());
    joining.simulator.fault('incoming', { status: 500 });
    await until(() => poll()?.state === 'failing');
    const failingSince = poll()?.since ?? 0;
    assert.ok(failingSince >= since);
    const answeredAt = poll()?.lastAnswerAt;
    await until(() => joining.simulator.requests.filter(({ status }) => status === 500).length === 2);
    assert.deepEqual([poll()?.since, poll()?.lastAnswerAt], [failingSince, answeredAt]);
  });

  it('keeps its counts of received messages across a redeploy', async () => {
    const membership = enter();
    const deliveries = listen(membership, { acknowledge: 'auto' });
    const { messageId } = receive('one');
    await until(() => deliveries.length === 1);
    const body = `messageId=${messageId}&from=6421555001&to=642100000001&body=one`;
    joining.simulator.fault('incoming', { status: 200, body, contentType: 'application/x-www-form-urlencoded' }, 1);
    await until(() => membership.state().counts.duplicates === 1);
    await membership.leave();
    const { received, statuses, duplicates, redelivered } = enter().state().counts;
    assert.deepEqual(
      { received, statuses, duplicates, redelivered },
      { received: 1, statuses: 0, duplicates: 1, redelivered: 0 },
    );
  });

  it('keeps its count of refused messages across a redeploy', async () => {
    const countRefused = async () => {
      const membership = enter({ authentication: { type: 'bearer', apiKey: 'counted' } });
      const { node } = attachSender(membership);
      node.countRefused();
      const { refused } = membership.state().counts;
      await Promise.all([node.close(), membership.leave()]);
      return refused;
    };
    assert.deepEqual([await countRefused(), await countRefused()], [1, 2]);
  });

  describe('with an unhandled message', () => {
    async function giveUp() {
      const membership = enter();
      const deliveries = listen(membership);
      receive('hello');
      await until(() => membership.state().inbox.unhandled === 1);
      const [entry] = membership.entries('unhandled', { limit: 200 }).entries;
      assert.ok(entry);
      return { membership, deliveries, id: entry.id };
    }

    it('lets a user discard the message', async () => {
      const { membership, id } = await giveUp();
      const { entries, total } = membership.entries('unhandled', { limit: 200 });
      const [entry] = entries;
      const { id: _, at = 0, error, ...rest } = entry ?? {};
      assert.deepEqual(rest, {
        state: 'unhandled',
        node: 'node',
        to: ['642100000001'],
        from: '6421555001',
        body: 'hello',
      });
      assert.equal(error?.code, 'SMS_UNDELIVERED');
      assert.ok(at > Date.now() - 20_000);
      assert.equal(total, 1);
      const { unhandled, redelivered } = membership.state().counts;
      assert.deepEqual([unhandled, redelivered], [1, 1]);
      assert.equal(await membership.act(id, 'discard'), 'done');
      assert.deepEqual(discarded, ['node'], 'one log line');
      assert.deepEqual(membership.entries('unhandled', { limit: 200 }), { entries: [], total: 0 });
      for (const action of ['deliver', 'discard', 'send'] as const)
        assert.equal(await membership.act(id, action), 'gone');
    });

    it('lists a status with its code and description', async () => {
      const membership = enter();
      const body = 'messageId=1&from=6421555001&statusCode=RCV';
      joining.simulator.fault('status', { status: 200, body, contentType: 'application/x-www-form-urlencoded' }, 1);
      listen(membership, { maxAttempts: 1 }, 'status');
      await until(() => membership.state().inbox.unhandled === 1);
      const [entry] = membership.entries('unhandled', { limit: 1 }).entries;
      assert.deepEqual([entry?.from, entry?.body], ['6421555001', 'RCV (received by the handset)']);
    });

    it('lets a user deliver the message again', async () => {
      const { membership, deliveries, id } = await giveUp();
      assert.equal(await membership.act(id, 'deliver'), 'done');
      await until(() => deliveries.length === 3);
      assert.equal(deliveries[2]?.redelivered, true);
      assert.deepEqual(discarded, []);
    });

    it('does not let a user deliver the message if its node is missing', async () => {
      const { membership, id } = await giveUp();
      subscription.close();
      for (const action of ['deliver', 'send'] as const) assert.equal(await membership.act(id, action), 'unfit');
      assert.deepEqual(membership.state().inbox, { undelivered: 0, unhandled: 1 });
      assert.equal(await membership.act(id, 'discard'), 'done');
    });
  });

  /** Attaches a sending node that closes after the test. */
  function attach(membership: JoinedMembership) {
    const sender = attachSender(membership);
    closing.add(sender.node, (it) => it.close());
    /** Sends a message, and waits for its outcome. */
    const send = async (to: string[], options: SendTextOptions = {}): Promise<void> => {
      const ended = sender.ends.length + 1;
      sendText(sender, 'hello', { to, ...options });
      await until(() => sender.ends.length === ended);
    };
    return { sender, send };
  }

  /** Stores messages that wait, because the service is unavailable. */
  async function keepWaiting(membership: JoinedMembership, count: number) {
    const { sender } = attach(membership);
    joining.simulator.fault('send', { status: 503, headers: { 'retry-after': '60' } });
    for (let each = 0; each < count; each++) sendText(sender, 'hello', { keep: forever });
    await until(() => membership.entries('kept', { limit: 1 }).total === count);
    await until(() => membership.state().sends.failing !== undefined && membership.state().sends.inFlight === 0);
    return sender;
  }

  it('lists no stored message after a user discards them all', async () => {
    const membership = enter({ queueLimit: 1_000 });
    await keepWaiting(membership, 401);
    assert.equal(await membership.actOnAll('kept', 'deliver'), 'unfit');
    assert.equal(await membership.actOnAll('kept', 'markSent'), 'unfit');
    assert.deepEqual(await membership.actOnAll('kept', 'discard'), { done: 401, left: 0 });
    assert.deepEqual(membership.entries('kept', { limit: 1 }), { entries: [], total: 0 });
    assert.deepEqual(await membership.actOnAll('unhandled', 'deliver'), { done: 0, left: 0 });
    assert.equal(discarded.length, 401);
  });

  it('lists the stored messages that match a search', async () => {
    const membership = enter({ queueLimit: 1_000 });
    const { sender } = attach(membership);
    joining.simulator.fault('send', { status: 503, headers: { 'retry-after': '60' } });
    sendText(sender, 'hello', { to: ['6421555001'], keep: forever, replaceKey: 'Pump 2' });
    sendText(sender, 'hello', { to: ['6421555002', '6421555003'], keep: forever });
    await until(() => membership.entries('kept', { limit: 1 }).total === 2);
    const find = (search: string) => {
      const { entries, total } = membership.entries('kept', { limit: 10, search });
      return [total, entries.map((entry) => entry.to?.[0])];
    };
    assert.deepEqual(find('(21) 555-003'), [1, ['6421555002']]);
    assert.deepEqual(find('pump'), [1, ['6421555001']]);
    assert.deepEqual(find('HELLO'), [2, ['6421555001', '6421555002']]);
    assert.deepEqual(find(' '), find('HELLO'), 'a blank search finds everything');
    for (const search of ['goodbye', '64 99']) assert.deepEqual(find(search), [0, []], search);
  });

  it('lists undelivered messages with their nodes', async () => {
    const membership = enter();
    const deliveries = listen(membership, { ackTimeoutMs: 60_000 });
    for (const body of ['one', 'two', 'x'.repeat(2_000)]) receive(body);
    await until(() => deliveries.length === 3);
    const { items, total, next } = await membership.waiting('undelivered', { limit: 2 });
    assert.deepEqual(
      items.map(({ node, from, to, body }) => [node, from, to, body]),
      [
        ['node', '6421555001', ['642100000001'], 'one'],
        ['node', '6421555001', ['642100000001'], 'two'],
      ],
    );
    const { undelivered, oldestAt = 0 } = membership.state().inbox;
    for (const at of [oldestAt, items[0]?.at ?? 0]) assert.ok(Math.abs(at - Date.now()) < 60_000);
    assert.deepEqual([total, undelivered], [3, 3]);
    const rest = await membership.waiting('undelivered', { limit: 2, after: next });
    assert.deepEqual([rest.items[0]?.body.length, rest.next], [1_000, undefined]);
    assert.deepEqual((await membership.waiting('undelivered', { limit: 2, search: 'TWO' })).total, 1);
    for (const { ackId = '' } of deliveries) subscription.acknowledge(ackId, false);
    await until(() => membership.state().inbox.undelivered === 0);
    assert.deepEqual(await membership.waiting('undelivered', { limit: 2 }), { items: [], total: 0 });
  });

  it('lists open reply requests with their deadlines', async () => {
    const membership = enter();
    const { send } = attach(membership);
    const answers = [{ value: 'YES', words: ['yes'] }];
    await send(['6421555001', '6421555002'], { waitMs: 60_000, answers, remember: { value: undefined } });
    await until(() => membership.state().sends.awaitingReply === 2);
    joining.simulator.reply({ from: '6421555002', body: 'perhaps' });
    const list = () => membership.waiting('awaitingReply', { limit: 10 });
    await until(async () => (await list()).items.some(({ unclear }) => unclear !== undefined));
    const { items, total } = await list();
    assert.deepEqual(
      items.map(({ node, to, body, unclear }) => [node, to, body, unclear]),
      [
        ['send', ['6421555001'], 'hello', undefined],
        ['send', ['6421555002'], 'hello', 'perhaps'],
      ],
    );
    for (const { at = 0, endsAt = 0 } of items) assert.equal(endsAt - at, 60_000);
    assert.equal(total, 2);
    assert.equal((await membership.waiting('awaitingReply', { limit: 10, search: '555002' })).total, 1);
    joining.simulator.reply({ from: '6421555002', body: 'yes' });
    await until(() => membership.state().sends.awaitingReply === 1);
    assert.deepEqual(
      (await list()).items.map(({ to }) => to),
      [['6421555001']],
    );
  });

  it('lists stored entries even if no node has opened the store', async () => {
    const first = enter();
    const { send } = attach(first);
    joining.simulator.fault('send', { status: 500 }, 1);
    await send(['6421555001'], { once: 'key' });
    await until(() => first.state().sends.uncertain === 1);
    await first.leave();
    joining.accounts = createAccounts();
    const membership = enter();
    assert.equal(membership.knowsEntries(), false);
    await until(() => membership.knowsEntries());
    const { entries, total } = membership.entries('uncertain', { limit: 200 });
    assert.deepEqual([entries[0]?.body, total], ['hello', 1]);
    await membership.leave();
    disk = new FakeDisk();
    assert.equal(createAccounts().join(membership.settings).knowsEntries(), true, 'where there is nothing to find');
  });

  it('counts sent, failed and refused messages, and unknown outcomes', async () => {
    const membership = enter();
    const { sender, send } = attach(membership);
    await send(['6421555001', 'Nobody']);
    joining.simulator.fault('send', { status: 400 }, 1);
    await send(['6421555001']);
    joining.simulator.fault('send', { status: 500 }, 1);
    await send(['6421555001']);
    sender.node.countRefused();
    const { sent, failed, refused, uncertain } = membership.state().counts;
    assert.deepEqual({ sent, failed, refused, uncertain }, { sent: 1, failed: 1, refused: 2, uncertain: 1 });
    assert.deepEqual(membership.countsToday(), membership.state().counts);
  });

  it('reports changes through onChanged', async () => {
    let seen: AccountState | undefined;
    // Reads the state one turn after the change, as the sidebar does.
    const membership: JoinedMembership = enter({
      pauseMs: 60_000,
      onChanged: () => void setImmediate(() => (seen = membership.state())),
    });
    listen(membership, { ackTimeoutMs: 60_000 });
    receive('one');
    await until(() => seen?.inbox.undelivered === 1);
    await until(() => seen?.polls[0]?.state === 'waiting' && seen.polls[0].lastAnswerAt !== undefined);
    const { send } = attach(membership);
    await send(['6421555001']);
    await until(() => seen?.counts.sent === 1);
    joining.simulator.fault('send', { status: 500 }, 1);
    await send(['6421555001'], { keep: forever });
    await until(() => seen?.sends.uncertain === 1 && seen.sends.inFlight === 0);
    const [entry] = membership.entries('uncertain', { limit: 1 }).entries;
    assert.equal(await membership.act(entry?.id ?? '', 'discard'), 'done');
    await until(() => seen?.sends.uncertain === 0);
    store.failing.add('commit');
    void send(['6421555001'], { keep: forever });
    await until(() => seen?.store.ok === false);
    store.failing.clear();
  });
});
