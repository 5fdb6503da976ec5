import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FlowNode } from '../node-red-process';
import { createAccount } from './flows';
import { type Machine, receive, useMachine } from './machine';
import { createRecorder, readObservations, waitUntil } from './recorder';

const exampleFile = join(__dirname, '..', '..', 'examples', '20 Store every message before acknowledging it.json');
const messages = 400;
const kills = 3;

describe('acknowledgement by the flow', function () {
  this.timeout(180_000);
  const machine = useMachine({ waitMs: 200 });

  it('loses no message if the storing example is killed halfway', async () => {
    const { simulator, nodeRed, observed } = machine;
    const stored = join(nodeRed.userDir, 'sms-received');
    await nodeRed.start({ flows: createSlowExample(machine) });
    for (let n = 0; n < messages; n++) receive(machine, `m${n}`);
    // Bodies of messages whose poll answer might not have reached Node-RED before the kill.
    const inTransit = new Set<string>();
    for (let round = 1; round <= kills; round++) {
      const enough = (messages * round) / (kills + 1);
      await waitUntil(() => readStoredTexts(stored).size >= enough, `${enough} stored messages`);
      await nodeRed.kill();
      await simulator.until(() => simulator.polling('incoming') === 0);
      const last = simulator.incoming.filter(({ read }) => read).at(-1);
      if (last) inTransit.add(last.body);
      await nodeRed.start();
    }
    await waitUntil(() => {
      const texts = readStoredTexts(stored);
      return simulator.incoming.every(({ body }) => inTransit.has(body) || texts.has(body));
    }, 'every message is stored');
    const missing = messages - readStoredTexts(stored).size;
    const seen = new Set<unknown>();
    const repeated = readObservations(observed).filter(({ payload }) => {
      const isRepeated = seen.has(payload);
      seen.add(payload);
      return isRepeated;
    });
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

/** Returns the example as users import it, connected to the simulator, with slow work before it stores a message. */
function createSlowExample({ simulator, observed }: Machine): FlowNode[] {
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
  return [...flows, slow, createRecorder('seen', observed, { z: receiver?.z })];
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
