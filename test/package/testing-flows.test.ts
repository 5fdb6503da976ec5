import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { SimulatorClient, startSimulator } from '../../simulator';
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
  // Within the project, the package is found by its own name. The suites of both generations run at once.
  const folder = join(root, '.cache', `testing-flows-${process.pid}`);
  const [flows = ''] = blocks('json');
  const [ofOneFlow = '', ofWhatIsDeployed = ''] = blocks('js');

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

  it('tests a flow by itself, and its tests pass', async () => {
    assert.match(await test(ofOneFlow), /3 passing/);
  });

  it('has tests that fail when the flow does not do its work', async () => {
    writeFileSync(
      join(folder, 'flows.json'),
      flows.replace('Thank you', 'No thanks').replace('"keep": true', '"keep": false'),
    );
    try {
      await assert.rejects(test(ofOneFlow), ({ stdout }: { stdout: string }) => /[123] failing/.test(stdout));
    } finally {
      writeFileSync(join(folder, 'flows.json'), flows);
    }
  });

  it('tests what is deployed, through a simulator that runs already', async () => {
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
      assert.match(await test(ofWhatIsDeployed, { SIMULATOR_URL: simulator.pageUrl }), /1 passing/);
    } finally {
      await nodeRed.stop();
      await simulator.close();
    }
  });

  it('names only methods that the simulator has', async () => {
    const simulator = await startSimulator();
    await simulator.close();
    const named = [...page.matchAll(/\bsimulator\.(?!md)(\w+)/g)].map(([, name = '']) => name);
    assert.ok(named.length > 20);
    assert.deepEqual(
      named.filter((name) => !(name in simulator)),
      [],
    );
  });

  it('tells of nothing to try that a client of a running simulator has not', () => {
    const [, table = ''] = /^## What to try$([\s\S]*?)^## /m.exec(page) ?? [];
    const named = [...table.matchAll(/\bsimulator\.(\w+)/g)].map(([, name = '']) => name);
    assert.ok(named.length > 9);
    assert.deepEqual(
      named.filter((name) => !(name in SimulatorClient.prototype)),
      [],
    );
  });
});
