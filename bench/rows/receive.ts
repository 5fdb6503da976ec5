import { createReceiveFlows } from '../flows';
import { compare, createCostLines, type Line, type Row } from '../measure';
import { type Bench, withBench } from '../node-red';

const latencyMs = 20;

/** Polls a backlog from a service that answers after 20 ms. The account stores each message on disk. */
export const receive: Row = {
  name: 'receive',
  run: async ({ quick }) => {
    const lines: Line[] = [];
    for (const parallelPolls of [1, 8]) {
      lines.push(...(await withBench((bench) => pollBacklog(bench, parallelPolls, quick))));
    }
    return lines;
  },
};

async function pollBacklog({ service, nodeRed, order }: Bench, parallelPolls: number, quick: boolean): Promise<Line[]> {
  await nodeRed.deploy(createReceiveFlows(service.baseUrl, parallelPolls));
  const count = quick ? 40 : 120;
  const packageCount = count * parallelPolls;
  const fill = (apiKey: string, unread: number) =>
    service.fill(apiKey, { latencyMs, waits: apiKey === 'package', unread });
  const results = await compare(
    [
      {
        name: 'package',
        round: async () => {
          await order('expect', { probe: 'package-probe', count: packageCount });
          await fill('package', packageCount);
          return order('collect', { probe: 'package-probe' });
        },
      },
      {
        name: 'by hand',
        round: async () => {
          await fill('hand', count);
          await order('expect', { probe: 'hand-probe', count, start: true });
          return order('collect', { probe: 'hand-probe' });
        },
      },
      {
        name: 'bare loop',
        round: async () => {
          await fill('loop', count);
          return order('loopReceive', { apiKey: 'loop', count });
        },
      },
    ],
    { rounds: quick ? 2 : 5, warmUps: 4 },
  );
  return createCostLines(`receive, ${latencyMs} ms at the service, parallelPolls ${parallelPolls}`, results);
}
