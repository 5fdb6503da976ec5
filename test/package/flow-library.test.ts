import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPackage, type PackageLock, readJson, root } from './packed';

const run = promisify(execFile);
const checks = join(root, 'test', 'flow-library');

/** Answer of a registry about a package. */
interface Packument {
  name: string;
  'dist-tags': Record<string, string>;
  versions: Record<string, object>;
}

/** Result of the check: the rules of the flow library by number. */
type Scorecard = Record<string, { test?: boolean; [detail: string]: unknown }>;

/**
 * A registry with the package versions from the lock files. The check therefore needs no network, and does not fail
 * when a dependency publishes a new version.
 */
class Registry {
  readonly asked: string[] = [];
  readonly #server: Server;
  readonly #packuments = new Map<string, Packument>();

  constructor() {
    for (const lock of ['package-lock.json', 'test/node-red-5/package-lock.json']) this.#read(lock);
    this.#server = createServer((request, response) => {
      // FollowUp uses this server as a registry (by path) and as a proxy (by full URL).
      const { pathname } = new URL(request.url ?? '', 'http://registry');
      this.asked.push(pathname);
      const answer = pathname === '/catalogue.json' ? catalogue : this.#packuments.get(name(pathname));
      response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}));
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #read(lock: string): void {
    for (const [path, entry] of Object.entries(readJson<PackageLock>(join(root, lock)).packages)) {
      const name = /.*node_modules\/(.+)$/.exec(path)?.[1];
      if (name === undefined || entry.version === undefined) continue;
      const packument = this.#packuments.get(name) ?? { name, 'dist-tags': {}, versions: {} };
      packument.versions[entry.version] = { ...entry, name };
      const isNested = path.lastIndexOf('node_modules/') > 0;
      // The check reads both generations of Node-RED by their tags: `latest` and `maintenance`.
      if (!isNested)
        packument['dist-tags'][lock.startsWith('test') || name !== 'node-red' ? 'latest' : 'maintenance'] ??=
          entry.version;
      this.#packuments.set(name, packument);
    }
  }
}

const name = (pathname: string) => decodeURIComponent(pathname.slice(1));

const catalogue = { modules: [{ id: 'node-red-node-twilio', types: ['twilio-api', 'twilio out'] }] };

describe('node-red-dev, the check of the flow library', () => {
  it('reports no problem', async function () {
    this.timeout(60_000);
    const command = join(checks, 'node_modules', 'node-red-dev', 'bin', 'run');
    assert.ok(existsSync(command), 'Run `npm ci` in test/flow-library first; `npm test` does it.');
    const folder = mkdtempSync(join(tmpdir(), 'sms-flow-library-'));
    const registry = new Registry();
    try {
      const address = await registry.listen();
      const scorecardFile = join(folder, 'scorecard.json');
      writeFileSync(join(folder, '.npmrc'), `registry=${address}\n`);
      const env = { PATH: process.env.PATH, HOME: folder, https_proxy: address, CI: 'true' };
      const { stdout, stderr } = await run(
        process.execPath,
        [command, 'validate', '--path', installPackage(folder), '--output', scorecardFile],
        { cwd: folder, env },
      );
      const { package: _, ...scorecard } = readJson<Scorecard>(scorecardFile);
      const output = `${stdout}\n${stderr}\n${registry.asked.join(' ')}`;
      assert.deepEqual(
        Object.entries(scorecard).filter(([, { test }]) => test !== true),
        [],
        output,
      );
      assert.deepEqual(Object.keys(scorecard).sort(), rules, output);
      assert.ok(registry.asked.includes('/catalogue.json') && registry.asked.includes('/undici'), output);
      assert.doesNotMatch(output, /could not load|Unable to|Warning:/, output);
    } finally {
      registry.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

const rules = ['D01', 'D02', 'D03', 'N01', 'N02', 'P01', 'P03', 'P04', 'P05', 'P06', 'P07', 'P08'];
