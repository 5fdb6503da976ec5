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

/** Starts a headless Chromium: from `$CHROME_PATH`, else from Debian, else from the development dependencies. */
export async function startBrowser(): Promise<Browser> {
  const { executablePath, env } = await findChromium();
  return chromium.launch({ executablePath, args: flags, env: { ...process.env, ...env } });
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
      // Removes this copy, because another run has already unpacked the browser.
      rmSync(partial, { recursive: true });
    }
  }
  return {
    executablePath: join(folder, 'chromium'),
    env: { LD_LIBRARY_PATH: [join(folder, 'al2023', 'lib'), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':') },
  };
}

/**
 * Unpacks the package in a separate process, because environment variables control it: `TMPDIR` sets the folder, and
 * the package unpacks its libraries only if it detects AWS Lambda.
 */
async function unpackInto(folder: string): Promise<void> {
  const program = "import packed from '@sparticuz/chromium'; await packed.executablePath();";
  const env = { ...process.env, TMPDIR: folder, AWS_LAMBDA_JS_RUNTIME: 'nodejs20.x' };
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { cwd: __dirname, env });
}
