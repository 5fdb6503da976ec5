import assert from 'node:assert/strict';
import { Client } from '../../src';
import { account, catcher, RunningFlow, sink, stopLater, useService } from './running-flow';

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
  const sim = useService();

  for (const [type, method, trigger] of [
    ['sms-in', 'pollIncoming', false],
    ['sms-feed', 'readFeed', true],
  ] as const) {
    it(`raises SMS_SERVICE at ${type}, and logs the code line but no message`, async () => {
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
