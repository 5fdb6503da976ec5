import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLong, random } from '../long';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { createAccount, createNode } from './flows';
import { readDeliveries } from './instances';
import { receive, useMachine } from './machine';
import { createRecorder } from './recorder';

const messages = isLong ? 10_000 : 600;
const rounds = isLong ? 100 : 6;
const deployments = ['full', 'nodes', 'flows', 'reload'] as const;

describe('Node-RED under kills and redeploys', function () {
  this.timeout(120_000 + rounds * 30_000);
  const machine = useMachine({ waitMs: 200, retryCallbacksMs: { firstMs: 100, maxMs: 1_000 } });

  it('loses no message that a poll or a callback has received', async () => {
    const { simulator, nodeRed, observed } = machine;
    await nodeRed.start({ flows: createFlows(0) });
    const { url } = nodeRed;
    const expected: string[] = [];
    const polledOnly = new Set<string>();
    // Bodies of messages whose poll answer might not have reached Node-RED before the kill.
    const inTransit = new Set<string>();
    for (let round = 1; round <= rounds; round++) {
      for (const end = Math.ceil((messages * round) / rounds); expected.length < end; ) feed(url, expected, polledOnly);
      await sleep(50 + random() * 400);
      if (round % 2 === 0) await nodeRed.deploy(createFlows(round), deployments[(round / 2) % deployments.length]);
      else {
        await nodeRed.kill();
        await sleep(20);
        for (const { body } of simulator.incoming.filter(({ read }) => read).slice(-1)) inTransit.add(body);
        await nodeRed.start();
      }
    }
    const findMissing = () => {
      const delivered = readDeliveries(observed);
      return expected.filter((id) => !delivered.has(id) && !(polledOnly.has(id) && inTransit.has(id)));
    };
    await until(
      () => findMissing().length === 0,
      () => `lost: ${findMissing().join(' ')}`,
      { limitMs: 90_000 },
    );
    const deliveries = [...readDeliveries(observed).values()];
    const twice = deliveries.filter((list) => list.length > 1);
    console.log(
      `      ${expected.length} sent, ${rounds} kills and redeploys: 0 lost, ` +
        `${expected.length - deliveries.length} in answers to a killed process, ` +
        `${twice.length} redelivered, ` +
        `${deliveries.filter(([first]) => first?.via === 'callback').length} by callback`,
    );
    const unmarked = twice.filter((list) => list.filter(({ redelivered }) => !redelivered).length > 1);
    assert.deepEqual(unmarked, [], 'delivered twice, but not marked as redelivered');
  });

  /** Sends, in turn: a message that can only be polled, a message that also comes by callback, a status by callback. */
  function feed(url: string, expected: string[], polledOnly: Set<string>): void {
    const { simulator } = machine;
    const index = expected.length;
    if (index % 3 === 2) {
      const update = { messageId: `sent-${index}`, msisdn: '64215550001', statusCode: 'RCV' };
      expected.push(simulator.status(update).messageId);
      return;
    }
    const body = `m${index}`;
    if (index % 3 === 0) polledOnly.add(body);
    simulator.setOrganisation({
      callbackUrl: index % 3 === 0 ? undefined : `${url}/sms`,
      callbackStatusUrl: `${url}/sms`,
      callbackFormat: index % 2 === 0 ? 'FORMv1' : 'XMLv3',
    });
    receive(machine, body);
    expected.push(body);
  }

  function createFlows(round: number): FlowNode[] {
    const flow = { acknowledge: 'flow', inputs: 1, name: `round ${round}` };
    const { simulator, observed } = machine;
    return [
      createAccount(simulator),
      { id: 'tab', type: 'tab', label: 'flow' },
      createNode('in', 'sms-in', [['polled']], flow),
      createRecorder('polled', observed, { wires: [['in']] }),
      createNode('callback', 'sms-callback-in', [['called'], ['called']], { ...flow, path: '/sms' }),
      createRecorder('called', observed, { wires: [['callback']] }),
    ];
  }
});
