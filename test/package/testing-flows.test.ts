import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { startSimulator } from '../../simulator';
import { type FlowNode, startNodeRed } from '../node-red-process';
import { root } from './packed';

const run = promisify(execFile);
const page = readFileSync(join(root, 'docs', 'testing-flows.md'), 'utf8');

function blocks(language: string): string[] {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, name, code = '']) =>
    name === language ? [code] : [],
  );
}

describe('docs/testing-flows.md', function () {
  this.timeout(60_000);
  // This folder is inside the project, so that its files can import the package by name. Its name has the process id,
  // because both generations of Node-RED can run at the same time.
  const folder = join(root, '.cache', `testing-flows-${process.pid}`);
  const [flows = ''] = blocks('json');
  const [testOfOneFlow = '', testOfDeployedFlows = ''] = blocks('js');

  before(() => {
    mkdirSync(join(folder, 'test'), { recursive: true });
    writeFileSync(join(folder, 'flows.json'), flows);
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  async function test(code: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
    const file = join(folder, 'test', 'flows.test.js');
    writeFileSync(file, code);
    const mocha = join(dirname(require.resolve('mocha/package.json')), 'bin', 'mocha.js');
    const { stdout } = await run(process.execPath, [mocha, '--no-config', '--exit', file], {
      cwd: folder,
      env: { ...process.env, ...env },
    });
    return stdout;
  }

  it('has a test of one flow that passes', async () => {
    assert.match(await test(testOfOneFlow), /3 passing/);
  });

  it('has a test of one flow that fails if the flow is wrong', async () => {
    writeFileSync(
      join(folder, 'flows.json'),
      flows.replace('Thank you', 'No thanks').replace('"keep": true', '"keep": false'),
    );
    try {
      await assert.rejects(test(testOfOneFlow), ({ stdout }: { stdout: string }) => /[123] failing/.test(stdout));
    } finally {
      writeFileSync(join(folder, 'flows.json'), flows);
    }
  });

  it('has a test of deployed flows that passes', async () => {
    const simulator = await startSimulator({ waitMs: 100 });
    const deployed = (JSON.parse(flows) as FlowNode[]).map((node) =>
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
      node.type === 'sms-account' ? { ...node, credentials: { apiKey: '${SMS_API_KEY}' } } : node,
    );
    const nodeRed = await startNodeRed({
      flows: deployed,
      env: { SMS_BASE_URL: simulator.baseUrl, SMS_API_KEY: simulator.credentials.apiKey ?? '' },
    });
    try {
      assert.match(await test(testOfDeployedFlows, { SIMULATOR_URL: simulator.pageUrl }), /1 passing/);
    } finally {
      await nodeRed.stop();
      await simulator.close();
    }
  });

  it('names only methods of the simulator', async () => {
    const simulator = await startSimulator();
    await simulator.close();
    const named = [...page.matchAll(/\bsimulator\.(?!md)(\w+)/g)].map(([, name = '']) => name);
    assert.ok(named.length > 20);
    assert.deepEqual(
      named.filter((name) => !(name in simulator)),
      [],
    );
  });
});
