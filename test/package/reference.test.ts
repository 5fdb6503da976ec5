import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { startSimulator } from '../../simulator';
import { readJson, root } from './packed';

const run = promisify(execFile);

/** An export that TypeDoc found, or the signature of an exported function. */
interface Reflection {
  name: string;
  kind: number;
  comment?: { blockTags?: { tag: string; content: { text: string }[] }[] };
  signatures?: Reflection[];
  children?: Reflection[];
}

/** TypeDoc's numbers for the exports that exist at run time. */
const kinds = { variable: 32, function: 64, class: 128 };

const folder = join(root, '.cache', 'reference-examples');

describe('the library reference', () => {
  const examples = new Map<string, string>();

  before('it is made', () => {
    rmSync(folder, { recursive: true, force: true });
    const typedoc = join(root, 'test', 'reference', 'node_modules', 'typedoc', 'bin', 'typedoc');
    assert.ok(existsSync(typedoc), 'Run `npm ci` in test/reference first; `npm test` does it.');
    // Throws if TypeDoc warns, because typedoc.json makes it treat warnings as errors.
    execFileSync(process.execPath, [typedoc, '--options', join(root, 'test', 'reference', 'typedoc.json')], {
      stdio: 'pipe',
    });
  });

  it('has an example for each export that a program calls', () => {
    const { children: modules = [] } = readJson<Reflection>(join(root, '.cache', 'reference.json'));
    assert.deepEqual(
      modules.map(({ name }) => name),
      ['@messaging-service/node-red-sms', '@messaging-service/node-red-sms/simulator'],
    );
    for (const { children = [] } of modules) {
      for (const { name, kind, comment, signatures: [{ comment: ofCall } = {}] = [] } of children) {
        if (!Object.values(kinds).includes(kind)) continue;
        const { blockTags = [] } = comment ?? ofCall ?? {};
        const text =
          blockTags
            .find(({ tag }) => tag === '@example')
            ?.content.map((part) => part.text)
            .join('') ?? '';
        const [, code = ''] = /^```ts\n([\s\S]*)\n```$/.exec(text.trim()) ?? [];
        assert.match(code, new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from '@messaging-service`), name);
        examples.set(name, code);
      }
    }
  });

  it('has examples that compile and run', async () => {
    assert.ok(examples.size > 30);
    mkdirSync(folder, { recursive: true });
    for (const [name, code] of examples) writeFileSync(join(folder, `${name}.mts`), code);
    const compilerOptions = { noEmit: false, types: ['node'], noUnusedLocals: true, skipLibCheck: false };
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: ['*.mts'], exclude: [] }),
    );
    const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');
    const { stdout } = await run(process.execPath, [tsc, '-p', folder]).catch((error: { stdout: string }) => error);
    assert.equal(stdout, '');

    const simulator = await startSimulator({ waitMs: 100 });
    try {
      simulator.receive({ from: '6421555123', to: '642100000001', body: 'Hello' });
      simulator.receive({ from: '6421555123', to: '642100000001', body: 'Hello again' });
      const env = { ...process.env, SMS_BASE_URL: simulator.baseUrl, SMS_API_KEY: simulator.credentials.apiKey };
      const all = [...examples.keys()].map((name) => `import './${name}.mjs';`).join('\n');
      writeFileSync(join(folder, 'all.mjs'), all);
      const { stdout: printed } = await run(process.execPath, [join(folder, 'all.mjs')], { env });
      assert.match(printed, /^6421555123 Hello$/m);
    } finally {
      await simulator.close();
    }
  });
});
