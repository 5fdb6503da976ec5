import assert from 'node:assert/strict';
import { isAllowed, parsePrefixes } from '../../../src/consent/prefixes';

describe('the list of prefixes', () => {
  it('accepts spaces, commas and new lines as separators', () => {
    assert.deepEqual(parsePrefixes(' 64 +61,1\n\n44 , 64'), ['64', '61', '1', '44']);
    assert.deepEqual(parsePrefixes(64), ['64']);
  });

  it('is empty if the property is blank', () => {
    for (const value of [undefined, null, '', ' \n']) assert.deepEqual(parsePrefixes(value), []);
  });

  it('refuses a prefix with a leading zero or a letter', () => {
    for (const value of ['64 x', '6-4', '++64', '+', '064', '+0064', '64;61', '0x40', '٦٤', '1234567890123456']) {
      assert.throws(() => parsePrefixes(value), { code: 'SMS_CONFIG', field: 'prefixes' }, value);
    }
  });

  it('allows numbers that begin with one of its prefixes', () => {
    assert.ok(isAllowed('64211234567', new Set(['61', '64'])));
    assert.ok(!isAllowed('16421123456', new Set(['61', '64'])));
    assert.ok(isAllowed('16421123456', new Set()));
  });

  it('needs at most one look-up per digit of a number', () => {
    const asked: string[] = [];
    const prefixes = new Set(Array.from({ length: 10_000 }, (_, index) => String(70_000 + index)));
    const has = (prefix: string) => asked.push(prefix) > 0 && prefixes.has(prefix);
    assert.ok(isAllowed('79999123456', Object.assign(new Set(prefixes), { has })));
    assert.deepEqual(asked, ['7', '79', '799', '7999', '79999']);
  });

  it('allows names from the address book', () => {
    assert.ok(isAllowed('Night shift', new Set(['64'])));
    assert.ok(isAllowed('1A', new Set(['64'])));
  });
});
