import assert from 'node:assert/strict';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { copyPlatter, type FakeNode, forever, House, sendText, type Turn } from './sending-house';

const dayMs = 24 * 3_600_000;

describe('what has ended is brought into the flow', () => {
  for (const what of ['outcome', 'answer'] as const) {
    /** Whose node is being told it, which never gets it into the flow. */
    async function tellInVain(): Promise<{ house: House; old: FakeNode; fail(end: 'late' | 'thrown'): void }> {
      const house = new House();
      house.receive();
      const old = house.attach();
      let fail = (_: 'late' | 'thrown') => {};
      const told = new Promise<boolean>((resolve, reject) => {
        fail = (end) => (end === 'late' ? resolve(false) : reject(new Error('thrown')));
      });
      if (what === 'outcome') old.onOutcome = () => told;
      else old.onAnswer = () => told;
      sendText(old, 'hello', { keep: forever, ...(what === 'answer' && { waitMs: 60_000, messageId: 'm1' }) });
      await house.pass(100);
      if (what === 'answer') await house.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
      void old.node.close();
      await house.pass(10);
      return { house, old, fail };
    }

    const endsOf = (node: FakeNode) => (what === 'outcome' ? node.ends : node.replies);
    const end = what === 'outcome' ? 'to 6421555123' : 'yes';

    for (const how of ['late', 'thrown'] as const) {
      it(`by the next node, an ${what} that one before it could not take, ${how}`, async () => {
        const { house, fail } = await tellInVain();
        const next = house.attach();
        await house.pass(10);
        assert.deepEqual(endsOf(next), []);
        fail(how);
        await house.pass(10);
        assert.deepEqual(endsOf(next), [end]);
        assert.equal(house.faults.length, how === 'thrown' ? 1 : 0);
      });

      it(`by a node that comes later, an ${what} that one before it could not take, ${how}`, async () => {
        const { house, fail } = await tellInVain();
        fail(how);
        await house.pass(10);
        const next = house.attach();
        await house.pass(10);
        assert.deepEqual(endsOf(next), [end]);
      });
    }
  }
});

describe('the outcome of a text whose node is gone', () => {
  /** Of a text that was in flight as its node went. */
  async function strand(turn: Turn): Promise<{ house: House; store: FailingStore }> {
    const store = new FailingStore();
    const house = new House({ store });
    const [node] = [house.attach(), house.attach('stays')];
    const answer = house.service.holdNext(turn);
    sendText(node, 'hello', { keep: forever });
    await house.pass(100);
    void node.node.close();
    await house.pass(10);
    answer();
    await house.pass(1_000);
    assert.equal(store.platter.entries.size, 1);
    return { house, store };
  }

  const undecided = (house: House) => house.outbox.admin.entries('uncertain', 9).total;

  it('waits for the node for 7 days, and is then given up as a text is', async () => {
    const { house, store } = await strand({});
    await house.pass(6.9 * dayMs);
    assert.deepEqual([store.platter.entries.size, house.abandoned], [1, []]);
    await house.pass(0.2 * dayMs);
    assert.deepEqual([store.platter.entries.size, house.abandoned], [0, ['send']]);
    assert.deepEqual([house.outbox.isSettled, undecided(house)], [true, 0]);
    const back = house.attach();
    await house.pass(100);
    assert.deepEqual(back.ends, []);
  });

  it('can be decided about for 7 days from then on, if it is unknown', async () => {
    const { house, store } = await strand({ error: createError('uncertain') });
    await house.pass(6.9 * dayMs);
    assert.equal(undecided(house), 0);
    await house.pass(0.2 * dayMs);
    assert.deepEqual([undecided(house), house.abandoned, store.platter.entries.size], [1, [], 1]);
    await house.pass(6.8 * dayMs);
    assert.equal(undecided(house), 1);
    await house.pass(0.2 * dayMs);
    assert.deepEqual([undecided(house), store.platter.entries.size, house.outbox.isSettled], [0, 0, true]);
  });

  it('enters the flow when the node comes back before', async () => {
    const { house } = await strand({});
    await house.pass(6 * dayMs);
    const back = house.attach();
    await house.pass(100);
    assert.deepEqual([back.ends, house.abandoned], [['to 6421555123'], []]);
  });

  it('waits for 7 days from when the node went, however long that could not take it', async () => {
    const house = new House();
    const [node] = [house.attach(), house.attach('stays')];
    node.isFlowing = false;
    sendText(node, 'hello', { keep: forever });
    await house.pass(10 * dayMs);
    void node.node.close();
    await house.pass(6 * dayMs);
    const back = house.attach();
    await house.pass(100);
    assert.deepEqual([back.ends, house.abandoned], [['to 6421555123'], []]);
  });

  it('is given up after 7 days in all, across a restart', async () => {
    const { house, store } = await strand({});
    await house.pass(6 * dayMs);
    const next = house.restart(copyPlatter(store.platter));
    next.attach('stays');
    await next.pass(0.9 * dayMs);
    assert.deepEqual(next.abandoned, []);
    await next.pass(0.2 * dayMs);
    assert.deepEqual(next.abandoned, ['send']);
  });

  it('waits no longer once the account is closed', async () => {
    const { house, store } = await strand({});
    const closed = house.close();
    await house.pass(11_000);
    await closed;
    await house.pass(400 * dayMs);
    assert.deepEqual([store.platter.entries.size, house.abandoned, house.faults], [1, [], []]);
    const back = house.attach();
    await house.pass(100);
    assert.deepEqual(back.ends, ['to 6421555123']);
  });

  it('lets the questions of its text run out', async () => {
    const store = new FailingStore();
    const house = new House({ store });
    const [node] = [house.attach(), house.attach('stays')];
    const answer = house.service.holdNext({});
    sendText(node, 'hello', { keep: forever, waitMs: 60_000 });
    await house.pass(100);
    void node.node.close();
    await house.pass(10);
    answer();
    await house.pass(30 * dayMs);
    assert.deepEqual([house.abandoned, store.platter.entries.size, house.outbox.isSettled], [['send'], 0, true]);
    assert.equal(house.asking, false);
  });
});
