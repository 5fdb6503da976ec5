import assert from 'node:assert/strict';
import { CarriedMessage, formatCarried, parseCarried } from '../../nodes/runtime/carried-message';

describe('a message that answers carry', () => {
  it('is read once for all that come in one turn of the event loop, and anew in another', async () => {
    let parsed = 0;
    const carried = new CarriedMessage((text) => {
      parsed++;
      return parseCarried(text, () => assert.fail('unreadable'));
    });
    const texts = ['a', 'b'].map((topic) => formatCarried({ _msgid: topic, topic } as never));
    const read = () => texts.flatMap((text) => [carried.read(text), carried.read(text)]);
    const first = read();
    assert.deepEqual(
      first.map((message) => (message as { topic?: string }).topic),
      ['a', 'a', 'b', 'b'],
    );
    assert.equal(parsed, 2);
    await new Promise(setImmediate);
    assert.notEqual(carried.read(texts[1]), first[3]);
    assert.equal(parsed, 3);
  });
});
