import assert from 'node:assert/strict';
import { Dispatcher } from 'undici';
import { createAccounts } from '../../../src/account/accounts';
import type { JoinedMembership } from '../../../src/account/membership';
import type { AccountSettings } from '../../../src/account/settings';
import { onceAborted } from '../../../src/clock';
import { VirtualClock } from '../../virtual-clock';
import { forever, sendText } from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { attachSender, createSettings, Listener, onDisk } from './joining';

const minuteMs = 60_000;

describe('an account during an outage', () => {
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

  /** Joins an account whose service is unreachable. */
  function enterAlone(clock: VirtualClock, changes: Partial<AccountSettings> = {}, process = createAccounts()) {
    const abandoned: string[] = [];
    const connections = new NoConnections();
    const membership = process.join(
      createSettings('http://sms.test', {
        clock,
        pauseMs: 600_000,
        createConnections: () => connections,
        onAbandoned: (node) => abandoned.push(node),
        ...changes,
      }),
    );
    const leave = () => Promise.all([membership.leave(), clock.advance(20_000)]);
    const kept = () => membership.state().sends.kept;
    return { membership, connections, abandoned, leave, kept };
  }

  it('polls about once a minute', async () => {
    const clock = new VirtualClock();
    const { membership, connections, leave } = enterAlone(clock);
    const a = new Listener('a');
    const subscription = membership.subscribe('incoming', a);
    await clock.advance(3_600_000);
    assert.ok(connections.asked > 60 && connections.asked < 80, `${connections.asked} polls in an hour`);
    assert.deepEqual(a.stateNames, ['failing']);
    subscription.close();
    await leave();
    assert.ok(connections.isClosed);
  });

  it('waits 7 s for an answer when it closes', async () => {
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
    const subscription = membership.subscribe('incoming', new Listener('a'));
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

  for (const [seconds, origin] of [
    [59, { body: 'x' }],
    [61, undefined],
  ] as const) {
    it(`${origin ? 'keeps' : 'forgets'} a flow message if its node is absent for ${seconds} s`, async () => {
      const [clock, process, { changes }] = [new VirtualClock(), createAccounts(), onDisk()];
      const { membership } = enterAlone(clock, changes, process);
      const { node } = attachSender(membership);
      sendText({ node }, 'x', { keep: { expireMs: 5 * minuteMs } });
      await clock.advance(1_000);
      await Promise.all([node.close(), membership.leave(), clock.advance(100)]);
      // An account node with wrong settings cannot join the account. Therefore, it does not keep the account alive.
      const proxy = { url: 'ftp://proxy.test' };
      assert.throws(() => enterAlone(clock, { ...changes, proxy }, process), { code: 'SMS_CONFIG' });
      await clock.advance(seconds * 1_000);
      const next = enterAlone(clock, changes, process);
      const back = attachSender(next.membership);
      await clock.advance(5 * minuteMs);
      assert.deepEqual([back.ends, back.outcomes[0]?.origin], [['SMS_EXPIRED'], origin]);
      await next.leave();
    });
  }

  describe('with a removed node', () => {
    /** Leaves a message in a store, and closes its node and the account. */
    async function leaveMessage(clock: VirtualClock, changes: Partial<AccountSettings>, process = createAccounts()) {
      const { membership, leave } = enterAlone(clock, changes, process);
      const { node } = attachSender(membership);
      sendText({ node }, 'x', { keep: { expireMs: 8 * minuteMs } });
      await clock.advance(1_000);
      await Promise.all([node.close(), leave()]);
      return process;
    }

    /** Nodes of the next account: none, or a sending node that has another id and stores nothing. */
    const others: [title: string, attach: (membership: JoinedMembership) => void][] = [
      ['', () => {}],
      [' although another node exists', (membership) => attachSender(membership, 'other', false)],
    ];
    for (const [title, attach] of others) {
      for (const isRestarted of [false, true]) {
        it(`expires the node's message${isRestarted ? ' after a restart' : ''}${title}`, async () => {
          const [clock, { changes }] = [new VirtualClock(), onDisk()];
          const process = await leaveMessage(clock, changes);
          const two = enterAlone(clock, changes, isRestarted ? createAccounts() : process);
          attach(two.membership);
          await clock.advance(minuteMs);
          assert.equal(two.kept(), 1);
          await clock.advance(8 * minuteMs);
          assert.deepEqual([two.kept(), two.abandoned], [0, ['send']]);
          await two.leave();
        });
      }
    }

    it('does not open the store for a node that stores nothing', async () => {
      const [clock, process, store] = [new VirtualClock(), createAccounts(), new FailingStore()];
      for (const usesStore of [false, true, false]) {
        const one = enterAlone(clock, { storeName: 'a store', createStore: () => store }, process);
        const { node } = attachSender(one.membership, 'send', usesStore);
        await clock.advance(minuteMs);
        assert.equal(store.isOpen, usesStore);
        await Promise.all([node.close(), one.leave()]);
      }
    });
  });
});
