import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logins } from '../../nodes/runtime/logins';

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
