import assert from 'node:assert/strict';
import { Dispatcher } from 'undici';
import { createAccounts } from '../../../src/account/accounts';
import type { JoinedMembership } from '../../../src/account/membership';
import type { AccountSettings } from '../../../src/account/settings';
import { onceAborted } from '../../../src/clock';
import type { Changes, RecoveredState, StoreEvents } from '../../../src/store/store';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { forever, sendText } from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';
import { attachSender, createSettings, Listener, onDisk } from './joining';

const minuteMs = 60_000;

describe('an account whose service is unreachable', () => {
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

  it('polls an unreachable service once a minute, and closes its connections', async () => {
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

  it('waits 7 s for the answer to a stored message when it closes', async () => {
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

  it('delivers the outcome of a request if all members leave before the answer', async () => {
    const [clock, process, { changes }] = [new VirtualClock(), createAccounts(), onDisk()];
    const one = enterAlone(clock, changes, process);
    let endPoll = () => {};
    one.membership.client.pollIncoming = () =>
      new Promise((resolve) => {
        endPoll = () => resolve([]);
      });
    const subscription = one.membership.subscribe('incoming', new Listener('a'));
    await clock.advance(100);
    subscription.close();
    await Promise.all([one.membership.leave(), clock.advance(100)]);

    const two = enterAlone(clock, changes, process);
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

    const three = enterAlone(clock, changes, process);
    const back = attachSender(three.membership);
    await clock.advance(1_000);
    assert.deepEqual(back.ends, ['to 6421555123']);
    await three.leave();
  });

  it('waits for Retry-After although all members left in between', async () => {
    const [clock, process, { changes }] = [new VirtualClock(), createAccounts(), onDisk()];
    const tries: number[] = [];
    for (const isFirst of [true, false]) {
      const { membership, leave } = enterAlone(clock, changes, process);
      membership.client.send = async () => {
        tries.push(clock.elapsed());
        throw createError('serverError').with({ statusCode: 503, retryAfter: '60' });
      };
      const { node } = attachSender(membership);
      if (isFirst) sendText({ node }, 'x', { keep: forever });
      await clock.advance(isFirst ? 1_000 : minuteMs);
      await Promise.all([node.close(), leave()]);
    }
    const [first = 0, second = 0] = tries;
    assert.equal(tries.length, 2);
    assert.ok(second - first >= 59_900, `after ${second - first} ms`);
  });

  describe('an account with a stored message whose node was removed', () => {
    /** Leaves a message in a store, and closes its node and the account. */
    async function leaveMessage(clock: VirtualClock, changes: Partial<AccountSettings>, process = createAccounts()) {
      const { membership, leave } = enterAlone(clock, changes, process);
      const { node } = attachSender(membership);
      sendText({ node }, 'x', { keep: { expireMs: 8 * minuteMs } });
      await clock.advance(1_000);
      await Promise.all([node.close(), leave()]);
      return process;
    }

    /** Ways in which the next member attaches its nodes: none, or a different sending node. */
    const others: [title: string, attach: (membership: JoinedMembership) => void][] = [
      ['no sending node', () => {}],
      ['a sending node that stores nothing', (membership) => attachSender(membership, 'other', false)],
    ];
    for (const [title, attach] of others) {
      for (const isRestarted of [false, true]) {
        it(`expires the message with ${title}${isRestarted ? ', after a restart' : ''}`, async () => {
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

    it('finds the message for its node after a restart, in a shared store', async () => {
      const [clock, disk] = [new VirtualClock(), new FakeDisk()];
      const changes = { storeName: 'server', createStore: () => new FailingServer(disk) };
      await leaveMessage(clock, changes);
      const two = enterAlone(clock, changes);
      const back = attachSender(two.membership, 'send', false);
      await clock.advance(minuteMs);
      assert.equal(two.kept(), 1);
      await clock.advance(8 * minuteMs);
      assert.deepEqual(back.ends, ['SMS_EXPIRED']);
      await two.leave();
    });

    it('does not open a store that was never used for a node without keep', async () => {
      const [clock, process, store] = [new VirtualClock(), createAccounts(), new FailingStore()];
      for (const usesStore of [false, true, false]) {
        const one = enterAlone(clock, { storeName: 'a store', createStore: () => store }, process);
        const { node } = attachSender(one.membership, 'send', usesStore);
        await clock.advance(minuteMs);
        assert.equal(store.isOpen, usesStore);
        await Promise.all([node.close(), one.leave()]);
      }
    });

    for (const isClaimed of [false, true]) {
      it(`expires the message in the process that ${isClaimed ? 'claimed' : 'stored'} it`, async () => {
        const [clock, disk] = [new VirtualClock(), new FakeDisk()];
        /** A server that returns the items of this process, and the wanted items of other processes. */
        class Server extends FailingServer {
          readonly #own = new Set<string>();

          override async open(events: StoreEvents): Promise<RecoveredState> {
            const { items, ...rest } = await super.open(events);
            const wanted = new Set(events.wantedNames());
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
        let process = await leaveMessage(clock, changes);
        if (isClaimed) {
          process = createAccounts();
          const heir = enterAlone(clock, changes, process);
          const { node } = attachSender(heir.membership);
          await clock.advance(1_000);
          await Promise.all([node.close(), heir.leave()]);
        }
        const two = enterAlone(clock, changes, process);
        attachSender(two.membership, 'other', false);
        await clock.advance(1_000);
        // At first the account leaves the message to a process that might have its node.
        assert.equal(two.kept(), 0);
        await clock.advance(minuteMs);
        assert.equal(two.kept(), 1);
        await clock.advance(8 * minuteMs);
        assert.deepEqual([two.kept(), two.abandoned], [0, ['send']]);
        await two.leave();
      });
    }

    for (const [awayMs, what] of [
      [15_000, 'the input in memory'],
      [2 * minuteMs, 'the stored flow message'],
    ] as const) {
      it(`ends the message with ${what} if its node returns after ${awayMs / 1_000} s`, async () => {
        const [clock, { changes }] = [new VirtualClock(), onDisk()];
        const process = createAccounts();
        const one = enterAlone(clock, changes, process);
        const { node } = attachSender(one.membership);
        sendText({ node }, 'x', { keep: { expireMs: 5 * minuteMs } });
        await clock.advance(1_000);
        await Promise.all([node.close(), one.membership.leave(), clock.advance(100)]);
        await clock.advance(awayMs);
        const two = enterAlone(clock, changes, process);
        const back = attachSender(two.membership);
        await clock.advance(5 * minuteMs);
        const origin = awayMs < minuteMs ? { body: 'x' } : undefined;
        assert.deepEqual(
          back.outcomes.map((news, index) => [back.ends[index], news.origin, news.flowMessage]),
          [['SMS_EXPIRED', origin, '{"payload":"x"}']],
        );
        await two.leave();
      });
    }
  });
});
