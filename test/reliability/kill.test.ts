import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, startSimulator } from '../../simulator';
import { isLong, random } from '../long';
import { createLinkedUserDir, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { until } from '../until';
import { createReceiver } from './flows';
import { readCounts } from './recorder';

const messages = isLong ? 10_000 : 1_000;
const kills = isLong ? 40 : 4;

describe('kill -9 of Node-RED while messages flow', function () {
  this.timeout(60_000 + kills * 20_000);
  let simulator: Simulator;
  let nodeRed: NodeRedProcess | undefined;
  const folder = mkdtempSync(join(tmpdir(), 'sms-kill-'));
  const arrived = join(folder, 'arrived.txt');

  beforeEach(async () => {
    simulator = await startSimulator({ waitMs: 200, statusDelayMs: 0, balance: 1e9 });
    rmSync(arrived, { force: true });
  });

  afterEach(async () => {
    await nodeRed?.kill();
    await simulator.close();
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const parallelPolls of [1, 8]) {
    it(`loses no received message with parallelPolls ${parallelPolls}`, async () => {
      const userDir = createLinkedUserDir();
      nodeRed = await startNodeRed({
        userDir,
        flows: createReceiver(simulator, arrived, { account: { parallelPolls } }),
      });
      const { port } = nodeRed;
      let sent = 0;
      // Bodies of messages whose poll answer might not have reached Node-RED before the kill.
      const inTransit = new Set<string>();
      for (let round = 0; round < kills; round++) {
        const target = Math.ceil((messages * (round + 1)) / kills);
        for (; sent < target; sent++) simulator.receive({ from: '64215550001', to: '64215559999', body: `m${sent}` });
        await sleep(50 + random() * 400);
        await nodeRed.kill();
        await simulator.until(() => simulator.polling('incoming') === 0);
        const read = simulator.incoming.filter((message) => message.read).length;
        for (let index = Math.max(0, read - parallelPolls); index < read; index++) inTransit.add(`m${index}`);
        nodeRed = await startNodeRed({ userDir, port });
      }
      const bodies = Array.from({ length: sent }, (_, index) => `m${index}`);
      const findMissing = () => {
        const counts = readCounts(arrived);
        return bodies.filter((body) => !counts.has(body));
      };
      const findLost = () => findMissing().filter((body) => !inTransit.has(body));
      await until(
        () => findLost().length === 0 && simulator.incoming.every(({ read }) => read),
        () => `each received message reaches the flow; lost: ${findLost().join(' ')}`,
        { limitMs: 60_000 },
      );
      const counts = readCounts(arrived);
      const missing = findMissing();
      const twice = [...counts.values()].filter((count) => count > 1).length;
      console.log(
        `      ${sent} sent, ${kills} kills: ${missing.length} in answers to a killed process, ` +
          `${twice} delivered twice`,
      );
    });
  }
});
