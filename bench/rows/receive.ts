import { createReceiveFlows } from '../flows';
import { compare, createCostLines, type Line, type Row } from '../row';
import { type Surroundings, withSurroundings } from '../surroundings';

const backlog = 20_000;

/** Draining a backlog at a service that answers at once or after 20 ms, the inbox on disk. */
export const receive: Row = {
  name: 'receive',
  run: async (options) => {
    const lines: Line[] = [];
    for (const drain of [1, 8]) {
      await withSurroundings(options, async (surroundings) => {
        await surroundings.nodeRed.deploy(createReceiveFlows(surroundings.service.baseUrl, drain));
        for (const latencyMs of [0, 20]) {
          lines.push(...(await drainBacklog(surroundings, drain, latencyMs)));
        }
      });
    }
    return lines;
  },
};

async function drainBacklog(
  { service, nodeRed, contestant, options }: Surroundings,
  drain: number,
  latencyMs: number,
): Promise<Line[]> {
  const rounds = options.quick ? 2 : 5;
  // The rounds share the backlog. With latency the rate is known long before the backlog is drained.
  const slowly = latencyMs === 0 ? backlog / rounds : 120;
  const count = Math.round(slowly / (options.quick ? 3 : 1));
  const ownCount = latencyMs === 0 ? count : count * drain;
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
    { rounds },
  );
  const aim = latencyMs === 0 ? undefined : drain === 1 ? 'limit ≥ 1/1.2 = 0.83' : 'limit ≥ 7';
  return createCostLines(`receive, ${latencyMs} ms at the service, drain ${drain}`, results, aim ? { rate: aim } : {});
}
