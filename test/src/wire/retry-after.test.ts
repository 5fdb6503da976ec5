import assert from 'node:assert/strict';
import { parseRetryAfter, resolveRetryAfter } from '../../../src/wire/retry-after';

describe('the Retry-After parser (RFC 9110)', () => {
  const now = Date.UTC(1994, 10, 6, 8, 49, 0);

  it('reads a whole number of seconds', () => {
    for (const [text, seconds] of [
      ['0', 0],
      ['120', 120],
      [' 7 ', 7],
      ['9999999999', 1_000_000_000],
      ['9'.repeat(400), 1_000_000_000],
    ] as const) {
      assert.equal(parseRetryAfter(text, now), seconds * 1_000);
    }
  });

  it('reads a date in each of the three HTTP formats', () => {
    for (const text of [
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Sunday, 06-Nov-94 08:49:37 GMT',
      'Sun Nov  6 08:49:37 1994',
    ]) {
      assert.equal(parseRetryAfter(text, now), 37_000, text);
      assert.equal(parseRetryAfter(text, now + 60_000), 0, text);
    }
  });

  it('returns 0 for an invalid value', () => {
    const otherTexts = ['', '-5', '+3600', '3600;', '3600 (one hour)', '120.5', '1e3', '2h', '3600, 7200'];
    const dates = ['2094-11-06', '6 Nov 2094', 'Sun, 06 Nov 2094 08:49:37', 'Sun, 66 Nov 2094 08:49:37 GMT', 'in 2094'];
    for (const text of [...otherTexts, ...dates]) assert.equal(parseRetryAfter(text, now), 0, text);
  });

  it('converts a date to seconds, counted from the Date header', () => {
    const date = 'Tue, 17 Nov 2026 10:00:00 GMT';
    assert.equal(resolveRetryAfter('Tue, 17 Nov 2026 10:00:03 GMT', date), '3');
    assert.equal(resolveRetryAfter('Tue, 17 Nov 2026 09:00:00 GMT', date), '0');
    assert.equal(resolveRetryAfter('120', date), '120');
    assert.equal(resolveRetryAfter('soon', date), '0');
    for (const none of [undefined, '', 'yesterday']) {
      assert.equal(resolveRetryAfter('Tue, 17 Nov 2026 10:00:03 GMT', none), 'Tue, 17 Nov 2026 10:00:03 GMT');
    }
  });
});
