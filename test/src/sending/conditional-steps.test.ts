import assert from 'node:assert/strict';
import { beginSending, forever, sendText } from './sending-side';

describe('a stored message that several parties act on at the same time', () => {
  /** A service that holds two plain requests, so that a stored message has to wait for its turn. */
  async function createBusySide() {
    const { side, node } = beginSending({ concurrency: 2 });
    const answers = [side.service.holdNext(), side.service.holdNext()];
    sendText(node, 'plain 1');
    await side.send(node, 'plain 2', {}, 10);
    await side.send(node, 'stored', { keep: forever }, 10);
    const [entry] = side.outbox.admin.entries('kept', 1).entries;
    return { side, node, id: entry?.id ?? '', release: () => answers.map((answer) => answer()) };
  }

  it('is sent once if its node is registered again after "send now"', async () => {
    const { side, id, release } = await createBusySide();
    assert.equal(await side.outbox.admin.act(id, 'send'), 'done');
    side.attach();
    const answers = [side.service.holdNext(), side.service.holdNext()];
    release();
    await side.pass(100);
    for (const answer of answers) answer();
    await side.pass(100);
    assert.deepEqual(side.service.bodies, ['plain 1', 'plain 2', 'stored']);
  });

  it('is dropped from memory with its input if another instance claims it', async () => {
    const { side, node } = beginSending();
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'stored', { keep: forever }, 1_000);
    const [entry] = side.outbox.admin.entries('kept', 1).entries;
    assert.equal(side.outbox.hasMessages, true);
    side.outbox.forget(entry?.id ?? '');
    assert.deepEqual([side.outbox.hasMessages, side.outbox.isSettled], [false, true]);
    side.service.otherwise = { takes: true };
    await side.pass(120_000);
    assert.deepEqual([node.ends, side.service.bodies], [[], []]);
  });
});
