import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Simulator } from '../../simulator';
import { findFreePort } from '../free-port';
import { isLong } from '../long';
import type { DeploymentType, FlowNode } from '../node-red-process';
import { countBodies, createAccount, createCatch, createFeed, createNode, feed, readOutcomes } from './flows';
import { receive, useMachine } from './machine';
import { createRecorder, waitUntil } from './recorder';

const deploys = isLong ? 100 : 9;
const texts = isLong ? 2_000 : 90;
const handset = '64215550001';

/** The node that a deploy changes. */
type Changed = 'account' | 'sender' | 'receiver';
const kinds = (['nodes', 'flows', 'full'] satisfies DeploymentType[]).flatMap((type) =>
  (['account', 'sender', 'receiver'] satisfies Changed[]).map((changed) => ({ type, changed })),
);

describe('Node-RED during deploys', function () {
  this.timeout(60_000 + deploys * 5_000);
  const machine = useMachine({ waitMs: 60, statusDelayMs: 20, balance: 1e9 });

  for (const retryUncertain of [false, true]) {
    it(`sends each stored message once if \`retryUncertain\` is ${retryUncertain}`, () =>
      deployUnderTraffic(retryUncertain));
  }

  async function deployUnderTraffic(retryUncertain: boolean): Promise<void> {
    const { simulator, nodeRed, folder, observed: ended } = machine;
    const port = await findFreePort();
    const receivedFile = join(folder, 'received.txt');
    simulator.fault('send', { delayMs: 150 });
    const revisions: Record<Changed, number> = { account: 0, sender: 0, receiver: 0 };
    const flows = () => createFlows(simulator, { port, ended, retryUncertain, revisions });
    await nodeRed.start({
      port,
      flows: flows(),
      env: { NODE_OPTIONS: `--require ${createInputRecorder(folder, receivedFile)}` },
    });
    const { url } = nodeRed;
    simulator.setOrganisation({ callbackUrl: `${url}/callback`, callbackStatusUrl: `${url}/callback` });
    let fed = 0;
    const feedUntil = async (target: number) => {
      for (; fed < target; fed++) {
        void feed(url, { to: handset, body: `m${fed}` });
        if (fed % 3 === 0) receive(machine, `in ${fed}`);
        await sleep(Math.random() * 12);
      }
    };
    for (let round = 0; round < deploys; round++) {
      const { type, changed } = kinds[round % kinds.length] as (typeof kinds)[number];
      revisions[changed]++;
      const deployed = nodeRed.deploy(flows(), type);
      // An input during a deploy might reach no node, so the test sends only half of the inputs during deploys.
      await feedUntil((texts * (round + 0.5)) / deploys);
      await deployed;
      await feedUntil((texts * (round + 1)) / deploys);
    }
    const readReceived = () => (existsSync(receivedFile) ? readFileSync(receivedFile, 'utf8').trim().split('\n') : []);
    await waitUntil(() => {
      const ends = readOutcomes(ended);
      return readReceived().every((body) => ends.has(body));
    }, 'each message has an outcome').catch(() => {});
    await sleep(300);
    const ends = readOutcomes(ended);
    const sent = countBodies(simulator);
    const report = {
      withoutOutcome: readReceived().filter((body) => !ends.has(body)),
      notSent: readReceived().filter((body) => !sent.has(body)),
      sentTwice: [...sent].filter(([, count]) => count > 1),
      otherOutcomes: [...ends].filter(([, all]) =>
        all.some(({ name, redelivered }, index) => name !== 'sent' || (index > 0 && !redelivered)),
      ),
    };
    console.log(
      `      ${deploys} deploys, ${fed} messages, ${readReceived().length} reached the node, ${sent.size} sent`,
    );
    assert.deepEqual(report, { withoutOutcome: [], notSent: [], sentTwice: [], otherOutcomes: [] });
    assert.ok(readReceived().length > fed / 3, 'more than a third of the inputs reach the node');
  }
});

/**
 * Writes a module for Node-RED that records each input that reaches a deployed sending node. The package is not
 * responsible for other inputs.
 */
function createInputRecorder(folder: string, file: string): string {
  const path = join(folder, 'record-inputs.js');
  writeFileSync(
    path,
    `const { createRequire } = require('node:module');
     const { hooks } = createRequire(process.argv[1])('@node-red/util');
     hooks.add('onReceive', ({ msg, destination: { node } }) => {
       if (node.type === 'sms-send' && node._inputCallback) require('node:fs').appendFileSync(${JSON.stringify(file)}, msg.payload.body + '\\n');
     });`,
  );
  return path;
}

function createFlows(
  simulator: Simulator,
  options: { port: number; ended: string; retryUncertain: boolean; revisions: Record<Changed, number> },
): FlowNode[] {
  const { port, ended, retryUncertain, revisions } = options;
  const name = `revision ${revisions.receiver}`;
  const publicUrl = `http://127.0.0.1:${port}`;
  return [
    createAccount(simulator, { concurrency: 4 + (revisions.account % 4) }),
    ...createFeed({ name: `revision ${revisions.sender}`, retryUncertain, wires: [['out'], ['out']] }),
    createNode('in', 'sms-in', [[]], { name }),
    createNode('callback', 'sms-callback-in', [[], []], { path: '/callback', publicUrl, name }),
    createCatch([['out']]),
    createRecorder('out', ended),
  ];
}
