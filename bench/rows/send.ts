import { createSendFlows } from '../flows';
import type { Cost } from '../node-red';
import { compare, createCostLines, type Line, type Row } from '../row';
import { withSurroundings } from '../surroundings';

const concurrency = 8;

/** Messages through `sms-send`, eight in flight, which is the default of the account: what one costs by itself, and at a service that answers after 20 ms. */
export const send: Row = {
  name: 'send',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      await nodeRed.deploy(createSendFlows(service.baseUrl));
      const sendAll = async (work: string, count: number): Promise<Line[]> => {
        const drive = (probe: string, messages: number) => () =>
          nodeRed.order<Cost>('drive', { probe, count: messages, concurrency });
        const results = await compare(
          [
            contestant('sms', drive('sms-probe', count)),
            contestant('rival', drive('rival-probe', count / 4)),
            contestant('limit', () => nodeRed.order('limitSend', { count, concurrency, apiKey: 'limit' })),
          ],
          options.quick ? { rounds: 3 } : { rounds: 7 },
        );
        return createCostLines(work, results);
      };
      const [cost] = await sendAll('send', options.quick ? 2_000 : 40_000);
      for (const apiKey of ['sms', 'rival', 'limit']) await service.delaySends(apiKey, 20);
      return [...(cost ? [cost] : []), ...(await sendAll('send, 20 ms at the service', options.quick ? 200 : 1_200))];
    }),
};
