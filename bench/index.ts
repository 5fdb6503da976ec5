import { readCommand, refuse } from '../scripts/command-line';
import { formatTable, type Line, type Row } from './measure';
import { callbacks } from './rows/callbacks';
import { receive } from './rows/receive';
import { send } from './rows/send';
import { soak } from './rows/soak';
import { stored } from './rows/stored';

const rows: readonly Row[] = [send, stored, receive, callbacks, soak];

const names = rows.map(({ name }) => name).join(', ');
const usage = `Usage: npm run bench -- [--quick] [row ...], with rows among ${names}`;

async function main(): Promise<void> {
  const { values, positionals } = readCommand(usage, {
    allowPositionals: true,
    options: { quick: { type: 'boolean', default: false } },
  });
  const unknown = positionals.find((name) => !rows.some((row) => row.name === name));
  if (unknown !== undefined) refuse(usage, `There is no row ${unknown}.`);
  const lines: Line[] = [];
  for (const row of rows) {
    if (positionals.length > 0 && !positionals.includes(row.name)) continue;
    const startedAt = performance.now();
    lines.push(...(await row.run(values)));
    console.error(`${row.name}: ${Math.round((performance.now() - startedAt) / 1_000)} s`);
  }
  console.log(formatTable(lines));
}

void main();
