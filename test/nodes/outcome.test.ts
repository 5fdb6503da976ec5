import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Simulator } from '../../simulator';
import { Client } from '../../src';
import { until } from '../until';
import { account, catcher, RunningFlow, sink, startService, stopEverything, stopLater } from './running-flow';

const secret = 's3cret';
const warnLevel = 30;

/** Lets every call of a method of the client throw what no error of the library is. */
function failWith(method: 'pollIncoming' | 'readFeed', thrown: unknown): void {
  const original = Client.prototype[method];
  Object.assign(Client.prototype, { [method]: () => Promise.reject(thrown) });
  stopLater(async () => {
    Object.assign(Client.prototype, { [method]: original });
  });
}

describe('an error that nobody has foreseen', () => {
  let sim: Simulator;

  beforeEach(async () => {
    sim = await startService();
  });

  afterEach(stopEverything);

  for (const [type, method, trigger] of [
    ['sms-in', 'pollIncoming', false],
    ['sms-feed', 'readFeed', true],
  ] as const) {
    it(`has a badge and an error of the service at ${type}, and its name and place in the log, without its message`, async () => {
      failWith(method, new RangeError(`a mistake with ${secret}\n    at ${secret} (x:1:1)`));
      const flow = await RunningFlow.start([
        account(sim),
        { id: 'node', type, account: 'account', wires: [['got']] },
        sink('got'),
        ...catcher(),
      ]);
      if (trigger) flow.send('node');
      await flow.badge('node', { fill: 'red', shape: 'ring', text: 'service error' });
      const [caught] = await flow.messages('caught', 1);
      assert.equal(caught?.sms?.error?.code, 'SMS_SERVICE');
      const warnings = flow.log.filter(({ id, level }) => id === 'node' && level === warnLevel);
      assert.equal(warnings.length, 1);
      assert.match(String(warnings[0]?.msg), /^The cause: RangeError at .*outcome\.test\.ts:\d+:\d+/);
      assert.equal(JSON.stringify([flow.log, caught]).includes(secret), false);
    });
  }

  it('is told from what is thrown and no error at all', async () => {
    failWith('readFeed', secret);
    const flow = await RunningFlow.start([
      account(sim),
      { id: 'node', type: 'sms-feed', account: 'account', wires: [[]] },
    ]);
    flow.send('node');
    await until(() => flow.log.some(({ msg }) => msg === 'The cause: string'));
    assert.equal(JSON.stringify(flow.log).includes(secret), false);
  });
});

describe('the badge of a wait', () => {
  const locales = join(__dirname, '..', '..', 'nodes', 'locales');
  for (const language of readdirSync(locales)) {
    it(`has fewer than 20 characters in ${language}`, () => {
      const catalog = JSON.parse(readFileSync(join(locales, language, 'sms-account.json'), 'utf8'));
      const text: string = catalog['sms-account'].status.waiting;
      assert.ok(text.replace('__time__', '14:05:30').length < 20, text);
    });
  }
});

describe('a message that another node has frozen', () => {
  afterEach(stopEverything);

  for (const type of ['sms-send', 'sms-feed', 'sms-outbox']) {
    it(`passes through ${type}, and its failure ends nothing`, async () => {
      const sim = await startService();
      const list = { output: 'list', interval: '0' };
      const flow = await RunningFlow.start([
        account(sim),
        { id: 'node', type, account: 'account', ...list, wires: [['got']] },
        sink('got'),
        ...catcher(),
      ]);
      const message = { _msgid: '1', topic: '64215551234', payload: 'hello' };
      flow.send('node', Object.freeze({ ...message }));
      const [got] = await flow.messages('got', 1);
      assert.deepEqual([got?.topic, got?._msgid], [message.topic, '1']);
      await flow.deploy([{ id: 'node', type, account: 'gone', ...list, wires: [['got']] }, sink('got'), ...catcher()]);
      const raised = () => flow.received('caught').filter(({ _msgid }) => _msgid === '1');
      flow.send('node', Object.freeze({ ...message }));
      await until(() => raised().length > 0);
      assert.equal(raised()[0]?.error?.code, 'SMS_CONFIG');
      assert.equal((await flow.done('node', 2)).length, 2);
    });
  }
});
