import assert from 'node:assert/strict';
import { handset, nodeWithSink, RunningFlow, useService } from './running-flow';

describe('sms-status', () => {
  const sim = useService();

  const start = (properties: Record<string, unknown> = {}) =>
    RunningFlow.start(nodeWithSink(sim, 'status', properties));

  const change = (statusCode: string) => sim.status({ messageId: 'order-7', msisdn: handset, statusCode });

  const codes: [string, string | undefined, boolean | undefined][] = [
    ['SNT', 'passed to the network', false],
    ['RCV', 'received by the handset', true],
    ['NRCV', 'not received', true],
    ['NRC', 'not received', true],
    ['NUR', 'number unreachable', true],
    ['EXP', 'not delivered within the allowed time', true],
    ['INF', 'insufficient funds', true],
    ['ERR', 'internal error', true],
    ['XYZ', undefined, undefined],
    ['constructor', undefined, undefined],
    ['rcv', undefined, undefined],
  ];
  it('describes each known status code', async () => {
    const flow = await start();
    for (const [code] of codes) change(code);
    const got = await flow.messages('got', codes.length);
    assert.deepEqual(
      got.map(({ payload, sms }) => [payload, sms?.description, sms?.final]),
      codes,
    );
    for (const key of ['description', 'final']) assert.equal(key in (got[8]?.sms ?? {}), false);
  });

  it('sends only final and unknown codes with the filter `final`', async () => {
    const flow = await start({ filter: 'final' });
    for (const code of ['SNT', 'RCV', 'SNT', 'ABC', 'ERR']) change(code);
    await flow.messages('got', 3);
    await sim.until(() => sim.statuses.every(({ read }) => read));
    assert.deepEqual(flow.payloads('got'), ['RCV', 'ABC', 'ERR']);
  });
});
