import assert from 'node:assert/strict';
import { createStatus, parseStatuses } from '../../../src/wire/status';

function parse(form: string) {
  return parseStatuses(Buffer.from(form), 'application/x-www-form-urlencoded');
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

  const codes: [code: string, description: string, final: boolean][] = [
    ['SNT', 'passed to the network', false],
    ['RCV', 'received by the handset', true],
    ['NRCV', 'not received', true],
    ['NRC', 'not received', true],
    ['NUR', 'number unreachable', true],
    ['EXP', 'not delivered within the allowed time', true],
    ['INF', 'insufficient funds', true],
    ['ERR', 'internal error', true],
  ];
  it('describes each code of the specification', () => {
    for (const [code, description, final] of codes) {
      const record = createStatus([['statusCode', code]], 'poll');
      assert.deepEqual([record.description, record.final], [description, final], code);
    }
  });

  it('keeps an unknown code without description and final', () => {
    for (const code of ['XYZ', 'rcv', '__proto__', 'constructor', 'toString']) {
      const [record] = parse(`messageId=1&statusCode=${code}`);
      assert.deepEqual(record, { messageId: '1', from: '', statusCode: code, via: 'poll' });
    }
  });

  it('starts a record with each first name', () => {
    const records = parse('messageId=1&from=a&statusCode=SNT&messageId=2&from=b&statusCode=RCV&error=e&note=n');
    assert.deepEqual(
      records.map(({ messageId, from, statusCode, error, note }) => [messageId, from, statusCode, error, note]),
      [
        ['1', 'a', 'SNT', undefined, undefined],
        ['2', 'b', 'RCV', 'e', 'n'],
      ],
    );
    const others = parse('to=8&messageId=1&statusCode=SNT&error=e&to=9&messageId=2&statusCode=RCV&to=8&messageId=3');
    assert.deepEqual(
      others.map(({ messageId, to, error }) => [messageId, to, error]),
      [
        ['1', '8', 'e'],
        ['2', '9', undefined],
        ['3', '8', undefined],
      ],
    );
  });

  it('reads rows without the first name', () => {
    const records = parse(
      'error=e&messageId=1&statusCode=ERR&messageId=2&statusCode=RCV&error=f&messageId=3&statusCode=EXP',
    );
    assert.deepEqual(
      records.map(({ messageId, statusCode, error }) => [messageId, statusCode, error]),
      [
        ['1', 'ERR', 'e'],
        ['2', 'RCV', undefined],
        ['3', 'EXP', 'f'],
      ],
    );
  });

  it('starts a record with each messageId if the first name is unique', () => {
    const records = parse(
      'to=5&messageId=1&from=a&statusCode=RCV&messageId=2&from=b&statusCode=NRC&error=x&messageId=3&statusCode=EXP&note=n',
    );
    assert.deepEqual(
      records.map(({ messageId, to, statusCode, error, note }) => [messageId, to, statusCode, error, note]),
      [
        ['1', '5', 'RCV', undefined, undefined],
        ['2', undefined, 'NRC', 'x', undefined],
        ['3', undefined, 'EXP', undefined, 'n'],
      ],
    );
  });

  it('starts a record with a name of §2.5 that the record has already', () => {
    for (const third of ['from=c&messageId=3&statusCode=EXP', 'to=7&from=c&messageId=3&statusCode=EXP']) {
      const records = parse(
        `to=5&from=a&messageId=1&statusCode=RCV&note=m&note=n&from=b&messageId=2&statusCode=NRC&error=x&${third}`,
      );
      assert.deepEqual(
        records.map(({ messageId, to, from, statusCode, error }) => [messageId, to, from, statusCode, error]),
        [
          ['1', '5', 'a', 'RCV', undefined],
          ['2', undefined, 'b', 'NRC', 'x'],
          ['3', third.startsWith('to') ? '7' : undefined, 'c', 'EXP', undefined],
        ],
      );
    }
  });

  it('makes the n-th record of the n-th values of blocks', () => {
    const behindOther = parse('to=5&messageId=1&messageId=2&statusCode=SNT&statusCode=RCV');
    assert.deepEqual(
      behindOther.map(({ messageId, to, statusCode }) => [messageId, to, statusCode]),
      [
        ['1', '5', 'SNT'],
        ['2', undefined, 'RCV'],
      ],
    );
    const grouped = parse('messageId=1&messageId=2&statusCode=SNT&statusCode=RCV&from=a&from=b');
    assert.deepEqual(
      grouped.map(({ messageId, from, statusCode }) => [messageId, from, statusCode]),
      [
        ['1', 'a', 'SNT'],
        ['2', 'b', 'RCV'],
      ],
    );
  });

  it('makes no record without messageId and statusCode', () => {
    assert.equal(parse('messageId=1&statusCode=RCV&tag=a&tag=b').length, 1);
    assert.equal(parse('messageId=&statusCode=+&messageId=2&statusCode=RCV').length, 1);
  });

  it('throws SMS_RESPONSE for an answer without a status', () => {
    const pages = ['<html></html>', '<a href="?messageId=1&statusCode=RCV">x</a>', '{"see":"?a=1&statusCode=RCV"}'];
    for (const body of ['', 'garbage', 'from=1&to=2', 'messageId=&statusCode=', ...pages]) {
      assert.throws(() => parse(body), { code: 'SMS_RESPONSE', reason: 'responseUnreadable' });
    }
  });

  it('reads tens of thousands of records beside thousands of other names', () => {
    const pairs = Array.from({ length: 50_000 }, (_, index) => `messageId=${index}&x${index % 19_999}=1`);
    assert.equal(parse(pairs.join('&')).length, 50_000);
  });
});
