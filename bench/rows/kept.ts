import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeptSendFlows } from '../flows';
import type { Cost } from '../node-red';
import {
  type BenchOptions,
  compare,
  cpuMicrosPerMessage,
  figureOf,
  figuresOf,
  formatNumber,
  formatRatio,
  type Line,
  perSecond,
  type Row,
  ratioOf,
} from '../row';
import { type Surroundings, withSurroundings } from '../surroundings';

const concurrency = 8;

/** As far away as a service across the Internet. */
const latencyMs = 50;

/** What it costs to keep each text until it is sent, flushed to disk before it leaves and as it does, eight in flight. */
export const kept: Row = {
  name: 'kept',
  needs: { node: 'sms-send', property: 'keep' },
  run: (options) => keepAll(options),
};

/** The same on a disk that takes 25 ms longer for each flush. */
export const keptOnSlowDisk: Row = {
  name: 'kept-slow-disk',
  needs: { node: 'sms-send', property: 'keep' },
  run: (options) => keepAll(options, 25),
};

function keepAll(options: BenchOptions, flushDelayMs?: number): Promise<Line[]> {
  // What the rival flushes is not delayed.
  const names = flushDelayMs === undefined ? ['on', 'off', 'rival'] : ['on', 'off'];
  const flushes = flushDelayMs === undefined ? '' : `, each flush ${flushDelayMs} ms longer`;
  const work = `send, kept, ${latencyMs} ms at the service${flushes}`;
  const measureAll = async ({ service, nodeRed, contestant }: Surroundings): Promise<Line[]> => {
    const folder = mkdtempSync(join(tmpdir(), 'sms-bench-kept-'));
    try {
      for (const apiKey of ['sms', 'rival']) await service.delaySends(apiKey, latencyMs);
      await nodeRed.deploy(createKeptSendFlows(service.baseUrl, join(folder, 'texts.txt')));
      const count = 400 / (options.quick ? 4 : 1);
      const drive = (name: string) =>
        contestant(name, () => nodeRed.order<Cost>('drive', { probe: `${name}-probe`, count, concurrency }));
      const results = await compare(names.map(drive), { rounds: options.quick ? 3 : 5 });
      const createLine = (measure: string, read: typeof perSecond, unit: string): Line => {
        const [on, off, file] = ['on', 'off', 'rival'].map((name) => {
          const figure = figureOf(results, name, read);
          return figure === undefined ? undefined : formatNumber(figure);
        });
        const ratio = formatRatio(ratioOf(results, 'on', ['off'], read));
        const rival = file === undefined ? '' : `, a file with fsync first ${file} ${unit}`;
        return {
          work,
          measure,
          toRival: ratioOf(results, 'on', ['rival'], read),
          figures: `${ratio} without keep: ${on} ${unit}, without ${off} ${unit}${rival}`,
          own: figuresOf(results, 'on', read, unit),
        };
      };
      return [createLine('CPU time per message', cpuMicrosPerMessage, 'µs'), createLine('rate', perSecond, '/s')];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  return withSurroundings(options, measureAll, flushDelayMs === undefined ? {} : { flushDelayMs });
}
