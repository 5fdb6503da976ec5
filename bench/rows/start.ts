import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runNpm } from '../npm';
import { formatNumber, type Line, type Row } from '../row';
import { median } from '../statistics';

const own = '@messaging-service/node-red-sms';
const rivals = ['node-red-node-twilio', 'node-red-contrib-telegrambot', 'node-red-node-email'];

interface Installed {
  name: string;
  folder: string;
  packages: number;
  bytes: number;
}

/** What it takes to have the package: to load its types, and to install it, beside packages for the like. */
export const start: Row = {
  name: 'start',
  run: async ({ quick, version, turns }) => {
    const folder = mkdtempSync(join(tmpdir(), 'sms-bench-start-'));
    try {
      const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
      const tarball = runNpm(pack, version.folder).trim();
      const all = [own, ...(turns ? [] : rivals)].map((name, index) =>
        install(join(folder, String(index)), name, name === own ? join(folder, tarball) : name),
      );
      const times = new Map(all.map(({ name }): [string, number[]] => [name, []]));
      for (let round = -1; round < (quick ? 5 : 15); round++) {
        for (const installed of all) {
          const ms = timeLoad(installed);
          if (round >= 0) times.get(installed.name)?.push(ms);
        }
        await turns?.pass();
      }
      return [
        createLine('time to load the types', all, ({ name }) => times.get(name) ?? [], 'ms'),
        createLine('installed size', all, ({ bytes }) => [bytes / 1_048_576], 'MiB'),
        createLine('packages', all, ({ packages }) => [packages], ''),
      ];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function createLine(
  measure: string,
  all: readonly Installed[],
  read: (installed: Installed) => readonly number[],
  unit: string,
): Line {
  const [ours = [], ...theirs] = all.map(read);
  const formatted = all.map((installed) => `${installed.name} ${formatNumber(median(read(installed)))} ${unit}`.trim());
  return {
    work: 'start',
    measure,
    toRival: ours.map((value, round) => value / Math.min(...theirs.map((values) => values[round] ?? Number.NaN))),
    aim: 'less than each: < 1',
    figures: formatted.join(', '),
    own: { values: ours, unit },
  };
}

function install(folder: string, name: string, what: string): Installed {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  runNpm(['install', '--no-audit', '--no-fund', '--omit=dev', what], folder);
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as { packages: object };
  return { name, folder, packages: Object.keys(lock.packages).length - 1, bytes: sizeOf(join(folder, 'node_modules')) };
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += sizeOf(path);
    else if (entry.isFile()) bytes += statSync(path).size;
  }
  return bytes;
}

/** Loads every node of a package in a process of its own, as Node-RED does, and says how long that took. */
function timeLoad({ name, folder }: Installed): number {
  const script = `
    const manifest = require(${JSON.stringify(join(folder, 'node_modules', name, 'package.json'))});
    const stand = new Proxy(function () {}, { get: (target, key) => key === Symbol.toPrimitive ? () => '' : stand, apply: () => stand });
    const startedAt = performance.now();
    for (const file of Object.values(manifest['node-red'].nodes)) {
      require(require('node:path').join(${JSON.stringify(join(folder, 'node_modules', name))}, file))(stand);
    }
    process.stdout.write(String(performance.now() - startedAt), () => process.exit());`;
  return Number(
    execFileSync(process.execPath, ['-e', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
}
