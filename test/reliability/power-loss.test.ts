import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, startSimulator } from '../../simulator';
import { levelDb } from '../../src/store/leveldb';
import type { Engine, Operation } from '../../src/store/store';
import { isLong, random } from '../long';
import { Program } from '../program';
import { skip } from '../skip';
import { createTemporaryFolder } from '../temporary-folder';
import { until } from '../until';
import { countBodies } from './flows';
import { canMountDisks, createImager, ImagedDisk, MountedDisk, observeFlushes, type PoweredDisk } from './power';
import type { Entry, Order } from './power-machine';

const cuts = isLong ? 200 : 4;
const textsPerCut = 20;
const messagesPerCut = 10;
/**
 * Maximum number of poll answers that one cut can lose: *Parallel polls* (1) + 2 (docs/delivery.md, limits of the
 * promises).
 */
const maxLostPerCut = 3;
const endLimitMs = 60_000;
const handset = '64215550001';

const canMount = canMountDisks();

describe('a power cut', function () {
  this.timeout(60_000 + cuts * 10_000);
  const folder = createTemporaryFolder('sms-cuts');
  const disks: PoweredDisk[] = [];

  after(() => {
    for (const disk of disks) disk.remove();
  });

  const kinds = [
    { name: 'restoring the last flush', can: true, create: (decide = random) => new ImagedDisk(decide) },
    { name: 'an ext4 shutdown', can: canMount, create: () => new MountedDisk() },
  ];
  for (const { name, can, create } of kinds) {
    const add = <Disk extends PoweredDisk>(disk: Disk) => {
      disks.push(disk);
      return disk;
    };
    describe(`simulated by ${name}`, () => {
      before(function () {
        if (!can) skip(this, 'this user cannot mount ext4');
      });

      it('loses only unflushed data', async () => {
        const disk = add(create(() => 0));
        const open = async () => {
          const engine: Engine =
            disk instanceof ImagedDisk ? observeFlushes({ onFlushed: createImager(disk.images) }) : levelDb;
          return (await engine.load())?.(disk.folder) ?? assert.fail('There is no LevelDB here.');
        };
        const put = (key: string): Operation[] => [[key, key]];
        const database = await open();
        await database.write(put('written'), { isFlushed: false });
        await database.write(put('flushed'), { isFlushed: true });
        await database.write(put('lost'), { isFlushed: false });
        disk.cut();
        await database.close().catch(() => {});
        disk.powerOn();
        const found = await open();
        assert.deepEqual(await found.read(['written', 'flushed', 'lost']), ['written', 'flushed', undefined]);
        await found.close();
      });

      it('neither loses nor repeats a stored message', async () => {
        const disk = add(create());
        const simulator = await startSimulator({ waitMs: 100, statusDelayMs: 0, balance: 1e9 });
        try {
          await live(disk, simulator, join(folder, `${disks.length}.txt`));
        } finally {
          await simulator.close();
        }
      });
    });
  }
});

