import assert from 'node:assert/strict';
import { createUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'hello' },
  { id: 'in', type: 'http in', z: 'tab', name: '', url: '/hello', method: 'get', wires: [['say']] },
  { id: 'say', type: 'template', z: 'tab', field: 'payload', template: 'hello', output: 'str', wires: [['out']] },
  { id: 'out', type: 'http response', z: 'tab', name: '', wires: [] },
];

describe('Node-RED as a process of its own', () => {
  let nodeRed: NodeRedProcess | undefined;

  afterEach(async () => {
    await nodeRed?.kill();
  });

  it('runs the generation that the test runs on, and no other', async () => {
    nodeRed = await startNodeRed({ userDir: createUserDir() });
    const settings: unknown = await (await fetch(`${nodeRed.url}/settings`)).json();
    const expected: { version(): string } = require(process.env.NR ?? 'node-red');
    assert.equal((settings as { version: string }).version, expected.version());
    assert.match(nodeRed.log, new RegExp(`Node.js  version: ${process.version}`));
  });

  it('runs what was deployed, again after kill -9 on the same folder and port', async () => {
    nodeRed = await startNodeRed({ userDir: createUserDir(), flows });
    assert.equal(await (await fetch(`${nodeRed.url}/hello`)).text(), 'hello');
    const { port, userDir } = nodeRed;
    await nodeRed.kill();
    assert.equal((await nodeRed.exited).signal, 'SIGKILL');
    nodeRed = await startNodeRed({ userDir, port });
    assert.equal(await (await fetch(`${nodeRed.url}/hello`)).text(), 'hello');
  });

  it('runs the flows by the time that a deployment of any type resolves', async () => {
    nodeRed = await startNodeRed({ userDir: createUserDir(), flows });
    for (const type of ['full', 'flows', 'nodes', 'reload'] as const) {
      const said = `after ${type}`;
      await nodeRed.deploy(
        flows.map((node) => (node.id === 'say' ? { ...node, template: said } : node)),
        type,
      );
      const expected = type === 'reload' ? 'after nodes' : said;
      assert.equal(await (await fetch(`${nodeRed.url}/hello`)).text(), expected);
    }
  });

  it('refuses a deployment with a node of an unknown type', async () => {
    nodeRed = await startNodeRed({ userDir: createUserDir() });
    await assert.rejects(
      nodeRed.deploy([...flows, { id: 'x', type: 'no-such-type', z: 'tab', wires: [] }]),
      /no-such-type/,
    );
  });

  it('ends with code 0 when it is stopped', async () => {
    nodeRed = await startNodeRed({ userDir: createUserDir() });
    await nodeRed.stop();
    assert.deepEqual(await nodeRed.exited, { code: 0, signal: null });
  });
});
