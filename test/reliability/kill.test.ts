import { setTimeout as sleep } from 'node:timers/promises';
import { isLong, random } from '../long';
import { until } from '../until';
import { createReceiver } from './flows';
import { receive, useMachine } from './machine';
import { readCounts } from './recorder';

const messages = isLong ? 10_000 : 1_000;
const kills = isLong ? 40 : 4;

describe('kill -9 of Node-RED while messages flow', function () {
  this.timeout(60_000 + kills * 20_000);
  const machine = useMachine({ waitMs: 200, statusDelayMs: 0, balance: 1e9 });

  for (const parallelPolls of [1, 8]) {
    it(`loses no received message with parallelPolls ${parallelPolls}`, async () => {
      const { simulator, nodeRed, observed } = machine;
      await nodeRed.start({ flows: createReceiver(simulator, observed, { account: { parallelPolls } }) });
      const bodies: string[] = [];
      // Bodies of messages whose poll answer might not have reached Node-RED before the kill.
      const inTransit = new Set<string>();
      for (let round = 1; round <= kills; round++) {
        while (bodies.length < (messages * round) / kills) bodies.push(receive(machine, `m${bodies.length}`).body);
        await sleep(50 + random() * 400);
        await nodeRed.kill();
        await simulator.until(() => simulator.polling('incoming') === 0);
        const read = simulator.incoming.filter((message) => message.read);
        for (const { body } of read.slice(-parallelPolls)) inTransit.add(body);
        await nodeRed.start();
      }
      const findMissing = () => {
        const counts = readCounts(observed);
        return bodies.filter((body) => !counts.has(body));
      };
      const findLost = () => findMissing().filter((body) => !inTransit.has(body));
      await until(
        () => findLost().length === 0 && simulator.incoming.every(({ read }) => read),
        () => `each received message reaches the flow; lost: ${findLost().join(' ')}`,
        { limitMs: 60_000 },
      );
      const twice = [...readCounts(observed).values()].filter((count) => count > 1).length;
      console.log(
        `      ${bodies.length} sent, ${kills} kills: ${findMissing().length} in answers to a killed process, ` +
          `${twice} delivered twice`,
      );
    });
  }
});
