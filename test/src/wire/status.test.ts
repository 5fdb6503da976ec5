import assert from 'node:assert/strict';
import { parseStatuses } from '../../../src/wire/status';

function parse(form: string) {
  return parseStatuses(Buffer.from(form), 'application/x-www-form-urlencoded');
}

/** Returns the values of these fields in each record. */
function valuesIn(form: string, fields: readonly string[]) {
  return parse(form).map((record) => fields.map((field) => record[field]));
}

const status = 'messageId=st-1&to=8000&from=64215551234&statusCode=RCV&inReplyToId=id-1&error=none';

describe('parseStatuses (§2.5)', () => {
  it('reads all fields', () => {
    assert.deepEqual(parse(status), [
      {
        messageId: 'st-1',
        to: '8000',
        from: '64215551234',
        statusCode: 'RCV',
        inReplyToId: 'id-1',
        error: 'none',
        description: 'received by the handset',
        final: true,
        via: 'poll',
      },
    ]);
  });

  it('returns an unknown code without `description` and `final`', () => {
    for (const code of ['XYZ', 'rcv', '__proto__', 'constructor', 'toString']) {
      const [record] = parse(`messageId=1&statusCode=${code}`);
      assert.deepEqual(record, { messageId: '1', from: '', statusCode: code, via: 'poll' });
    }
  });

  it('starts a new record when the first field repeats', () => {
    const form = 'messageId=1&from=a&statusCode=SNT&messageId=2&from=b&statusCode=RCV&error=e&note=n';
    assert.deepEqual(valuesIn(form, ['messageId', 'from', 'statusCode', 'error', 'note']), [
      ['1', 'a', 'SNT', undefined, undefined],
      ['2', 'b', 'RCV', 'e', 'n'],
    ]);
  });

  it('accepts a record that lacks the first field', () => {
    const form = 'error=e&messageId=1&statusCode=ERR&messageId=2&statusCode=RCV&error=f&messageId=3&statusCode=EXP';
    assert.deepEqual(valuesIn(form, ['messageId', 'statusCode', 'error']), [
      ['1', 'ERR', 'e'],
      ['2', 'RCV', undefined],
      ['3', 'EXP', 'f'],
    ]);
  });

  it('starts a new record when any field of §2.5 repeats', () => {
    const form = 'to=5&from=a&messageId=1&note=m&note=n&from=b&messageId=2&error=x&to=7&from=c&messageId=3';
    assert.deepEqual(valuesIn(form, ['messageId', 'to', 'from', 'error']), [
      ['1', '5', 'a', undefined],
      ['2', undefined, 'b', 'x'],
      ['3', '7', 'c', undefined],
    ]);
    assert.deepEqual(valuesIn('to=5&messageId=1&from=a&messageId=2&from=b&error=x', ['messageId', 'to', 'error']), [
      ['1', '5', undefined],
      ['2', undefined, 'x'],
    ]);
  });

  it('reads several records whose values are grouped by field name', () => {
    const blocks = 'messageId=1&messageId=2&statusCode=SNT&statusCode=RCV';
    for (const form of [blocks, `to=5&${blocks}`]) {
      assert.deepEqual(valuesIn(form, ['messageId', 'statusCode']).join(' '), '1,SNT 2,RCV');
    }
  });

  it('ignores a record that lacks messageId and statusCode', () => {
    assert.equal(parse('messageId=1&statusCode=RCV&tag=a&tag=b').length, 1);
    assert.equal(parse('messageId=&statusCode=+&messageId=2&statusCode=RCV').length, 1);
  });

  it('throws SMS_RESPONSE for an answer without a status', () => {
    const pages = ['<html></html>', '<a href="?messageId=1&statusCode=RCV">x</a>', '{"see":"?a=1&statusCode=RCV"}'];
    for (const body of ['', 'garbage', 'from=1&to=2', 'messageId=&statusCode=', ...pages]) {
      assert.throws(() => parse(body), { code: 'SMS_RESPONSE', reason: 'responseUnreadable' });
    }
  });
});
