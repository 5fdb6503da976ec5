import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import type { RunningFlow } from '../nodes/running-flow';
import { record, reportFunctions, type Walk } from './recorder';

/** One of the ways that a newcomer follows, in a flow that runs and has been that way before. */
interface Way {
  nodes: FlowNode[];
  /** Goes that way, for the `count`-th time, and resolves when its message has reached the end of the flow. */
  go(flow: RunningFlow, sim: Simulator, count: number): Promise<unknown>;
}

const handset = '64215551234';

function sender(properties: Record<string, unknown>): FlowNode {
  const wires = [['sent'], ['failed'], ['reply'], ['noReply']];
  const fields = { to: 'topic', toType: 'msg', body: 'payload', bodyType: 'msg', messageIdType: 'uuid' };
  return { id: 'send', type: 'sms-send', name: '', account: 'account', ...fields, wires, ...properties };
}

async function sendText(flow: RunningFlow, count: number): Promise<void> {
  flow.send('send', { payload: 'The boiler is off.', topic: handset });
  await flow.messages('sent', count);
}

const ways: Readonly<Record<string, Way>> = {
  'a plain text': { nodes: [sender({})], go: (flow, _, count) => sendText(flow, count) },
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
    go: (flow, sim, count) => {
      sim.receive({ from: handset, to: '642100', body: `Message ${count}` });
      return flow.messages('got', count);
    },
  },
  'a kept text': { nodes: [sender({ keep: true })], go: (flow, _, count) => sendText(flow, count) },
  'a question and its reply': {
    nodes: [sender({ wait: '5', waitType: 'num', outputs: 4 })],
    go: async (flow, sim, count) => {
      await sendText(flow, count);
      sim.reply({ from: handset, body: `Yes ${count}` });
      await flow.messages('reply', count);
    },
  },
  'a callback': {
    nodes: [{ id: 'in', type: 'sms-callback-in', name: '', account: 'account', path: '/sms', wires: [['got'], []] }],
    go: async (flow, _, count) => {
      const reply = { messageId: `reply-${count}`, from: handset, to: '642100', body: `Message ${count}` };
      const answer = await fetch(`${await flow.serve()}/sms`, { method: 'POST', body: new URLSearchParams(reply) });
      assert.equal(answer.status, 200);
      await flow.messages('got', count);
    },
  },
};

/** Goes each way in a flow of its own, with a store on disk, and returns how it went through the library. */
export async function runWays(): Promise<Map<string, Walk>> {
  reportFunctions();
  // Loaded only now, so that its functions report.
  const { RunningFlow, account, catcher, sink, startService, stopEverything } =
    require('../nodes/running-flow') as typeof import('../nodes/running-flow');
  const folder = mkdtempSync(join(tmpdir(), 'sms-walks-'));
  const walks = new Map<string, Walk>();
  try {
    for (const [name, { nodes, go }] of Object.entries(ways)) {
      const sim = await startService({ waitMs: 5_000 });
      const sinks = ['sent', 'failed', 'reply', 'noReply', 'got'].map(sink);
      const flow = await RunningFlow.start(
        [account(sim, { store: 'disk', pause: '30' }), ...nodes, ...sinks, ...catcher()],
        { settings: { userDir: join(folder, name) } },
      );
      const goToItsEnd = async (count: number) => {
        await go(flow, sim, count);
        // What follows on the outcome belongs to the way: it is written, and the next poll leaves.
        await new Promise((resolve) => setTimeout(resolve, 200));
      };
      await goToItsEnd(1);
      await goToItsEnd(2);
      // On a busy machine a timer of something else may come in between.
      const gone: Walk[] = [];
      for (const count of [3, 4, 5]) gone.push(await record(() => goToItsEnd(count)));
      walks.set(
        name,
        gone.reduce((shortest, walk) => (walk.moves < shortest.moves ? walk : shortest)),
      );
      await stopEverything();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return walks;
}
