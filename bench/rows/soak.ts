import { setTimeout as sleep } from 'node:timers/promises';
import { createSoakFlows, noFlows } from '../flows';
import type { Cost, Memory } from '../node-red';
import { formatNumber, type Row } from '../row';
import { withSurroundings } from '../surroundings';

const steps = 10;

/** Messages in and out at once, half of them each: whether memory stays flat, and what is left behind. */
export const soak: Row = {
  name: 'soak',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed }) => {
      const total = options.quick ? 100_000 : 1_000_000;
      const count = total / 2;
      await nodeRed.deploy(noFlows);
      const before = await nodeRed.order<Record<string, number>>('resources');
      await nodeRed.deploy(createSoakFlows(service.baseUrl));
      await nodeRed.order('expect', { probe: 'in-probe', count, sampleEvery: count / steps });
      await service.fill('sms', { unread: count, latencyMs: 0, waits: true });
      const [out, into] = await Promise.all([
        nodeRed.order<Cost>('drive', { probe: 'out-probe', count, concurrency: 8 }),
        nodeRed.order<Cost>('collect', { probe: 'in-probe' }),
      ]);
      await nodeRed.deploy(noFlows);
      // Polls in flight are not aborted, so they have to be answered before anything can be called left.
      await service.fill('sms', { waits: false });
      await sleep(3_000);
      const left = await nodeRed.order<Record<string, number>>('resources');
      const samples = into.samples;
      const [first, last] = [samples[0], samples.at(-1)];
      if (!first || !last) throw new Error('no memory was measured');
      const growth = (name: keyof Memory) => `${formatNumber((last[name] - first[name]) / 1_048_576)} MiB`;
      const work = `soak of ${total.toLocaleString('en-US')} messages`;
      return [
        {
          work,
          measure: `memory from the first ${formatNumber(total / steps)} to the end`,
          aim: 'flat',
          figures: `heap ${growth('heapUsed')}, resident ${growth('rss')}; heap at each tenth: ${samples
            .map(({ heapUsed }) => formatNumber(heapUsed / 1_048_576))
            .join(' ')} MiB`,
        },
        {
          work,
          measure: 'handles and timers left by the flow',
          aim: 'none',
          figures: formatLeft(before, left),
        },
        {
          work,
          measure: 'rate',
          own: { values: [(count / Math.max(into.wallMs, out.wallMs)) * 1_000], unit: '/s' },
          figures: `${formatNumber((count / into.wallMs) * 1_000)} /s in and ${formatNumber((count / out.wallMs) * 1_000)} /s out`,
        },
      ];
    }),
};

function formatLeft(before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>): string {
  const more = Object.keys(after).flatMap((name) => {
    const number = (after[name] ?? 0) - (before[name] ?? 0);
    return number > 0 ? [`${number} ${name}`] : [];
  });
  return more.join(', ') || 'none';
}
