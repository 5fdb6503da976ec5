import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { readForm, readXml } from './service-calls';
import { calls, handset, number, simulator, useSimulator } from './use-simulator';

describe('simulator: fault', () => {
  useSimulator(() => ({ statusDelayMs: Number.POSITIVE_INFINITY }));
  const send = () => calls.send({ to: handset, body: 'x' });

  it('replaces the normal answer to a request', async () => {
    simulator.fault('send', { status: 500, reason: 'Database <down>' }, 1);
    const failed = await send();
    assert.deepEqual([failed.status, failed.reason], [500, 'Database <down>']);
    assert.match(failed.text, /<h1>Database &lt;down><\/h1>/);
    const headers = { location: 'https://elsewhere.example/' };
    simulator.fault('send', { status: 302, body: 'gone', contentType: 'text/x-test', headers }, 1);
    const moved = await send();
    assert.deepEqual([moved.status, moved.text, moved.headers['content-type']], [302, 'gone', 'text/x-test']);
    assert.equal(moved.headers.location, 'https://elsewhere.example/');
    assert.equal(simulator.messages.length, 0);
  });

  it('returns an XML error for a send that fails with 401 or 403', async () => {
    for (const status of [401, 403]) {
      simulator.fault('send', { status, reason: 'Not today', headers: { 'x-test': 'yes' } }, 1);
      const answer = await calls.send({ to: handset, body: 'x', messageId: 'mine' });
      assert.deepEqual([answer.status, answer.reason, answer.headers['x-test']], [status, 'Not today', 'yes']);
      const { name, attributes } = readXml(answer.text);
      const { messageId, isError, errorCode, errorMessage } = attributes;
      assert.equal(name, 'outbound-message-delivery');
      assert.deepEqual([messageId, isError, errorCode, errorMessage], ['mine', 'true', String(status), 'Not today']);
      simulator.fault('send', { status, body: 'own' }, 1);
      assert.equal((await send()).text, 'own');
      simulator.fault('incoming', { status }, 1);
      assert.match((await calls.pollIncoming()).text, /<h1>/);
    }
    assert.equal(simulator.messages.length, 0);
  });

  it('lasts for a number of requests or until its removal', async () => {
    simulator.fault('send', { status: 503 }, 2);
    simulator.fault('incoming', { status: 503 });
    assert.deepEqual([(await send()).status, (await send()).status, (await send()).status], [503, 503, 200]);
    assert.equal((await calls.pollIncoming()).status, 503);
    simulator.fault('incoming', null);
    assert.equal((await calls.pollIncoming()).status, 204);
  });

  it('drops the connection before or after the request takes effect', async () => {
    simulator.fault('send', { drop: 'before' }, 1);
    await assert.rejects(send());
    assert.equal(simulator.messages.length, 0);
    simulator.fault('send', { drop: 'after' }, 1);
    await assert.rejects(send());
    assert.equal(simulator.messages.length, 1);
    const message = simulator.receive({ from: handset, to: number, body: 'lost' });
    simulator.fault('incoming', { drop: 'after' }, 1);
    await assert.rejects(calls.pollIncoming());
    assert.equal(message.read, true);
    await simulator.until(() => simulator.polling('incoming') === 0);
    assert.equal(simulator.requests.at(-1)?.status, undefined);
    assert.equal(simulator.requests.at(-1)?.aborted, undefined, 'the client did not go away');
  });

  /** Returns every byte of the answer to a GET, until the connection ends. */
  const readRaw = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(simulator.baseUrl).port), '127.0.0.1');
      let received = '';
      socket.setEncoding('latin1');
      socket.on('data', (chunk) => {
        received += chunk;
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(received));
      const login = 'userId=demo&password=demo-password';
      socket.write(`GET ${path}${path.includes('?') ? '&' : '?'}${login} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    });

  it('cuts off the answer in its first line', async () => {
    simulator.fault('send', { drop: 'during' }, 1);
    assert.equal(await readRaw(`/api/3/sms/out?to=${handset}&body=x&messageId=m`), 'HTTP/1.1 2');
    assert.equal(simulator.find('m')?.body, 'x');
    await simulator.until(() => simulator.requests[0]?.brokenOff === true);
    assert.equal((await send()).status, 200);
  });

  it('cuts off the answer in the middle of its body', async () => {
    const message = simulator.receive({ from: handset, to: number, body: 'half of this' });
    simulator.fault('incoming', { half: true }, 1);
    const raw = await readRaw('/api/1/sms/in');
    const [head = '', body = ''] = raw.split('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
    assert.match(head, /^HTTP\/1\.1 200 OK/);
    assert.equal(body.length, length >> 1);
    assert.match(body, /^messageId=/);
    assert.equal(message.read, true);
  });

  it('sends a complete answer byte by byte', async () => {
    simulator.receive({ from: handset, to: number, body: 'slow' });
    simulator.fault('incoming', { dripMs: 0 }, 1);
    assert.equal(readForm(await calls.pollIncoming()).body, 'slow');
  });

  it('completes a delayed send even if the client disconnects', async () => {
    simulator.fault('send', { delayMs: 50 }, 1);
    const abort = new AbortController();
    const given = assert.rejects(calls.send({ to: handset, body: 'x' }, { signal: abort.signal }));
    await simulator.until(() => simulator.polling('send') === 1);
    abort.abort();
    await given;
    await simulator.until(() => simulator.messages.length === 1);
    assert.equal(simulator.requests[0]?.status, undefined);
  });
});
