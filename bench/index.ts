import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCommand, refuse } from '../scripts/command-line';
import { formatComparison, formatPage, formatTable } from './report';
import type { BenchOptions, Line, Row } from './row';
import { callbacks } from './rows/callbacks';
import { delay } from './rows/delay';
import { idle } from './rows/idle';
import { kept, keptOnSlowDisk } from './rows/kept';
import { leftovers } from './rows/leftovers';
import { consent, limits } from './rows/limits';
import { nodes } from './rows/nodes';
import { overview } from './rows/overview';
import { receive, slowDisk } from './rows/receive';
import { send } from './rows/send';
import { soak } from './rows/soak';
import { start } from './rows/start';
import { Turns } from './turns';
import { buildVersion, findCommit, hasProperty, present, type Version } from './version';

const rows: readonly Row[] = [
  send,
  kept,
  keptOnSlowDisk,
  limits,
  consent,
  receive,
  slowDisk,
  callbacks,
  delay,
  nodes,
  idle,
  overview,
  soak,
  leftovers,
  start,
];

const names = rows.map(({ name }) => name).join(', ');
const usage = `Usage: npm run bench -- [--quick] [--cpu-prof] [--compare <commit>] [row ...], with rows among ${names}`;

const page = join(__dirname, '..', 'docs', 'performance.md');

async function main(): Promise<void> {
  const { values, positionals } = readCommand(usage, {
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      'cpu-prof': { type: 'boolean', default: false },
      compare: { type: 'string' },
    },
  });
  const options = { quick: values.quick, profile: values['cpu-prof'], version: present };
  const unknown = positionals.find((name) => !rows.some((row) => row.name === name));
  if (unknown !== undefined) refuse(usage, `There is no row ${unknown}.`);
  const chosen = rows.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  if (values.compare !== undefined) {
    const commit = findCommit(values.compare) ?? refuse(usage, `Git knows no commit ${values.compare}.`);
    await compareWith(buildVersion(values.compare, commit), chosen, options);
    return;
  }
  const lines: Line[] = [];
  const startedAt = performance.now();
  for (const row of chosen) {
    lines.push(...(await timed(row, () => row.run(options))));
  }
  console.log(formatTable(lines));
  const isWhole = chosen.length === rows.length && !options.quick && !options.profile;
  if (!isWhole) return;
  const minutes = Math.round((performance.now() - startedAt) / 60_000);
  writeFileSync(page, formatPage(lines, minutes));
}

/** Lets both versions do each row, in turns. */
async function compareWith(former: Version, chosen: readonly Row[], options: BenchOptions): Promise<void> {
  const own: Line[] = [];
  const theirs: Line[] = [];
  for (const row of chosen) {
    if (row.needs && !hasProperty(former, row.needs.node, row.needs.property)) {
      console.error(`${row.name}: ${former.name} has no ${row.needs.property}`);
      continue;
    }
    const turns = new Turns();
    const measure = (version: Version) => turns.run(() => row.run({ ...options, version, turns }));
    const [now, before] = await timed(row, () => Promise.all([measure(present), measure(former)]));
    own.push(...now);
    theirs.push(...before);
  }
  console.log(formatComparison(own, theirs, former.name));
}

async function timed<Result>(row: Row, work: () => Promise<Result>): Promise<Result> {
  const startedAt = performance.now();
  const result = await work();
  console.error(`${row.name}: ${Math.round((performance.now() - startedAt) / 1_000)} s`);
  return result;
}

void main();
