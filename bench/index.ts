import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatPage, formatTable } from './report';
import type { Line, Row } from './row';
import { callbacks } from './rows/callbacks';
import { delay } from './rows/delay';
import { idle } from './rows/idle';
import { kept } from './rows/kept';
import { limits } from './rows/limits';
import { nodes } from './rows/nodes';
import { receive, slowDisk } from './rows/receive';
import { send } from './rows/send';
import { soak } from './rows/soak';
import { start } from './rows/start';

const rows: readonly Row[] = [send, kept, limits, receive, slowDisk, callbacks, delay, nodes, idle, soak, start];

const page = join(__dirname, '..', 'docs', 'performance.md');

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { quick: { type: 'boolean', default: false }, 'cpu-prof': { type: 'boolean', default: false } },
  });
  const options = { quick: values.quick, profile: values['cpu-prof'] };
  const unknown = positionals.find((name) => !rows.some((row) => row.name === name));
  if (unknown) throw new Error(`There is no row ${unknown}, only ${rows.map(({ name }) => name).join(', ')}.`);
  const chosen = rows.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const lines: Line[] = [];
  const startedAt = performance.now();
  for (const row of chosen) {
    const rowStartedAt = performance.now();
    lines.push(...(await row.run(options)));
    console.error(`${row.name}: ${Math.round((performance.now() - rowStartedAt) / 1_000)} s`);
  }
  console.log(formatTable(lines));
  const isWhole = chosen.length === rows.length && !options.quick && !options.profile;
  if (isWhole) writeFileSync(page, formatPage(lines, Math.round((performance.now() - startedAt) / 60_000)));
}

void main();
