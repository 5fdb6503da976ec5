import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Simulator, startSimulator } from '../../simulator';
import { createLinkedUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createAccount } from './flows';
import { createRecorder, readObservations, waitUntil } from './recorder';

const exampleFile = join(__dirname, '..', '..', 'examples', '20 Store every message before acknowledging it.json');
const messages = 400;
const kills = 3;

describe('acknowledgement by the flow', function () {
  this.timeout(180_000);
  let folder: string;
  let simulator: Simulator;
  let nodeRed: NodeRedProcess | undefined;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sms-acknowledge-'));
    simulator = await startSimulator({ waitMs: 200 });
  });

  afterEach(async () => {
    await nodeRed?.kill();
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('loses no message if the storing example is killed halfway', async () => {
    const seen = join(folder, 'seen.jsonl');
    const userDir = createLinkedUserDir();
    const stored = join(userDir, 'sms-received');
    nodeRed = await startNodeRed({ userDir, flows: createSlowExample(simulator, seen) });
    const { port } = nodeRed;
    for (let n = 0; n < messages; n++) receive(simulator, `m${n}`);
    // Bodies of messages whose poll answer might not have reached Node-RED before the kill.
    const inTransit = new Set<string>();
    for (let round = 1; round <= kills; round++) {
      const enough = (messages * round) / (kills + 1);
      await waitUntil(() => readStoredTexts(stored).size >= enough, `${enough} stored messages`);
      await nodeRed.kill();
      await simulator.until(() => simulator.polling('incoming') === 0);
      const last = simulator.incoming.filter(({ read }) => read).at(-1);
      if (last) inTransit.add(last.body);
      nodeRed = await startNodeRed({ userDir, port });
    }
    await waitUntil(() => {
      const texts = readStoredTexts(stored);
      return simulator.incoming.every(({ body }) => inTransit.has(body) || texts.has(body));
    }, 'every message is stored');
    const missing = messages - readStoredTexts(stored).size;
    const sightings = groupByPayload(readObservations(seen));
    const repeated = [...sightings.values()].flatMap((list) => list.slice(1));
    console.log(
      `      ${messages} sent, ${kills} kills: 0 lost, ${missing} in answers to a killed process, ` +
        `${repeated.length} deliveries repeated`,
    );
    assert.ok(repeated.length > 0, 'no kill interrupted an unacknowledged message');
    assert.deepEqual(
      repeated.filter(({ sms }) => sms?.redelivered !== true),
      [],
      'delivered twice, but not marked as redelivered',
    );
  });
});

function receive(simulator: Simulator, body: string) {
  return simulator.receive({ from: '64215550001', to: '64215559999', body });
}

/** Returns the example as users import it, connected to the simulator, with slow work before it stores a message. */
function createSlowExample(simulator: Simulator, seen: string): FlowNode[] {
  const nodes = JSON.parse(readFileSync(exampleFile, 'utf8')) as FlowNode[];
  const flows = nodes.map((node): FlowNode => {
    if (node.type === 'sms-account') return { ...node, ...createAccount(simulator, { id: node.id }) };
    if (node.type === 'sms-in') return { ...node, wires: [['seen', 'slow']] };
    return node;
  });
  const receiver = nodes.find(({ type }) => type === 'sms-in');
  const place = { z: receiver?.z, x: 100, y: 400 };
  const slow = {
    id: 'slow',
    type: 'delay',
    ...place,
    pauseType: 'delay',
    timeout: '100',
    timeoutUnits: 'milliseconds',
    wires: receiver?.wires,
  };
  return [...flows, slow, createRecorder('seen', seen, { z: receiver?.z })];
}

/** Bodies that the example has stored, one per file. The example must rewrite a file that a kill has cut off. */
function readStoredTexts(stored: string): Set<unknown> {
  const texts = new Set<unknown>();
  for (const name of existsSync(stored) ? readdirSync(stored) : []) {
    try {
      texts.add((JSON.parse(readFileSync(join(stored, name), 'utf8')) as { text: string }).text);
    } catch (error) {
      assert.ok(error instanceof SyntaxError);
    }
  }
  return texts;
}

function groupByPayload<T extends { payload?: unknown }>(list: readonly T[]): Map<unknown, T[]> {
  const groups = new Map<unknown, T[]>();
  for (const item of list) groups.set(item.payload, [...(groups.get(item.payload) ?? []), item]);
  return groups;
}
