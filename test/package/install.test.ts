import assert from 'node:assert/strict';
import { type Simulator, startSimulator } from '../../simulator';
import { createUserDir, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createAccount, createFeed, feed } from '../reliability/flows';
import { until } from '../until';
import { installPackage, packPackage } from './packed';

const handset = '64215551234';

describe('the package installed in Node-RED', function () {
  this.timeout(90_000);
  let sim: Simulator;
  let nodeRed: NodeRedProcess;

  before(async () => {
    sim = await startSimulator();
    const userDir = createUserDir();
    installPackage(userDir);
    const echo = { id: 'echo', type: 'sms-send', z: 'tab', account: 'account', to: 'topic', toType: 'msg', wires: [] };
    nodeRed = await startNodeRed({
      userDir,
      flows: [
        createAccount(sim),
        ...createFeed({}),
        { id: 'in', type: 'sms-in', z: 'tab', account: 'account', wires: [['echo']] },
        echo,
      ],
    });
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
      module.nodes.flatMap(({ err }) => err ?? []),
      [],
    );
  });

  it('runs on the versions of Node-RED and Node.js under test', async () => {
    const settings = (await (await fetch(`${nodeRed.url}/settings`)).json()) as { version: string };
    const expected: { version(): string } = require(process.env.NR ?? 'node-red');
    assert.equal(settings.version, expected.version());
    assert.match(nodeRed.log, new RegExp(`Node.js  version: ${process.version}`));
  });

  it('sends a message, receives the reply and answers it', async () => {
    await feed(nodeRed.url, { to: handset, body: 'hello' });
    await sim.until(() => sim.messages.length === 1, 30_000);
    sim.reply({ from: handset, body: 'yes please' });
    await until(
      () => sim.messages.length === 2,
      () => nodeRed.log,
    );
    assert.deepEqual(
      sim.messages.map(({ body }) => body),
      ['hello', 'yes please'],
    );
  });
});
