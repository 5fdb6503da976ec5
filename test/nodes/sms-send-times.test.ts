import assert from 'node:assert/strict';
import { until } from '../until';
import { account, bodiesOf, handset, RunningFlow, sendNode, useService } from './running-flow';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Returns the time of day in UTC as `HH:MM`, as a user enters it in the form. */
const timeOfDay = (ms: number) => new Date(ms).toISOString().slice(11, 16);

describe('sms-send with `at` or quiet hours', () => {
  const sim = useService();

  const start = (properties: Record<string, unknown> = {}, of: Record<string, unknown> = {}) =>
    RunningFlow.start(sendNode(sim, properties, of));
  /** Returns quiet hours from an hour ago to an hour from now. */
  const quietNow = () => ({
    quietFrom: timeOfDay(Date.now() - hourMs),
    quietTo: timeOfDay(Date.now() + hourMs),
    timeZone: 'UTC',
  });

  it('sends a message at its scheduled time', async () => {
    const flow = await start({ at: 'at', atType: 'msg' });
    const later = Date.now() + 2_000;
    flow.send('send', { topic: handset, payload: 'soon', at: new Date(later) });
    flow.send('send', { topic: handset, payload: 'tomorrow', at: Date.now() + 30 * hourMs });
    await until(() => /^waiting 2, next \d\d:\d\d$/.test(flow.status('send')?.text ?? ''), 'the badge');
    assert.equal(sim.messages.length, 0);
    const [message] = await flow.messages('sent', 1);
    assert.equal(Date.now() >= later, true);
    assert.equal(message?.payload, 'soon');
    await until(() => /^waiting 1, next \d\d-\d\d$/.test(flow.status('send')?.text ?? ''), 'the badge of a later day');
    assert.deepEqual(bodiesOf(sim), ['soon']);
  });

  it('shows the year in the badge if a message is due in 365 days', async () => {
    const flow = await start({ at: 'at', atType: 'msg' });
    const at = new Date(Date.now() + 365 * 24 * hourMs);
    flow.send('send', { topic: handset, payload: 'far', at });
    await until(() => /^waiting 1, next \d{4}-\d\d-\d\d$/.test(flow.status('send')?.text ?? ''), 'the badge');
  });

  it('refuses a message during quiet hours', async () => {
    const flow = await start({}, quietNow());
    flow.send('send', { topic: handset, payload: 'x' });
    await until(() => flow.errors().length === 1);
    const [error] = flow.errors();
    assert.equal(error?.code, 'SMS_QUIET');
    const leftMs = Date.parse(String(error?.until)) - Date.now();
    assert.ok(leftMs > 58 * minuteMs && leftMs <= hourMs);
    assert.match(flow.status('send')?.text ?? '', /^quiet until \d\d:\d\d$/);
    assert.equal(sim.messages.length, 0);
  });

  it('combines the quiet hours of account nodes that share a login', async () => {
    const second = { ...account(sim, quietNow()), id: 'second' };
    const flow = await RunningFlow.start([...sendNode(sim, { keep: true }, {}), second]);
    flow.send('send', { topic: handset, payload: 'x' });
    await until(() => /^waiting 1, next \d\d:\d\d$/.test(flow.status('send')?.text ?? ''), 'the badge');
    await flow.deploy(sendNode(sim, { keep: true }, {}), 'full');
    await flow.messages('sent', 1);
  });
});
