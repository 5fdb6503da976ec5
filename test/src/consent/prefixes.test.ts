import assert from 'node:assert/strict';
import { isAllowed, parsePrefixes } from '../../../src/consent/prefixes';
import { isSmsError } from '../../../src/errors';

describe('prefixes', () => {
  it('are separated by spaces, commas or new lines, and lose a leading +', () => {
    assert.deepEqual(parsePrefixes(' 64 +61,1\n\n44 , 64'), ['64', '61', '1', '44']);
    assert.deepEqual(parsePrefixes(64), ['64']);
  });

  it('are none where the property is blank', () => {
    for (const value of [undefined, null, '', ' \n']) assert.deepEqual(parsePrefixes(value), []);
  });

  it('are digits alone', () => {
    for (const value of ['64 x', '6-4', '++64', '+', '64;61', '0x40', '٦٤', '1234567890123456']) {
      assert.throws(
        () => parsePrefixes(value),
        (error) => isSmsError(error, 'SMS_CONFIG') && error.field === 'prefixes',
        value,
      );
    }
  });

  it('let numbers through that begin with one of them', () => {
    assert.ok(isAllowed('64211234567', ['61', '64']));
    assert.ok(!isAllowed('16421123456', ['61', '64']));
    assert.ok(isAllowed('16421123456', []));
  });

  it('cannot tell an address-book item', () => {
    assert.ok(isAllowed('Night shift', ['64']));
    assert.ok(isAllowed('1A', ['64']));
  });
});
