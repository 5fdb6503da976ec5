import { createSendFlows } from '../flows';
import { compare, createCostLines, formatNumber, type Row } from '../row';
import { withSurroundings } from '../surroundings';

const concurrency = 8;

/** Messages through `sms-send`, eight in flight, which is the default of the account. */
export const send: Row = {
  name: 'send',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      await nodeRed.deploy(createSendFlows(service.baseUrl));
      const count = options.quick ? 2_000 : 30_000;
      const results = await compare(
        [
          contestant('sms', () => nodeRed.order('drive', { probe: 'sms-probe', count, concurrency })),
          contestant('rival', () => nodeRed.order('drive', { probe: "rival-probe", count: count / 5, concurrency })),
          contestant('passage', () => nodeRed.order('drive', { probe: 'passage-probe', count, concurrency })),
          contestant('limit', () => nodeRed.order('limitSend', { count, concurrency, apiKey: 'limit' })),
        ],
        options.quick ? 3 : 5,
      );
      const [own = 0, limit = 0, passage = 0] = ['sms', 'limit', 'passage'].map(
        (name) => results.get(name)?.cpuMicrosPerMessage,
      );
      return [
        ...createCostLines('send', results, { cpu: 'rival ≤ 0.5, limit ≤ 1.5' }),
        {
          work: 'send',
          measure: "CPU time per message, the limit with Node-RED's passage through one node",
          toLimit: own / (limit + passage),
          figures: `${formatNumber(own)} µs, limit ${formatNumber(limit)} µs and passage ${formatNumber(passage)} µs`,
        },
      ];
    }),
};
