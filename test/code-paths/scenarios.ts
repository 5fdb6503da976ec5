import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import type { RunningFlow } from '../nodes/running-flow';
import { createTemporaryFolder } from '../temporary-folder';
import { until } from '../until';
import { type CodePath, record, reportFunctions } from './recorder';

/** A node and the message that it handles. */
interface Scenario {
  node: FlowNode;
  /** Sends the `count`-th message, and resolves when it reaches the end of the flow. */
  run(flow: RunningFlow, sim: Simulator, count: number): Promise<unknown>;
}

const handset = '64215551234';
const wired = { name: '', account: 'account', wires: [['got'], []] };
const sender = { ...wired, id: 'send', type: 'sms-send', messageIdType: 'uuid' };
const input = { payload: 'The boiler is off.', topic: handset };

async function send(flow: RunningFlow, _sim: Simulator, count: number): Promise<void> {
  flow.send('send', input);
  await flow.messages('got', count);
}

const scenarios: Readonly<Record<string, Scenario>> = {
  'a plain message': { node: sender, run: send },
  'a polled message': {
    node: { ...wired, id: 'in', type: 'sms-in', acknowledge: 'flow', inputs: 1, wires: [['got', 'in']] },
    run: (flow, sim, count) => {
      sim.receive({ from: handset, to: '642100', body: `Message ${count}` });
      return flow.messages('got', count);
    },
  },
  'a stored message': { node: { ...sender, keep: true }, run: send },
  'a reply request and its reply': {
    node: { ...sender, type: 'sms-ask', wait: '5', waitType: 'num' },
    run: async (flow, sim, count) => {
      flow.send('send', input);
      await until(() => sim.messages.length === count);
      sim.reply({ from: handset, body: `Yes ${count}` });
      await flow.messages('got', count);
    },
  },
  'a callback': {
    node: { ...wired, id: 'in', type: 'sms-callback-in', path: '/sms' },
    run: async (flow, _sim, count) => {
      const reply = { messageId: `reply-${count}`, from: handset, to: '642100', body: `Message ${count}` };
      const answer = await fetch(`${await flow.serve()}/sms`, { method: 'POST', body: new URLSearchParams(reply) });
      assert.equal(answer.status, 200);
      await flow.messages('got', count);
    },
  },
};

/** Runs each scenario in its own flow, with a store on disk, and returns its path through the library. */
export async function runScenarios(): Promise<Map<string, CodePath>> {
  reportFunctions();
  // Loads the module only now, so that the functions of `src/` report their calls.
  const { RunningFlow, account, catcher, sink, startService, stopEverything } =
    require('../nodes/running-flow') as typeof import('../nodes/running-flow');
  const folder = createTemporaryFolder('sms-code-paths');
  const paths = new Map<string, CodePath>();
  for (const [name, { node, run }] of Object.entries(scenarios)) {
    const sim = await startService({ waitMs: 5_000 });
    const flow = await RunningFlow.start(
      [account(sim, { store: 'disk', pause: '30' }), node, sink('got'), ...catcher()],
      { settings: { userDir: join(folder, name) } },
    );
    const runToItsEnd = async (count: number) => {
      await run(flow, sim, count);
      // Waits, so that the path includes the steps after the outcome: the store writes the outcome, and the next poll
      // leaves.
      await new Promise((resolve) => setTimeout(resolve, 200));
    };
    await runToItsEnd(1);
    await runToItsEnd(2);
    // Uses the shortest of three paths, because an unrelated timer can fire during a run.
    const recorded: CodePath[] = [];
    for (const count of [3, 4, 5]) recorded.push(await record(() => runToItsEnd(count)));
    paths.set(
      name,
      recorded.reduce((shortest, path) => (path.moves < shortest.moves ? path : shortest)),
    );
    await stopEverything();
  }
  return paths;
}
