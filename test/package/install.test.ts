import assert from 'node:assert/strict';
import { type Simulator, startSimulator } from '../../simulator';
import { createUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { until } from '../until';
import { installPackage, packPackage } from './packed';

const handset = '64215551234';
const send = { type: 'sms-send', z: 'tab', account: 'account', messageIdType: 'uuid' };

/** Creates a flow that sends a message for each HTTP request, and answers each incoming message. */
function createFlows(sim: Simulator): FlowNode[] {
  return [
    { id: 'tab', type: 'tab', label: 'Send and answer' },
    {
      id: 'account',
      type: 'sms-account',
      baseUrl: sim.baseUrl,
      pause: '0',
      store: 'disk',
      credentials: { apiKey: sim.credentials.apiKey },
    },
    { id: 'http', type: 'http in', z: 'tab', name: '', url: '/send', method: 'post', wires: [['send']] },
    { ...send, id: 'send', body: 'hello', bodyType: 'str', to: handset, toType: 'str', wires: [['answer'], []] },
    { id: 'answer', type: 'http response', z: 'tab', name: '', wires: [] },
    { id: 'in', type: 'sms-in', z: 'tab', account: 'account', wires: [['echo']] },
    {
      id: 'echo',
      type: 'template',
      z: 'tab',
      field: 'payload',
      template: 'You said: {{{payload}}}',
      output: 'str',
      wires: [['reply']],
    },
    { ...send, id: 'reply', to: 'topic', toType: 'msg', wires: [[], []] },
  ];
}

describe('the packed package, installed into a real Node-RED', () => {
  let sim: Simulator;
  let nodeRed: NodeRedProcess;

  before(async function () {
    this.timeout(90_000);
    sim = await startSimulator();
    const userDir = createUserDir();
    installPackage(userDir);
    nodeRed = await startNodeRed({ userDir, flows: createFlows(sim) });
  });

  after(async () => {
    await nodeRed?.stop();
    await sim?.close();
  });

  it('registers every node type without an error', async () => {
    const { name, version, 'node-red': declared } = packPackage().json;
    const response = await fetch(`${nodeRed.url}/nodes/${name}`, { headers: { accept: 'application/json' } });
    const module = (await response.json()) as { version: string; nodes: { types: string[]; err?: unknown }[] };
    assert.equal(module.version, version);
    assert.deepEqual(module.nodes.flatMap((set) => set.types).sort(), Object.keys(declared.nodes).sort());
    assert.deepEqual(
      module.nodes.map((set) => set.err).filter((error) => error !== undefined),
      [],
    );
  });

  it('runs on the Node-RED generation of this test run', async () => {
    const settings = (await (await fetch(`${nodeRed.url}/settings`)).json()) as { version: string };
    const expected: { version(): string } = require(process.env.NR ?? 'node-red');
    assert.equal(settings.version, expected.version());
    assert.match(nodeRed.log, new RegExp(`Node.js  version: ${process.version}`));
  });

  it('sends a message, receives the reply and answers it', async () => {
    const response = await fetch(`${nodeRed.url}/send`, { method: 'POST' });
    assert.equal(response.status, 200, nodeRed.log);
    assert.deepEqual(
      sim.messages.map(({ body }) => body),
      ['hello'],
    );
    sim.reply({ from: handset, body: 'yes please' });
    await until(
      () => sim.messages.length === 2,
      () => nodeRed.log,
    );
    assert.deepEqual(
      sim.messages.map(({ body }) => body),
      ['hello', 'You said: yes please'],
      nodeRed.log,
    );
  });
});
