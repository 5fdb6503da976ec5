import assert from 'node:assert/strict';
import { createUserDir, type FlowNode } from '../node-red-process';
import { until } from '../until';
import { RunningFlow, sendNode, useService } from './running-flow';

const [first, second] = ['64215550001', '64215550002'] as const;
const day = { report: 24, reportType: 'num', messageIdType: 'uuid' };

describe('sms-send with `report`', () => {
  const sim = useService();

  function nodes(properties: Record<string, unknown> = day, of: Record<string, unknown> = {}): FlowNode[] {
    return sendNode(sim, { outputs: 3, ...properties }, of, [['sent'], ['failed'], ['report']]);
  }

  const idOf = (index: number) => sim.messages[index]?.messageId ?? '';

  it('sends the input with the delivery results to output 3', async () => {
    const flow = await RunningFlow.start(nodes());
    assert.equal(sim.polling('status'), 0);
    flow.send('send', { topic: [first, second], payload: 'hello', row: { number: 7 } });
    await flow.messages('sent', 1);
    await until(() => sim.polling('status') === 1);
    assert.equal(sim.polling('incoming'), 0);
    sim.status({ messageId: idOf(0), msisdn: first, statusCode: 'RCV' });
    sim.status({ messageId: idOf(0), msisdn: second, statusCode: 'EXP' });
    const [report] = await flow.messages('report', 1);
    const { _msgid, ...rest } = report ?? {};
    assert.deepEqual(rest, {
      topic: [first, second],
      payload: 'partly',
      row: { number: 7 },
      sms: {
        messageId: idOf(0),
        delivered: [first],
        undelivered: [{ msisdn: second, statusCode: 'EXP', description: 'not delivered within the allowed time' }],
        pending: [],
      },
    });
    await until(() => sim.polling('status') === 0);
    assert.deepEqual([flow.received('failed'), flow.errors()], [[], []]);
    // Expects no warning about an unhandled status in the log.
    assert.deepEqual(
      flow.log.filter(({ level, id }) => level <= 30 && id !== undefined),
      [],
    );
  });

  it('reports `unknown` if no status arrives in time', async () => {
    const flow = await RunningFlow.start(nodes({ ...day, report: 'hours', reportType: 'msg' }));
    flow.send('send', { topic: second, payload: 'hello' });
    await flow.give('send', { topic: first, payload: 'hello', hours: 0.0001 });
    const reports = await flow.messages('report', 1);
    assert.deepEqual(
      reports.map(({ payload, sms }) => [payload, sms?.delivered, sms?.undelivered, sms?.pending]),
      [['unknown', [], [], [first]]],
    );
  });

  it('refuses a `report` time that is out of range', async () => {
    const flow = await RunningFlow.start(nodes({ ...day, report: 'hours', reportType: 'msg' }));
    for (const hours of [-1, 0, 168.5, 'soon', {}]) flow.send('send', { topic: first, payload: 'hello', hours });
    await flow.messages('caught', 5);
    assert.deepEqual(
      flow.errors().map((error) => [error?.code, error?.field]),
      Array(5).fill(['SMS_INPUT', 'report']),
    );
    assert.equal(sim.messages.length, 0);
  });

  it('sends a report with the whole input after a redeploy', async () => {
    const settings = { userDir: createUserDir() };
    const flow = await RunningFlow.start(nodes(day, { store: 'disk', name: 'before' }), { settings });
    flow.send('send', { topic: first, payload: 'hello', big: 'x'.repeat(300 * 1024) });
    await flow.messages('sent', 1);
    await flow.deploy(nodes(day, { store: 'disk', name: 'after' }), 'full');
    sim.status({ messageId: idOf(0), msisdn: first, statusCode: 'RCV' });
    const [report] = await flow.messages('report', 1);
    assert.deepEqual([report?.payload, (report?.big as string | undefined)?.length], ['delivered', 300 * 1024]);
    assert.equal(report?.sms?.redelivered, undefined);
  });
});
