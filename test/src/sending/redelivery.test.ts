import assert from 'node:assert/strict';
import { type FakeNode, forever, SendingSide } from './sending-side';

describe('an outcome or an answer', () => {
  for (const what of ['outcome', 'answer'] as const) {
    /** Closes a node while it receives an outcome or an answer that never enters the flow. */
    async function missDelivery(): Promise<{ side: SendingSide; old: FakeNode; fail(end: 'late' | 'thrown'): void }> {
      const side = new SendingSide();
      side.receive();
      const old = side.attach();
      let fail = (_: 'late' | 'thrown') => {};
      const delivery = new Promise<boolean>((resolve, reject) => {
        fail = (end) => (end === 'late' ? resolve(false) : reject(new Error('thrown')));
      });
      if (what === 'outcome') old.onOutcome = () => delivery;
      else old.onAnswer = () => delivery;
      await side.send(old, 'hello', { keep: forever, ...(what === 'answer' && { waitMs: 60_000, messageId: 'm1' }) });
      if (what === 'answer') await side.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
      void old.node.close();
      await side.pass(10);
      return { side, old, fail };
    }

    const endsOf = (node: FakeNode) => (what === 'outcome' ? node.ends : node.replies);
    const end = what === 'outcome' ? 'to 6421555123' : 'yes';

    for (const how of ['late', 'thrown'] as const) {
      it(`goes to the redeployed node if the old one misses it (${what}, ${how})`, async () => {
        const { side, fail } = await missDelivery();
        const next = side.attach();
        await side.pass(10);
        assert.deepEqual(endsOf(next), []);
        fail(how);
        await side.pass(10);
        assert.deepEqual(endsOf(next), [end]);
        assert.equal(side.faults.length, how === 'thrown' ? 1 : 0);
      });
    }
  }
});
