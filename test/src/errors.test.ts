import assert from 'node:assert/strict';
import { isSmsError, SmsError } from '../../src/errors';

describe('SmsError', () => {
  const cause = new Error('cause');
  const error = new SmsError('unreachable', {
    params: { host: 'sms.example.com', detail: 'ECONNREFUSED' },
    statusCode: 502,
    cause,
  });

  it('derives its code and message from its reason', () => {
    assert.equal(error.code, 'SMS_UNREACHABLE');
    assert.match(error.message, /\(ECONNREFUSED\)/);
    assert.ok(isSmsError(error, 'SMS_BUSY', 'SMS_UNREACHABLE'));
    assert.ok(!isSmsError(error, 'SMS_BUSY'));
  });

  it('leaves its cause out of its JSON', () => {
    const facts = { field: 'once', messageId: 'm1', searched: ['feed'], waiting: 0 } as const;
    const full = new SmsError('onceTaken', { ...facts, errorCode: undefined, cause });
    const { code, message } = full;
    assert.deepEqual(JSON.parse(JSON.stringify(full)), { code, message, ...facts });
    assert.deepEqual([code, full.waiting, Object.hasOwn(full, 'errorCode')], ['SMS_INPUT', 0, false]);
  });

  it('keeps its properties when its message is translated', () => {
    const more = error.with({}, 'Der Dienst war nicht erreichbar.').with({ messageId: 'm1', waiting: 3 });
    assert.deepEqual(more.toJSON(), {
      code: 'SMS_UNREACHABLE',
      message: 'Der Dienst war nicht erreichbar.',
      statusCode: 502,
      messageId: 'm1',
      waiting: 3,
    });
    assert.equal(more.reason, 'unreachable');
    assert.deepEqual(more.params, { host: 'sms.example.com', detail: 'ECONNREFUSED' });
    assert.equal(more.cause, cause);
    assert.ok(!Object.hasOwn(error, 'messageId'));
  });

  it('does not compile if a parameter of its message is missing', () => {
    // @ts-expect-error a parameter is missing
    assert.ok(new SmsError('busy').message.includes('{{limit}}'));
    // @ts-expect-error the text has no parameter
    new SmsError('closed', { params: { detail: 'x' } });
    const busy: SmsError = new SmsError('busy', { params: { limit: 1 } });
    assert.ok(busy.message.includes('1'));
  });
});
