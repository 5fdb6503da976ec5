import assert from 'node:assert/strict';
import { type BadgeKey, badgeWords, formatBadge, translateBadge } from '../../../nodes/badge-words';

const params = {
  former: 'disk',
  detail: 'ENOSPC',
  n: 3,
  seconds: 0.5,
  failed: 2,
  total: 3,
  next: '18:00',
  until: '12-24',
  error: 'unreachable',
};

const keys = Object.entries(badgeWords).flatMap(([group, words]) =>
  Object.keys(words).map((name) => `${group}.${name}` as BadgeKey),
);

describe('translateBadge', () => {
  for (const key of keys) {
    it(`recognises the badge ${key} and its parameters`, () => {
      const translated = translateBadge(formatBadge(key, params), (found, given) => JSON.stringify([found, given]));
      const [found, given] = JSON.parse(translated) as [string, Record<string, string>];
      assert.equal(found, key);
      for (const [name, value] of Object.entries(given)) {
        if (name === 'error') assert.match(value, /short\.SMS_UNREACHABLE/);
        else assert.equal(value, String(params[name as keyof typeof params]));
      }
      assert.equal(Object.keys(given).length, formatBadge(key).split('undefined').length - 1);
    });
  }

  it('does not change text that is not a badge', () => {
    for (const words of ['/sms/callback', '', 'sent today', '__proto__'])
      assert.equal(
        translateBadge(words, () => 'translated'),
        words,
      );
  });
});
