import assert from 'node:assert/strict';
import { keyOfOptOut } from '../../../src/consent/opt-outs';
import { type Arrival, maxWaitingForCallback } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import { MemoryStore } from '../../../src/store/memory';
import { formatRemembered } from '../../../src/store/store';
import { settle } from '../../virtual-clock';
import type { RecordingSubscriber } from '../delivery/recording-subscriber';
import { calledBack, incoming, polled } from './arrivals';
import { useInbox } from './use-inbox';

const dedupeMs = 72 * 3_600_000;

const called = (fields: Partial<IncomingRecord> = {}) => calledBack(incoming(undefined, fields));

describe('Inbox', () => {
  let dedupe: boolean;
  let storeStates: (string | undefined)[];
  const bench = useInbox(() => ({
    dedupe: () => dedupe,
    dedupeMs: () => dedupeMs,
    onStore: (error) => storeStates.push(error?.code),
  }));
  const { start, pass, receive, subscribe, storedParts } = bench;

  beforeEach(() => {
    dedupe = true;
    storeStates = [];
  });

  const subscribeCallback = (id = 'callback', path = '/sms') => subscribe(id, { channel: 'callback', path });

  describe('with several nodes', () => {
    it('delivers each record to every node in order', async () => {
      bench.store.turns = 1;
      const wasStored: boolean[] = [];
      const nodes = ['a', 'b'].map((id) => subscribe(id));
      for (const node of nodes) node.onReceive = ([entry]) => wasStored.push(bench.disk.entries.has(entry?.id ?? ''));
      await Promise.all(['1', '2', '3', '4'].map((id) => bench.inbox.accept(polled(id))));
      for (const { bodies, attempts } of nodes) {
        assert.deepEqual(bodies, ['1', '2', '3', '4']);
        assert.deepEqual(attempts, [1, 1, 1, 1]);
      }
      assert.ok(wasStored.every(Boolean));
    });

    it('deletes a record when the last node has acknowledged it', async () => {
      const [a, b] = [subscribe('a'), subscribe('b')];
      await receive('1');
      a.acknowledge();
      a.acknowledge();
      assert.equal((await storedParts()).length, 1);
      b.acknowledge();
      assert.equal((await storedParts()).length, 0);
    });

    it('stores each delivery attempt before it starts', async () => {
      bench.store.turns = 3;
      await receive('1', '2');
      const storedAttempts: number[][] = [];
      const node = subscribe();
      node.onReceive = () => void storedAttempts.push(bench.disk.items.map(({ attempts }) => attempts));
      await receive('3');
      await pass();
      assert.deepEqual(node.bodies, ['1', '2', '3']);
      assert.deepEqual(node.attempts, [1, 1, 1]);
      assert.deepEqual(storedAttempts[0], [1, 1, 1]);
    });
  });

  describe('with duplicates', () => {
    it('delivers every copy if `dedupe` is off', async () => {
      dedupe = false;
      const node = subscribe();
      await pass();
      await receive('1');
      assert.deepEqual(await receive('1'), ['repeated']);
      assert.deepEqual(node.bodies, ['1', '1']);
    });

    it('delivers an outbox record once even if `dedupe` is off', async () => {
      dedupe = false;
      const node = subscribe('node', { channel: 'outbox' });
      const records = [{ messageId: '1', body: 'x', recipientsList: [] }];
      for (let index = 0; index < 3; index++) await bench.inbox.accept({ kind: 'outbox', via: 'poll', records });
      assert.deepEqual(node.bodies, ['x']);
    });

    it('forgets an identifier after dedupeHours', async () => {
      const node = subscribe();
      await pass();
      await receive('1');
      await bench.clock.advance(dedupeMs);
      assert.deepEqual(await receive('1'), ['repeated']);
      await bench.clock.advance(1);
      assert.deepEqual(await receive('1'), ['new']);
      assert.deepEqual(node.bodies, ['1', '1']);
    });

    it('remembers an identifier for dedupeHours if the clock moves forward', async () => {
      start({ store: new MemoryStore() });
      subscribe();
      await receive('1');
      bench.clock.set(10 * dedupeMs);
      // A thousand messages make the inbox search for expired identifiers.
      await receive(...Array.from({ length: 1_000 }, (_, n) => `2-${n}`));
      await bench.clock.advance(dedupeMs);
      assert.deepEqual(await bench.inbox.accept(called({ messageId: '1' })), ['duplicate']);
      await bench.clock.advance(1);
      assert.deepEqual(await receive('1'), ['new']);
    });
  });

  describe('with records on demand', () => {
    const records = [{ messageId: '1', body: 'x', recipientsList: [] }];
    const list: Arrival = { kind: 'outbox', via: 'poll', records };
    const attach = (id: string, onDemand = true) => subscribe(id, { channel: 'outbox', onDemand });

    it('delivers records to an on-demand node only on its request', async () => {
      const nodes = [attach('asker'), attach('idle'), attach('watcher', false)];
      await bench.inbox.accept({ ...list, asker: 'asker', context: 'trigger' });
      await pass();
      assert.deepEqual(
        nodes.map(({ received }) => received.map(({ context }) => context)),
        [['trigger'], [], [undefined]],
      );
    });

    it('delivers an unrequested record to only one on-demand node', async () => {
      await bench.inbox.accept(list);
      const [node, other] = [attach('node'), attach('other')];
      await pass();
      assert.deepEqual([node.attempts, other.attempts], [[1], []]);
      node.acknowledge();
      attach('later');
      await bench.inbox.journal.flush();
      assert.equal(bench.inbox.isSettled, true);
    });
  });

  describe('during a redeploy', () => {
    it('does not wait for an acknowledgement of a removed node', async () => {
      const [a, b] = [subscribe('a'), subscribe('b')];
      await receive('1');
      a.detach();
      const c = subscribe('c');
      await pass();
      assert.equal((await storedParts()).length, 1);
      b.acknowledge();
      assert.equal((await storedParts()).length, 0);
      assert.deepEqual(c.bodies, []);
    });

    it('delivers a record only once to the redeployed node', async () => {
      const [before, other] = [subscribe(), subscribe('other')];
      await bench.inbox.journal.ready();
      bench.store.turns = 5;
      const accepted = bench.inbox.accept(polled('1'));
      while (bench.store.commits === 0) await settle();
      before.detach();
      const returned = subscribe();
      await accepted;
      await pass();
      assert.deepEqual([before.bodies, returned.bodies, other.bodies], [[], ['1'], ['1']]);
      assert.deepEqual(returned.attempts, [1]);
    });

    it('refuses callbacks while it closes', async () => {
      bench.store.turns = 2;
      await bench.inbox.journal.ready();
      const closing = bench.inbox.journal.close();
      await settle();
      await assert.rejects(bench.inbox.accept(called()), { code: 'SMS_STORE' });
      await receive('1');
      await closing;
      await bench.inbox.journal.close();
      await assert.rejects(bench.inbox.accept(called()), { code: 'SMS_STORE' });
      assert.deepEqual([(await storedParts()).length, bench.store.isOpen], [1, false]);
    });
  });

  describe('with a callback', () => {
    it('stores the callback before it accepts it', async () => {
      const [node, other] = [subscribeCallback(), subscribeCallback('other', '/other')];
      const polling = subscribe();
      await bench.inbox.accept(called());
      assert.deepEqual([bench.disk.entries.size, node.bodies], [1, ['hello']]);
      assert.deepEqual([other.bodies, polling.bodies], [[], []]);
      node.acknowledge();
      assert.equal((await storedParts()).length, 0);
    });

    it('delivers the callback to a new node at the same path', async () => {
      const removed = subscribeCallback();
      await bench.inbox.accept(called());
      removed.detach();
      const elsewhere = subscribeCallback('elsewhere', '/other');
      await pass();
      assert.deepEqual(elsewhere.bodies, []);
      const heir = subscribeCallback('heir');
      await pass();
      assert.deepEqual(heir.bodies, ['hello']);
    });

    it('redelivers the callback to its first node after a restart', async () => {
      subscribeCallback();
      await bench.inbox.accept(called());
      await bench.inbox.journal.close();
      start();
      const [other, node] = [subscribeCallback('other'), subscribeCallback()];
      await pass();
      assert.deepEqual([other.bodies, node.bodies], [[], ['hello']]);
    });

    it('makes the callback unhandled 20 s after its node was removed', async () => {
      const removed = subscribeCallback();
      await bench.inbox.accept(called());
      removed.detach();
      await pass();
      assert.equal(bench.state.unhandled, 0);
      await pass(20_000);
      assert.deepEqual([bench.state.undelivered, bench.state.unhandled], [0, 1]);
      const node = subscribeCallback();
      await pass();
      assert.deepEqual([node.bodies, node.attempts, bench.state.unhandled], [['hello'], [2], 0]);
    });

    it('delivers the callback to a polling node if no callback node exists', async () => {
      subscribeCallback().detach();
      await bench.inbox.accept(called());
      await pass(20_000);
      const polling = subscribe();
      await pass();
      assert.deepEqual(polling.bodies, ['hello']);
    });

    it('stores the callback once if its polled copy becomes unhandled', async () => {
      for (let turns = 0; turns <= 10; turns++) {
        bench.reset();
        bench.store.turns = 3;
        const node = subscribeCallback();
        const accepted = bench.inbox.accept(polled(incoming('1', { body: 'hello' })));
        await settle(turns);
        await Promise.all([accepted, bench.inbox.accept(called())]);
        await pass();
        assert.deepEqual([turns, node.bodies, bench.disk.entries.size], [turns, ['hello'], 1]);
        node.acknowledge();
        assert.equal((await storedParts()).length, 0);
      }
    });

    it('refuses the callback while too many records wait', async () => {
      const [polling, node] = [subscribe(), subscribeCallback()];
      await receive(...Array.from({ length: maxWaitingForCallback }, (_, index) => `${index}`));
      const refused = bench.inbox.accept(called({ body: 'x' }));
      await assert.rejects(refused, { code: 'SMS_BUSY', params: { limit: maxWaitingForCallback } });
      polling.acknowledge();
      assert.deepEqual(await bench.inbox.accept(called({ body: 'x' })), ['new']);
      assert.deepEqual(node.bodies, ['x']);
    });
  });

  describe('with an early reply', () => {
    let settleOutcome: () => void;
    let isReply: boolean;

    beforeEach(createMatching);

    function createMatching(): void {
      const outcome = new Promise<void>((resolve) => {
        settleOutcome = resolve;
      });
      isReply = true;
      start({
        correlator: ({ record }) => ({
          mayAnswer: true,
          keys: [],
          outcome,
          correlate: () => ({ record: isReply ? { ...record, awaited: true as const } : record, effect() {} }),
        }),
      });
    }

    for (const via of ['poll', 'callback'] as const) {
      it(`stores a reply from a ${via} until the outcome is known`, async () => {
        const node = via === 'poll' ? subscribe() : subscribeCallback();
        const arrival = via === 'poll' ? polled('1') : called();
        assert.deepEqual(await bench.inbox.accept(arrival), ['new']);
        await pass();
        assert.deepEqual([bench.disk.entries.size, node.bodies], [1, []]);
        assert.notEqual((await bench.inbox.accept(arrival))[0], 'new');
        settleOutcome();
        await pass();
        assert.deepEqual([node.attempts, node.last.record.awaited], [[1], true]);
      });
    }

    it('drops the reply if no node receives it', async () => {
      await receive('1');
      settleOutcome();
      await pass();
      assert.deepEqual([bench.state.undelivered, bench.state.unhandled, bench.disk.entries.size], [0, 0, 0]);
      const node = subscribeCallback();
      await bench.inbox.accept(called({ body: '1' }));
      assert.equal(node.last.record.awaited, true);
    });

    it('delivers a polled reply to the callback node if a callback follows', async () => {
      const node = subscribeCallback();
      await receive('1');
      await bench.inbox.accept(called({ body: '1' }));
      settleOutcome();
      await pass();
      assert.deepEqual([node.attempts, node.last.record.awaited], [[1], true]);
    });

    it('delivers the reply after a crash', async () => {
      await receive('1');
      bench.store.kill();
      createMatching();
      const node = subscribe();
      await pass();
      assert.deepEqual(node.bodies, []);
      isReply = false;
      settleOutcome();
      await pass();
      assert.deepEqual([node.bodies, node.attempts, node.last.record.awaited], [['1'], [1], undefined]);
    });
  });

  describe('with a failing store', () => {
    for (const step of ['open', 'recall', 'commit'] as const) {
      it(`delivers polled records but refuses callbacks if \`${step}\` fails`, async () => {
        const [node, calledNode] = [subscribe(), subscribeCallback()];
        if (step !== 'open') await bench.inbox.journal.ready();
        bench.store.failing.add(step);
        await receive('1');
        assert.deepEqual(node.bodies, ['1']);
        await assert.rejects(bench.inbox.accept(called()), { code: 'SMS_STORE' });
        await pass(20_000);
        await receive('2', '2');
        assert.deepEqual([storeStates, calledNode.bodies], [['SMS_STORE'], []]);
        bench.store.failing.clear();
        await pass(5_000);
        assert.deepEqual(storeStates, ['SMS_STORE', undefined]);
        assert.deepEqual(
          [node.bodies, node.attempts],
          [
            ['1', '2'],
            [1, 1],
          ],
        );
        assert.equal(bench.disk.entries.size, 2);
        assert.deepEqual(await receive('1'), ['repeated']);
        assert.deepEqual(await bench.inbox.accept(called()), ['new']);
      });
    }

    it('does not redeliver acknowledged records when the store is back', async () => {
      const node = subscribe();
      await pass();
      await receive('1');
      bench.store.failing.add('commit');
      await receive('2');
      node.acknowledge(node.received.map(({ entry }) => entry));
      bench.store.failing.clear();
      await pass(5_000);
      assert.deepEqual([node.bodies, bench.disk.entries.size], [['1', '2'], 0]);
    });

    describe('when a reply arrives', () => {
      /** Bodies of the messages that were matched with a sent message, in order. */
      let matchedBodies: unknown[];
      let node: RecordingSubscriber;

      beforeEach(async () => {
        matchedBodies = [];
        const sent = { at: bench.clock.now(), forMs: 3_600_000, value: '' };
        bench.disk.remembered.set('sent', formatRemembered(sent));
        start({
          correlator: ({ record }) => ({
            mayAnswer: true,
            keys: ['sent'],
            correlate: (readKey) =>
              readKey('sent')
                ? {
                    record: Object.assign({ ...record }, { sent: { messageId: 'mine' } }),
                    effect: () => matchedBodies.push(record.body),
                  }
                : { record, effect() {} },
          }),
        });
        node = subscribe();
        await bench.inbox.journal.ready();
        for (const step of ['recall', 'open'] as const) bench.store.failing.add(step);
        void bench.inbox.accept(polled('1'));
        await pass();
      });

      it('matches the reply when the store is back', async () => {
        await pass(30_000);
        assert.deepEqual(node.bodies, []);
        bench.store.failing.clear();
        await pass(5_000);
        assert.deepEqual([node.bodies, node.attempts, matchedBodies], [['1'], [1], ['1']]);
        assert.ok((node.last.record as IncomingRecord).sent);
      });

      it('delivers the reply unmatched after 60 s', async () => {
        await pass(55_000);
        assert.deepEqual(node.bodies, []);
        await pass(10_000);
        assert.deepEqual([node.bodies, matchedBodies], [['1'], []]);
        bench.store.failing.clear();
        await pass(10_000);
        assert.deepEqual([node.bodies, matchedBodies], [['1'], ['1']]);
      });
    });
  });

  describe('after a crash', () => {
    const saveAhead = (id: string) => bench.disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming(id)] }));

    it('delivers a polled record that was not committed', async () => {
      await bench.inbox.journal.ready();
      bench.store.turns = 1_000_000;
      void bench.inbox.accept(polled('1'));
      bench.store.kill();
      start();
      const node = subscribe();
      await pass();
      assert.deepEqual([node.bodies, node.attempts, bench.disk.pendingWrites.size], [['1'], [1], 0]);
      assert.deepEqual(await receive('1'), ['repeated']);
    });

    it('has stored each message together with its opt-out', async () => {
      start({ readConsentChange: () => 'out' });
      bench.store.onCall = () => bench.disk.entries.size > 0 && bench.store.kill();
      void bench.inbox.accept(polled('STOP'));
      await pass();
      assert.deepEqual([bench.disk.entries.size, bench.disk.remembered.has(keyOfOptOut('6421555001'))], [1, true]);
    });

    for (const [title, downMs] of [
      ['does not redeliver an acknowledged record', 0],
      ['does not redeliver an acknowledged record after dedupeHours', dedupeMs + 1],
    ] as const) {
      it(title, async () => {
        const before = subscribe();
        await receive('1');
        before.acknowledge();
        await bench.inbox.journal.close();
        saveAhead('1');
        await bench.clock.advance(downMs);
        start();
        const node = subscribe();
        await pass();
        assert.deepEqual([node.bodies, bench.disk.pendingWrites.size], [[], 0]);
      });
    }

    it('waits for the store before it delivers saved poll answers', async () => {
      await receive('1');
      await bench.inbox.journal.close();
      for (const id of ['1', '2']) saveAhead(id);
      start();
      bench.store.failing.add('recall');
      const node = subscribe();
      await pass();
      node.acknowledge();
      await pass(15_000);
      assert.deepEqual([node.bodies, bench.disk.pendingWrites.size], [['1'], 2]);
      bench.store.failing.clear();
      await pass(5_000);
      assert.deepEqual([node.bodies, node.attempts.at(-1), bench.disk.pendingWrites.size], [['1', '2'], 1, 0]);
    });
  });
});
