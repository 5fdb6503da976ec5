import assert from 'node:assert/strict';
import {
  encodePath,
  isPath,
  isPublicUrl,
  joinCallbackUrl,
  normalisePath,
  parsePath,
} from '../../nodes/runtime/callback-path';

describe('callback path', () => {
  it('has one leading slash for any number of slashes', () => {
    for (const path of ['sms/callback', '/sms/callback', ' //sms/callback ']) {
      assert.equal(parsePath(path), '/sms/callback');
    }
    for (const blank of [undefined, '', '  ']) assert.equal(parsePath(blank), undefined);
    assert.equal(parsePath('/'), '/');
  });

  it('refuses characters that begin a query or a fragment', () => {
    assert.equal(isPath('/sms/callback'), true);
    assert.equal(isPath('/sms?a=b'), false);
    assert.equal(isPath('/sms#a'), false);
  });

  it('ignores case, escapes and trailing slashes', () => {
    for (const path of ['/Sms%20CB', '/sms cb', '/sms cb///']) assert.equal(normalisePath(path), '/sms%20cb');
    for (const path of ['/', '//', '']) assert.equal(normalisePath(path), '/');
    assert.notEqual(normalisePath('/a%2F'), normalisePath('/a'));
  });

  it('is compared in linear time', () => {
    const slashes = '/'.repeat(300_000);
    assert.equal(normalisePath(`${slashes}x`), `${slashes}x`);
    assert.equal(normalisePath(slashes), '/');
    assert.equal(encodePath(`${slashes}%`), `${slashes}%25`);
  });
});

describe('public URL of a callback', () => {
  it('accepts http and https addresses, with or without a path', () => {
    for (const url of ['https://flows.example.com', ' http://10.0.0.1:1880/ ', 'HTTPS://a/b/c', 'https://[::1]:1880']) {
      assert.equal(isPublicUrl(url), true, url);
    }
  });

  it('refuses addresses without room for a path and a token', () => {
    const wrong = [
      '',
      ' ',
      'flows.example.com',
      'https://',
      'https:///x',
      'ftp://a',
      'mailto:a@b',
      'https://a b',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED leaves it as it is
      'https://${HOST}',
      'http:\\\\a',
    ];
    for (const url of [...wrong, 'https://a?x=1', 'https://a#x', 'https://a/?', 'https://a:99999']) {
      assert.equal(isPublicUrl(url), false, url);
    }
  });

  it('is joined with root and path by single slashes', () => {
    for (const publicUrl of ['https://a.example', 'https://a.example/', ' https://a.example// ']) {
      for (const root of ['red', '/red', '/red/', '//red//']) {
        assert.equal(joinCallbackUrl(publicUrl, root, '/sms cb'), 'https://a.example/red/sms%20cb');
      }
      for (const root of ['', '/']) assert.equal(joinCallbackUrl(publicUrl, root, '/x'), 'https://a.example/x');
    }
  });
});
