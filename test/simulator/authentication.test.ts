import assert from 'node:assert/strict';
import { calls, simulator, start, useSimulator } from './use-simulator';
import { readXml } from './xml-element';

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('simulator: §5 authentication', () => {
  useSimulator(() => ({ basePath: '/sms-service/' }));
  const endpoints = [
    ['send', '/api/3/sms/out', 'POST', { to: '6421555123', body: 'x' }],
    ['incoming', '/api/1/sms/in', 'POST', {}],
    ['status', '/api/1/sms/status', 'POST', {}],
    ['outbox', '/api/3/sms/out/poll', 'GET', {}],
    ['feed', '/api/2/sms/list', 'POST', {}],
  ] as const;

  for (const [endpoint, path, method, params] of endpoints) {
    it(`accepts Bearer, Basic and parameters on ${endpoint}`, async () => {
      const { userId, password } = simulator.credentials;
      const answers = await Promise.all([
        calls.call(path, params, { method }),
        calls.call(path, params, { method, authorization: basic('demo:demo-password') }),
        calls.call(path, { ...params, userId, password }, { method, authorization: null }),
        calls.call(path, { ...params, userId, password }, { method: 'GET', authorization: null }),
      ]);
      for (const { status } of answers) assert.ok(status === 200 || status === 204, String(status));
    });

    it(`answers 401 without credentials and with wrong ones on ${endpoint}`, async () => {
      const answers = await Promise.all([
        calls.call(path, params, { method, authorization: null }),
        calls.call(path, params, { method, authorization: 'Bearer wrong' }),
        calls.call(path, params, { method, authorization: basic('demo:wrong') }),
        calls.call(path, params, { method, authorization: basic('demo') }),
        calls.call(path, params, { method, authorization: 'Digest demo-api-key' }),
        calls.call(path, { ...params, userId: 'demo', password: 'wrong' }, { method, authorization: null }),
      ]);
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([401]));
    });
  }

  it('reports the 401 of the send endpoint in the XML root too (§2.2)', async () => {
    const answer = await calls.send({ to: '6421555123', body: 'x' }, { authorization: null });
    const { name, attributes } = readXml(answer.text);
    assert.equal(name, 'outbound-message-delivery');
    assert.equal(attributes.isError, 'true');
    assert.equal(attributes.errorCode, '401');
    assert.match(attributes.errorMessage ?? '', /password/);
  });
});

describe('simulator: §4, §9 paths and methods', () => {
  useSimulator(() => ({}));

  it('answers 405 with Allow to another method', async () => {
    assert.equal((await calls.call('/api/3/sms/out/poll')).status, 405);
    const answer = await calls.call('/api/1/sms/in', {}, { method: 'DELETE' });
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.allow, 'POST, GET');
  });

  it('marks nothing as read for a HEAD request', async () => {
    const message = simulator.receive({ from: '6421555123', to: '642100000001', body: 'x' });
    assert.equal((await calls.pollIncoming({ method: 'HEAD' })).status, 405);
    assert.equal(message.read, false);
  });

  it('keeps every request in order, with its parameters and its end', async () => {
    await calls.send({ to: '6421555123', body: 'a&b ü' });
    await calls.call('/api/2/sms/list', { size: '1' }, { method: 'GET' });
    await simulator.until(() => simulator.requests.every(({ ended }) => ended));
    const [first, second] = simulator.requests;
    assert.deepEqual(
      [first?.endpoint, first?.method, first?.path, first?.status, first?.aborted],
      ['send', 'POST', '/api/3/sms/out', 200, undefined],
    );
    assert.deepStrictEqual(first?.params, { to: '6421555123', body: 'a&b ü' });
    assert.equal(first?.body, 'to=6421555123&body=a%26b+%C3%BC');
    assert.deepStrictEqual(second?.query, { size: '1' });
    assert.equal(second?.headers.authorization, 'Bearer demo-api-key');
  });

  it('keeps no more requests than keepRequests', async () => {
    await start({ keepRequests: 3 });
    for (const size of ['1', '2', '3', '4', '5']) await calls.call('/api/2/sms/list', { size });
    assert.deepEqual(
      simulator.requests.map(({ params }) => params.size),
      ['3', '4', '5'],
    );
  });

  it('refuses a body of more than 1 MiB with 413', async () => {
    assert.equal((await calls.send({ to: '6421555123', body: 'x'.repeat(1_048_577) })).status, 413);
  });
});
