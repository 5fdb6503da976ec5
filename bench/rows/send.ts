import { createSendFlows } from '../flows';
import { type Cost, compare, createCostLines, type Row } from '../measure';
import { withBench } from '../node-red';

const concurrency = 8;
const latencyMs = 20;

/**
 * Sends messages with `sms-send` to a service that answers after 20 ms. Up to eight messages are in flight at the same
 * time, which is the default.
 */
export const send: Row = {
  name: 'send',
  run: ({ quick }) =>
    withBench(async ({ service, nodeRed, order }) => {
      await nodeRed.deploy(createSendFlows(service.baseUrl));
      for (const apiKey of ['package', 'hand', 'loop']) await service.delaySends(apiKey, latencyMs);
      const count = quick ? 200 : 1_200;
      const drive = (probe: string) => () => order<Cost>('drive', { probe, count, concurrency });
      const results = await compare(
        [
          { name: 'package', round: drive('package-probe') },
          { name: 'by hand', round: drive('hand-probe') },
          { name: 'bare loop', round: () => order('loopSend', { count, concurrency, apiKey: 'loop' }) },
        ],
        { rounds: quick ? 3 : 7 },
      );
      return createCostLines(`send, ${latencyMs} ms at the service`, results);
    }),
};
