import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, startSimulator } from '../../simulator';
import { type DeploymentType, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createAccount, createWriter, waitForCounts } from './flows';

const redeploys = 12;

describe('redeploys while messages flow', function () {
  this.timeout(120_000);
  let simulator: Simulator;
  let nodeRed: NodeRedProcess | undefined;
  const folder = mkdtempSync(join(tmpdir(), 'sms-redeploy-'));
  const arrived = join(folder, 'arrived.txt');

  beforeEach(async () => {
    simulator = await startSimulator({ waitMs: 300 });
    rmSync(arrived, { force: true });
  });

  afterEach(async () => {
    await nodeRed?.kill();
    await simulator.close();
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  /** What the deploy changes: everything, the receiving node alone, its flow, or nothing but a restart. */
  for (const type of ['full', 'nodes', 'flows', 'reload'] satisfies DeploymentType[]) {
    for (const store of ['disk', 'memory']) {
      it(`loses none and delivers none twice when the deploy is "${type}" and the store is ${store}`, async () => {
        nodeRed = await startNodeRed({ flows: createFlows(simulator, arrived, store, 0) });
        let sent = 0;
        const feeding = setInterval(() => {
          simulator.receive({ from: '64215550001', to: '64215559999', body: `m${sent++}` });
        }, 3);
        for (let round = 1; round <= redeploys; round++) {
          await sleep(Math.random() * 200);
          await nodeRed.deploy(createFlows(simulator, arrived, store, round), type);
        }
        clearInterval(feeding);
        const counts = await waitForCounts(arrived, sent);
        const twice = [...counts].filter(([, count]) => count > 1).map(([body]) => body);
        assert.equal(sent - counts.size, 0, `lost of ${sent}`);
        assert.deepEqual(twice, []);
      });
    }
  }
});

function createFlows(simulator: Simulator, file: string, store: string, round: number): FlowNode[] {
  return [
    createAccount(simulator, { store }),
    { id: 'tab', type: 'tab', label: 'flow' },
    {
      id: 'in',
      type: 'sms-in',
      z: 'tab',
      x: 100,
      y: 100,
      name: `round ${round}`,
      account: 'account',
      wires: [['write']],
    },
    createWriter('write', file),
  ];
}
