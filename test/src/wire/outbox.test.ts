import assert from 'node:assert/strict';
import { parseOutbox } from '../../../src/wire/outbox';
import { assertPlain } from './hostile';

function parse(value: unknown) {
  return parseOutbox(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), 'application/json');
}

const record = {
  messageId: 'id-1',
  body: ' Hello ',
  recipientCount: 2,
  recipients: 'Anna and 1 other',
  messageDate: '2026-11-01T10:00:00.000Z',
  statusCode: 'RCV',
  deleted: false,
  recipientsList: [
    { from: '8000', to: '64215551234', name: 'Anna', statusCode: 'RCV', channel: 'Sms' },
    { from: '8000', to: '64215551235', statusCode: 'SNT', channel: 'Sms' },
  ],
};

describe('parseOutbox (§2.4)', () => {
  it('reads all fields of each message (§4.3)', () => {
    assert.deepEqual(parse('[]'), []);
    assert.deepEqual(parse([record, { ...record, messageId: 'id-2' }]), [record, { ...record, messageId: 'id-2' }]);
  });

  it('reads recipientCount as a number', () => {
    const count = (recipientCount: unknown) => parse([{ messageId: '1', recipientCount }])[0]?.recipientCount;
    assert.deepEqual([3, '3', ' 3 ', 0, '0'].map(count), [3, 3, 3, 0, 0]);
    assert.deepEqual(['', ' ', null, 'many', true, [], {}].map(count), Array(7).fill(undefined));
  });

  it('reads deleted as a boolean', () => {
    const deleted = (value: unknown) => parse([{ messageId: '1', deleted: value }])[0]?.deleted;
    assert.deepEqual([true, 'true', ' TRUE ', 1, '1'].map(deleted), [true, true, true, true, true]);
    assert.deepEqual([false, 'false', 0, '0', 'no'].map(deleted), [false, false, false, false, false]);
    assert.deepEqual([null, '', ' ', undefined].map(deleted), [undefined, undefined, undefined, undefined]);
  });

  it('keeps all digits of a numeric messageId', () => {
    const [long, short] = parse(
      '[{"messageId":12345678901234567890,"body":"\\"9999999999999999\\""},{"messageId":42,"n":1.5e3}]',
    );
    assert.deepEqual([long?.messageId, long?.body], ['12345678901234567890', '"9999999999999999"']);
    assert.deepEqual([short?.messageId, short?.n], ['42', 1500]);
  });

  it('always returns a list of recipients', () => {
    const list = (recipientsList: unknown) => parse([{ messageId: '1', recipientsList }])[0]?.recipientsList;
    assert.deepEqual([undefined, null, 'x', [], [null, 1, 'x', []]].map(list), [[], [], [], [], []]);
    assert.deepEqual(list({ to: 64215551234 }), [{ to: '64215551234' }]);
  });

  it('keeps a message without a messageId', () => {
    for (const messageId of [undefined, null, '', ' ', {}]) {
      const { messageId: _, ...others } = record;
      assert.deepEqual(parse([{ ...record, messageId }]), [others]);
    }
  });

  it('accepts a message with only one field', () => {
    for (const [name, value] of Object.entries({ ...record, recipientsList: [{ to: '1' }] })) {
      assert.deepEqual(parse([{ [name]: value }]), [{ body: '', recipientsList: [], [name]: value }]);
    }
  });

  it('ignores empty entries beside a message', () => {
    const emptyEntries = [null, 1, {}, { messageId: ' ' }, { body: '', recipientsList: [], added: 'x' }];
    assert.deepEqual(parse([...emptyEntries, record]), [record]);
    for (const other of emptyEntries) {
      assert.throws(() => parse([other]), { code: 'SMS_RESPONSE', reason: 'responseUnreadable' });
    }
  });

  it('throws SMS_RESPONSE for an answer without a list', () => {
    const texts = ['', 'null', '1', '"x"', '{}', '[', '[{"messageId":"1"}', '[1]', '<html/>', 'messageId=1'];
    for (const body of [...texts, { messages: [record] }, record]) {
      assert.throws(() => parse(body), { code: 'SMS_RESPONSE', reason: 'responseUnreadable' });
    }
  });

  it('ignores fields named __proto__, constructor or prototype in any spelling', () => {
    const records = parse(
      String.raw`[{"messageId":"1","\u005f_proto__":{"a":1},"con\u0073tructor":1,"x":{"prototyp\u0065":1,"n":12345678901234567890}}]`,
    );
    assertPlain(records);
    assert.deepEqual(records, [{ messageId: '1', body: '', x: { n: '12345678901234567890' }, recipientsList: [] }]);
  });
});
