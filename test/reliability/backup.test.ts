import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Simulator, startSimulator } from '../../simulator';
import {
  createLinkedUserDir,
  createUserDir,
  type FlowNode,
  type NodeRedProcess,
  startNodeRed,
} from '../node-red-process';
import { createAccount, createFeed, feed } from './flows';
import { createRecorder, readObservations, waitUntil } from './recorder';

const kept = ['one', 'two', 'three'];

describe('a copy of the user directory', function () {
  this.timeout(120_000);
  let simulator: Simulator;
  let nodeRed: NodeRedProcess | undefined;
  let arrived: string;

  beforeEach(async () => {
    simulator = await startSimulator({ waitMs: 200 });
    nodeRed = undefined;
  });

  afterEach(async () => {
    await nodeRed?.kill();
    await simulator.close();
  });

  /** A flow that stores and sends messages, and acknowledges no received message. */
  const flows = (): FlowNode[] => [
    createAccount(simulator),
    ...createFeed({ wires: [['out'], ['out']] }),
    { id: 'in', type: 'sms-in', z: 'tab', account: 'account', acknowledge: 'flow', inputs: 1, wires: [['out']] },
    createRecorder('out', arrived),
  ];

  /**
   * Runs a Node-RED whose store contains three outgoing messages and one incoming message, and copies its folder
   * after it stops.
   */
  async function backUp(): Promise<{ userDir: string; copy: string }> {
    const userDir = createLinkedUserDir();
    arrived = join(createUserDir(), 'arrived.jsonl');
    simulator.fault('send', { status: 503 });
    nodeRed = await startNodeRed({ userDir, flows: flows() });
    for (const body of kept) {
      assert.ok(await feed(nodeRed.url, { to: '64215550001', body }));
    }
    simulator.receive({ from: '64215550002', to: '642100000001', body: 'Hello' });
    await waitUntil(() => received().length === 1, 'the flow has the message');
    await nodeRed.stop();
    return { userDir, copy: copyOf(userDir) };
  }

  /** Copies a folder without the file or folder `leftOut`. */
  function copyOf(userDir: string, leftOut?: string): string {
    const copy = createUserDir();
    const filter = (path: string) => path !== join(userDir, leftOut ?? 'nothing');
    cpSync(userDir, copy, { recursive: true, verbatimSymlinks: true, filter });
    return copy;
  }

  /** Returns the `redelivered` marks of the received messages, one for each time that the message entered the flow. */
  const received = () =>
    readObservations(arrived).flatMap(({ payload, sms }) => (payload === 'Hello' ? [sms?.redelivered === true] : []));
  const sent = () => simulator.messages.map(({ body }) => body).sort();
  const all = [...kept].sort();

  it('sends its stored messages once, and redelivers unacknowledged messages', async () => {
    const { userDir, copy } = await backUp();
    rmSync(userDir, { recursive: true });
    simulator.fault('send', null);
    nodeRed = await startNodeRed({ userDir: copy });
    await waitUntil(() => sent().length === kept.length && received().length === 2, 'all is there again');
    assert.deepEqual(sent(), all);
    assert.deepEqual(received(), [false, true]);
  });

  it('sends messages from after the copy again, unless it lacks sms-inbox', async () => {
    const { userDir, copy } = await backUp();
    simulator.fault('send', null);
    nodeRed = await startNodeRed({ userDir });
    await waitUntil(() => sent().length === kept.length, 'the texts are sent');
    await nodeRed.stop();

    nodeRed = await startNodeRed({ userDir: copyOf(copy, 'sms-inbox') });
    simulator.receive({ from: '64215550002', to: '642100000001', body: 'Hello' });
    await waitUntil(() => received().at(-1) === false, 'it polls');
    assert.deepEqual(sent(), all);
    await nodeRed.stop();

    nodeRed = await startNodeRed({ userDir: copy });
    await waitUntil(() => sent().length === 2 * kept.length, 'the texts are sent again');
    assert.deepEqual(sent(), [...all, ...all].sort());
  });
});
