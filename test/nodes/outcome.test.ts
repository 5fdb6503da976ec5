import assert from 'node:assert/strict';
import { Client } from '../../src';
import { nodeWithSink, RunningFlow, stopLater, useService } from './running-flow';

const secret = 's3cret';

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

  for (const [node, method, trigger] of [
    ['in', 'pollIncoming', false],
    ['feed', 'readFeed', true],
  ] as const) {
    it(`hides its original text in the SMS_SERVICE error of sms-${node}`, async () => {
      failWith(method, new RangeError(`a mistake with ${secret}\n    at ${secret} (x:1:1)`));
      const flow = await RunningFlow.start(nodeWithSink(sim, node));
      if (trigger) flow.send(node);
      await flow.badge(node, { fill: 'red', shape: 'ring', text: 'service error' });
      const [caught] = await flow.messages('caught', 1);
      assert.equal(caught?.sms?.error?.code, 'SMS_SERVICE');
      const [warning, ...others] = flow.logged(node);
      assert.deepEqual(others, []);
      assert.match(warning ?? '', /^Cause: RangeError at .*outcome\.test\.ts:\d+:\d+/);
      assert.equal(JSON.stringify([flow.log, caught]).includes(secret), false);
    });
  }
});
