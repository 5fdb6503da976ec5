import assert from 'node:assert/strict';
import { encodePath, normalisePath, parsePath } from '../../nodes/runtime/callback-path';

describe('a callback path', () => {
  it('gets exactly one leading slash', () => {
    for (const path of ['sms/callback', '/sms/callback', ' //sms/callback ']) {
      assert.equal(parsePath(path), '/sms/callback');
    }
    for (const blank of [undefined, '', '  ']) assert.equal(parsePath(blank), undefined);
    assert.equal(parsePath('/'), '/');
  });

  it('equals a path that differs only in case, escapes or final slashes', () => {
    for (const path of ['/Sms%20CB', '/sms cb', '/sms cb///']) assert.equal(normalisePath(path), '/sms%20cb');
    for (const path of ['/', '//', '']) assert.equal(normalisePath(path), '/');
    assert.notEqual(normalisePath('/a%2F'), normalisePath('/a'));
  });

  it('is normalised in linear time', () => {
    const slashes = '/'.repeat(300_000);
    assert.equal(normalisePath(`${slashes}x`), `${slashes}x`);
    assert.equal(normalisePath(slashes), '/');
    assert.equal(encodePath(`${slashes}%`), `${slashes}%25`);
  });
});
