import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, startSimulator } from '../../simulator';
import { isLong, random } from '../long';
import { type DeploymentType, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createReceiver } from './flows';
import { waitForCounts } from './recorder';

const redeploys = isLong ? 100 : 6;

describe('Node-RED with redeploys while messages arrive', function () {
  this.timeout(60_000 + redeploys * 5_000);
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

  for (const [type, store] of [
    ['full', 'disk'],
    ['nodes', 'memory'],
    ['nodes', 'disk'],
    ['flows', 'disk'],
    ['reload', 'disk'],
  ] satisfies [DeploymentType, string][]) {
    it(`delivers each message once with type ${type} and store ${store}`, () =>
      redeployUnderLoad(type, (round) => createFlows(simulator, arrived, round, { store })));
  }

  it('delivers each message once while each redeploy changes the login', () =>
    redeployUnderLoad('nodes', (round) =>
      createFlows(simulator, arrived, round, round % 2 ? createBasicLogin(simulator) : {}),
    ));

  it('delivers a message of the former login once after a kill', async () => {
    const { baseUrl } = simulator;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    const account = { baseUrl: '${SMS_BASE_URL}' };
    const flows = createReceiver(simulator, arrived, { account, node: { acknowledge: 'flow', inputs: 1 } });
    nodeRed = await startNodeRed({ flows, env: { SMS_BASE_URL: baseUrl } });
    simulator.receive({ from: '64215550001', to: '64215559999', body: 'not acknowledged' });
    await waitForCounts(arrived, 1);
    const { userDir } = nodeRed;
    await nodeRed.kill();
    rmSync(arrived);
    const env = { SMS_BASE_URL: baseUrl.replace('127.0.0.1', 'localhost') };
    nodeRed = await startNodeRed({ userDir, env });
    assert.deepEqual([...(await waitForCounts(arrived, 1))], [['not acknowledged', 1]]);
    rmSync(arrived);
    await nodeRed.deploy(createFlows(simulator, arrived, 1, account));
    await waitForCounts(arrived, 1);
    await nodeRed.stop();
    rmSync(arrived);
    for (const other of [env, { SMS_BASE_URL: baseUrl }]) {
      nodeRed = await startNodeRed({ userDir, env: other });
      simulator.receive({ from: '64215550001', to: '64215559999', body: other.SMS_BASE_URL });
      await waitForCounts(arrived, 1);
      await nodeRed.stop();
      assert.deepEqual([...(await waitForCounts(arrived, 1))], [[other.SMS_BASE_URL, 1]]);
      rmSync(arrived);
    }
  });

  async function redeployUnderLoad(type: DeploymentType, flowsOf: (round: number) => FlowNode[]): Promise<void> {
    nodeRed = await startNodeRed({ flows: flowsOf(0) });
    let sent = 0;
    const feeding = setInterval(() => {
      simulator.receive({ from: '64215550001', to: '64215559999', body: `m${sent++}` });
    }, 3);
    for (let round = 1; round <= redeploys; round++) {
      await sleep(random() * 200);
      await nodeRed.deploy(flowsOf(round), type);
    }
    clearInterval(feeding);
    const counts = await waitForCounts(arrived, sent);
    const twice = [...counts].filter(([, count]) => count > 1).map(([body]) => body);
    assert.equal(sent - counts.size, 0, `lost of ${sent}`);
    assert.deepEqual(twice, []);
  }
});

function createBasicLogin(simulator: Simulator): Partial<FlowNode> {
  const { userId, password } = simulator.credentials;
  return { authType: 'basic', credentials: { userId, password } };
}

function createFlows(simulator: Simulator, file: string, round: number, account: Partial<FlowNode>): FlowNode[] {
  return createReceiver(simulator, file, { account, node: { name: `round ${round}` } });
}
