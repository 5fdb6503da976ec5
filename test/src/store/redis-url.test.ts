import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import { parseRedisUrl } from '../../../src/login';
import { RedisStore } from '../../../src/store/redis';

describe('parseRedisUrl', () => {
  it('reads each part of a URL', () => {
    for (const [url, expected] of [
      [' redis://localhost ', { host: 'localhost', port: 6379, db: 0 }],
      [
        'rediss://us%65r:p%40ss%2Fw%25@a.test:6380/2',
        { host: 'a.test', port: 6380, db: 2, username: 'user', password: 'p@ss/w%', tls: {} },
      ],
      ['REDISS://:secret@[::1]/', { host: '::1', port: 6379, db: 0, username: '', password: 'secret', tls: {} }],
    ] as const) {
      assert.deepEqual(parseRedisUrl(url), expected);
    }
  });

  it('refuses options and database names without quoting the URL', () => {
    for (const rest of ['/abc', '/-1', '/0/', '/1e3', '?db=abc', '/0?keyPrefix=foo:', '?', '#1', '?host=10.0.0.1']) {
      assert.throws(
        () => parseRedisUrl(`redis://:s3cret@localhost${rest}`),
        (error) => error instanceof SmsError && error.code === 'SMS_CONFIG' && !/s3cret/.test(String(error.stack)),
        rest,
      );
    }
  });

  it('checks the URL when a RedisStore is created', () => {
    assert.throws(() => new RedisStore({ url: 'redis://localhost/abc', key: 'k' }), { code: 'SMS_CONFIG' });
  });
});
