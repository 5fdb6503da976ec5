import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Simulator, startSimulator } from '../../simulator';
import { isLong } from '../long';
import { createLinkedUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createAccount, createFeed, feed } from './flows';
import { createRecorder, waitForCounts } from './recorder';

/** To test more messages: `LARGE_TEXTS=10000 npm run test:one -- test/reliability/large-messages.test.ts`. */
const texts = Number(process.env.LARGE_TEXTS ?? (isLong ? 10_000 : 500));
const length = 250_000;
const ballast = 'x'.repeat(length);
/** Messages per process, because a process keeps received flow messages in memory. */
const textsOfProcess = 1_000;
const atOnce = 8;

describe('Node-RED with large stored flow messages', function () {
  this.timeout(120_000 + texts * 100);
  let folder: string;
  let simulator: Simulator;
  let nodeRed: NodeRedProcess | undefined;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sms-large-'));
    simulator = await startSimulator({ waitMs: 200, statusDelayMs: 0, balance: 1e9 });
  });

  afterEach(async () => {
    await nodeRed?.kill();
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it(`sends ${texts} messages of 250 KB with a heap of 256 MB`, async () => {
    const userDir = createLinkedUserDir();
    const arrived = join(folder, 'arrived.txt');
    const flows = createFlows(simulator, arrived);
    simulator.fault('send', { status: 503 });
    for (let fed = 0; fed < texts; ) {
      const started = await startNodeRed({ userDir, flows });
      nodeRed = started;
      const until = Math.min(texts, fed + textsOfProcess);
      const feedOn = async () => {
        while (fed < until) assert.ok(await feed(started.url, { to: '64215550001', body: `m${fed++}`, ballast }));
      };
      await Promise.all(Array.from({ length: atOnce }, feedOn));
      // Stops Node-RED instead of killing it, because `/feed` answers before the node has stored the input.
      await started.stop();
    }
    simulator.fault('send', null);
    nodeRed = await startNodeRed({ userDir, flows, env: { NODE_OPTIONS: '--max-old-space-size=256' } });
    const counts = await waitForCounts(arrived, texts);
    assert.equal(counts.size, texts);
    for (const [line, count] of counts) assert.deepEqual([count, line.endsWith(` ${length}`)], [1, true], line);
    assert.equal(simulator.messages.length, texts);
  });
});

function createFlows(simulator: Simulator, arrived: string): FlowNode[] {
  const measure = "msg.payload = msg.payload.body + ' ' + msg.payload.ballast.length;";
  return [
    createAccount(simulator, { queueLimit: texts + atOnce, concurrency: 8 }),
    ...createFeed({ wires: [['out'], []] }),
    createRecorder('out', arrived, {}, measure),
  ];
}
