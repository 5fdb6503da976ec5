import { createLimitedSendFlows } from '../flows';
import type { Cost } from '../node-red';
import {
  compare,
  cpuMicrosPerMessage,
  figureOf,
  figuresOf,
  formatNumber,
  formatRatio,
  type Row,
  ratioOf,
} from '../row';
import { withSurroundings } from '../surroundings';

/** What it costs to count what goes out: texts on disk, one account with limits that are never reached beside one without. */
export const limits: Row = {
  name: 'limits',
  needs: { node: 'sms-account', property: 'perDay' },
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      await nodeRed.deploy(createLimitedSendFlows(service.baseUrl));
      const order = { count: options.quick ? 2_000 : 20_000, concurrency: 8 };
      const results = await compare(
        ['on', 'off'].map((name) =>
          contestant(name, () => nodeRed.order<Cost>('drive', { probe: `${name}-probe`, ...order })),
        ),
        options.quick ? { rounds: 3 } : { rounds: 7 },
      );
      const ratio = formatRatio(ratioOf(results, 'on', ['off'], cpuMicrosPerMessage));
      const [on, off] = ['on', 'off'].map((name) =>
        formatNumber(figureOf(results, name, cpuMicrosPerMessage) ?? Number.NaN),
      );
      return [
        {
          work: 'send with limits',
          measure: 'CPU time per message',
          figures: `${ratio} without: ${on} µs, without ${off} µs`,
          own: figuresOf(results, 'on', cpuMicrosPerMessage, 'µs'),
        },
      ];
    }),
};
