import { createSendFlows } from '../flows';
import type { Cost } from '../node-red';
import { compare, cpuMicrosPerMessage, createCostLines, figureOf, formatNumber, type Row, ratioOf } from '../row';
import { withSurroundings } from '../surroundings';

const concurrency = 8;

/** Messages through `sms-send`, eight in flight, which is the default of the account. */
export const send: Row = {
  name: 'send',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      await nodeRed.deploy(createSendFlows(service.baseUrl));
      const count = options.quick ? 2_000 : 40_000;
      const drive = (probe: string, messages: number) => () =>
        nodeRed.order<Cost>('drive', { probe, count: messages, concurrency });
      const results = await compare(
        [
          contestant('sms', drive('sms-probe', count)),
          contestant('rival', drive('rival-probe', count / 4)),
          contestant('passage', drive('passage-probe', count)),
          contestant('limit', () => nodeRed.order('limitSend', { count, concurrency, apiKey: 'limit' })),
          contestant('dispatch', () => nodeRed.order('limitSend', { count, concurrency, apiKey: 'limit', bare: true })),
        ],
        options.quick ? { rounds: 3 } : { rounds: 7 },
      );
      const figure = (name: string) => formatNumber(figureOf(results, name, cpuMicrosPerMessage) ?? Number.NaN);
      return [
        ...createCostLines('send', results, { cpu: 'rival ≤ 0.5, limit ≤ 1.5' }),
        {
          work: 'send',
          measure: "CPU time per message, the limit by undici's bare dispatch",
          toLimit: ratioOf(results, 'sms', ['dispatch'], cpuMicrosPerMessage),
          figures: `${figure('sms')} µs, limit ${figure('dispatch')} µs`,
        },
        {
          work: 'send',
          measure: "CPU time per message, the limit with Node-RED's passage through one node",
          toLimit: ratioOf(results, 'sms', ['limit', 'passage'], cpuMicrosPerMessage),
          figures: `${figure('sms')} µs, limit ${figure('limit')} µs and passage ${figure('passage')} µs`,
        },
      ];
    }),
};
