import { createSoakFlows, noFlows } from '../flows';
import { type Cost, formatNumber, type Row } from '../measure';
import { withBench } from '../node-red';

const steps = 10;

/** Sends and receives equal numbers of messages at the same time, and shows whether memory grows. */
export const soak: Row = {
  name: 'soak',
  run: ({ quick }) =>
    withBench(async ({ service, nodeRed, order }) => {
      const total = quick ? 100_000 : 1_000_000;
      const count = total / 2;
      await nodeRed.deploy(createSoakFlows(service.baseUrl));
      await order('expect', { probe: 'in-probe', count, sampleEvery: count / steps });
      await service.fill('package', { unread: count, latencyMs: 0, waits: true });
      const [sent, received] = await Promise.all([
        order<Cost>('drive', { probe: 'out-probe', count, concurrency: 8 }),
        order<Cost>('collect', { probe: 'in-probe' }),
      ]);
      await nodeRed.deploy(noFlows);
      const heap = received.samples.map(({ heapUsed }) => formatNumber(heapUsed / 1_048_576)).join(' ');
      const [inRate, outRate] = [received, sent].map(({ wallMs }) => formatNumber((count / wallMs) * 1_000));
      const work = `soak of ${total.toLocaleString('en-US')} messages`;
      return [
        { work, measure: 'heap after each tenth', figures: `${heap} MiB` },
        { work, measure: 'rate', figures: `${inRate} /s in, ${outRate} /s out` },
      ];
    }),
};
