import assert from 'node:assert/strict';
import type { Simulator } from '../../simulator';
import { isLong } from '../long';
import type { FlowNode } from '../node-red-process';
import { createAccount, createFeed, post } from './flows';
import { useMachine } from './machine';
import { createRecorder, waitForCounts } from './recorder';

/** To test more messages: `LARGE_TEXTS=10000 npm run test:one -- test/reliability/large-messages.test.ts`. */
const texts = Number(process.env.LARGE_TEXTS ?? (isLong ? 10_000 : 500));
const length = 250_000;
const ballast = 'x'.repeat(length);
/** Messages per process, because a process keeps received flow messages in memory. */
const textsOfProcess = 1_000;
const atOnce = 8;

describe('Node-RED with a heap of 256 MB', function () {
  this.timeout(120_000 + texts * 100);
  const machine = useMachine({ waitMs: 200, statusDelayMs: 0, balance: 1e9 });

  it(`sends ${texts} stored flow messages of 250 KB each`, async () => {
    const { simulator, nodeRed, observed } = machine;
    const flows = createFlows(simulator, observed);
    simulator.fault('send', { status: 503 });
    for (let fed = 0; fed < texts; ) {
      await nodeRed.start({ flows });
      const until = Math.min(texts, fed + textsOfProcess);
      const feedOn = async () => {
        while (fed < until) await post(nodeRed.url, { to: '64215550001', body: `m${fed++}`, ballast });
      };
      await Promise.all(Array.from({ length: atOnce }, feedOn));
      // Stops Node-RED instead of killing it, because `/feed` answers before the node has stored the input.
      await nodeRed.stop();
    }
    simulator.fault('send', null);
    await nodeRed.start({ env: { NODE_OPTIONS: '--max-old-space-size=256' } });
    const counts = await waitForCounts(observed, texts);
    assert.equal(counts.size, texts);
    for (const [line, count] of counts) assert.deepEqual([count, line.endsWith(` ${length}`)], [1, true], line);
    assert.equal(simulator.messages.length, texts);
  });
});

function createFlows(simulator: Simulator, observed: string): FlowNode[] {
  const measure = "msg.payload = msg.payload.body + ' ' + msg.payload.ballast.length;";
  return [
    createAccount(simulator, { queueLimit: texts + atOnce, concurrency: 8 }),
    ...createFeed({ wires: [['out'], []] }),
    createRecorder('out', observed, {}, measure),
  ];
}
