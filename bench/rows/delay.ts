import { createReceiveFlows } from '../flows';
import { compare, createLine, delayOf, type Row } from '../row';
import { withSurroundings } from '../surroundings';

/** From the service's answer to the message in the flow, one message at a time. */
export const delay: Row = {
  name: 'delay',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      await nodeRed.deploy(createReceiveFlows(service.baseUrl, 1));
      const count = options.quick ? 200 : 300;
      const mailbox = { latencyMs: 5, stamped: true, unread: count };
      const results = await compare(
        [
          contestant('sms', async () => {
            await nodeRed.order('expect', { probe: 'sms-probe', count, stamped: true });
            await service.fill('sms', { ...mailbox, waits: true });
            return nodeRed.order('collect', { probe: 'sms-probe' });
          }),
          contestant('rival', async () => {
            await service.fill('rival', { ...mailbox, waits: false });
            await nodeRed.order('expect', { probe: 'rival-probe', count, stamped: true, kick: true });
            return nodeRed.order('collect', { probe: 'rival-probe' });
          }),
        ],
        { rounds: options.quick ? 2 : 9 },
      );
      const work = "delay from the service's answer to the flow";
      return [0.5, 0.99].map((share) =>
        createLine(results, delayOf(share), 'ms', { work, measure: `p${share * 100}` }),
      );
    }),
};
