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

describe('a flow message stored as JSON, at any depth', () => {
  const bottom = () => ({ at: new Date(5), own: { $sms: 'Date', value: 'mine' }, photo: Buffer.from('x') });

  for (const depth of [500, 2_500, 20_000]) {
    it(`returns with ${depth} levels, or without only the deep property`, () => {
      let deep: object = bottom();
      for (let level = 0; level < depth; level++) deep = { deep };
      const rest = { _msgid: '1', topic: 't', payload: 'x' };
      const text = formatFlowMessage({ ...rest, deep } as never);
      const { deep: back, ...read } = parseFlowMessage(text, () => assert.fail('unreadable')) as { deep?: unknown };
      assert.deepEqual(read, rest);
      let inner = back;
      while (Object.hasOwn(Object(inner), 'deep')) inner = (inner as { deep: unknown }).deep;
      assert.deepEqual(inner, text.includes('"deep"') ? bottom() : undefined);
    });
  }

  it('is parsed with any number of levels', () => {
    const levels = 200_000;
    const text = `{"_msgid":"1","deep":${'['.repeat(levels)}{"$sms":"Date","value":"1970-01-01"}${']'.repeat(levels)}}`;
    let { deep: inner } = parseFlowMessage(text, () => assert.fail('unreadable')) as { deep?: unknown };
    while (Array.isArray(inner)) [inner] = inner;
    assert.deepEqual(inner, new Date(0));
  });

  it('returns without the gaps in its list of recipients', () => {
    const topic: string[] = [];
    topic[2_125_551_234] = '64215551234';
    const back = parseFlowMessage(formatFlowMessage({ _msgid: '1', topic } as never), () => assert.fail('unreadable'));
    assert.deepEqual(back, { _msgid: '1', topic: ['64215551234'] });
  });
});
