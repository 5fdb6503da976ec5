import assert from 'node:assert/strict';
import { type FakeNode, forever, SendingSide } from './sending-side';

describe('a redeployed node', () => {
  for (const what of ['outcome', 'reply'] as const) {
    /** Closes a node during the delivery of an outcome or a reply. `fail` then ends the delivery without success. */
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
      await side.send(old, 'hello', { keep: forever, ...(what === 'reply' && { waitMs: 60_000, messageId: 'm1' }) });
      if (what === 'reply') await side.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
      void old.node.close();
      await side.pass(10);
      return { side, old, fail };
    }

    const endsOf = (node: FakeNode) => (what === 'outcome' ? node.ends : node.replies);
    const end = what === 'outcome' ? 'to 6421555123' : 'yes';

    for (const how of ['late', 'thrown'] as const) {
      it(`receives the ${what} that the old node ${how === 'late' ? 'did not deliver' : 'rejected'}`, async () => {
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
