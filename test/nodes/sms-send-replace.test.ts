import assert from 'node:assert/strict';
import { until } from '../until';
import { bodiesOf, RunningFlow, sendNode, useService } from './running-flow';

const topic = '64215551234';
const hourMs = 3_600_000;

describe('sms-send with `replace`', () => {
  const sim = useService();

  const start = (properties: Record<string, unknown> = {}) =>
    RunningFlow.start(
      sendNode(sim, { replace: 'order', replaceType: 'msg', at: 'at', atType: 'msg', ...properties }, {}),
    );
  const errorsOf = (flow: RunningFlow) =>
    flow.received('caught').map(({ payload, sms }) => [payload, sms?.error?.code, sms?.error?.field]);

  it('replaces a scheduled message with the same key', async () => {
    const flow = await start();
    flow.send('send', { topic, payload: 'at nine', order: 7, at: Date.now() + hourMs });
    flow.send('send', { topic, payload: 'now', order: 7, at: Date.now() - hourMs });
    const [message] = await flow.messages('sent', 1);
    await until(() => errorsOf(flow).length === 1);
    assert.deepEqual([message?.payload, errorsOf(flow)], ['now', [['at nine', 'SMS_REPLACED', undefined]]]);
    assert.deepEqual(bodiesOf(sim), ['now']);
  });

  it('withdraws a scheduled message after `msg.reset`', async () => {
    const flow = await start();
    flow.send('send', { topic, payload: 'at nine', order: 'a', at: Date.now() + hourMs });
    flow.send('send', { order: 'a', reset: undefined });
    await until(() => errorsOf(flow).length === 1);
    assert.deepEqual(errorsOf(flow), [['at nine', 'SMS_WITHDRAWN', undefined]]);
    assert.deepEqual([flow.received('sent').length, sim.messages.length], [0, 0]);
  });

  it('refuses a blank key or a message that is not stored', async () => {
    const flow = await start();
    flow.send('send', { topic, payload: 'blank', order: ' ', at: Date.now() + hourMs });
    flow.send('send', { payload: 'blank reset', reset: true });
    flow.send('send', { topic, payload: 'not stored', order: 'a', at: '' });
    await until(() => errorsOf(flow).length === 3);
    assert.deepEqual(
      errorsOf(flow),
      ['blank', 'blank reset', 'not stored'].map((payload) => [payload, 'SMS_INPUT', 'replace']),
    );
    assert.equal(sim.messages.length, 0);
  });

  it('ignores `msg.reset` if `replace` is off', async () => {
    const flow = await start({ replaceType: 'none' });
    flow.send('send', { topic, payload: 'hello', reset: true });
    await flow.messages('sent', 1);
    assert.deepEqual(errorsOf(flow), []);
  });
});
