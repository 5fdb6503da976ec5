import assert from 'node:assert/strict';
import type { IncomingRecord, SentMessage } from '../../../src/model';
import { answersOf, beginReceiving, type SendingSide, type SendTextOptions } from '../sending/sending-side';
import { createError } from '../some-error';

const hour = 3_600_000;
const handset = '6421555123';

/** Sends a message with a value that the account attaches to each reply and status (option `remember`). */
async function remember(value: unknown = 1, options: SendTextOptions = { messageId: 'q1' }) {
  const receiving = beginReceiving();
  await receiving.side.send(receiving.node, 'Hi', { remember: { value }, ...options });
  return receiving;
}

const lastSent = ({ received }: SendingSide) => received.at(-1)?.sent as SentMessage | undefined;
const isLastAwaited = ({ received }: SendingSide) => (received.at(-1) as IncomingRecord | undefined)?.awaited;

describe('matching replies with messages', () => {
  it('a reply matches the message that its inReplyToId names', async () => {
    const { side } = await remember({ appointment: 7 }, { messageId: 'q1', to: [handset, 'nurses'] });
    await side.incoming(handset, 'yes', { inReplyToId: 'q1' });
    const { sentAt, ...sent } = lastSent(side) ?? assert.fail();
    assert.deepEqual(sent, {
      messageId: 'q1',
      to: [handset, 'nurses'],
      body: 'Hi',
      node: 'send',
      remembered: { appointment: 7 },
      matchedBy: 'messageId',
    });
    assert.equal(sentAt, new Date(Date.UTC(2026, 0, 1)).toISOString());
    assert.equal(isLastAwaited(side), undefined);
  });

  it('a status matches a message only by messageId', async () => {
    const { side } = await remember();
    await side.status(handset, 'RCV', 'q1');
    assert.equal(lastSent(side)?.remembered, 1);
    await side.status(handset, 'RCV', 'default');
    assert.equal(lastSent(side), undefined);
  });

  for (const inReplyToId of [undefined, 'default', ' ']) {
    it(`a reply matches the latest message if inReplyToId is ${JSON.stringify(inReplyToId) ?? 'absent'}`, async () => {
      const { side, node } = await remember();
      await side.send(node, 'later', { remember: { value: 2 } });
      await side.incoming(`+${handset}`, 'yes', inReplyToId === undefined ? {} : { inReplyToId });
      assert.deepEqual([lastSent(side)?.remembered, lastSent(side)?.matchedBy], [2, 'handset']);
    });
  }

  it('a reply prefers a message with an open reply request', async () => {
    const { side, node } = await remember('request', { waitMs: hour });
    await side.send(node, 'news', { remember: { value: 'news' } }, 1_000);
    for (const expected of [
      ['request', true],
      ['news', undefined],
    ]) {
      await side.incoming(handset, 'yes');
      assert.deepEqual([lastSent(side)?.remembered, isLastAwaited(side)], expected);
    }
  });

  it('a late or unrelated reply matches no message', async () => {
    const { side } = await remember();
    await side.incoming(handset, 'yes', { inReplyToId: 'other' });
    assert.equal(lastSent(side), undefined);
    await side.incoming('6421555999', 'yes');
    assert.equal(lastSent(side), undefined);
    await side.pass(169 * hour);
    await side.incoming(handset, 'late', { inReplyToId: 'q1' });
    assert.equal(lastSent(side), undefined);
  });

  it('a reply matches its message before the outcome is known', async () => {
    const { side, node } = beginReceiving();
    side.service.holdNext();
    await side.send(node, 'Hi', { messageId: 'q1', remember: { value: 1 } });
    await side.incoming(handset, 'yes', { inReplyToId: 'q1' });
    assert.equal(lastSent(side)?.remembered, 1);
  });

  for (const ids of [{ inReplyToId: 'q1' }, {}]) {
    it(`a reply ${ids.inReplyToId ? 'with' : 'without'} inReplyToId does not match a refused message`, async () => {
      const { side, node } = await remember(1, { messageId: 'q1', waitMs: hour });
      side.service.script.push({ error: createError('forbidden') });
      await side.send(node, 'News', { messageId: 'q1', waitMs: hour, remember: { value: 2 } });
      await side.incoming(handset, 'yes', ids);
      assert.deepEqual(answersOf(node), [`${handset}: yes`]);
      assert.deepEqual([lastSent(side)?.body, lastSent(side)?.remembered], ['Hi', 1]);
    });
  }
});
