import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inheritFromFormerLogins, Logins } from '../../nodes/runtime/logins';
import { type Membership, SmsError } from '../../src';
import { account, RunningFlow, startService, stopEverything, until } from './running-flow';

const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(32)) as [string, string, string];

describe('Logins', () => {
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sms-logins-'));
    file = join(folder, 'sms-inbox', 'logins.json');
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('names the former logins of a node until it has taken over from them, over restarts', () => {
    assert.deepEqual(new Logins().of('node', file).enter(a), []);
    assert.deepEqual(new Logins().of('node', file).enter(b), [a]);
    const logins = new Logins().of('node', file);
    assert.deepEqual(logins.enter(c), [a, b]);
    logins.settle(a);
    assert.deepEqual(new Logins().of('node', file).enter(c), [b]);
    assert.deepEqual(new Logins().of('node', file).enter(b), [c]);
    assert.deepEqual(new Logins().of('other', file).enter(b), []);
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), { node: [c, b], other: [b] });
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it('does not forget the login that a node has gone back to', () => {
    const logins = new Logins().of('node', file);
    logins.enter(a);
    logins.enter(b);
    logins.enter(a);
    logins.settle(a);
    assert.deepEqual(logins.enter(c), [b, a]);
  });

  it('remembers within the process without a file, and where it cannot be written', () => {
    writeFileSync(join(folder, 'sms-inbox'), 'a file in place of the folder');
    for (const place of [undefined, file]) {
      const all = new Logins();
      all.of('node', place).enter(a);
      assert.deepEqual(all.of('node', place).enter(b), [a]);
    }
  });

  it('begins anew where the file cannot be read', () => {
    new Logins().of('node', file).enter(a);
    for (const text of ['', '{', '[]', 'null', '{"node":"../x"}', '{"node":["../../x"]}', '{"__proto__":["x"]}']) {
      writeFileSync(file, text);
      assert.deepEqual(new Logins().of('node', file).enter(b), [], text);
    }
  });
});

describe('an account node whose former login has left what cannot be read', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sms-logins-'));
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
    assert.match(warnings()[0] ?? '', /former login cannot be read \(.*LEVEL_CORRUPTION\)\. It is safe there/);
    assert.ok(warnings()[0]?.includes(inbox));
  });

  it('says that it has been taken over, when it has', async () => {
    const flow = await RunningFlow.start([account(await startService())]);
    const node = flow.red.nodes.getNode('account');
    const membership = {
      key: b,
      inherit: (_: string, onFailure: (failure: SmsError) => void) => {
        onFailure(new SmsError('storeUnavailable', { params: { detail: 'EIO' } }));
        return Promise.resolve(true);
      },
    } as unknown as Membership;
    const settled: string[] = [];
    inheritFromFormerLogins(flow.red, node, membership, { enter: () => [a], settle: (key) => void settled.push(key) });
    flow.red.events.emit('flows:started');
    await until(() => settled.length > 0);
    const lines = flow.log.filter(({ id }) => id === 'account').map(({ msg }) => String(msg));
    assert.deepEqual(lines, [
      'What is kept for the former login cannot be read (EIO). It is safe there, and is tried again every 10 seconds.',
      'What was kept for the former login has been taken over.',
    ]);
  });
});
