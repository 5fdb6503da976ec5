import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import type { RunningFlow } from '../nodes/running-flow';
import { until } from '../until';
import { type CodePath, record, reportFunctions } from './recorder';

/** A flow and the message that it handles. */
interface Scenario {
  nodes: FlowNode[];
  /** Sends the `count`-th message, and resolves when it reaches the end of the flow. */
  run(flow: RunningFlow, sim: Simulator, count: number): Promise<unknown>;
}

const handset = '64215551234';

function sender(properties: Record<string, unknown>): FlowNode {
  const wires = [['sent'], ['failed']];
  const fields = { to: 'topic', toType: 'msg', body: 'payload', bodyType: 'msg', messageIdType: 'uuid' };
  return { id: 'send', type: 'sms-send', name: '', account: 'account', ...fields, wires, ...properties };
}

async function sendMessage(flow: RunningFlow, count: number): Promise<void> {
  flow.send('send', { payload: 'The boiler is off.', topic: handset });
  await flow.messages('sent', count);
}

const scenarios: Readonly<Record<string, Scenario>> = {
  'a plain message': { nodes: [sender({})], run: (flow, _, count) => sendMessage(flow, count) },
  'a polled message': {
    nodes: [
      {
        id: 'in',
        type: 'sms-in',
        name: '',
        account: 'account',
        acknowledge: 'flow',
        inputs: 1,
        wires: [['got', 'in']],
      },
    ],
    run: (flow, sim, count) => {
      sim.receive({ from: handset, to: '642100', body: `Message ${count}` });
      return flow.messages('got', count);
    },
  },
  'a stored message': { nodes: [sender({ keep: true })], run: (flow, _, count) => sendMessage(flow, count) },
  'a reply request and its reply': {
    nodes: [sender({ type: 'sms-ask', wait: '5', waitType: 'num', wires: [['reply'], ['noReply']] })],
    run: async (flow, sim, count) => {
      flow.send('send', { payload: 'The boiler is off.', topic: handset });
      await until(() => sim.messages.length === count);
      sim.reply({ from: handset, body: `Yes ${count}` });
      await flow.messages('reply', count);
    },
  },
  'a callback': {
    nodes: [{ id: 'in', type: 'sms-callback-in', name: '', account: 'account', path: '/sms', wires: [['got'], []] }],
    run: async (flow, _, count) => {
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
  // The module is loaded here so that the functions of src/ report their calls.
  const { RunningFlow, account, catcher, sink, startService, stopEverything } =
    require('../nodes/running-flow') as typeof import('../nodes/running-flow');
  const folder = mkdtempSync(join(tmpdir(), 'sms-code-paths-'));
  const paths = new Map<string, CodePath>();
  try {
    for (const [name, { nodes, run }] of Object.entries(scenarios)) {
      const sim = await startService({ waitMs: 5_000 });
      const sinks = ['sent', 'failed', 'reply', 'noReply', 'got'].map(sink);
      const flow = await RunningFlow.start(
        [account(sim, { store: 'disk', pause: '30' }), ...nodes, ...sinks, ...catcher()],
        { settings: { userDir: join(folder, name) } },
      );
      const runToItsEnd = async (count: number) => {
        await run(flow, sim, count);
        // The path includes the steps after the outcome: the store writes it, and the next poll leaves.
        await new Promise((resolve) => setTimeout(resolve, 200));
      };
      await runToItsEnd(1);
      await runToItsEnd(2);
      // The shortest of three paths counts, because an unrelated timer can fire during a run.
      const recorded: CodePath[] = [];
      for (const count of [3, 4, 5]) recorded.push(await record(() => runToItsEnd(count)));
      paths.set(
        name,
        recorded.reduce((shortest, path) => (path.moves < shortest.moves ? path : shortest)),
      );
      await stopEverything();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return paths;
}
