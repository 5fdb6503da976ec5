import assert from 'node:assert/strict';
import { createUserDir, type FlowNode } from '../node-red-process';
import { account, bodiesOf, RunningFlow, sendNode, smsNode, useService } from './running-flow';

const [one, two, three] = ['6421555001', '6421555002', '6421555003'] as const;

describe('an account with limits', () => {
  const sim = useService();

  const nodes = (limits: Record<string, unknown>, ...more: FlowNode[]) => [...sendNode(sim, {}, limits), ...more];
  const sender = (properties: Record<string, unknown>) =>
    smsNode('send', { id: 'other', wires: [['sent']], ...properties });

  const startOnDisk = (limits: Record<string, unknown>, userDir = createUserDir()) =>
    RunningFlow.start(nodes({ ...limits, store: 'disk' }), { settings: { userDir } });

  const send = (flow: RunningFlow, to: string, payload: string, from = 'send') =>
    flow.give(from, { topic: to, payload });

  it('raises SMS_LIMIT with the time at which the limit ends', async () => {
    const flow = await RunningFlow.start(nodes({ perHandset: '2', perHandsetMinutes: '90' }));
    const startedAt = Date.now();
    for (const text of ['a', 'b', 'c']) await send(flow, one, text);
    const [caught] = await flow.messages('caught', 1);
    assert.equal(flow.received('sent').length, 2);
    assert.equal(sim.messages.length, 2);
    assert.equal(caught?.payload, 'c');
    assert.deepEqual([caught?.error?.code, caught?.sms?.error?.code], ['SMS_LIMIT', 'SMS_LIMIT']);
    const message = String(caught?.sms?.error?.message);
    const [, until = ''] =
      /^The limit of messages to one number \(2 in 90 min\) is reached\. .* (\S+ \S+ (?:UTC|GMT\S*|[A-Z]+))\.$/.exec(
        message,
      ) ?? [];
    const lateMs = Date.parse(until) - startedAt - 90 * 60_000;
    assert.ok(lateMs >= 0 && lateMs < 60_000 + 10_000, message);
    const { fill, shape, text = '' } = flow.status('send') as { fill?: string; shape?: string; text?: string };
    assert.deepEqual([fill, shape], ['red', 'ring']);
    assert.match(text, /^limit per number until \d\d:\d\d$/);
    await send(flow, two, 'd');
    assert.equal((await flow.messages('sent', 3)).at(-1)?.topic, two);
  });

  it('passes recipients over the limit to output 2', async () => {
    const flow = await RunningFlow.start(nodes({ perDay: '2' }));
    await send(flow, `${one} ${two} ${three}`, 'hello');
    const [sent] = await flow.messages('sent', 1);
    const [failed] = await flow.messages('failed', 1);
    assert.deepEqual(sent?.sms?.accepted, [one, two]);
    const { errorCode, errorMessage, msisdn } = failed?.sms ?? {};
    assert.deepEqual([failed?.topic, failed?.payload, msisdn, errorCode], [three, 'hello', three, 'SMS_LIMIT']);
    assert.match(
      String(errorMessage),
      /^The limit of messages in 24 hours \(2\) is reached\. .* \d{4}-\d\d-\d\d \d\d:\d\d \S+\.$/,
    );
    assert.deepEqual(sent?.sms?.failed, [{ msisdn: three, errorCode, errorMessage }]);
    assert.deepEqual(failed?.parts?.count, 1);
    assert.deepEqual(flow.status('send'), { fill: 'yellow', shape: 'dot', text: '1 of 3 failed' });
    assert.deepEqual(flow.received('caught'), []);
    await send(flow, `${one} ${two}`, 'again');
    const [caught] = await flow.messages('caught', 1);
    assert.equal(caught?.sms?.error?.code, 'SMS_LIMIT');
    assert.match(String((flow.status('send') as { text?: string }).text), /^limit per day until \d\d:\d\d$/);
  });

  it('counts messages of an `unlimited` node towards the limits', async () => {
    const flow = await RunningFlow.start(nodes({ perHandset: '1' }, sender({ id: 'alarm', unlimited: true })));
    await send(flow, one, 'alarm 1', 'alarm');
    await send(flow, one, 'alarm 2', 'alarm');
    await flow.messages('sent', 2);
    await send(flow, one, 'text');
    assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_LIMIT');
  });

  it('continues to count messages after a redeploy and a restart', async () => {
    const userDir = createUserDir();
    const before = await startOnDisk({ perHandset: '2' }, userDir);
    await send(before, one, 'a');
    await before.deploy(nodes({ perHandset: '2', store: 'disk', name: 'changed' }));
    await send(before, one, 'b');
    await before.stop();
    const flow = await startOnDisk({ perHandset: '2' }, userDir);
    await send(flow, one, 'c');
    await flow.messages('caught', 1);
    assert.equal(sim.messages.length, 2);
  });

  it('combines the limits of account nodes that share a login', async () => {
    const second = (limits: Record<string, unknown>) => account(sim, { id: 'second', ...limits });
    const flow = await RunningFlow.start([
      ...nodes({ perHandset: '3', perHandsetMinutes: '600' }, sender({ account: 'second' })),
      second({ perHandset: '2', perHandsetMinutes: '30' }),
    ]);
    for (const [text, from] of [
      ['a', 'send'],
      ['b', 'other'],
      ['c', 'send'],
      ['d', 'other'],
    ] as const) {
      await send(flow, one, text, from);
    }
    assert.deepEqual(bodiesOf(sim), ['a', 'b']);
    const caught = await flow.messages('caught', 2);
    for (const { sms } of caught) {
      assert.equal(sms?.error?.code, 'SMS_LIMIT');
      assert.match(String(sms?.error?.message), /one number \(2 in 30 min\) is reached\. .* \d\d:\d\d \S+\./);
    }
    await flow.deploy([
      ...nodes({ perHandset: '3', perHandsetMinutes: '600' }),
      second({ perHandset: '3', perHandsetMinutes: '30' }),
    ]);
    await send(flow, one, 'e');
    await send(flow, one, 'f');
    assert.match(String((await flow.messages('caught', 3))[2]?.sms?.error?.message), /\(3 in 600 min\)/);
    assert.equal(sim.messages.length, 3);
  });

  it('sends no faster than `perSecond` across a redeploy', async () => {
    const flow = await startOnDisk({ perSecond: '1' });
    const startedAt = Date.now();
    await send(flow, one, 'a');
    await flow.deploy(nodes({ perSecond: '1', store: 'disk' }));
    await send(flow, one, 'b');
    const [, second] = sim.requests;
    assert.ok((second?.at ?? 0) >= startedAt + 1_000 - 5, `left ${(second?.at ?? 0) - startedAt} ms after the first`);
  });

  it('sends a waiting message with a higher priority first', async () => {
    const alarm = sender({ id: 'alarm', priority: 'urgency', priorityType: 'msg' });
    const flow = await RunningFlow.start(nodes({ perSecond: '20' }, alarm));
    for (let index = 0; index < 5; index++) flow.send('send', { topic: one, payload: `reminder ${index}` });
    await flow.messages('sent', 1);
    flow.send('alarm', { topic: two, payload: 'alarm', urgency: 10 });
    await flow.messages('sent', 6);
    const bodies = bodiesOf(sim);
    assert.ok(bodies.indexOf('alarm') < bodies.indexOf('reminder 3'), bodies.join());
    assert.equal(bodies.at(-1), 'reminder 4');
  });
});
