import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountPlaces, inheritFromFormerPlaces } from '../../nodes/runtime/account-places';
import { type Membership, MemoryStore, SmsError } from '../../src';
import { account, RunningFlow, startService, stopEverything, until } from './running-flow';

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

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('names the former places of a node until it has taken over from them, over restarts', () => {
    assert.deepEqual(new AccountPlaces().of('node', file).enter(onDisk(a)), []);
    assert.deepEqual(new AccountPlaces().of('node', file).enter(onDisk(b)), [onDisk(a)]);
    const places = new AccountPlaces().of('node', file);
    assert.deepEqual(places.enter(onDisk(c)), [onDisk(a), onDisk(b)]);
    places.settle(onDisk(a));
    assert.deepEqual(new AccountPlaces().of('node', file).enter(onDisk(c)), [onDisk(b)]);
    assert.deepEqual(new AccountPlaces().of('node', file).enter(onDisk(b)), [onDisk(c)]);
    assert.deepEqual(new AccountPlaces().of('other', file).enter(redisOf(b)), []);
    assert.deepEqual(new AccountPlaces().of('other', file).enter(onDisk(b)), [redisOf(b)]);
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), {
      node: [onDisk(c), onDisk(b)],
      other: [redisOf(b), onDisk(b)],
    });
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it('does not forget the place that a node has gone back to', () => {
    const places = new AccountPlaces().of('node', file);
    places.enter(onDisk(a));
    places.enter(onDisk(b));
    places.enter(onDisk(a));
    places.settle(onDisk(a));
    assert.deepEqual(places.enter(onDisk(c)), [onDisk(b), onDisk(a)]);
  });

  it('remembers what has been in memory within the process alone', () => {
    const places = new AccountPlaces().of('node', file);
    places.enter(onDisk(a));
    assert.deepEqual(places.enter(`${a} memory`), [onDisk(a)]);
    assert.deepEqual(places.enter(onDisk(b)), [onDisk(a), `${a} memory`]);
    assert.deepEqual(new AccountPlaces().of('node', file).enter(onDisk(c)), [onDisk(a), onDisk(b)]);
  });

  it('reads what version 0.1.0 has noted, which was the login alone', () => {
    const note = () => writeFileSync(file, JSON.stringify({ node: [a, b] }));
    mkdirSync(join(folder, 'sms-inbox', a), { recursive: true });
    note();
    assert.deepEqual(new AccountPlaces().of('node', file).enter(onDisk(b)), [onDisk(a)]);
    note();
    assert.deepEqual(new AccountPlaces().of('node', file).enter(redisOf(b)), [onDisk(a), redisOf(a)]);
  });

  it('remembers within the process without a file, and where it cannot be written', () => {
    writeFileSync(join(folder, 'sms-inbox'), 'a file in place of the folder');
    for (const place of [undefined, file]) {
      const all = new AccountPlaces();
      all.of('node', place).enter(onDisk(a));
      assert.deepEqual(all.of('node', place).enter(onDisk(b)), [onDisk(a)]);
    }
  });

  it('begins anew where the file cannot be read', () => {
    new AccountPlaces().of('node', file).enter(onDisk(a));
    const no = ['"../x"', '["../../x"]', `["${a} ../../x"]`, `["${a} redis x"]`].map((node) => `{"node":${node}}`);
    for (const text of ['', '{', '[]', 'null', ...no, '{"__proto__":["x"]}']) {
      writeFileSync(file, text);
      assert.deepEqual(new AccountPlaces().of('node', file).enter(onDisk(b)), [], text);
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
    writeFileSync(join(folder, 'sms-inbox', 'logins.json'), JSON.stringify({ account: [a] }));
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

  it('says that it has been taken over, when it has', async () => {
    const flow = await RunningFlow.start([account(await startService())]);
    const node = flow.red.nodes.getNode('account');
    const membership = {
      key: b,
      inherit: (_: unknown, onFailure: (failure: SmsError) => void) => {
        onFailure(new SmsError('storeUnavailable', { params: { detail: 'EIO' } }));
        return Promise.resolve(true);
      },
    } as unknown as Membership;
    const settled: string[] = [];
    inheritFromFormerPlaces(flow.red, node, {
      membership,
      places: { enter: () => [`${a} memory`], settle: (place) => void settled.push(place) },
      place: 'memory',
      storeAt: () => ({ storeName: 'memory', createStore: () => new MemoryStore() }),
    });
    flow.red.events.emit('flows:started');
    await until(() => settled.length > 0);
    const lines = flow.log.filter(({ id }) => id === 'account').map(({ msg }) => String(msg));
    assert.deepEqual(lines, [
      'What is kept for the former login or in the former store cannot be read (EIO). It is safe there, and is tried again every 10 seconds.',
      'What was kept for the former login or in the former store has been taken over.',
    ]);
  });
});
