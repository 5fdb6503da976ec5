import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { importStore } from '../../src/account/import';
import { systemClock } from '../../src/clock';
import { DiskStore } from '../../src/store/disk';
import { createChanges, keepItem } from '../../src/store/store';
import { isLong, random } from '../long';

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

describe('kill -9 during an import', function () {
  this.timeout(60_000 + kills * 10_000);
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sms-import-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('leaves each item in exactly one store', async () => {
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

      const child = spawn(process.execPath, ['-e', createProgram(from, to)], { stdio: ['ignore', 'pipe', 'inherit'] });
      let output = '';
      child.stdout.on('data', (data) => {
        output += data;
      });
      const ended = once(child, 'close');
      await once(child.stdout, 'data');
      await sleep(random() * copyMs);
      child.kill('SIGKILL');
      await ended;
      if (!output.includes('imported')) interrupted++;

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
