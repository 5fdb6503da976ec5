import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClassicLevel } from 'classic-level';
import { type Simulator, startSimulator } from '../../simulator';
import { keyOfLogin } from '../../src';
import { createLinkedUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { skip } from '../skip';
import { createTemporaryFolder } from '../temporary-folder';
import { createAccount, createNode } from './flows';
import { receive } from './machine';
import { badgesOf, crash, createObservers, createRecorder, errorsOf, inject, readCounts, waitUntil } from './recorder';

/** Removes the cause of a fault. */
type Undo = () => unknown;

/** A cause that makes the store unusable. */
interface Fault {
  name: string;
  /** A requirement of the fault that this machine does not meet. */
  missing?: string | false;
  /** Pattern of the error, if the error names the cause. */
  error?: RegExp;
  /** Prepares the folder of the store before Node-RED starts. A fault without `begin` is caused here. */
  prepare?(folder: string): Undo | Promise<Undo>;
  /** Causes the fault while messages flow. */
  begin?(folder: string): Undo | Promise<Undo>;
  /** True if the fault affects every store of the process. The test causes such a fault after all other faults. */
  isLast?: true;
}

/** A fault, and the service and the nodes that the test uses for it. */
interface Scene {
  fault: Fault;
  /** Suffix of the node ids. */
  key: string;
  simulator: Simulator;
  /** Folder of the store. */
  store: string;
  /** Removes the cause, if {@link Fault.prepare} caused the fault. */
  undo: Undo | undefined;
  /** File with the first word of each message that the flow has received. */
  arrivedFile: string;
}

/** Observations between the first error and the removal of its cause (`…Meanwhile`), and after the removal. */
interface Observed {
  pollsMeanwhile: number;
  readMeanwhile: number;
  callbackMeanwhile: number;
  sentMeanwhile: number;
  callbackAfterwards: number;
}

const badge = 'red ring store not writable';
const filler = 'filler';
/** Time for several attempts of the inbox to write, in ms. */
const severalTriesMs = 6_000;
const mounted = new Set<string>();
process.once('exit', unmountAll);
const noMount = !canMount() && 'this user cannot mount a file system';

describe('Node-RED with a failing store', function () {
  this.timeout(180_000);
  const folder = createTemporaryFolder('sms-store-faults');
  const observed = join(folder, 'observed.jsonl');
  const simulators: Simulator[] = [];
  const stories = new Map<Fault, Promise<void>>();
  let nodeRed: NodeRedProcess;
  let redis: RedisServer;

  const redisFault: Fault = {
    name: 'a Redis server that stops',
    error: /Redis/,
    async begin() {
      await redis.kill();
      return () => redis.run();
    },
  };
  const faults: Fault[] = [
    {
      name: 'a file in place of the folder',
      prepare(store) {
        writeFileSync(store, 'not a folder');
        return () => rmSync(store);
      },
    },
    {
      name: 'a store locked by another process',
      async prepare(store) {
        const other = new ClassicLevel(store);
        await other.open();
        return () => other.close();
      },
    },
    {
      name: 'garbage in the file `CURRENT`',
      async prepare(store) {
        const database = new ClassicLevel(store);
        await database.put('some', 'value');
        await database.close();
        writeFileSync(join(store, 'CURRENT'), '\u0000\u0001 garbage');
        return () => rmSync(store, { recursive: true });
      },
    },
    {
      name: 'a file system mounted read-only',
      missing: noMount,
      prepare(store) {
        mount(store, 'ro,size=4m');
        return () => execFileSync('mount', ['-o', 'remount,rw', store]);
      },
    },
    {
      name: 'a disk that is full at the start',
      missing: noMount,
      prepare(store) {
        mount(store, 'size=1m');
        return fill(store);
      },
    },
    {
      name: 'a folder that is deleted',
      error: /were deleted or moved while Node-RED ran/,
      begin(store) {
        rmSync(store, { recursive: true });
        writeFileSync(store, 'no new store can be created here');
        return () => rmSync(store);
      },
    },
    redisFault,
    { name: 'a disk that fills up', missing: noMount, prepare: (store) => mount(store, 'size=4m'), begin: fill },
    {
      name: 'a limit on the file size',
      missing: !hasPrlimit() && 'prlimit is not installed',
      begin() {
        setFileSizeLimit(nodeRed.pid, String(64 * 1024));
        return () => setFileSizeLimit(nodeRed.pid, 'unlimited');
      },
      isLast: true,
    },
  ];

  before(async () => {
    const userDir = createLinkedUserDir();
    mkdirSync(join(userDir, 'sms-inbox'));
    redis = await RedisServer.start();
    const flows: FlowNode[] = [{ id: 'tab', type: 'tab', label: 'flow' }, ...createObservers(observed)];
    const scenes: Scene[] = [];
    for (const fault of faults.filter(({ missing }) => !missing)) {
      const simulator = await startSimulator({ waitMs: 200 });
      simulators.push(simulator);
      const { baseUrl, credentials } = simulator;
      const { apiKey } = credentials;
      const store = join(userDir, 'sms-inbox', keyOfLogin({ baseUrl, authentication: { type: 'bearer', apiKey } }));
      const undo = await fault.prepare?.(store);
      const key = String(scenes.length);
      const arrivedFile = join(folder, `arrived-${key}.txt`);
      scenes.push({ fault, key, simulator, store, undo, arrivedFile });
      const inRedis = { store: 'redis', credentials: { apiKey, redisUrl: redis.url } };
      const account = createAccount(simulator, { id: `account-${key}`, ...(fault === redisFault && inRedis) });
      flows.push(account, ...createFlow(key, arrivedFile));
    }
    nodeRed = await startNodeRed({ userDir, flows });
    for (const scene of scenes) {
      const earlier = scene.fault.isLast ? [...stories.values()] : [];
      const story = Promise.allSettled(earlier).then(() => play(scene));
      story.catch(() => {});
      stories.set(scene.fault, story);
    }
  });

  after(async () => {
    await nodeRed?.kill();
    for (const simulator of simulators) await simulator.close();
    await redis?.stop();
    unmountAll();
  });

  /** Causes a fault, removes the cause, and checks the observations before and after the removal. */
  async function play(scene: Scene): Promise<void> {
    const { fault, key, simulator, arrivedFile } = scene;
    const { name } = fault;
    const undo = await cause(scene);
    await waitUntil(() => badgesOf(observed, `in-${key}`).at(-1) === badge, `a red badge with ${name}`);
    // Waits until no poll has been in flight for a while, because the node might have requested a poll shortly before
    // the store failed.
    let looks = 0;
    await waitUntil(() => {
      looks = simulator.polling('incoming') === 0 ? looks + 1 : 0;
      return looks > 20;
    }, `the end of the last poll with ${name}`);
    const polls = countPolls(simulator);
    const read = countRead(simulator);
    receive({ simulator }, 'meanwhile');
    await sleep(severalTriesMs);
    const callbackMeanwhile = await callBack(key);
    const sends = simulator.messages.length;
    await inject(nodeRed, `press-${key}`);
    await waitUntil(() => simulator.messages.length > sends, `a send with ${name}`);
    const facts = {
      pollsMeanwhile: countPolls(simulator) - polls,
      readMeanwhile: countRead(simulator) - read,
      callbackMeanwhile,
      sentMeanwhile: simulator.messages.length - sends,
    };
    await undo();
    const findMissing = () => simulator.incoming.filter(({ body }) => !readCounts(arrivedFile).has(firstWord(body)));
    await waitUntil(
      () => findMissing().length === 0,
      () => {
        const missing = findMissing().map(({ body, read }) => `${firstWord(body)}${read ? ', which was polled' : ''}`);
        const badges = badgesOf(observed, `in-${key}`).slice(-5);
        return `the delivery of everything after ${name}; missing: ${missing}; badges: ${badges}; log: ${nodeRed.log.slice(-4_000)}`;
      },
    );
    check(scene, { ...facts, callbackAfterwards: await callBack(key) });
  }

  /**
   * Causes a fault. If it begins while messages flow, waits until the node reports it and has delivered all polled
   * messages.
   */
  async function cause({ fault, key, simulator, store, undo = () => {}, arrivedFile }: Scene): Promise<Undo> {
    const { name, begin } = fault;
    if (!begin) {
      receive({ simulator }, 'waiting');
      return undo;
    }
    for (let n = 0; n < 20; n++) receiveLong(simulator);
    await waitUntil(() => readCounts(arrivedFile).size === 20, `20 messages before ${name}`);
    const undoBegun = await begin(store);
    if (fault === redisFault) return undoBegun;
    await waitUntil(() => {
      if (simulator.incoming.every(({ read }) => read)) receiveLong(simulator);
      return errorsOf(observed, `in-${key}`).length > 0;
    }, `a failure with ${name}`);
    await waitUntil(
      () => simulator.incoming.every(({ body, read }) => !read || readCounts(arrivedFile).has(firstWord(body))),
      `the delivery of the messages in progress with ${name}`,
    );
    return undoBegun;
  }

  async function callBack(key: string): Promise<number> {
    const form = { messageId: 'refused', from: '64215550001', to: '64215559999', inReplyToId: 'x', body: 'called' };
    const init = { method: 'POST', body: new URLSearchParams(form) };
    const response = await fetch(`${nodeRed.url}/callback-${key}`, init);
    await response.text();
    return response.status;
  }

  function check({ fault, key, arrivedFile }: Scene, facts: Observed): void {
    const errors = errorsOf(observed, `in-${key}`);
    assert.deepEqual(
      errors.map(({ error, sms }) => [error?.code, sms?.error?.code]),
      [['SMS_STORE', 'SMS_STORE']],
      'one error at the Catch node',
    );
    assert.match(errors[0]?.error?.message ?? '', fault.error ?? /./);
    const badges = badgesOf(observed, `in-${key}`);
    const changes = badges.filter((text, index) => text !== badges[index - 1]);
    assert.equal(changes.filter((text) => text === badge).length, 1, badges.join(' | '));
    assert.match(badges.at(-1) ?? '', /^green/);
    assert.deepEqual(facts, {
      pollsMeanwhile: 0,
      readMeanwhile: 0,
      callbackMeanwhile: 503,
      sentMeanwhile: 1,
      callbackAfterwards: 200,
    });
    const twice = [...readCounts(arrivedFile)].filter(([, count]) => count > 1);
    assert.deepEqual(twice, [], 'delivered twice');
    const recoveries = nodeRed.log.match(new RegExp(`.*\\[sms-in:in-${key}\\].*works again`, 'g'));
    assert.equal(recoveries?.length, 1, 'the log reports the recovery once');
    assert.doesNotMatch(nodeRed.log, crash);
  }

  for (const fault of faults) {
    it(`recovers from ${fault.name}`, function () {
      if (fault.missing) skip(this, fault.missing);
      return stories.get(fault) ?? assert.fail();
    });
  }
});

function createFlow(key: string, file: string): FlowNode[] {
  const account = `account-${key}`;
  const message = { account, to: '64215550001', toType: 'str', body: 'sent', bodyType: 'str' };
  return [
    createNode(`in-${key}`, 'sms-in', [[`write-${key}`]], { account }),
    createRecorder(`write-${key}`, file, {}, "msg = { payload: msg.payload.split(' ')[0] };"),
    createNode(`callback-${key}`, 'sms-callback-in', [[], []], { account, path: `/callback-${key}` }),
    createNode(`press-${key}`, 'inject', [[`send-${key}`]], { props: [], repeat: '', once: false }),
    createNode(`send-${key}`, 'sms-send', [[], []], message),
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
  receive({ simulator }, `m${simulator.incoming.length} ${'x'.repeat(4_000)}`);
}

function firstWord(body: string): string {
  return body.split(' ')[0] ?? '';
}

function mount(folder: string, options: string): Undo {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' });
  mounted.add(folder);
  return () => {};
}

function unmountAll(): void {
  for (const folder of mounted) execFileSync('umount', ['-l', folder]);
  mounted.clear();
}

function canMount(): boolean {
  try {
    mount(createTemporaryFolder('sms-mount'), 'size=1m');
    return true;
  } catch {
    return false;
  } finally {
    unmountAll();
  }
}

/** Writes until the disk is full. */
function fill(folder: string): Undo {
  const file = join(folder, filler);
  try {
    for (;;) appendFileSync(file, Buffer.alloc(4_096));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  }
  return () => rmSync(file);
}

function hasPrlimit(): boolean {
  return ['/usr/bin/prlimit', '/bin/prlimit'].some((path) => existsSync(path));
}

/** Limits the size of each file of a process, in bytes. A write beyond the limit fails as on a full disk. */
function setFileSizeLimit(pid: number, limit: string): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${limit}:`]);
}
