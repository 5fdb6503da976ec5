import assert from 'node:assert/strict';
import { answersOf, beginReceiving } from '../sending/sending-side';
import { createError } from '../some-error';

const hour = 3_600_000;

describe('a messageId that is used again', () => {
  for (const inReplyToId of ['q1', undefined]) {
    it(`leaves the open request alone if refused (reply ${inReplyToId ? 'with' : 'without'} the id)`, async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, remember: { value: 1 } });
      side.service.script.push({ error: createError('forbidden') });
      await side.send(node, 'News', { messageId: 'q1', waitMs: hour, remember: { value: 2 } });
      await side.incoming('6421555123', 'yes', inReplyToId === undefined ? {} : { inReplyToId });
      assert.deepEqual(answersOf(node), ['6421555123: yes']);
      const [{ result } = assert.fail()] = node.answers;
      assert.ok(!('reason' in result));
      assert.deepEqual([result.reply.sent?.body, result.reply.sent?.remembered], ['Come?', 1]);
    });
  }

  it('answers the latest accepted message first, then the one before', async () => {
    const { side, node } = beginReceiving();
    for (const body of ['well?', 'so?']) {
      await side.send(node, body, { messageId: 'q1', waitMs: hour });
    }
    for (const body of ['yes', 'no']) await side.incoming('6421555123', body, { inReplyToId: 'q1' });
    assert.deepEqual(
      node.answers.map(({ origin }, index) => [origin, node.replies[index]]),
      [
        [{ body: 'so?' }, 'yes'],
        [{ body: 'well?' }, 'no'],
      ],
    );
  });
});
