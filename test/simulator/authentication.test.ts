import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { readXml } from './service-calls';
import { calls, simulator, start, useSimulator } from './use-simulator';

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

// §5 of docs/specification.md
describe('simulator: authentication', () => {
  useSimulator(() => ({ basePath: '/sms-service/' }));

  it('answers 401 to a request without correct credentials', async () => {
    for (const path of ['/api/3/sms/out', '/api/1/sms/in', '/api/1/sms/status', '/api/2/sms/list']) {
      for (const authorization of [null, 'Bearer wrong', basic('demo:wrong'), basic('demo'), 'Digest demo-api-key'])
        assert.equal((await calls.call(path, {}, { authorization })).status, 401, path);
      const wrong = { userId: 'demo', password: 'wrong' };
      assert.equal((await calls.call(path, wrong, { authorization: null })).status, 401, path);
    }
    const get = { method: 'GET', authorization: null };
    assert.equal((await calls.call('/api/3/sms/out/poll', {}, get)).status, 401);
  });

  // §2.2 of docs/specification.md
  it('returns an XML error for a send without credentials', async () => {
    const answer = await calls.send({ to: '6421555123', body: 'x' }, { authorization: null });
    const { name, attributes } = readXml(answer.text);
    assert.deepEqual([name, attributes.isError, attributes.errorCode], ['outbound-message-delivery', 'true', '401']);
    assert.match(attributes.errorMessage ?? '', /password/);
  });
});

describe('simulator: HTTP server', () => {
  useSimulator(() => ({}));

  // §7.1 of docs/specification.md
  it('answers 401 to a wrong path', async () => {
    for (const path of ['/', '/api/3/sms/out/', '/api/4/sms/out', '/api/3/sms/in', '/sms', '/nowhere/api/1/sms/in']) {
      const answer = await calls.call(path);
      assert.equal(answer.status, 401, path);
      assert.equal(answer.headers['www-authenticate'], 'Basic realm="SMS"');
    }
    await once(get(simulator.baseUrl, { path: '/\\' }), 'response');
    assert.equal(simulator.requests.length, 7, 'they are in the log');
  });

  it('answers 405 with the header `Allow` to a wrong method', async () => {
    const message = simulator.receive({ from: '6421555123', to: '642100000001', body: 'x' });
    assert.equal((await calls.call('/api/3/sms/out/poll')).status, 405);
    for (const method of ['DELETE', 'HEAD']) {
      const { status, headers } = await calls.call('/api/1/sms/in', {}, { method });
      assert.deepEqual([status, headers.allow], [405, 'POST, GET']);
    }
    assert.equal(message.read, false);
  });

  it('records each request with its parameters, in order', async () => {
    await calls.send({ to: '6421555123', body: 'a&b ü' });
    await calls.call('/api/2/sms/list', { size: '1' }, { method: 'GET' });
    await simulator.until(() => simulator.requests.every(({ ended }) => ended));
    const [first, second] = simulator.requests;
    const { endpoint, method, path, status, aborted, params, body } = first ?? {};
    assert.deepEqual([endpoint, method, path, status, aborted], ['send', 'POST', '/api/3/sms/out', 200, undefined]);
    assert.deepEqual({ ...params }, { to: '6421555123', body: 'a&b ü' });
    assert.equal(body, 'to=6421555123&body=a%26b+%C3%BC');
    assert.equal(second?.query.size, '1');
    assert.equal(second?.headers.authorization, 'Bearer demo-api-key');
  });

  it('records at most `keepRequests` requests', async () => {
    await start({ keepRequests: 3 });
    for (const size of ['1', '2', '3', '4', '5']) await calls.call('/api/2/sms/list', { size });
    assert.equal(simulator.requests.map(({ params }) => params.size).join(''), '345');
  });

  it('answers 413 to a body of more than 1 MiB', async () => {
    assert.equal((await calls.send({ to: '6421555123', body: 'x'.repeat(1_048_577) })).status, 413);
  });
});
