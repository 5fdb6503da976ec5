import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { importStore } from '../../src/account/import';
import { systemClock } from '../../src/clock';
import { DiskStore } from '../../src/store/disk';
import { createChanges, keepItem } from '../../src/store/store';
import { isLong, random } from '../long';
import { Program } from '../program';
import { RedisServer } from '../redis-server';
import { createTemporaryFolder } from '../temporary-folder';
import { until } from '../until';
import { createReceiver } from './flows';
import { receive, useMachine } from './machine';
import { waitForCounts } from './recorder';

const kills = isLong ? 100 : 8;
const items = 15_000;
/** Approximate time that an import takes to copy the items, in ms. */
const copyMs = 300;

const dist = join(__dirname, '..', '..', 'dist', 'src');
const events = {
  wantedNames: () => [],
  isReadable: () => true,
  onUnreadable() {},
  onTakenOver() {},
  onFailure() {},
};

/** Creates a program that imports from one folder into another. */
function createProgram(from: string, to: string): string {
  return `
    const { importStore } = require(${JSON.stringify(join(dist, 'account', 'import.js'))});
    const { systemClock } = require(${JSON.stringify(join(dist, 'clock.js'))});
    const { DiskStore } = require(${JSON.stringify(join(dist, 'store', 'disk.js'))});
    const events = { wantedNames: () => [], isReadable: () => true, onUnreadable() {} };
    const stores = { from: new DiskStore(${JSON.stringify(from)}), to: new DiskStore(${JSON.stringify(to)}) };
    const { signal } = new AbortController();
    importStore({ ...stores, id: 'x', clock: systemClock, events, merge: (_, own) => own, hasAllItems: true, signal, onCopying: () => process.stdout.write('copying ') })
      .then(() => process.stdout.write('imported'));`;
}

describe('a repeated import after kill -9', function () {
  this.timeout(60_000 + kills * 10_000);

  it('moves each item exactly once', async () => {
    const folder = createTemporaryFolder('sms-import');
    let interrupted = 0;
    for (let round = 0; round < kills; round++) {
      const [from, to] = [join(folder, `${round}a`), join(folder, `${round}b`)];
      const former = new DiskStore(from);
      await former.open(events);
      const changes = createChanges();
      for (let n = 0; n < items; n++) {
        const id = String(n).padStart(12, '0');
        keepItem(changes, { id, part: 'outgoing', subscribers: [], attempts: 0 });
      }
      await former.commit(changes);
      await former.close();

      const program = new Program(process.execPath, ['-e', createProgram(from, to)]);
      await program.printed(/copying/);
      await sleep(random() * copyMs);
      await program.end();
      if (!program.output.includes('imported')) interrupted++;

      const [formerStore, store] = [new DiskStore(from), new DiskStore(to)];
      const merge = <T>(_key: string, own: T) => own;
      const { signal } = new AbortController();
      const options = { id: 'x', clock: systemClock, events, merge, hasAllItems: true, signal, onCopying() {} };
      await importStore({ ...options, from: formerStore, to: store });
      const found = (await store.open(events)).items.map(({ id }) => Number(id));
      assert.deepEqual(
        found,
        Array.from({ length: items }, (_, n) => n),
      );
      assert.deepEqual((await formerStore.open(events)).items, []);
      await Promise.all([formerStore.close(), store.close()]);
    }
    console.log(`      ${interrupted} of ${kills} imports were interrupted`);
    assert.ok(interrupted > 0);
  });
});

describe('an import that waits for Redis', function () {
  this.timeout(60_000);
  const machine = useMachine({ waitMs: 30_000 });
  let redis: RedisServer;

  beforeEach(async () => {
    redis = await RedisServer.start();
  });
  afterEach(() => redis.stop());

  it('loses no polled message after kill -9', async () => {
    const { simulator, nodeRed, observed } = machine;
    const credentials = { apiKey: simulator.credentials.apiKey, redisUrl: redis.url };
    const flows = (store: string) => createReceiver(simulator, observed, { account: { store, credentials } });
    await nodeRed.start({ flows: flows('redis') });
    await until(() => simulator.polling('incoming') === 1);
    await redis.kill();
    await nodeRed.deploy(flows('disk'));
    await until(() => nodeRed.log.includes('not been imported'));
    receive(machine, 'late');
    await until(async () => {
      const state = await (await fetch(`${nodeRed.url}/sms-account/account/state`)).text();
      return state.includes('lastAnswerAt');
    });
    await nodeRed.kill();
    await redis.run();
    await nodeRed.start();
    assert.deepEqual([...(await waitForCounts(observed, 1))], [['late', 1]]);
  });
});
