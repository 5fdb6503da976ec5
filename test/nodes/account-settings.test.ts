import assert from 'node:assert/strict';
import type { NodeAPI } from 'node-red';
import { parseConnection } from '../../nodes/runtime/account-settings';

describe('parseConnection', () => {
  const parse = (settings: Record<string, unknown>, timeout?: unknown) =>
    parseConnection({ settings } as unknown as NodeAPI, { baseUrl: 'https://sms.test', timeout }, { apiKey: 'key' });

  it('uses `httpRequestTimeout` from settings.js if `timeout` is blank', () => {
    assert.equal(parse({}).timeoutMs, 30_000);
    assert.equal(parse({ httpRequestTimeout: 5_000 }).timeoutMs, 5_000);
    assert.equal(parse({ httpRequestTimeout: '5000' }, '').timeoutMs, 5_000);
    assert.equal(parse({ httpRequestTimeout: 5_000 }, '10').timeoutMs, 10_000);
    assert.equal(parse({ httpRequestTimeout: 'soon' }).timeoutMs, 30_000);
  });

  it('uses `proxyOptions` from settings.js', () => {
    assert.deepEqual(parse({ proxyOptions: { mode: 'legacy' } }).proxyRules, { mode: 'legacy' });
    assert.equal(parse({}).proxyRules, undefined);
  });
});
