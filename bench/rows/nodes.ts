import { createManyReceivers } from '../flows';
import type { Cost } from '../node-red';
import {
  compare,
  cpuMicrosPerMessage,
  figureOf,
  figuresOf,
  formatFigures,
  formatRatio,
  type Row,
  ratioOf,
} from '../row';
import { withSurroundings } from '../surroundings';

const many = 10;

/** What further `sms-in` nodes on the same account cost, each of which gets every message. */
export const nodes: Row = {
  name: 'nodes',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      const count = options.quick ? 1_000 : 4_000;
      const receive = (receivers: number) => async () => {
        await nodeRed.deploy(createManyReceivers(service.baseUrl, receivers));
        await nodeRed.order('expect', { probe: 'sms-probe', count });
        await service.fill('sms', { unread: count, latencyMs: 0, waits: true });
        return nodeRed.order<Cost>('collect', { probe: 'sms-probe' });
      };
      const results = await compare([contestant('one', receive(1)), contestant('many', receive(many))], {
        rounds: options.quick ? 2 : 5,
      });
      const ratio = ratioOf(results, 'many', ['one'], cpuMicrosPerMessage);
      const [one, all] = ['one', 'many'].map((name) => figureOf(results, name, cpuMicrosPerMessage));
      return [
        {
          work: `receive with ${many} nodes on one account, parallelPolls 8`,
          measure: 'CPU time per message, as a multiple of one node',
          figures: `${formatRatio(ratio)}: ${formatFigures([all], 'µs')} for ${many} nodes, ${formatFigures([one], 'µs')} for one`,
          own: figuresOf(results, 'many', cpuMicrosPerMessage, 'µs'),
        },
      ];
    }),
};
