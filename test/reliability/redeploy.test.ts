import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLong, random } from '../long';
import type { DeploymentType, FlowNode } from '../node-red-process';
import { createReceiver } from './flows';
import { receive, useMachine } from './machine';
import { waitForCounts } from './recorder';

const redeploys = isLong ? 100 : 6;

describe('Node-RED with incoming messages', function () {
  this.timeout(60_000 + redeploys * 5_000);
  const machine = useMachine({ waitMs: 300 });

  for (const [type, store] of [
    ['full', 'disk'],
    ['nodes', 'memory'],
    ['nodes', 'disk'],
    ['flows', 'disk'],
    ['reload', 'disk'],
  ] satisfies [DeploymentType, string][]) {
    it(`delivers each message once during \`${type}\` deploys with a ${store} store`, () =>
      redeployUnderLoad(type, (round) => createFlows(round, { store })));
  }

  it('delivers each message once although each deploy changes the login', () => {
    const { userId, password } = machine.simulator.credentials;
    const basic = { authType: 'basic', credentials: { userId, password } };
    return redeployUnderLoad('nodes', (round) => createFlows(round, round % 2 ? basic : {}));
  });

  it('delivers an unacknowledged message once after a kill and a new login', async () => {
    const { simulator, nodeRed, observed } = machine;
    const { baseUrl } = simulator;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    const account = { baseUrl: '${SMS_BASE_URL}' };
    const flows = createReceiver(simulator, observed, { account, node: { acknowledge: 'flow', inputs: 1 } });
    await nodeRed.start({ flows, env: { SMS_BASE_URL: baseUrl } });
    receive(machine, 'not acknowledged');
    await waitForCounts(observed, 1);
    await nodeRed.kill();
    rmSync(observed);
    const env = { SMS_BASE_URL: baseUrl.replace('127.0.0.1', 'localhost') };
    await nodeRed.start({ env });
    assert.deepEqual([...(await waitForCounts(observed, 1))], [['not acknowledged', 1]]);
    rmSync(observed);
    await nodeRed.deploy(createFlows(1, account));
    await waitForCounts(observed, 1);
    await nodeRed.stop();
    rmSync(observed);
    for (const other of [env, { SMS_BASE_URL: baseUrl }]) {
      await nodeRed.start({ env: other });
      receive(machine, other.SMS_BASE_URL);
      await waitForCounts(observed, 1);
      await nodeRed.stop();
      assert.deepEqual([...(await waitForCounts(observed, 1))], [[other.SMS_BASE_URL, 1]]);
      rmSync(observed);
    }
  });

  async function redeployUnderLoad(type: DeploymentType, flowsOf: (round: number) => FlowNode[]): Promise<void> {
    const { nodeRed, observed } = machine;
    await nodeRed.start({ flows: flowsOf(0) });
    let sent = 0;
    const feeding = setInterval(() => receive(machine, `m${sent++}`), 3);
    for (let round = 1; round <= redeploys; round++) {
      await sleep(random() * 200);
      await nodeRed.deploy(flowsOf(round), type);
    }
    clearInterval(feeding);
    const counts = await waitForCounts(observed, sent);
    const twice = [...counts].filter(([, count]) => count > 1).map(([body]) => body);
    assert.equal(sent - counts.size, 0, `lost of ${sent}`);
    assert.deepEqual(twice, []);
  }

  function createFlows(round: number, account: Partial<FlowNode>): FlowNode[] {
    return createReceiver(machine.simulator, machine.observed, { account, node: { name: `round ${round}` } });
  }
});
