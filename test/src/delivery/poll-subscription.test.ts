import assert from 'node:assert/strict';
import { maxUnacknowledged } from '../../../src/delivery/poll-subscription';
import { useInbox } from '../inbox/use-inbox';
import type { NodeOptions, RecordingNode } from './recording-node';

describe('PollSubscription', () => {
  const { attach, receive, pass, restart, storedParts } = useInbox();

  /** Attaches a node, and delivers message 1 to it. */
  async function deliver(options: NodeOptions = {}): Promise<RecordingNode> {
    const node = attach(options);
    await receive('1');
    return node;
  }

  /** For each delivery: the body, whether it was marked as redelivered, and the number of the attempt. */
  const attemptsOf = ({ sent }: RecordingNode) =>
    sent.map(({ record, redelivered, ackId }) => [record.body, redelivered, Number(ackId?.split('.')[1])]);

  describe('with `acknowledge` set to auto', () => {
    it('removes a message from the store when it enters the flow', async () => {
      const node = attach({ acknowledge: 'auto' });
      await receive('1', '2', '3');
      assert.deepEqual(node.bodies, ['1', '2', '3']);
      assert.ok(node.sent.every(({ ackId, redelivered }) => ackId === undefined && !redelivered));
      assert.deepEqual([await storedParts(), node.subscription.unacknowledgedCount], [[], 0]);
    });

    it('redelivers a message that a stopped flow missed', async () => {
      const stopped = attach({ acknowledge: 'auto' });
      stopped.isFlowRunning = false;
      await receive('1');
      assert.deepEqual(await storedParts(), ['inbox']);
      stopped.detach();
      const next = attach({ acknowledge: 'auto' });
      assert.deepEqual(await storedParts(), []);
      assert.deepEqual(next.marks, [['1', true]]);
    });
  });

  describe('with `acknowledge` set to flow', () => {
    it('keeps a message until it is acknowledged', async () => {
      const node = await deliver();
      assert.deepEqual([await storedParts(), node.subscription.unacknowledgedCount], [['inbox'], 1]);
      assert.equal(node.acknowledge(), true);
      assert.deepEqual([await storedParts(), node.subscription.unacknowledgedCount], [[], 0]);
      await pass(600_000);
      assert.equal(node.sent.length, 1);
    });

    it('redelivers a message after ackTimeout', async () => {
      const node = await deliver();
      await pass(59_999);
      assert.equal(node.sent.length, 1);
      await pass(1);
      assert.deepEqual(attemptsOf(node), [
        ['1', false, 1],
        ['1', true, 2],
      ]);
    });

    it('starts ackTimeout when the message enters the flow', async () => {
      let enterFlow = () => {};
      let attempts = 0;
      const send = () => {
        attempts++;
        return new Promise<boolean>((resolve) => {
          enterFlow = () => resolve(true);
        });
      };
      attach({ send });
      await receive('1');
      await pass(200_000);
      enterFlow();
      await pass(59_999);
      assert.equal(attempts, 1);
      await pass(1);
      assert.equal(attempts, 2);
    });

    it('doubles the delay after each failure of the flow', async () => {
      const node = await deliver();
      for (const [attempts, delayMs] of [
        [1, 250],
        [2, 500],
        [3, 1_000],
        [4, 2_000],
      ] as const) {
        assert.equal(node.fail(), true);
        await pass(delayMs - 1);
        assert.equal(node.sent.length, attempts);
        await pass(1);
        assert.equal(node.sent.length, attempts + 1);
      }
    });

    it('redelivers a failed message after ackTimeout at the latest', async () => {
      const node = await deliver({ ackTimeoutMs: 100 });
      node.fail();
      await pass(100);
      assert.equal(node.sent.length, 2);
    });

    it('counts only one failure per delivery', async () => {
      const node = await deliver();
      const ackId = node.lastAckId;
      node.fail();
      node.fail();
      await pass(250);
      node.fail(ackId);
      await pass(10_000);
      assert.equal(node.sent.length, 2);
    });

    it('stops redelivering a message after maxAttempts', async () => {
      const node = attach({ maxAttempts: 3 });
      await receive('by time');
      await pass(60_000);
      await pass(60_000);
      assert.deepEqual(node.undelivered, []);
      await pass(60_000);
      assert.deepEqual(node.undelivered, [{ body: 'by time', attempts: 3 }]);
      await receive('by failure');
      for (let attempt = 0; attempt < 3; attempt++) {
        node.fail();
        await pass(1_000);
      }
      assert.deepEqual(node.undelivered.slice(1), [{ body: 'by failure', attempts: 3 }]);
      assert.equal(node.sent.length, 6);
      assert.deepEqual(await storedParts(), ['deadLetter', 'deadLetter']);
      assert.equal(node.subscription.unacknowledgedCount, 0);
    });

    it('accepts a late acknowledgement, but not a late failure', async () => {
      const node = await deliver();
      const early = node.lastAckId;
      await pass(60_000);
      assert.equal(node.fail(early), true);
      await pass(10_000);
      assert.equal(node.sent.length, 2);
      assert.equal(node.acknowledge(early), true);
      assert.deepEqual(await storedParts(), []);
      await pass(600_000);
      assert.equal(node.sent.length, 2);
    });

    it('cancels a redelivery if the message is acknowledged', async () => {
      const node = await deliver();
      node.fail();
      node.acknowledge();
      await pass(600_000);
      assert.deepEqual([node.sent.length, await storedParts()], [1, []]);
    });

    it('ignores unknown and repeated acknowledgements', async () => {
      const node = await deliver();
      const { lastAckId } = node;
      for (const unknown of ['', '.', 'x.1', lastAckId.slice(1), '__proto__', `${lastAckId.split('.')[0]}x`]) {
        assert.equal(node.acknowledge(unknown), false, unknown);
      }
      assert.equal(node.acknowledge(), true);
      assert.equal(node.acknowledge(), false);
    });

    it('has at most 100 unacknowledged messages in the flow', async () => {
      let roomChanges = 0;
      const node = attach({ onRoom: () => roomChanges++ });
      const ids = Array.from({ length: 250 }, (_, index) => String(index));
      await receive(...ids);
      assert.deepEqual([node.sent.length, node.subscription.unacknowledgedCount], [100, 100]);
      for (let index = 0; index < 250; index++) assert.equal(node.acknowledge(node.sent[index]?.ackId), true);
      assert.deepEqual([await storedParts(), roomChanges], [[], 2]);
      assert.deepEqual(node.bodies, ids);
    });
  });

  describe('across restarts', () => {
    it('continues to count the attempts of an unacknowledged message', async () => {
      const before = attach();
      await receive('1', '2');
      before.fail();
      await pass(250);
      before.detach();
      assert.deepEqual([before.acknowledge(), before.subscription.unacknowledgedCount], [false, 0]);
      await pass(600_000);
      assert.equal(before.sent.length, 3);
      await restart();
      const next = attach();
      await pass();
      assert.deepEqual(attemptsOf(next), [
        ['1', true, 2],
        ['2', true, 3],
      ]);
    });

    it('counts no attempt for a message that did not enter the flow', async () => {
      let node = attach({ maxAttempts: 2 });
      const bodies = Array.from({ length: maxUnacknowledged + 1 }, (_, index) => `m${index}`);
      await receive(...bodies);
      const last = bodies.at(-1);
      for (let process = 0; process < 4; process++) {
        node.detach();
        await restart();
        node = attach({ maxAttempts: 100 });
        await pass();
        assert.ok(!node.bodies.includes(last));
      }
      for (const { ackId } of [...node.sent]) node.acknowledge(ackId);
      await pass();
      assert.deepEqual(attemptsOf(node).at(-1), [last, true, 2]);
    });

    it('stops redelivering a message after maxAttempts restarts', async () => {
      const undelivered: unknown[] = [];
      let sent = 0;
      for (let process = 0; process < 7; process++) {
        const node = attach();
        if (process === 0) await receive('1');
        await pass();
        sent += node.sent.length;
        undelivered.push(...node.undelivered);
        node.detach();
        await restart();
      }
      assert.equal(sent, 5);
      assert.deepEqual(undelivered, [{ body: '1', attempts: 5 }]);
    });

    for (const how of ['redeploy', 'restart'] as const) {
      it(`counts attempts separately for each node after a ${how}`, async () => {
        const failing = attach({ id: 'failing' });
        let slow = attach({ id: 'slow', ackTimeoutMs: 3_600_000 });
        await receive('1');
        for (let attempt = 1; attempt <= 5; attempt++) {
          failing.fail();
          await pass(60_000);
        }
        assert.deepEqual([failing.sent.length, failing.undelivered.length, slow.sent.length], [5, 1, 1]);
        for (let attempt = 2; attempt <= 5; attempt++) {
          slow.detach();
          if (how === 'restart') await restart();
          slow = attach({ id: 'slow' });
          await pass();
          assert.deepEqual([slow.marks, slow.undelivered], [[['1', true]], []]);
        }
        slow.fail();
        await pass();
        assert.deepEqual(slow.undelivered, [{ body: '1', attempts: 5 }]);
      });
    }

    it('accepts an acknowledgement of an earlier delivery', async () => {
      const before = await deliver();
      before.detach();
      const next = attach();
      await pass();
      assert.equal(next.acknowledge(before.lastAckId), true);
      assert.deepEqual(await storedParts(), []);
    });
  });
});
