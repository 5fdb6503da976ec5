import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLong, random } from '../long';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { createNode, createReceiver } from './flows';
import { readDeliveries } from './instances';
import { receive, useMachine } from './machine';
import { createRecorder, readCounts, waitUntil } from './recorder';

const messages = isLong ? 10_000 : 1_000;
const kills = isLong ? 40 : 4;

describe('Node-RED after kill -9', function () {
  this.timeout(60_000 + kills * 20_000);
  const machine = useMachine({ waitMs: 200, statusDelayMs: 0, balance: 1e9 });

  for (const parallelPolls of [1, 8]) {
    it(`delivers every received message if \`parallelPolls\` is ${parallelPolls}`, async () => {
      const { simulator, observed } = machine;
      const flows = createReceiver(simulator, observed, { account: { parallelPolls } });
      await killRepeatedly(flows, observed, { parallelPolls });
    });
  }

  it('redelivers every message that the flow had not acknowledged', async () => {
    const { simulator, folder, observed } = machine;
    const acknowledged = join(folder, 'acknowledged.jsonl');
    const receiver = { acknowledge: 'flow', inputs: 1, wires: [['write', 'work']] };
    const work = { pauseType: 'delay', timeout: '100', timeoutUnits: 'milliseconds' };
    const flows = [
      ...createReceiver(simulator, observed, { node: receiver }),
      createNode('work', 'delay', [['acknowledge']], work),
      createRecorder('acknowledge', acknowledged, { wires: [['in']] }),
    ];
    const isWorking = () => readCounts(observed).size > readCounts(acknowledged).size;
    await killRepeatedly(flows, acknowledged, { untilKill: () => waitUntil(isWorking, 'the flow has a message') });
    const repeated = [...readDeliveries(observed).values()].flatMap(([, ...again]) => again);
    assert.ok(repeated.length > 0, 'no kill interrupted an unacknowledged message');
    const unmarked = repeated.filter(({ redelivered }) => !redelivered);
    assert.deepEqual(unmarked, [], 'delivered twice, but not marked as redelivered');
  });

  /** Kills Node-RED while messages arrive, and waits until each message that reached it is recorded in `file`. */
  async function killRepeatedly(
    flows: FlowNode[],
    file: string,
    { parallelPolls = 1, untilKill }: { parallelPolls?: number; untilKill?: () => Promise<void> },
  ): Promise<void> {
    const { simulator, nodeRed } = machine;
    await nodeRed.start({ flows });
    const bodies: string[] = [];
    // Bodies of messages whose poll answer might not have reached Node-RED before the kill.
    const inTransit = new Set<string>();
    for (let round = 1; round <= kills; round++) {
      while (bodies.length < (messages * round) / kills) bodies.push(receive(machine, `m${bodies.length}`).body);
      await sleep(50 + random() * 400);
      await untilKill?.();
      await nodeRed.kill();
      await simulator.until(() => simulator.polling('incoming') === 0);
      const read = simulator.incoming.filter((message) => message.read);
      for (const { body } of read.slice(-parallelPolls)) inTransit.add(body);
      await nodeRed.start();
    }
    const findMissing = () => {
      const counts = readCounts(file);
      return bodies.filter((body) => !counts.has(body));
    };
    const findLost = () => findMissing().filter((body) => !inTransit.has(body));
    await until(
      () => findLost().length === 0 && simulator.incoming.every(({ read }) => read),
      () => `each received message reaches the flow; lost: ${findLost().join(' ')}`,
      { limitMs: 60_000 },
    );
    const twice = [...readCounts(file).values()].filter((count) => count > 1).length;
    console.log(
      `      ${bodies.length} sent, ${kills} kills: ${findMissing().length} in answers to a killed process, ` +
        `${twice} recorded twice`,
    );
  }
});