/** Runs the machine from its first start until no work is left. */
async function live(disk: PoweredDisk, simulator: Simulator, file: string): Promise<void> {
  const fed = new Set<string>();
  let received = 0;
  for (let round = 0; round < cuts; round++) {
    const isOnline = round % 3 !== 1;
    await simulator.setOnline(isOnline);
    simulator.fault('send', round % 3 === 2 ? { delayMs: 100 } : null);
    const machine = await startMachine(disk, simulator, file);
    const cutting = sleep(200 + random() * 1_000);
    let isCut = false;
    const feed = async () => {
      for (let index = 0; index < textsPerCut && !(isCut && index > 1); index++) {
        const body = `text ${round} ${index}`;
        fed.add(body);
        order(machine, { send: body, ...(index % 5 === 0 ? { once: true } : undefined) });
        // Sends a message of the previous round again, with the same key. The service must not receive it twice.
        if (index % 5 === 0 && round > 0) order(machine, { send: `text ${round - 1} ${index}`, once: true });
        // Never discards a message with a key, because the test may send it again.
        if (!isOnline && index % 5 === 4) order(machine, { discard: `text ${round} ${index - 2}` });
        if (index % 2 === 0 && index / 2 < messagesPerCut) {
          simulator.receive({ from: handset, to: '64215559999', body: `message ${received++}` });
        }
        await sleep(random() * 60);
      }
    };
    const feeding = feed();
    await cutting;
    isCut = true;
    await feeding;
    // The cut follows immediately, so that no later flush can save the discard.
    if (!isOnline) await discardLast(machine, file, `text ${round} 1`);
    machine.child.kill('SIGSTOP');
    await stopped(machine);
    disk.cut();
    await machine.end();
    disk.powerOn();
  }
  await simulator.setOnline(true);
  simulator.fault('send', null);
  const machine = await startMachine(disk, simulator, file);
  const discarded = new Set(read(file, 'discarded').map(({ body }) => body));
  const kept = read(file, 'kept').filter(({ part, body }) => part === 'outgoing' && !discarded.has(body));
  try {
    await until(
      () => {
        const ended = new Set(read(file, 'outcome').map(({ body }) => body));
        return kept.every(({ body }) => ended.has(body));
      },
      'each stored message has an outcome',
      { limitMs: endLimitMs },
    );
    await until(() => simulator.incoming.every((message) => message.read), 'each message is read', {
      limitMs: endLimitMs,
    });
    await sleep(500);
  } finally {
    await machine.end();
  }

  const ends = groupByBody(read(file, 'outcome'));
  const messages = groupByBody(read(file, 'message'));
  const sent = countBodies(simulator);
  const flushed = new Set(read(file, 'keeping').map(({ body }) => body));
  const unkept = [...sent.keys()].filter((body) => !flushed.has(body));
  const twice = [...sent].filter(([, count]) => count > 1);
  const silent = [...sent.keys()].filter((body) => !ends.has(body));
  const isSaid = (body: string, name: string) => ends.get(body)?.some((end) => end.name === name) === true;
  const lies = [...fed].filter((body) => isSaid(body, 'sent') !== sent.has(body) && !isSaid(body, 'SMS_UNCERTAIN'));
  const back = [...discarded].filter((body) => sent.has(body) || ends.has(body));
  const keptMessages = read(file, 'kept').filter(({ part }) => part === 'inbox');
  const lost = keptMessages.map(({ body }) => body).filter((body) => !messages.has(body));
  const missing = Array.from({ length: received }, (_, index) => `message ${index}`).filter(
    (one) => !messages.has(one),
  );
  const unmarked = [...messages].filter(([, list]) => list.slice(1).some(({ redelivered }) => !redelivered));
  const uncertain = [...ends.keys()].filter((body) => isSaid(body, 'SMS_UNCERTAIN'));
  const damaged = read(file, 'damaged').map(({ body }) => body);
  console.log(
    `        ${fed.size} outgoing messages, ${received} incoming messages, ${cuts} cuts: ${sent.size} sent, ${uncertain.length} unknown, ` +
      `${discarded.size} discarded, ${twice.length} sent twice, ${silent.length} without an outcome, ` +
      `${[...fed].filter((body) => !ends.has(body) && !discarded.has(body)).length} lost just before a cut; ` +
      `${[...messages.values()].filter((list) => list.length > 1).length} messages redelivered, ` +
      `${missing.length} lost in transit at a cut`,
  );
  const broken = Object.entries({
    sentBeforeStored: unkept,
    sentTwice: twice,
    sentWithoutOutcome: silent,
    falseOutcomes: lies,
    discardedButBack: back,
    lost,
    notMarkedAsRedelivered: unmarked,
    damaged,
  }).filter(([, bodies]) => bodies.length > 0);
  assert.deepEqual(broken, []);
  // Each cut can lose poll answers that have arrived but are not flushed yet.
  assert.ok(missing.length <= cuts * maxLostPerCut, `lost: ${missing.join(', ')}`);
}

/** Discards a waiting message. Resolves as soon as the machine has confirmed it. */
async function discardLast(machine: Program, file: string, body: string): Promise<void> {
  const has = (what: Entry['what']) => () => read(file, what).some((entry) => entry.body === body);
  await until(() => has('kept')() || has('outcome')(), 'the message is stored or has an outcome', {
    limitMs: endLimitMs,
  });
  const outcomes = read(file, 'outcome').filter((entry) => entry.body === body);
  assert.ok(has('kept')(), `the message was not stored: ${JSON.stringify(outcomes)}`);
  order(machine, { discard: body });
  await until(has('discarded'), 'the message is discarded', { limitMs: endLimitMs });
}

async function startMachine(disk: PoweredDisk, { baseUrl, credentials }: Simulator, file: string): Promise<Program> {
  const images = disk instanceof ImagedDisk ? disk.images : '';
  const parameters = [disk.folder, file, baseUrl, credentials.apiKey, images];
  const args = ['--require', 'tsx/cjs', join(__dirname, 'power-machine.ts'), ...parameters];
  const machine = new Program(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await once(machine.child, 'message');
  return machine;
}

function order({ child }: Program, what: Order): void {
  child.send(what);
}

/** Waits until a signal has stopped all threads of a process. */
async function stopped({ child: { pid } }: Program): Promise<void> {
  const state = () => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  if (process.platform === 'linux') await until(() => state() === 'T', 'the process is stopped', { limitMs: 5_000 });
}

function read<What extends Entry['what']>(file: string, what: What): Extract<Entry, { what: What }>[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const entries = lines.map((line) => JSON.parse(line) as Entry);
  return entries.filter((entry): entry is Extract<Entry, { what: What }> => entry.what === what);
}

function groupByBody<E extends { body: string }>(entries: readonly E[]): Map<string, E[]> {
  const groups = new Map<string, E[]>();
  for (const entry of entries) groups.set(entry.body, [...(groups.get(entry.body) ?? []), entry]);
  return groups;
}
