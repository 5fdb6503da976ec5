import assert from 'node:assert/strict';
import type { EntriesReport } from '../../nodes/runtime/account-report';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { askNode, payloadsOf, RunningFlow, sink, smsNode, useService } from './running-flow';

const [asked, other] = ['6421555001', '6421555002'] as const;

const receiver = smsNode('in', { wires: [['received']] });

describe('an unhandled message', () => {
  const sim = useService();

  const flow = (...more: FlowNode[]) => [...askNode(sim), sink('received'), ...more];

  const write = (body: string, from: string = other) => sim.receive({ from, to: '642100000001', body });

  it('waits until a receiving node is deployed', async () => {
    const running = await RunningFlow.start(flow());
    const state = () => running.readRoute('account/state');
    await running.give('ask', { topic: asked, payload: 'Come?' });
    write('first');
    write('second');
    write('yes', asked);
    await running.messages('answer', 1);
    await until(async () => (await state()).inbox.unhandled === 2, '2 unhandled');
    const { entries, total }: EntriesReport = await running.readRoute('account/entries?state=unhandled');
    assert.equal(total, 2);
    assert.deepEqual(
      entries.map(({ node, from, body, error }) => [node, from, body, error]),
      [
        ['', other, 'first', undefined],
        ['', other, 'second', undefined],
      ],
    );
    const { inbox, counts } = await state();
    assert.deepEqual([inbox, counts.unhandled], [{ undelivered: 0, unhandled: 2 }, 2]);
    const warnings = running.logged('account');
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', /7 days.*sms in/);
    await running.deploy(flow(receiver), 'nodes');
    const received = await running.messages('received', 2);
    assert.deepEqual(
      received.map(({ payload, sms }) => [payload, sms?.redelivered]),
      [
        ['first', undefined],
        ['second', undefined],
      ],
    );
    await running.deploy(flow(receiver, { ...receiver, id: 'late' }));
    write('third');
    await running.messages('received', 4);
    assert.deepEqual(payloadsOf(received), ['first', 'second', 'third', 'third']);
    assert.deepEqual((await state()).inbox, { undelivered: 0, unhandled: 0 });
  });
});
