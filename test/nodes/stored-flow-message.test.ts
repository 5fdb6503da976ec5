import assert from 'node:assert/strict';
import { formatFlowMessage, parseFlowMessage, StoredFlowMessage } from '../../nodes/runtime/stored-flow-message';

describe('a flow message that several answers share', () => {
  it('is parsed once per turn of the event loop', async () => {
    let parsed = 0;
    const flowMessage = new StoredFlowMessage((text) => {
      parsed++;
      return parseFlowMessage(text, () => assert.fail('unreadable'));
    });
    const texts = ['a', 'b'].map((topic) => formatFlowMessage({ _msgid: topic, topic } as never));
    const read = () => texts.flatMap((text) => [flowMessage.read(text), flowMessage.read(text)]);
    const first = read();
    assert.deepEqual(
      first.map((message) => (message as { topic?: string }).topic),
      ['a', 'a', 'b', 'b'],
    );
    assert.equal(parsed, 2);
    await new Promise(setImmediate);
    assert.notEqual(flowMessage.read(texts[1]), first[3]);
    assert.equal(parsed, 3);
  });
});
