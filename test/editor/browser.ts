import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';

const require = createRequire(__filename);
const cacheFolder = join(dirname(dirname(__dirname)), '.cache');

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

interface Program {
  executablePath: string;
  env: Record<string, string>;
}

/** Starts a headless Chromium: the one of `$CHROME_PATH`, else Debian's, else the one among the development dependencies. */
export async function startBrowser(): Promise<Browser> {
  const { executablePath, env } = await findChromium();
  return chromium.launch({ executablePath, args: flags, env: { ...environment(), ...env } });
}

async function findChromium(): Promise<Program> {
  const installed = [process.env.CHROME_PATH, '/usr/bin/chromium'].find((path) => path && existsSync(path));
  return installed === undefined ? unpackChromium() : { executablePath: installed, env: {} };
}

/** Unpacks Chromium with the libraries it needs, once for each version, into the project's cache. */
async function unpackChromium(): Promise<Program> {
  const manifest = join(dirname(require.resolve('@sparticuz/chromium')), '..', '..', 'package.json');
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  const folder = join(cacheFolder, `chromium-${version}`);
  if (!existsSync(folder)) {
    const partial = `${folder}.${process.pid}`;
    mkdirSync(partial, { recursive: true });
    await unpackInto(partial);
    try {
      renameSync(partial, folder);
    } catch {
      // Another run was faster; its copy is as good.
      rmSync(partial, { recursive: true });
    }
  }
  return {
    executablePath: join(folder, 'chromium'),
    env: { LD_LIBRARY_PATH: [join(folder, 'al2023', 'lib'), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':') },
  };
}

/**
 * The package unpacks to the temporary folder, and its libraries only where it takes the machine for Amazon's: in a process of its own, since both
 * are told by the environment.
 */
async function unpackInto(folder: string): Promise<void> {
  const program = "import packed from '@sparticuz/chromium'; await packed.executablePath();";
  const env = { ...process.env, TMPDIR: folder, AWS_LAMBDA_JS_RUNTIME: 'nodejs20.x' };
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { cwd: __dirname, env });
}

function environment(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => !!entry[1]));
}
