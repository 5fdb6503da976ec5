import assert from 'node:assert/strict';
import fs, { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AccountPlaces } from '../../nodes/runtime/account-places';
import { createUserDir } from '../node-red-process';

const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(32)) as [string, string, string];

const redisOf = (key: string) => `${key} redis ${'d'.repeat(64)}`;
const onDisk = (key: string) => `${key} disk`;

describe('AccountPlaces', () => {
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = createUserDir();
    file = join(folder, 'sms-inbox', 'logins.json');
  });

  afterEach(() => mendReading());

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

  /**
   * Records that a node uses a place (a login and store). Returns the earlier places of the node, without their import
   * ids.
   */
  const enter = (places: AccountPlaces, node: string, place: string, at: string | undefined = file) =>
    places.enter(node, place, at).map((former) => former.split(' import ')[0]);

  it('returns each former store of a node until `forgetFormer` is called', () => {
    assert.deepEqual(enter(new AccountPlaces(), 'node', onDisk(a)), []);
    assert.deepEqual(enter(new AccountPlaces(), 'node', onDisk(b)), [onDisk(a)]);
    const places = new AccountPlaces();
    const [first = ''] = places.enter('node', onDisk(c), file);
    assert.deepEqual(enter(new AccountPlaces(), 'node', onDisk(c)), [onDisk(a), onDisk(b)]);
    places.forgetFormer('node', first, file);
    assert.deepEqual(enter(new AccountPlaces(), 'node', onDisk(c)), [onDisk(b)]);
    assert.deepEqual(enter(new AccountPlaces(), 'node', onDisk(b)), [onDisk(c)]);
    assert.deepEqual(enter(new AccountPlaces(), 'other', redisOf(b)), []);
    assert.deepEqual(enter(new AccountPlaces(), 'other', onDisk(b)), [redisOf(b)]);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it('keeps the ID of an unfinished import across a restart', () => {
    enter(new AccountPlaces(), 'node', onDisk(a));
    const [before] = new AccountPlaces().enter('node', onDisk(b), file);
    assert.match(before ?? '', / import [0-9a-f-]{36}$/);
    assert.deepEqual(new AccountPlaces().enter('node', onDisk(b), file), [before]);
    assert.deepEqual(readNoted(), { node: [before, onDisk(b)] });
  });

  it('does not forget a store that the node uses again', () => {
    const places = new AccountPlaces();
    enter(places, 'node', onDisk(a));
    const [former = ''] = places.enter('node', onDisk(b), file);
    enter(places, 'node', onDisk(a));
    places.forgetFormer('node', former, file);
    assert.deepEqual(enter(places, 'node', onDisk(c)), [onDisk(b), onDisk(a)]);
  });

  it('remembers stores in memory if it cannot write its file', () => {
    writeFileSync(join(folder, 'sms-inbox'), 'a file instead of the folder');
    for (const at of [undefined, file]) {
      const places = new AccountPlaces();
      places.enter('node', onDisk(a), at);
      assert.equal(places.enter('node', onDisk(b), at).length, 1);
    }
  });

  it('does not overwrite its file after a temporary read error', () => {
    const noted = { node: [onDisk(a)], other: [onDisk(a), onDisk(b)] };
    writeNoted(noted);
    const places = new AccountPlaces();
    failReading('EMFILE');
    assert.deepEqual(enter(places, 'node', onDisk(b)), []);
    mendReading();
    assert.deepEqual(readNoted(), noted);
    assert.deepEqual(enter(places, 'node', onDisk(c)), [onDisk(a), onDisk(b)]);
    assert.deepEqual(readNoted().other, noted.other);
  });

  it('ignores invalid entries in its file', () => {
    enter(new AccountPlaces(), 'node', onDisk(a));
    const invalid = ['"../x"', '["../../x"]', `["${a} ../../x"]`, `["${a} redis x"]`].map((node) => `{"node":${node}}`);
    for (const text of ['', '{', '[]', 'null', ...invalid, '{"__proto__":["x"]}']) {
      writeFileSync(file, text);
      assert.deepEqual(enter(new AccountPlaces(), 'node', onDisk(b)), [], text);
    }
  });
});
