import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { calls, simulator, useSimulator } from './use-simulator';

const handset = '6421555123';
const number = '642100000001';

describe('simulator: control API', () => {
  useSimulator(() => ({}));

  const control = async (name: string, input: unknown): Promise<Record<string, unknown>> => {
    const answer = await calls.control(name, input);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text);
  };
  const state = async (query = ''): Promise<Record<string, unknown>> => {
    const answer = await request(`${simulator.controlUrl}/state${query}`);
    assert.equal(answer.statusCode, 200);
    return (await answer.body.json()) as Record<string, unknown>;
  };

  it('accepts each kind of fault, and shows it in the state', async () => {
    const kinds = { dripMs: 1, drop: 'during', half: true, garbage: true, empty: true, hang: true, repeat: true };
    for (const [kind, value] of Object.entries({ ...kinds, delayMs: 1, status: 500 })) {
      const fault = { [kind]: value };
      await control('fault', { endpoint: 'send', fault, times: 2 });
      assert.deepEqual((await state()).faults, { send: { fault, left: 2 } });
    }
  });

  it('shows the state with the requested number of entries', async () => {
    for (const body of ['one', 'two']) await calls.send({ to: handset, body });
    const { messages, requests } = await state('?limit=1');
    assert.equal((messages as { body: string }[]).map(({ body }) => body).join(), 'two');
    assert.equal((requests as unknown[]).length, 1);
    assert.equal((await request(`${simulator.controlUrl}/state?limit=x`)).statusCode, 400);
  });

  it('answers 400 with one line to wrong input', async () => {
    for (const [name, input, expected] of [
      ['reply', 'no json', /not JSON/],
      ['reply', { from: '021', body: 'x' }, /^from must be a number in international format/],
      ['reply', { from: handset, body: 'x', form: 1 }, /^form is not known; known are: from, body/],
      ['receive', { from: handset, to: number, body: 'x', extra: { a: 1 } }, /^extra must be an object of texts/],
      ['outcome', { msisdn: handset, statusCode: 'BLOCKED' }, /^statusCode must be one of: RCV, NRCV, NRC, NUR, EXP/],
      ['groups', { name: 'Team', contacts: 'Anna' }, /^contacts must be a list/],
      ['organisation', { callbackStatusUrl: 'mailto:a@b.example' }, /^callbackStatusUrl must be a URL/],
      ['fault', { endpoint: 'sned', fault: null }, /^endpoint must be one of: send/],
      ['fault', { endpoint: 'send', fault: { drop: 'later' } }, /^fault.drop must be one of: before, after, during/],
      ['fault', { endpoint: 'send', fault: { status: 99 } }, /^fault.status must be a whole number/],
      ['fault', { endpoint: 'send', fault: { hang: true, reason: 'x' } }, /go with fault.status only/],
      ['delete', { messageId: 'unknown' }, /^messageId is not that of a message/],
    ] as const) {
      const answer = await calls.control(name, input);
      assert.equal(answer.status, 400, name);
      const { error } = JSON.parse(answer.text);
      assert.match(error, expected);
      assert.equal(error.includes('\n'), false);
    }
    assert.equal(simulator.incoming.length + simulator.statuses.length, 0);
  });

  it('answers 413 to more than 16 MiB, with and without Content-Length', async () => {
    const input = (bytes: number) => '{"balance":5}'.padEnd(bytes, ' ');
    const limit = 16 * 1_048_576;
    for (const wrap of [(text: string) => text, (text: string) => Readable.from([text])]) {
      assert.equal((await calls.control('balance', wrap(input(limit)))).status, 200);
      const answer = await calls.control('balance', wrap(input(limit + 1)));
      assert.deepEqual([answer.status, JSON.parse(answer.text)], [413, { error: 'The input is too large' }]);
    }
  });
});
