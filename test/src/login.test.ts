import assert from 'node:assert/strict';
import { parseAuthentication, parseBaseUrl } from '../../src/login';
import { failure } from './http/exchange-caller';

/** Runs a function asynchronously, and returns its error, which contains no secret. */
const failureOf = (run: () => unknown) => failure(Promise.resolve().then(run));

describe('parseBaseUrl', () => {
  it('drops trailing slashes, but keeps the path', () => {
    assert.equal(parseBaseUrl('https://sms.example.com/'), 'https://sms.example.com');
    assert.equal(parseBaseUrl(' https://SMS.example.com:8443/some/path// '), 'https://sms.example.com:8443/some/path');
  });

  it('refuses plain http to another machine by default', () => {
    for (const host of ['sms.example.com', '127.0.0.1.example.com', 'localhost.example.com', '10.0.0.1', '[::2]']) {
      assert.throws(() => parseBaseUrl(`http://${host}`), { code: 'SMS_CONFIG', reason: 'baseUrlHttp' }, host);
      assert.equal(parseBaseUrl(`http://${host}/a/`, true), `http://${host}/a`);
    }
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]', 'a.localhost', 'LOCALHOST', '127.1']) {
      assert.doesNotThrow(() => parseBaseUrl(`http://${host}:1880`), host);
    }
  });

  it('refuses an invalid base URL without quoting it', async () => {
    for (const text of [
      'https://ann:3141592653@sms.example.com',
      'https://sms.example.com/?key=3141592653',
      'https://sms.example.com/#3141592653',
      'sms.example.com',
      'ftp://sms.example.com',
      'https://',
      '//sms.example.com',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED leaves an unknown variable as it is
      'https://sms.example.com/${PART}/x',
    ]) {
      const error = await failureOf(() => parseBaseUrl(text, true));
      assert.deepEqual([error.code, error.reason], ['SMS_CONFIG', 'baseUrlInvalid'], text);
    }
    for (const text of [undefined, '', '  ']) {
      assert.throws(() => parseBaseUrl(text), { code: 'SMS_CONFIG', reason: 'baseUrlMissing' });
    }
  });
});

describe('parseAuthentication (§5)', () => {
  it('reads each method and uses bearer by default', () => {
    const credentials = { apiKey: ' key \n', userId: 'ann', password: ' secret ' };
    assert.deepEqual(parseAuthentication('bearer', credentials), { type: 'bearer', apiKey: 'key' });
    assert.deepEqual(parseAuthentication(undefined, credentials), { type: 'bearer', apiKey: 'key' });
    const login = { userId: 'ann', password: ' secret ' };
    for (const type of ['basic', 'form'] as const)
      assert.deepEqual(parseAuthentication(type, credentials), { type, ...login });
  });

  it('refuses missing credentials', () => {
    for (const [type, credentials, reason] of [
      ['bearer', {}, 'apiKeyMissing'],
      ['bearer', { apiKey: '  ', userId: 'ann', password: 'x' }, 'apiKeyMissing'],
      ['basic', { apiKey: 'key', userId: ' \t', password: 'x' }, 'userIdMissing'],
      ['form', { userId: 'ann', password: '  ' }, 'passwordMissing'],
    ] as const) {
      assert.throws(() => parseAuthentication(type, credentials), { code: 'SMS_CONFIG', reason });
    }
  });

  it('refuses a user name with a colon for Basic authentication', () => {
    const credentials = { userId: 'a:b', password: 'x' };
    assert.throws(() => parseAuthentication('basic', credentials), { code: 'SMS_CONFIG', reason: 'userIdColon' });
    assert.equal(parseAuthentication('form', credentials).type, 'form');
  });

  it('refuses an API key with invalid characters without quoting it', async () => {
    for (const apiKey of ['3141592653\r\nx: y', '3141592653 x', '3141592653é', '3141592653\u0000', '3141592653…']) {
      const error = await failureOf(() => parseAuthentication('bearer', { apiKey }));
      assert.equal(error.reason, 'apiKeyInvalid');
    }
  });
});
