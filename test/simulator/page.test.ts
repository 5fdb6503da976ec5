import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { createManualClock, type LoggedRequest } from '../../simulator';
import { calls, handset, number, simulator, start, useSimulator } from './use-simulator';

describe('simulator:', () => {
  useSimulator(() => ({ clock: createManualClock() }));

  const get = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await request(new URL(path, simulator.pageUrl), { headers });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  };

  describe('page', () => {
    it('is served at the root with a strict content security policy', async () => {
      const { status, headers, text } = await get('/');
      assert.equal(status, 200);
      assert.match(String(headers['content-type']), /^text\/html/);
      assert.match(String(headers['content-security-policy']), /default-src 'none'.*frame-ancestors 'none'/);
      assert.doesNotMatch(text, /https?:\/\/(?!127\.0\.0\.1)/);
    });

    it('serves only its files, with their media types', async () => {
      const types: Record<string, RegExp> = { css: /^text\/css/, mjs: /^text\/javascript/, svg: /^image\/svg/ };
      const files = readdirSync(join(__dirname, '../../simulator/page')).filter((name) => name !== 'index.html');
      assert.ok(files.length > 10);
      for (const file of files) {
        const { status, headers } = await get(`/control/page/${file}`);
        assert.equal(status, 200, file);
        assert.match(String(headers['content-type']), types[file.split('.').at(-1) ?? ''] ?? /never/, file);
      }
      for (const path of ['/control/page/../page.ts', '/control/page/%2e%2e%2fpage.ts', '/control/page/']) {
        assert.equal((await get(path)).status, 404, path);
      }
      assert.equal((await get('/page/main.mjs')).status, 401);
    });

    it('does not hide a path of the service', async () => {
      for (const basePath of ['', '/sms']) {
        await start({ basePath });
        assert.match((await get('/')).text, /SMS simulator/);
        assert.equal((await calls.pollIncoming()).status, 204);
        assert.equal((await calls.call('/', {}, { method: 'POST' })).status, 401);
      }
    });

    it('refuses requests with another host name or from another site', async () => {
      for (const headers of [{ host: 'evil.example:1' }, { origin: 'https://evil.example' }])
        assert.equal((await calls.control('balance', { balance: 0 }, headers)).status, 403);
      for (const path of ['/', '/control/page/main.mjs', '/control/events']) {
        assert.equal((await get(path, { host: 'evil.example' })).status, 403, path);
        assert.equal((await get(path, { origin: 'https://evil.example' })).status, 403, path);
      }
      const { host } = new URL(simulator.pageUrl);
      assert.equal((await get('/', { host: host.replace('127.0.0.1', 'localhost') })).status, 200);
    });
  });

  describe('event stream', () => {
    it('sends a first event, and then one event for many quick changes', async () => {
      const { body } = await request(`${simulator.pageUrl}control/events`);
      const chunks = body.setEncoding('utf8')[Symbol.asyncIterator]();
      let text = '';
      const events = () => text.split('data:').length - 1;
      const untilEvents = async (count: number): Promise<void> => {
        while (events() < count) {
          const { value, done } = await chunks.next();
          if (done) return assert.fail('the events ended');
          text += value;
        }
      };
      await untilEvents(1);
      for (let index = 0; index < 600; index += 1) simulator.receive({ from: handset, to: number, body: `${index}` });
      await untilEvents(2);
      simulator.setBalance(5);
      await untilEvents(3);
      assert.equal(events(), 3);
      await simulator.close();
      await assert.rejects(untilEvents(4));
    });
  });

  describe('log', () => {
    it('links each message to its request and each request to its message', async () => {
      for (const body of ['1', '2']) await calls.send({ to: `${handset} 6421555124`, body });
      const [entry] = simulator.log({ limit: 1 }).entries;
      const [text] = simulator.texts(handset, 1).texts;
      assert.deepEqual([text?.call, entry?.text], [entry?.key, { key: text?.key, msisdn: handset }]);
    });

    it('masks keys, passwords and tokens in each encoding', async () => {
      const secret = 'do-not-show';
      const callbackUrl = `http://u:${secret}@client.example/cb?a=1&token=${secret}`;
      simulator.setOrganisation({ callbackUrl: `http://127.0.0.1:9/?token=${secret}`, callbackFormat: 'FORMv1' });
      await calls.send({ to: handset, body: 'x', callbackUrl, callbackStatusUrl: callbackUrl });
      const boundary = { 'content-type': 'multipart/form-data; boundary=b' };
      const part = `--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n${secret}\r\n--b--\r\n`;
      await request(`${simulator.baseUrl}/api/3/sms/out`, { method: 'POST', headers: boundary, body: part });
      await calls.send({ to: handset, body: 'x' }, { authorization: `Bearer ${secret}` });
      await calls.send({ to: handset, body: 'x', userId: 'me', password: secret }, { authorization: null });
      await calls.call('/api/1/sms/in', { userId: 'me', password: secret }, { method: 'GET', authorization: null });
      await calls.pollIncoming({ authorization: `Basic ${secret}` });
      const headers = { 'x-api-key': secret };
      for (const body of [`password=${secret}`, JSON.stringify({ token: secret })])
        await request(`${simulator.baseUrl}/api/1/sms/in;token=${secret}`, { method: 'POST', headers, body });
      const urls = ['//h?%74oken=', '//h/?a#token=', '//h/?api-key=', '//u:a&', '//u:a@', '/u:', '\\\\u:'];
      for (const url of urls) await calls.call('/', { callbackUrl: `http:${url}${secret}@h/` });
      simulator.receive({ from: handset, to: number, body: 'x' });
      await simulator.whenIdle();
      assert.equal(simulator.log({ limit: 1 }).entries[1], undefined);
      const records = simulator.log({ limit: 99 }).entries.reverse();
      assert.equal(records.filter(({ kind }) => kind === 'request').length, 15);
      assert.equal(records.filter(({ kind }) => kind === 'callback').length, 1);
      assert.equal(JSON.stringify(records).includes(secret), false, JSON.stringify(records, null, 1));
      const [first, , second] = records.flatMap(({ kind, record }) =>
        kind === 'request' ? [record as unknown as LoggedRequest] : [],
      );
      assert.equal(second?.headers.authorization, 'Bearer ••••••');
      assert.match(first?.params.callbackUrl ?? '', /^http:\/\/••••••@client\.example\/cb\?a=1&token=/);
    });
  });
});
