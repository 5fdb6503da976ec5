import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeptSendFlows } from '../flows';
import type { Cost } from '../node-red';
import {
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
import { withSurroundings } from '../surroundings';

const concurrency = 8;

/** What it costs to keep each text until it is sent, flushed to disk before it leaves and as it does, eight in flight. */
export const kept: Row = {
  name: 'kept',
  needs: { node: 'sms-send', property: 'keep' },
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      const folder = mkdtempSync(join(tmpdir(), 'sms-bench-kept-'));
      try {
        await nodeRed.deploy(createKeptSendFlows(service.baseUrl, join(folder, 'texts.txt')));
        const count = options.quick ? 1_000 : 8_000;
        const drive = (name: string) =>
          contestant(name, () => nodeRed.order<Cost>('drive', { probe: `${name}-probe`, count, concurrency }));
        const results = await compare(['on', 'off', 'rival'].map(drive), { rounds: options.quick ? 3 : 5 });
        const createLine = (measure: string, read: typeof perSecond, unit: string, aim?: string): Line => {
          const [on, off, file] = ['on', 'off', 'rival'].map((name) =>
            formatNumber(figureOf(results, name, read) ?? Number.NaN),
          );
          const ratio = formatRatio(ratioOf(results, 'on', ['off'], read));
          return {
            work: 'send, kept',
            measure,
            toRival: ratioOf(results, 'on', ['rival'], read),
            aim,
            figures: `${ratio} without keep: ${on} ${unit}, without ${off} ${unit}, a file with fsync first ${file} ${unit}`,
            own: figuresOf(results, 'on', read, unit),
          };
        };
        return [
          createLine('CPU time per message', cpuMicrosPerMessage, 'µs'),
          createLine('rate', perSecond, '/s', 'without keep ≥ 0.4'),
        ];
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
};
