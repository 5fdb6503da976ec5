import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClassicLevel } from 'classic-level';
import { type Simulator, startSimulator } from '../../simulator';
import { joinAccount, MemoryStore } from '../../src';
import { createLinkedUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { skip } from '../skip';
import { createAccount } from './flows';
import { badgesOf, crash, createObservers, createRecorder, errorsOf, inject, readCounts, waitUntil } from './recorder';

/** A cause that makes the store unusable. */
interface Fault {
  name: string;
  /** True if the fault mounts a file system, which needs rights. */
  mounts: boolean;
  /** Causes the fault in the folder of the store, before Node-RED starts. Returns a function that removes the cause. */
  cause(folder: string): Promise<() => void | Promise<void>> | (() => void | Promise<void>);
}

const badge = 'red ring store not writable';
const filler = 'filler';
/** Time for several attempts of the inbox to write, in ms. */
const severalTriesMs = 6_000;
const mounted = new Set<string>();
process.once('exit', unmountAll);

const faults: Fault[] = [
  {
    name: 'a file in place of the folder',
    mounts: false,
    cause(folder) {
      writeFileSync(folder, 'not a folder');
      return () => rmSync(folder);
    },
  },
  {
    name: 'a store locked by another process',
    mounts: false,
    async cause(folder) {
      const other = new ClassicLevel(folder);
      await other.open();
      return () => other.close();
    },
  },
  {
    name: 'garbage in CURRENT',
    mounts: false,
    async cause(folder) {
      await createDatabase(folder);
      writeFileSync(join(folder, 'CURRENT'), '\u0000\u0001 garbage');
      return () => rmSync(folder, { recursive: true });
    },
  },
  {
    name: 'a file system mounted read-only',
    mounts: true,
    cause(folder) {
      mount(folder, 'ro,size=4m');
      return () => void execFileSync('mount', ['-o', 'remount,rw', folder]);
    },
  },
  {
    name: 'a disk that is full at the start',
    mounts: true,
    cause(folder) {
      mount(folder, 'size=1m');
      fill(folder);
      return () => rmSync(join(folder, filler));
    },
  },
];

const deleted = 'a folder that is deleted';
const fillsUp = 'a disk that fills up';
const limited = 'a limit on the file size';
const stopped = 'a Redis server that stops';
const canMount = tryToMount();

/** The running parts and the observations of a test of one fault. */
interface Story {
  simulator: Simulator;
  /** Suffix of the node ids. */
  key: string;
  /** Polls from the first error until the cause is removed. */
  pollsMeanwhile: number;
  readMeanwhile: number;
  callbackMeanwhile: number;
  sentMeanwhile: number;
  callbackAfterwards: number;
}

describe('Node-RED with a failing store', function () {
  this.timeout(180_000);
  let folder: string;
  let observed: string;
  const simulators = new Map<string, Simulator>();
  const stories = new Map<string, Promise<Story>>();
  let userDir: string;
  let nodeRed: NodeRedProcess;
  let redis: RedisServer;

  const arrivedFile = (key: string) => join(folder, `arrived-${key}.txt`);
  const keyOf = (name: string) => [...simulators.keys()].indexOf(name).toString();
  const simulatorOf = (name: string): Simulator => {
    const simulator = simulators.get(name);
    assert.ok(simulator);
    return simulator;
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sms-store-faults-'));
    observed = join(folder, 'observed.jsonl');
    userDir = createLinkedUserDir();
    mkdirSync(join(userDir, 'sms-inbox'));
    const causes = faults.filter(({ mounts }) => canMount || !mounts);
    const names = [...causes.map(({ name }) => name), deleted, ...(canMount ? [fillsUp] : []), limited, stopped];
    for (const name of names) simulators.set(name, await startSimulator({ waitMs: 200 }));
    const goAway = new Map<string, () => void | Promise<void>>();
    for (const { name, cause } of causes) goAway.set(name, await cause(await findStore(userDir, simulatorOf(name))));
    const filling = canMount ? await findStore(userDir, simulatorOf(fillsUp)) : undefined;
    if (filling) mount(filling, 'size=4m');

    const flows: FlowNode[] = [{ id: 'tab', type: 'tab', label: 'flow' }, ...createObservers(observed)];
    redis = await RedisServer.start();
    for (const name of names) {
      const redisSettings = name === stopped ? { redisUrl: redis.url } : undefined;
      flows.push(...createFlow(simulatorOf(name), keyOf(name), arrivedFile(keyOf(name)), redisSettings));
    }
    nodeRed = await startNodeRed({ userDir, flows });

    for (const [name, end] of goAway) {
      const simulator = simulatorOf(name);
      simulator.receive({ from: '64215550001', to: '64215559999', body: 'waiting' });
      play(name, () => Promise.resolve(end));
    }
    play(deleted, async () => {
      await deliverSome(deleted);
      const store = await findStore(userDir, simulatorOf(deleted));
      rmSync(store, { recursive: true });
      writeFileSync(store, 'no new store can be created here');
      await receiveUntilItFails(deleted);
      return () => rmSync(store);
    });
    play(stopped, async () => {
      await deliverSome(stopped);
      await redis.kill();
      return () => redis.run();
    });
    if (filling) {
      play(fillsUp, async () => {
        await deliverSome(fillsUp);
        fill(filling);
        await receiveUntilItFails(fillsUp);
        return () => rmSync(join(filling, filler));
      });
    }
  });

  after(async () => {
    await nodeRed?.kill();
    for (const simulator of simulators.values()) await simulator.close();
    await redis?.stop();
    unmountAll();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Causes a fault, observes its effects, and removes the cause. All faults except the last run at the same time. */
  function play(name: string, happen: () => Promise<() => void | Promise<void>>): void {
    const story = tell(name, happen);
    story.catch(() => {});
    stories.set(name, story);
  }

  async function tell(
    name: string,
    happen: () => Promise<() => void | Promise<void>>,
    lookOnMs = severalTriesMs,
  ): Promise<Story> {
    const simulator = simulatorOf(name);
    const key = keyOf(name);
    const goAway = await happen();
    await waitUntil(() => badgesOf(observed, `in-${key}`).at(-1) === badge, `a red badge with ${name}`);
    // A poll that was requested while the store failed might arrive later.
    let looks = 0;
    await waitUntil(() => {
      looks = simulator.polling('incoming') === 0 ? looks + 1 : 0;
      return looks > 20;
    }, `the end of the last poll with ${name}`);
    const polls = countPolls(simulator);
    const read = countRead(simulator);
    simulator.receive({ from: '64215550001', to: '64215559999', body: 'meanwhile' });
    await sleep(lookOnMs);
    const callbackMeanwhile = await callBack(key, 'refused');
    const sends = simulator.messages.length;
    await inject(nodeRed, `press-${key}`);
    await waitUntil(() => simulator.messages.length > sends, `a send with ${name}`);
    const facts = {
      simulator,
      key,
      pollsMeanwhile: countPolls(simulator) - polls,
      readMeanwhile: countRead(simulator) - read,
      callbackMeanwhile,
      sentMeanwhile: simulator.messages.length - sends,
    };
    await goAway();
    const findMissing = () =>
      simulator.incoming.filter(({ body }) => !readCounts(arrivedFile(key)).has(firstWord(body)));
    await waitUntil(
      () => findMissing().length === 0,
      () => {
        const missing = findMissing().map(({ body, read }) => `${firstWord(body)}${read ? ', which was polled' : ''}`);
        const badges = badgesOf(observed, `in-${key}`).slice(-5);
        return `the delivery of everything after ${name}; missing: ${missing}; badges: ${badges}; log: ${nodeRed.log.slice(-4_000)}`;
      },
    );
    return { ...facts, callbackAfterwards: await callBack(key, 'refused') };
  }

  async function callBack(key: string, messageId: string): Promise<number> {
    const form = { messageId, from: '64215550001', to: '64215559999', inReplyToId: 'x', body: 'called' };
    const response = await fetch(`${nodeRed.url}/callback-${key}`, {
      method: 'POST',
      body: new URLSearchParams(form),
    });
    await response.text();
    return response.status;
  }

  async function deliverSome(name: string): Promise<void> {
    const simulator = simulatorOf(name);
    for (let n = 0; n < 20; n++) receiveLong(simulator);
    await waitUntil(() => readCounts(arrivedFile(keyOf(name))).size === 20, `20 messages before ${name}`);
  }

  async function receiveUntilItFails(name: string): Promise<void> {
    const simulator = simulatorOf(name);
    const hasFailed = () => errorsOf(observed, `in-${keyOf(name)}`).length > 0;
    await waitUntil(() => {
      if (simulator.incoming.every(({ read }) => read)) receiveLong(simulator);
      return hasFailed();
    }, `a failure with ${name}`);
    await waitUntil(
      () =>
        simulator.incoming.every(
          ({ body, read }) => !read || readCounts(arrivedFile(keyOf(name))).has(firstWord(body)),
        ),
      `the delivery of the messages in progress with ${name}`,
    );
  }

  function check({ simulator, key, ...facts }: Story): void {
    assert.deepEqual(
      errorsOf(observed, `in-${key}`).map(({ error, sms }) => [error?.code, sms?.error?.code]),
      [['SMS_STORE', 'SMS_STORE']],
      'one error at the Catch node',
    );
    const badges = badgesOf(observed, `in-${key}`);
    const changes = badges.filter((text, index) => text !== badges[index - 1]);
    assert.equal(changes.filter((text) => text === badge).length, 1, badges.join(' | '));
    assert.match(badgesOf(observed, `in-${key}`).at(-1) ?? '', /^green/);
    assert.deepEqual(facts, {
      pollsMeanwhile: 0,
      readMeanwhile: 0,
      callbackMeanwhile: 503,
      sentMeanwhile: 1,
      callbackAfterwards: 200,
    });
    const twice = [...readCounts(arrivedFile(key))].filter(([, count]) => count > 1);
    assert.deepEqual(twice, [], 'delivered twice');
    const recovered = nodeRed.log.split('\n').filter((line) => line.includes(`[sms-in:in-${key}]`));
    assert.equal(
      recovered.filter((line) => line.includes('works again')).length,
      1,
      'the log reports the recovery once',
    );
    assert.doesNotMatch(nodeRed.log, crash);
  }

  for (const { name, mounts } of faults) {
    it(`stops receiving, sends, and recovers: ${name}`, async function () {
      if (mounts && !canMount) skip(this, 'this user cannot mount a file system');
      const story = stories.get(name);
      assert.ok(story);
      check(await story);
    });
  }

  it(`reports and recovers from ${deleted}`, async () => {
    check((await stories.get(deleted)) ?? assert.fail());
    const [seen] = errorsOf(observed, `in-${keyOf(deleted)}`);
    assert.match(seen?.error?.message ?? '', /were deleted or moved while Node-RED ran/);
  });

  it(`stops receiving, sends, and recovers: ${stopped}`, async () => {
    check((await stories.get(stopped)) ?? assert.fail());
    const [seen] = errorsOf(observed, `in-${keyOf(stopped)}`);
    assert.match(seen?.error?.message ?? '', /Redis/);
  });

  it(`delivers each polled message once with ${fillsUp}`, async function () {
    if (!canMount) skip(this, 'this user cannot mount a file system');
    const story = stories.get(fillsUp);
    assert.ok(story);
    check(await story);
  });

  it(`delivers each polled message once with ${limited}`, async function () {
    if (!hasPrlimit()) skip(this, 'prlimit is not installed');
    await Promise.allSettled(stories.values());
    // The limit affects every store of the process, so this test comes last.
    const happen = async () => {
      await deliverSome(limited);
      setFileSizeLimit(nodeRed.pid, String(64 * 1024));
      await receiveUntilItFails(limited);
      return () => setFileSizeLimit(nodeRed.pid, 'unlimited');
    };
    check(await tell(limited, happen, 0));
  });
});

function createFlow(simulator: Simulator, key: string, file: string, redis?: { redisUrl: string }): FlowNode[] {
  const account = `account-${key}`;
  const place = { z: 'tab', x: 100, y: 100 };
  return [
    createAccount(simulator, {
      id: account,
      ...(redis && { store: 'redis', credentials: { apiKey: simulator.credentials.apiKey, ...redis } }),
    }),
    { id: `in-${key}`, type: 'sms-in', ...place, account, wires: [[`write-${key}`]] },
    createRecorder(`write-${key}`, file, {}, "msg = { payload: msg.payload.split(' ')[0] };"),
    { id: `callback-${key}`, type: 'sms-callback-in', ...place, account, path: `/callback-${key}`, wires: [[], []] },
    { id: `press-${key}`, type: 'inject', ...place, props: [], repeat: '', once: false, wires: [[`send-${key}`]] },
    {
      id: `send-${key}`,
      type: 'sms-send',
      ...place,
      account,
      to: '64215550001',
      toType: 'str',
      body: 'sent',
      bodyType: 'str',
      wires: [[], []],
    },
  ];
}

function countRead(simulator: Simulator): number {
  return simulator.incoming.filter(({ read }) => read).length;
}

function countPolls(simulator: Simulator): number {
  return simulator.requests.filter(({ endpoint }) => endpoint === 'incoming').length;
}

/** Receives a message that needs much room in the store, but little in the record of the flow. */
function receiveLong(simulator: Simulator): void {
  const body = `m${simulator.incoming.length} ${'x'.repeat(4_000)}`;
  simulator.receive({ from: '64215550001', to: '64215559999', body });
}

function firstWord(body: string): string {
  return body.split(' ')[0] ?? '';
}

/** Returns the folder where an account at the simulator stores its data. */
async function findStore(userDir: string, simulator: Simulator): Promise<string> {
  const membership = joinAccount({
    id: 'account',
    baseUrl: simulator.baseUrl,
    authentication: { type: 'bearer', apiKey: simulator.credentials.apiKey },
    method: 'POST',
    timeoutMs: 1_000,
    concurrency: 1,
    queueLimit: 0,
    pauseMs: 0,
    parallelPolls: 1,
    dedupe: true,
    dedupeMs: 1_000,
    storeName: 'memory',
    createStore: () => new MemoryStore(),
  });
  await membership.leave();
  return join(userDir, 'sms-inbox', membership.key);
}

async function createDatabase(folder: string): Promise<void> {
  const database = new ClassicLevel(folder);
  await database.put('some', 'value');
  await database.close();
}

function mount(folder: string, options: string): void {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' });
  mounted.add(folder);
}

function unmountAll(): void {
  for (const folder of mounted) execFileSync('umount', ['-l', folder]);
  mounted.clear();
}

function tryToMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'sms-mount-'));
  try {
    mount(folder, 'size=1m');
    return true;
  } catch {
    return false;
  } finally {
    unmountAll();
    rmSync(folder, { recursive: true });
  }
}

/** Writes until the disk is full. */
function fill(folder: string): void {
  const file = join(folder, filler);
  try {
    for (;;) appendFileSync(file, Buffer.alloc(4_096));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  }
}

function hasPrlimit(): boolean {
  return ['/usr/bin/prlimit', '/bin/prlimit'].some((path) => existsSync(path));
}

/** Limits the size of each file of a process, in bytes. A write beyond the limit fails as on a full disk. */
function setFileSizeLimit(pid: number, limit: string): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${limit}:`]);
}
