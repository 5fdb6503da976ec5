import assert from 'node:assert/strict';
import fs, { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountPlaces, inheritFromFormerPlaces } from '../../nodes/runtime/account-places';
import { type Membership, MemoryStore, SmsError } from '../../src';
import { until } from '../until';
import { account, RunningFlow, startService, stopEverything } from './running-flow';

const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(32)) as [string, string, string];

const redisOf = (key: string) => `${key} redis ${'d'.repeat(64)}`;
const onDisk = (key: string) => `${key} disk`;

describe('AccountPlaces', () => {
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sms-places-'));
    file = join(folder, 'sms-inbox', 'logins.json');
  });

  afterEach(() => {
    mendReading();
    rmSync(folder, { recursive: true, force: true });
  });

  const readNoted = () => JSON.parse(readFileSync(file, 'utf8'));
  const writeNoted = (noted: object) => {
    mkdirSync(join(folder, 'sms-inbox'));
    writeFileSync(file, JSON.stringify(noted));
  };
  const { readFileSync: readAny } = fs;
  const failReading = (code: string) => {
    fs.readFileSync = () => {
      throw Object.assign(new Error(code), { code });
    };
  };
  const mendReading = () => {
    fs.readFileSync = readAny;
  };

  it('names the former places of a node until it has taken over from them, over restarts', () => {
    assert.deepEqual(new AccountPlaces().enter('node', onDisk(a), file), []);
    assert.deepEqual(new AccountPlaces().enter('node', onDisk(b), file), [onDisk(a)]);
    const places = new AccountPlaces();
    assert.deepEqual(places.enter('node', onDisk(c), file), [onDisk(a), onDisk(b)]);
    places.settle('node', onDisk(a), file);
    assert.deepEqual(new AccountPlaces().enter('node', onDisk(c), file), [onDisk(b)]);
    assert.deepEqual(new AccountPlaces().enter('node', onDisk(b), file), [onDisk(c)]);
    assert.deepEqual(new AccountPlaces().enter('other', redisOf(b), file), []);
    assert.deepEqual(new AccountPlaces().enter('other', onDisk(b), file), [redisOf(b)]);
    assert.deepEqual(readNoted(), {
      node: [onDisk(c), onDisk(b)],
      other: [redisOf(b), onDisk(b)],
    });
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it('does not forget the place that a node has gone back to', () => {
    const places = new AccountPlaces();
    places.enter('node', onDisk(a), file);
    places.enter('node', onDisk(b), file);
    places.enter('node', onDisk(a), file);
    places.settle('node', onDisk(a), file);
    assert.deepEqual(places.enter('node', onDisk(c), file), [onDisk(b), onDisk(a)]);
  });

  it('remembers what has been in memory within the process alone', () => {
    const places = new AccountPlaces();
    places.enter('node', onDisk(a), file);
    assert.deepEqual(places.enter('node', `${a} memory`, file), [onDisk(a)]);
    assert.deepEqual(places.enter('node', onDisk(b), file), [onDisk(a), `${a} memory`]);
    assert.deepEqual(new AccountPlaces().enter('node', onDisk(c), file), [onDisk(a), onDisk(b)]);
  });

  it('remembers within the process without a file, and where it cannot be written', () => {
    writeFileSync(join(folder, 'sms-inbox'), 'a file in place of the folder');
    for (const place of [undefined, file]) {
      const all = new AccountPlaces();
      all.enter('node', onDisk(a), place);
      assert.deepEqual(all.enter('node', onDisk(b), place), [onDisk(a)]);
    }
  });

  it('writes over nothing that it cannot read for a moment, and finds it again afterwards', () => {
    writeNoted({ node: [onDisk(a)], other: [onDisk(a), onDisk(b)] });
    const places = new AccountPlaces();
    failReading('EMFILE');
    assert.deepEqual(places.enter('node', onDisk(b), file), []);
    mendReading();
    assert.deepEqual(readNoted(), { node: [onDisk(a)], other: [onDisk(a), onDisk(b)] });
    assert.deepEqual(places.enter('node', onDisk(c), file), [onDisk(a), onDisk(b)]);
    assert.deepEqual(readNoted(), { node: [onDisk(a), onDisk(b), onDisk(c)], other: [onDisk(a), onDisk(b)] });
  });

  it('begins anew where the file says nothing', () => {
    new AccountPlaces().enter('node', onDisk(a), file);
    const no = ['"../x"', '["../../x"]', `["${a} ../../x"]`, `["${a} redis x"]`].map((node) => `{"node":${node}}`);
    for (const text of ['', '{', '[]', 'null', ...no, '{"__proto__":["x"]}']) {
      writeFileSync(file, text);
      assert.deepEqual(new AccountPlaces().enter('node', onDisk(b), file), [], text);
    }
  });
});

