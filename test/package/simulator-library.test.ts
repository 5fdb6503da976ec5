import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { startSimulator } from '../../simulator';
import { skip } from '../skip';
import { installPackage, root } from './packed';

const run = promisify(execFile);
const page = readFileSync(join(root, 'docs', 'reference', 'simulator.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, name, code = '']) =>
    name === language ? [code] : [],
  );

describe('the simulator as a library of the package', () => {
  it('compiles with a strict program that has only the types of Node', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sms-simulator-types-'));
    try {
      installPackage(folder);
      writeFileSync(
        join(folder, 'program.ts'),
        `import { connectSimulator, createManualClock, startSimulator, type Text } from '@messaging-service/node-red-sms/simulator';
export async function run(): Promise<Text | undefined> {
  const simulator = await startSimulator({ clock: createManualClock(), keepTexts: 10 });
  simulator.fault('send', { drop: 'during' }, 1);
  const { texts } = await connectSimulator(simulator.pageUrl).texts('6421555123');
  await simulator.close();
  // @ts-expect-error there is no such fault
  simulator.fault('send', { drop: 'never' });
  return texts[0];
}
`,
      );
      const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');
      const typeRoots = join(root, 'node_modules', '@types');
      const flags = [
        '--strict',
        '--noEmit',
        '--target',
        'es2022',
        '--module',
        'node20',
        '--types',
        'node',
        '--typeRoots',
        typeRoots,
      ];
      execFileSync(process.execPath, [tsc, ...flags, 'program.ts'], { cwd: folder, stdio: 'pipe', encoding: 'utf8' });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('has working examples of its control interface', async function () {
    const commands = blocks('sh').find((block) => block.includes('curl ')) ?? '';
    const simulator = await startSimulator();
    try {
      const script = commands.replaceAll('http://127.0.0.1:8025/', simulator.pageUrl);
      assert.ok(script.split('\n').filter((line) => line.startsWith('curl ')).length > 9);
      await run('sh', ['-e', '-c', script.replace(/^curl .*control\/reset.*$/m, '')]);
      assert.deepEqual(
        simulator.incoming.map(({ body, inReplyToId }) => [body, inReplyToId]),
        [
          ['hello', undefined],
          ['yes', 'question-1'],
        ],
      );
      const { account, faults } = simulator.describe(1);
      assert.deepEqual((account as Record<string, unknown>).groups, { nurses: ['Anna', '6421555124'] });
      assert.deepEqual(faults, { incoming: { fault: { drop: 'after' }, left: 1 } });
      await run('sh', ['-e', '-c', script]);
      assert.equal(simulator.incoming.length, 0);
    } catch (error) {
      if ((error as { code?: unknown }).code !== 127) throw error;
      skip(this, 'curl is not installed');
    } finally {
      await simulator.close();
    }
  });

  it('documents every path and fault of its control interface', () => {
    const read = (file: string) => readFileSync(join(root, 'simulator', file), 'utf8');
    const control = read('control.ts');
    const paths = [
      ...[...control.matchAll(/^ {2}'?([\w-]+)'?: \{$/gm)].map(([, name]) => name),
      ...[...control.matchAll(/^ {2}(\w+): \(simulator, query\)/gm)].map(([, name]) => name),
      'events',
    ];
    assert.ok(paths.length > 20, paths.join());
    assert.deepEqual(
      paths.filter((path) => !page.includes(`\`${path}\``)),
      [],
    );
    const kinds = [...(/^const fields = \[([\s\S]*?)\]/m.exec(read('fault-input.ts'))?.[1] ?? '').matchAll(/'(\w+)'/g)];
    assert.ok(kinds.length > 9);
    assert.deepEqual(
      kinds.map(([, kind]) => kind).filter((kind) => !page.includes(`"${kind}"`)),
      [],
    );
  });
});
