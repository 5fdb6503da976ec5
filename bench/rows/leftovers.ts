import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { formatNumber, type Line, type Row } from '../row';
import { median } from '../statistics';
import { present } from '../version';

const run = promisify(execFile);

interface Start {
  longestMs: number;
  tookMs: number;
  mostMebibytes: number;
}

/** A start with much left undelivered, and what the store of a busy account takes beside the heap. */
export const leftovers: Row = {
  name: 'leftovers',
  async run({ quick, version }) {
    // Where versions are compared: the store has another shape in each.
    if (version !== present) return [];
    const folder = mkdtempSync(join(tmpdir(), 'sms-bench-leftovers-'));
    try {
      const count = quick ? 20_000 : 100_000;
      const starts = [await measureStarts(folder, count, quick ? 1 : 3)];
      if (!quick) starts.push(await measureStarts(folder, 10 * count, 1));
      const busy = await work<{ mebibytes: number }>('keepBusy', join(folder, 'busy'), count);
      return [
        ...starts,
        {
          work: `one busy account, ${formatNumber(count)} messages`,
          measure: 'memory beside the heap',
          figures: `${formatNumber(busy.mebibytes)} MiB`,
          own: { values: [busy.mebibytes], unit: 'MiB' },
        },
      ];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function measureStarts(folder: string, count: number, rounds: number): Promise<Line> {
  const starts: Start[] = [];
  for (let round = 0; round < rounds; round++) {
    const place = join(folder, `${count} ${round}`);
    await work('leave', place, count);
    starts.push(await work<Start>('start', place, count));
    rmSync(place, { recursive: true });
  }
  const figure = (name: keyof Start) => formatNumber(median(starts.map((start) => start[name])));
  return {
    work: `start with ${formatNumber(count)} messages undelivered`,
    measure: 'longest block of the event loop',
    aim: '< 50 ms',
    figures: `${figure('longestMs')} ms; all delivered after ${figure('tookMs')} ms, ${figure('mostMebibytes')} MiB resident at most`,
    own: { values: starts.map(({ longestMs }) => longestMs), unit: 'ms' },
  };
}

async function work<Cost>(name: string, folder: string, count: number): Promise<Cost> {
  const process = join(__dirname, '..', 'store-process.ts');
  const { stdout } = await run(
    globalThis.process.execPath,
    ['--require', require.resolve('tsx/cjs'), process, name, folder, String(count)],
    { timeout: 600_000 },
  );
  return JSON.parse(stdout) as Cost;
}
