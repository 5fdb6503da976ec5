import assert from 'node:assert/strict';
import type { Simulator } from '../../simulator';
import { Client } from '../../src';
import { account, catcher, coreNode, RunningFlow, sink, startService, stopEverything, stopLater } from './running-flow';

const secret = 's3cret';
const warnLevel = 30;

/** Lets a method of the client throw a value that is not an error of the library. */
function failWith(method: 'pollIncoming' | 'readFeed', thrown: unknown): void {
  const original = Client.prototype[method];
  Object.assign(Client.prototype, { [method]: () => Promise.reject(thrown) });
  stopLater(async () => {
    Object.assign(Client.prototype, { [method]: original });
  });
}

describe('an unexpected error', () => {
  let sim: Simulator;

  beforeEach(async () => {
    sim = await startService();
  });

  afterEach(stopEverything);

  for (const [type, method, trigger] of [
    ['sms-in', 'pollIncoming', false],
    ['sms-feed', 'readFeed', true],
  ] as const) {
    it(`raises SMS_SERVICE at ${type}, and logs its place without its message`, async () => {
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
      assert.match(String(warnings[0]?.msg), /^Cause: RangeError at .*outcome\.test\.ts:\d+:\d+/);
      assert.equal(JSON.stringify([flow.log, caught]).includes(secret), false);
    });
  }
});

describe('an input that fails', () => {
  let sim: Simulator;

  beforeEach(async () => {
    sim = await startService();
  });

  afterEach(stopEverything);

  const wired = (type: string, properties: Record<string, unknown> = {}) => [
    { id: 'node', type, account: 'account', output: 'list', interval: '0', wires: [['got'], ['got']], ...properties },
    sink('got'),
    { id: 'complete', type: 'complete', scope: ['node'], uncaught: false, wires: [['completed']] },
    sink('completed'),
    ...catcher(),
  ];
  const start = (type: string, properties: Record<string, unknown> = {}) =>
    RunningFlow.start([account(sim), ...wired(type, properties)], { nodes: [coreNode('common/24-complete')] });

  const text = { _msgid: '1', topic: '64215551234', payload: 'hello' };

  it('counts as failed for Complete nodes', async () => {
    const flow = await start('sms-send', { to: '12', toType: 'str' });
    flow.send('node', text);
    await flow.messages('caught', 1);
    await flow.deploy([account(sim), ...wired('sms-send')]);
    flow.send('node', { ...text, _msgid: '2' });
    const [completed] = await flow.messages('completed', 1);
    assert.equal(completed?._msgid, '2');
  });
});