describe('an account node whose former login has left what cannot be read', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sms-places-'));
  });

  afterEach(async () => {
    await stopEverything();
    rmSync(folder, { recursive: true, force: true });
  });

  it('says where it is and why, once, and that it is safe', async () => {
    const inbox = join(folder, 'sms-inbox', a);
    mkdirSync(inbox, { recursive: true });
    for (const name of ['CURRENT', 'MANIFEST-000001']) writeFileSync(join(inbox, name), 'damaged');
    writeFileSync(join(folder, 'sms-inbox', 'logins.json'), JSON.stringify({ account: [onDisk(a)] }));
    const flow = await RunningFlow.start([{ ...account(await startService()), store: 'disk' }], {
      settings: { userDir: folder },
    });
    const warnings = () => flow.log.filter(({ id }) => id === 'account').map(({ msg }) => String(msg));
    await until(() => warnings().length > 0);
    assert.equal(warnings().length, 1);
    assert.match(
      warnings()[0] ?? '',
      /former login or in the former store cannot be read \(.*LEVEL_CORRUPTION\)\. It is safe there/,
    );
    assert.ok(warnings()[0]?.includes(inbox));
  });

  /** An account node takes over from a former place. Returns the places that it has taken over from, and how to call it off. */
  function takeOver(flow: RunningFlow, inherit: Membership['inherit']): { settled: string[]; stop: () => void } {
    const settled: string[] = [];
    const stop = inheritFromFormerPlaces(flow.red, flow.red.nodes.getNode('account'), {
      membership: { key: b, inherit } as Membership,
      places: { enter: () => [`${a} memory`], settle: (_node, place) => void settled.push(place) },
      place: 'memory',
      storeAt: () => ({ storeName: 'memory', createStore: () => new MemoryStore() }),
    });
    flow.red.events.emit('flows:started');
    return { settled, stop };
  }

  it('says that it has been taken over, when it has', async () => {
    const flow = await RunningFlow.start([account(await startService())]);
    const { settled } = takeOver(flow, (_, onFailure) => {
      onFailure?.(new SmsError('storeUnavailable', { params: { detail: 'EIO' } }));
      return Promise.resolve(true);
    });
    await until(() => settled.length > 0);
    const lines = flow.log.filter(({ id }) => id === 'account').map(({ msg }) => String(msg));
    assert.deepEqual(lines, [
      'What is kept for the former login or in the former store cannot be read (EIO). It is safe there, and is tried again every 10 seconds.',
      'What was kept for the former login or in the former store has been taken over.',
    ]);
  });

  it('forgets no place of which it hears only after it was closed: the node may have been there again since', async () => {
    const flow = await RunningFlow.start([account(await startService())]);
    let answer = (_isDone: boolean) => {};
    const inheriting = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    const { settled, stop } = takeOver(flow, () => inheriting);
    stop();
    answer(true);
    await inheriting;
    await new Promise(setImmediate);
    assert.deepEqual(settled, []);
  });

  it('says that taking over has failed in a way that nobody has foreseen', async () => {
    const flow = await RunningFlow.start([account(await startService())]);
    const { settled } = takeOver(flow, () => Promise.reject(new TypeError('a fault')));
    const errors = () => flow.log.filter(({ id, level }) => id === 'account' && level === 20);
    await until(() => errors().length > 0);
    assert.deepEqual(settled, []);
  });
});
