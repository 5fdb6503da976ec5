import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { connectSimulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { simulator, useSimulator } from '../simulator/use-simulator';
import { root } from './packed';
import { codeBlocks, readPage, runFlows } from './pages';

const run = promisify(execFile);
const page = readPage('docs/testing-flows.md');

describe('docs/testing-flows.md', function () {
  this.timeout(60_000);
  useSimulator(() => ({ waitMs: 100 }));
  // This folder is inside the project, so that its files can import the package by name.
  const folder = join(root, '.cache', `testing-flows-${process.pid}`);
  const [flows = ''] = codeBlocks(page, 'json');
  const [testOfOneFlow = '', testOfDeployedFlows = ''] = codeBlocks(page, 'js');

  after(() => rmSync(folder, { recursive: true, force: true }));

  async function test(testedFlows: string, code: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
    mkdirSync(join(folder, 'test'), { recursive: true });
    writeFileSync(join(folder, 'flows.json'), testedFlows);
    const file = join(folder, 'test', 'flows.test.js');
    writeFileSync(file, code);
    const mocha = join(dirname(require.resolve('mocha/package.json')), 'bin', 'mocha.js');
    const { stdout } = await run(process.execPath, [mocha, '--no-config', '--exit', file], {
      cwd: folder,
      env: { ...process.env, ...env },
    });
    return stdout;
  }

  it('has a flow test that fails if the flow is wrong', async () => {
    assert.match(await test(flows, testOfOneFlow), /3 passing/);
    const wrong = flows.replace('Thank you', 'No thanks').replace('"keep": true', '"keep": false');
    await assert.rejects(test(wrong, testOfOneFlow), ({ stdout }: { stdout: string }) => /[123] failing/.test(stdout));
  });

  it('has a passing test of deployed flows', async () => {
    const nodeRed = await runFlows(JSON.parse(flows) as FlowNode[]);
    try {
      assert.match(await test(flows, testOfDeployedFlows, { SIMULATOR_URL: simulator.pageUrl }), /1 passing/);
    } finally {
      await nodeRed.stop();
    }
  });

  it('names only methods of the simulator or its client', () => {
    const client = connectSimulator(simulator.pageUrl);
    const named = [...page.matchAll(/\bsimulator\.(?!md)(\w+)/g)].map(([, name = '']) => name);
    assert.ok(named.length > 20);
    assert.deepEqual(
      named.filter((name) => !(name in simulator) && !(name in client)),
      [],
    );
  });
});
