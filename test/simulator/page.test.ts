import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import {
  createManualClock,
  type HandsetSummary,
  type LogEntry,
  type LoggedRequest,
  type ShownMessage,
} from '../../simulator';
import { readEvents } from './event-reader';
import { calls, handset, number, simulator, start, useSimulator } from './use-simulator';

interface Snapshot {
  handsets: HandsetSummary[];
  log: { entries: LogEntry[] };
}

describe('simulator:', () => {
  useSimulator(() => ({ clock: createManualClock() }));
  const streams: AsyncGenerator[] = [];
  afterEach(async () => {
    for (const stream of streams.splice(0)) await stream.return(undefined);
  });

  /** Follows the events, and returns a function that reads the data of the next event with a name. */
  const follow = () => {
    const events = readEvents(`${simulator.pageUrl}control/events`);
    streams.push(events);
    return async <Data>(wantedName: 'state' | 'texts' | 'log'): Promise<Data> => {
      for (;;) {
        const { value, done } = await events.next();
        if (done) return assert.fail('the events ended');
        if (value.name === wantedName) return value.data as Data;
      }
    };
  };
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
    it('sends all changes of a record under one key', async () => {
      const next = follow();
      await next('state');
      await calls.send({ to: handset, body: 'out', messageId: 'mine' });
      const requests: LogEntry[] = [];
      const isEnded = (entry: LogEntry) => entry.kind === 'request' && entry.record.ended;
      while (!requests.some(isEnded)) requests.push(...(await next<LogEntry[]>('log')));
      assert.equal(new Set(requests.map(({ key }) => key)).size, 1);
      const [text] = simulator.texts(handset, 1).texts;
      assert.equal(text?.call, requests[0]?.key);
      simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' });
      const texts: ShownMessage[] = [];
      while (!texts.some(({ statusCode }) => statusCode === 'RCV'))
        texts.push(...(await next<ShownMessage[]>('texts')));
      assert.equal(texts.at(-1)?.key, text?.key);
      await simulator.close();
      await assert.rejects(next('log'));
    });

    it('sends one new state instead of a flood of changes', async () => {
      const next = follow();
      await next('state');
      for (let index = 0; index < 600; index += 1) simulator.receive({ from: handset, to: number, body: `${index}` });
      assert.equal((await next<Snapshot>('state')).handsets[0]?.last?.body, '599');
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
      simulator.receive({ from: handset, to: number, body: 'x' });
      await simulator.whenIdle();
      const { log } = await follow()<Snapshot>('state');
      const records = [...log.entries].reverse();
      assert.equal(records.filter(({ kind }) => kind === 'request').length, 6);
      assert.equal(records.filter(({ kind }) => kind === 'callback').length, 1);
      assert.equal(JSON.stringify(records).includes(secret), false, JSON.stringify(records, null, 1));
      const [first, , second] = records.flatMap(({ kind, record }) =>
        kind === 'request' ? [record as unknown as LoggedRequest] : [],
      );
      assert.equal(second?.headers.authorization, 'Bearer ••••••');
      assert.match(first?.params.callbackUrl ?? '', /^http:\/\/••••••@client\.example\/cb\?a=1&token=/);
      assert.match(first?.body ?? '', /to=6421555123&body=x&callbackUrl=http%3A/);
    });
  });
});
