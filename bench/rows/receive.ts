import { createReceiveFlows } from '../flows';
import { compare, createCostLines, type Line, type Row } from '../row';
import { type Surroundings, withSurroundings } from '../surroundings';

const backlog = 20_000;

/** Of the rate. */
const rateAims: ReadonlyMap<string, string> = new Map([
  ['receive, 20 ms at the service, parallelPolls 1', 'limit ≥ 0.95'],
  ['receive, 20 ms at the service, parallelPolls 8', 'limit ≥ 7.3'],
  ['receive, 20 ms at the service, parallelPolls 1, each flush 25 ms longer', 'limit ≥ 0.9'],
  ['receive, 20 ms at the service, parallelPolls 8, each flush 25 ms longer', 'limit ≥ 4'],
]);

/** Draining a backlog at a service that answers after 20 ms, the inbox on disk; and what a message costs this package by itself. */
export const receive: Row = {
  name: 'receive',
  run: async (options) => {
    const lines: Line[] = [];
    for (const parallelPolls of [1, 8]) {
      await withSurroundings(options, async (surroundings) => {
        await surroundings.nodeRed.deploy(createReceiveFlows(surroundings.service.baseUrl, parallelPolls));
        if (parallelPolls === 1)
          lines.push(...(await drainBacklog(surroundings, { parallelPolls, latencyMs: 0 })).slice(0, 1));
        lines.push(...(await drainBacklog(surroundings, { parallelPolls, latencyMs: 20 })));
      });
    }
    return lines;
  },
};

/** The same after 20 ms, on a disk that takes 25 ms longer for each flush. */
export const slowDisk: Row = {
  name: 'slow-disk',
  run: async (options) => {
    const lines: Line[] = [];
    for (const parallelPolls of [1, 8]) {
      const work = async (surroundings: Surroundings) => {
        await surroundings.nodeRed.deploy(createReceiveFlows(surroundings.service.baseUrl, parallelPolls));
        lines.push(...(await drainBacklog(surroundings, { parallelPolls, latencyMs: 20, flushDelayMs: 25 })));
      };
      await withSurroundings(options, work, { flushDelayMs: 25 });
    }
    return lines;
  },
};

interface Circumstances {
  parallelPolls: number;
  latencyMs: number;
  flushDelayMs?: number;
}

async function drainBacklog(
  { service, nodeRed, contestant, options }: Surroundings,
  { parallelPolls, latencyMs, flushDelayMs }: Circumstances,
): Promise<Line[]> {
  const rounds = options.quick ? 2 : 5;
  // The rounds share the backlog. With latency the rate is known long before the backlog is drained.
  const slowly = latencyMs === 0 ? backlog / rounds : 120;
  const count = Math.round(slowly / (options.quick ? 3 : 1));
  const ownCount = latencyMs === 0 ? count : count * parallelPolls;
  const fill = (apiKey: string, unread: number) => service.fill(apiKey, { latencyMs, waits: apiKey === 'sms', unread });
  const results = await compare(
    [
      contestant('sms', async () => {
        await nodeRed.order('expect', { probe: 'sms-probe', count: ownCount });
        await fill('sms', ownCount);
        return nodeRed.order('collect', { probe: 'sms-probe' });
      }),
      contestant('rival', async () => {
        await fill('rival', count);
        await nodeRed.order('expect', { probe: 'rival-probe', count, kick: true });
        return nodeRed.order('collect', { probe: 'rival-probe' });
      }),
      contestant('limit', async () => {
        await fill('limit', count);
        return nodeRed.order('limitReceive', { loops: 1, apiKey: 'limit', count });
      }),
    ],
    // Where messages are few, V8 compiles for several rounds.
    { rounds, warmUps: latencyMs === 0 || parallelPolls > 1 || options.quick ? 2 : 4 },
  );
  const flushes = flushDelayMs === undefined ? '' : `, each flush ${flushDelayMs} ms longer`;
  const work = `receive, ${latencyMs} ms at the service, parallelPolls ${parallelPolls}${flushes}`;
  return createCostLines(work, results, { rate: rateAims.get(work) });
}
