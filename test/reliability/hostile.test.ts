import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';
import { type Simulator, startSimulator } from '../../simulator';
import { type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createTemporaryFolder } from '../temporary-folder';
import { createAccount, createNode } from './flows';
import { crash, createObservers, createRecorder, type Observation, readObservations, waitUntil } from './recorder';

const token = 'the right token';
const wrongTokens = 10_000;
/** Maximum memory of Node-RED in KiB. Node-RED itself needs several times less. The test sends much more data. */
const maxMemoryKiB = 600 * 1024;

const megabyte = 1024 * 1024;
const hostileAnswers: [what: string, body: string][] = [
  ['random bytes', String.fromCharCode(...Array.from({ length: 5_000 }, (_, n) => (n * 7_919) % 256))],
  ['nothing', ''],
  ['a page of HTML', '<!DOCTYPE html><html><body><h1>It works!</h1></body></html>'],
  ['more than 8 MiB', `body=${'x'.repeat(9 * megabyte)}`],
  ['8 MiB of parameters', '&a'.repeat(4 * megabyte - 1)],
  ['an entity bomb', createEntityBomb()],
  ['an external entity', '<!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed><title>&x;</title></feed>'],
  ['JSON nested a million deep', '['.repeat(megabyte)],
  ['XML nested 100,000 deep', '<feed>'.repeat(100_000)],
  ['an attribute of 4 MiB', `<feed a="${'x'.repeat(4 * megabyte)}"/>`],
  ['a million elements', `<feed>${'<a/>'.repeat(megabyte)}</feed>`],
];

const pollingEndpoints = ['incoming', 'status', 'outbox', 'feed'] as const;

describe('Node-RED with hostile input', function () {
  this.timeout(180_000);
  let folder: string;
  let received: string;
  let observed: string;
  const simulators: Simulator[] = [];
  let simulator: Simulator;
  let nodeRed: NodeRedProcess;

  before(async () => {
    folder = createTemporaryFolder('sms-hostile');
    received = join(folder, 'received.jsonl');
    observed = join(folder, 'observed.jsonl');
    simulator = await start();
    nodeRed = await startNodeRed({
      // Because editor and nodes have separate roots, Node-RED does not parse a body before a node receives it.
      settings: { httpAdminRoot: '/admin', httpNodeRoot: '/' },
      flows: createFlows(simulator, received, observed),
    });
  });

  afterEach('nothing has crashed', () => {
    assert.doesNotMatch(nodeRed.log, crash);
  });

  after(async () => {
    await nodeRed?.kill();
    for (const sim of simulators) await sim.close();
  });

  async function start(): Promise<Simulator> {
    const started = await startSimulator({ waitMs: 200 });
    simulators.push(started);
    return started;
  }

  const callbackPath = (sentToken = token) => `/callback?token=${encodeURIComponent(sentToken)}`;
  const readCallbacks = (what: string) => readObservations(received).filter(({ payload }) => payload === what);

  async function callBack(body: string, url = nodeRed.url, headers: Record<string, string> = {}): Promise<number> {
    const response = await fetch(`${url}${callbackPath()}`, { method: 'POST', headers, body });
    await response.text();
    return response.status;
  }

  it(`accepts the right callback token after ${wrongTokens} wrong tokens`, async () => {
    const pool = new Pool(nodeRed.url, { connections: 50 });
    const guesses = ['/callback', callbackPath(''), callbackPath('wrong'), callbackPath(token.slice(0, -1))];
    guesses.push(callbackPath(`${token}x`), callbackPath('x'.repeat(4_000)), `/callback?token=wrong&token=${token}`);
    const statuses = new Map<number, number>();
    const guess = async (n: number) => {
      const path = guesses[n % guesses.length] ?? '';
      const { statusCode, body } = await pool.request({
        path: path.replaceAll(' ', '%20'),
        method: 'POST',
        body: createForm('guessed'),
      });
      await body.dump();
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
    };
    await Promise.all(Array.from({ length: wrongTokens }, (_, n) => guess(n)));
    await pool.close();
    assert.deepEqual([...statuses], [[401, wrongTokens]]);
    assert.equal(await callBack(createForm('known')), 200);
    await waitUntil(() => readCallbacks('known').length === 1, 'the right callback');
    assert.deepEqual(readCallbacks('guessed'), []);
  });

  for (const [format, body, polluted] of [
    ['FORMv1', `${createForm('form')}&__proto__=polluted&constructor=polluted&prototype=polluted`, 'form'],
    [
      'XMLv3',
      '<inbound-message messageId="" receivedDate="2026-01-01T00:00:00.000Z" __proto__="polluted"><recipient msisdn="1"><body>xml</body><__proto__>polluted</__proto__></recipient><constructor>polluted</constructor></inbound-message>',
      'xml',
    ],
  ] as const) {
    it(`drops the key \`__proto__\` from ${format} callbacks`, async () => {
      assert.equal(await callBack(body), 200);
      await waitUntil(() => readCallbacks(polluted).length === 1, 'the callback');
      assert.equal(await callBack(createForm(`after ${format}`)), 200);
      await waitUntil(() => readCallbacks(`after ${format}`).length === 1, 'the next callback');
      assertUnpolluted(received);
    });
  }

  it('drops the key `__proto__` from a form that Node-RED has parsed', async () => {
    const file = join(folder, 'shared.jsonl');
    const shared = await startNodeRed({ flows: createFlows(simulator, file, join(folder, 'shared-observed.jsonl')) });
    try {
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
      for (const name of ['__proto__', '__proto__[polluted]', 'a[__proto__][polluted]', 'constructor[prototype][b]']) {
        assert.equal(await callBack(`${createForm('parsed')}&${name}=polluted`, shared.url, headers), 200, name);
      }
      assert.equal(await callBack(createForm('afterwards'), shared.url, headers), 200);
      await waitUntil(
        () => readObservations(file).some(({ payload }) => payload === 'afterwards'),
        'the last callback',
      );
      assertUnpolluted(file);
      assert.doesNotMatch(shared.log, crash);
    } finally {
      await shared.stop();
    }
  });

  it('continues to poll after each hostile answer', async () => {
    const attacked: { what: string; sim: Simulator; file: string }[] = [];
    for (const [index, [what, body]] of hostileAnswers.entries()) {
      const sim = await start();
      for (const endpoint of pollingEndpoints) sim.fault(endpoint, { status: 200, body, contentType: 'text/plain' }, 1);
      attacked.push({ what, sim, file: join(folder, `attacked-${index}.jsonl`) });
    }
    const observations = join(folder, 'attacked.jsonl');
    await nodeRed.deploy([
      ...createFlows(simulator, received, observations),
      ...attacked.flatMap(({ sim, file }, index) => createPollingFlow(sim, String(index), file)),
    ]);
    for (const { what, sim } of attacked) {
      await waitUntil(() => hasBeenReadTwice(sim), `a second answer to each endpoint after ${what}`);
    }
    for (const { sim } of attacked) sim.receive({ from: '64215550001', to: '64215559999', body: 'afterwards' });
    for (const { what, file } of attacked) {
      await waitUntil(
        () => readObservations(file).some(({ payload }) => payload === 'afterwards'),
        `a message after ${what}`,
      );
    }
    const errors = new Map<string, string[]>();
    for (const { error } of readObservations(observations)) {
      if (!error) continue;
      const { code, message, source } = error;
      errors.set(source.id, [...(errors.get(source.id) ?? []), `${code} ${message}`]);
    }
    const unexpected = [...errors].filter(([, all]) => all.length > 1 || !all[0]?.startsWith('SMS_RESPONSE '));
    assert.deepEqual(unexpected, []);
    for (const [index, { what }] of attacked.entries()) {
      assert.ok(errors.has(`in-${index}`), `no error at sms-in after ${what}`);
    }
    const peak = readPeakMemoryKiB(nodeRed.pid);
    if (peak !== undefined) assert.ok(peak < maxMemoryKiB, `${peak} KiB`);
  });

  it('stops with exit code 0 after all attacks', async () => {
    await nodeRed.stop();
    assert.deepEqual(await nodeRed.exited, { code: 0, signal: null });
  });
});

