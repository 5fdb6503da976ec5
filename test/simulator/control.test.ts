import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { calls, handset, simulator, useSimulator } from './use-simulator';

describe('simulator: control API', () => {
  useSimulator(() => ({}));

  it('answers 400 with a one-line reason to wrong input', async () => {
    for (const [name, input, expected] of [
      ['reply', 'no json', /not JSON/],
      ['reply', { from: '021', body: 'x' }, /^from must be a number in international format/],
      ['reply', { from: handset, body: 'x', form: 1 }, /^form is not known; known are: from, body/],
      [
        'fault',
        { endpoint: 'send', fault: { status: 503, headers: { a: 1 } } },
        /^fault.headers must be an object of texts/,
      ],
      ['outcome', { msisdn: handset, statusCode: 'LOST' }, /^statusCode must be one of: RCV, NRCV, NRC, NUR, EXP/],
      ['outage', { seconds: 0 }, /^seconds must be a number from 1 to 86400$/],
      ['clock', { advanceMs: 1e15 }, /^advanceMs must be a number from 0 to 31622400000$/],
      ['balance', '{"balance":1e999}', /^balance must be a number of 0 or more$/],
      ['fault', { endpoint: 'send', fault: { delayMs: 1e10 } }, /^fault.delayMs must be a number from 0 to 86400000$/],
      ['fault', { endpoint: 'send', fault: { status: 503, headers: { 'a b': '1' } } }, /^fault cannot be sent: Header/],
      ['fault', { endpoint: 'send', fault: { status: 503, contentType: 'a\nb' } }, /^fault cannot be sent: Invalid/],
      ['groups', { name: 'Team', contacts: 'Anna' }, /^contacts must be a list/],
      ['organisation', { callbackStatusUrl: 'mailto:a@b.example' }, /^callbackStatusUrl must be a URL/],
      ['fault', { endpoint: 'sned', fault: null }, /^endpoint must be one of: send/],
      ['fault', { endpoint: 'send', fault: { drop: 'later' } }, /^fault.drop must be one of: before, after, during/],
      ['fault', { endpoint: 'send', fault: { status: 99 } }, /^fault.status must be a whole number/],
      ['fault', { endpoint: 'send', fault: { hang: true, reason: 'x' } }, /go with fault.status only/],
    ] as const) {
      const answer = await calls.control(name, input);
      assert.equal(answer.status, 400, name);
      const { error } = JSON.parse(answer.text);
      assert.match(error, expected);
      assert.equal(error.includes('\n'), false);
    }
    assert.equal((await calls.control('constructor', {})).status, 404);
    assert.equal(simulator.incoming.length + simulator.statuses.length, 0);
  });

  it('answers 413 to an input of more than 16 MiB', async () => {
    const input = (bytes: number) => '{"balance":5}'.padEnd(bytes, ' ');
    const limit = 16 * 1_048_576;
    for (const wrap of [(text: string) => text, (text: string) => Readable.from([text])]) {
      assert.equal((await calls.control('balance', wrap(input(limit)))).status, 200);
      const answer = await calls.control('balance', wrap(input(limit + 1)));
      assert.deepEqual([answer.status, JSON.parse(answer.text)], [413, { error: 'The input is too large' }]);
    }
  });
});
