import assert from 'node:assert/strict';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { copyDisk, type FakeNode, forever, SendingSide, type Turn } from './sending-side';

const dayMs = 24 * 3_600_000;

describe('an outcome or an answer', () => {
  for (const what of ['outcome', 'answer'] as const) {
    /** Closes a node while it gets an outcome or answer that never enters the flow. */
    async function tellInVain(): Promise<{ side: SendingSide; old: FakeNode; fail(end: 'late' | 'thrown'): void }> {
      const side = new SendingSide();
      side.receive();
      const old = side.attach();
      let fail = (_: 'late' | 'thrown') => {};
      const told = new Promise<boolean>((resolve, reject) => {
        fail = (end) => (end === 'late' ? resolve(false) : reject(new Error('thrown')));
      });
      if (what === 'outcome') old.onOutcome = () => told;
      else old.onAnswer = () => told;
      await side.send(old, 'hello', { keep: forever, ...(what === 'answer' && { waitMs: 60_000, messageId: 'm1' }) });
      if (what === 'answer') await side.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
      void old.node.close();
      await side.pass(10);
      return { side, old, fail };
    }

    const endsOf = (node: FakeNode) => (what === 'outcome' ? node.ends : node.replies);
    const end = what === 'outcome' ? 'to 6421555123' : 'yes';

    for (const how of ['late', 'thrown'] as const) {
      it(`goes to the next node (${what}, ${how})`, async () => {
        const { side, fail } = await tellInVain();
        const next = side.attach();
        await side.pass(10);
        assert.deepEqual(endsOf(next), []);
        fail(how);
        await side.pass(10);
        assert.deepEqual(endsOf(next), [end]);
        assert.equal(side.faults.length, how === 'thrown' ? 1 : 0);
      });

      it(`goes to a later node (${what}, ${how})`, async () => {
        const { side, fail } = await tellInVain();
        fail(how);
        await side.pass(10);
        const next = side.attach();
        await side.pass(10);
        assert.deepEqual(endsOf(next), [end]);
      });
    }
  }

  it('leaves no timer if the account closes after a missed delivery', async () => {
    const side = new SendingSide();
    side.receive();
    const node = side.attach();
    let fail = () => {};
    node.onAnswer = () => new Promise<boolean>((resolve) => (fail = () => resolve(false)));
    await side.send(node, 'hello', { keep: forever, waitMs: 60_000, messageId: 'm1' });
    await side.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
    await side.outbox.close(0);
    fail();
    await side.pass(10);
    assert.equal(side.clock.timers, 0);
  });
});

describe('the outcome of a message whose node was removed', () => {
  /** Removes a node while its message is in flight. */
  async function strand(turn: Turn): Promise<{ side: SendingSide; store: FailingStore }> {
    const store = new FailingStore();
    const side = new SendingSide({ store });
    const [node] = [side.attach(), side.attach('stays')];
    const answer = side.service.holdNext(turn);
    await side.send(node, 'hello', { keep: forever });
    void node.node.close();
    await side.pass(10);
    answer();
    await side.pass(1_000);
    assert.equal(store.disk.entries.size, 1);
    return { side, store };
  }

  const undecided = (side: SendingSide) => side.outbox.admin.entries('uncertain', 9).total;

  it('waits for the node for 7 days, and is then dropped', async () => {
    const { side, store } = await strand({});
    await side.pass(6.9 * dayMs);
    assert.deepEqual([store.disk.entries.size, side.abandoned], [1, []]);
    await side.pass(0.2 * dayMs);
    assert.deepEqual([store.disk.entries.size, side.abandoned], [0, ['send']]);
    assert.deepEqual([side.outbox.isSettled, undecided(side)], [true, 0]);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(back.ends, []);
  });

  it('is listed for 7 more days if it is unknown', async () => {
    const { side, store } = await strand({ error: createError('uncertain') });
    await side.pass(6.9 * dayMs);
    assert.equal(undecided(side), 0);
    await side.pass(0.2 * dayMs);
    assert.deepEqual([undecided(side), side.abandoned, store.disk.entries.size], [1, [], 1]);
    await side.pass(6.8 * dayMs);
    assert.equal(undecided(side), 1);
    await side.pass(0.2 * dayMs);
    assert.deepEqual([undecided(side), store.disk.entries.size, side.outbox.isSettled], [0, 0, true]);
  });

  it('enters the flow if the node comes back within 7 days', async () => {
    const { side } = await strand({});
    await side.pass(6 * dayMs);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual([back.ends, side.abandoned], [['to 6421555123'], []]);
  });

  it('waits for 7 days after the node was removed', async () => {
    const side = new SendingSide();
    const [node] = [side.attach(), side.attach('stays')];
    node.isFlowing = false;
    await side.send(node, 'hello', { keep: forever }, 10 * dayMs);
    void node.node.close();
    await side.pass(6 * dayMs);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual([back.ends, side.abandoned], [['to 6421555123'], []]);
  });

  it('is dropped after 7 days in total, across a restart', async () => {
    const { side, store } = await strand({});
    await side.pass(6 * dayMs);
    const next = side.restart(copyDisk(store.disk));
    next.attach('stays');
    await next.pass(0.9 * dayMs);
    assert.deepEqual(next.abandoned, []);
    await next.pass(0.2 * dayMs);
    assert.deepEqual(next.abandoned, ['send']);
  });

  it('does not expire while the account is closed', async () => {
    const { side, store } = await strand({});
    const closed = side.close();
    await side.pass(11_000);
    await closed;
    await side.pass(400 * dayMs);
    assert.deepEqual([store.disk.entries.size, side.abandoned, side.faults], [1, [], []]);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(back.ends, ['to 6421555123']);
  });

  it('lets the reply requests of its message end', async () => {
    const store = new FailingStore();
    const side = new SendingSide({ store });
    const [node] = [side.attach(), side.attach('stays')];
    const answer = side.service.holdNext({});
    await side.send(node, 'hello', { keep: forever, waitMs: 60_000 });
    void node.node.close();
    await side.pass(10);
    answer();
    await side.pass(30 * dayMs);
    assert.deepEqual([side.abandoned, store.disk.entries.size, side.outbox.isSettled], [['send', 'send'], 0, true]);
    assert.equal(side.asking, false);
  });
});