function createForm(body: string): string {
  const messageId = `${body} ${Math.random()}`;
  return String(new URLSearchParams({ messageId, from: '64215550001', to: '1', inReplyToId: 'x', body }));
}

/** Creates a flow that records the messages of a callback node. */
function createFlows(simulator: Simulator, received: string, observed: string): FlowNode[] {
  return [
    { id: 'tab', type: 'tab', label: 'flow' },
    ...createObservers(observed),
    createRecorder('received', received),
    createAccount(simulator),
    createNode('callback', 'sms-callback-in', [['received'], ['received']], {
      path: '/callback',
      credentials: { token },
    }),
  ];
}

/** Creates a flow with each node type that polls the service. */
function createPollingFlow(simulator: Simulator, key: string, file: string): FlowNode[] {
  const account = `account-${key}`;
  const wires = [[`record-${key}`]];
  return [
    createAccount(simulator, { id: account }),
    createNode(`in-${key}`, 'sms-in', wires, { account }),
    createNode(`status-${key}`, 'sms-status', wires, { account }),
    createNode(`outbox-${key}`, 'sms-outbox', wires, { account, interval: 1 }),
    createNode(`feed-${key}`, 'sms-feed', wires, { account, interval: 1 }),
    createRecorder(`record-${key}`, file),
  ];
}

/** Whether each endpoint has been polled again after its first, hostile answer. */
function hasBeenReadTwice(simulator: Simulator): boolean {
  return pollingEndpoints.every(
    (name) => simulator.requests.filter(({ endpoint, ended }) => endpoint === name && ended).length > 1,
  );
}

function assertUnpolluted(file: string): void {
  for (const observation of readObservations(file)) assertNoUnsafeKey(observation);
}

function assertNoUnsafeKey(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value as Observation)) {
    assert.ok(!['__proto__', 'constructor', 'prototype', 'polluted'].includes(key), `${key} in a record`);
    assertNoUnsafeKey(inner);
  }
}

function createEntityBomb(): string {
  const entities = Array.from({ length: 20 }, (_, n) => `<!ENTITY e${n + 1} "${`&e${n};`.repeat(20)}">`);
  return `<!DOCTYPE feed [<!ENTITY e0 "boom">${entities.join('')}]><feed><title>&e20;</title></feed>`;
}

/** Returns the peak memory of a process in KiB, if the operating system reports it. */
function readPeakMemoryKiB(pid: number): number | undefined {
  const file = `/proc/${pid}/status`;
  const peak = existsSync(file) ? /VmHWM:\s+(\d+) kB/.exec(readFileSync(file, 'utf8'))?.[1] : undefined;
  return peak === undefined ? undefined : Number(peak);
}
