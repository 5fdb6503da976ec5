import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { handset, RunningFlow, sendNode, useService } from './running-flow';

describe('sms-send during a redeploy', () => {
  const sim = useService();

  const nodes = sendNode.bind(undefined, sim);

  const errorsOf = (flow: RunningFlow) => flow.errors().map((error) => error?.code);

  /** Deploys other nodes when a node sends a message, before the next node receives the message. */
  function deployDuringSend(flow: RunningFlow, id: string, others: FlowNode[]) {
    const node = flow.node(id);
    const { send } = node;
    const result = { sent: 0, deployed: undefined as Promise<void> | undefined };
    node.send = (message) => {
      result.sent++;
      send.call(node, message as never);
      result.deployed = flow.deploy(others);
    };
    return result;
  }

  for (const type of ['full', 'flows', 'nodes'] as const) {
    it(`does not show an old badge after a \`${type}\` deploy`, async () => {
      const flow = await RunningFlow.start(nodes({}, { name: 'no key', credentials: {} }));
      await flow.badge('send', { fill: 'red', shape: 'ring', text: 'not configured' });
      await flow.deploy(nodes(), type);
      assert.deepEqual(flow.status('send'), {});
      sim.fault('send', { delayMs: 100 });
      for (const payload of ['1', '2', '3']) flow.send('send', { topic: handset, payload });
      await flow.badge('send', { fill: 'blue', shape: 'dot', text: 'sending 3' });
      await flow.deploy(nodes({ name: 'new' }, { concurrency: '1' }), type);
      assert.equal((await flow.done('send', 3)).length, 3);
      assert.deepEqual(flow.status('send'), {});
    });
  }

  it('completes the input once if a deploy delays the output', async () => {
    const flow = await RunningFlow.start(nodes({ keep: true }));
    const result = deployDuringSend(flow, 'send', nodes({ keep: true, name: 'again' }));
    flow.send('send', { topic: handset, payload: 'hello' });
    await flow.done('send', 1);
    await result.deployed;
    await flow.messages('sent', 1);
    await sleep(50);
    assert.deepEqual([result.sent, flow.received('sent').length], [1, 1]);
    assert.equal(flow.completions.length, 1);
    assert.equal(sim.messages.length, 1);
  });

  for (const keep of [true, false]) {
    it(`${keep ? 'repeats' : 'does not repeat'} an error that the Catch node missed if \`keep\` is ${keep ? 'on' : 'off'}`, async () => {
      const again = keep ? [{ redelivered: true }] : [];
      sim.fault('send', { status: 403 }, 1);
      const flow = await RunningFlow.start(nodes({ keep }));
      const result = deployDuringSend(flow, 'catch', nodes({ keep, name: 'again' }));
      flow.send('send', { topic: handset, payload: 'hello', custom: 1 });
      await until(() => result.deployed !== undefined);
      await result.deployed;
      await until(() => errorsOf(flow).length >= again.length);
      await sleep(50);
      assert.deepEqual(
        errorsOf(flow),
        again.map(() => 'SMS_FORBIDDEN'),
      );
      const marks = flow.received('caught').map(({ sms }) => ({ redelivered: sms?.redelivered }));
      assert.deepEqual(marks, again);
      assert.deepEqual(
        flow.completions.map(({ error }) => (error as { code?: string }).code),
        ['SMS_FORBIDDEN'],
      );
    });
  }
});
