import assert from 'node:assert/strict';
import { isSmsError, SmsError } from '../../src/errors';

describe('SmsError', () => {
  const cause = new Error('cause');
  const error = new SmsError('unreachable', {
    params: { host: 'sms.example.com', detail: 'ECONNREFUSED' },
    statusCode: 502,
    cause,
  });

  it('has the code and the filled-in message of its reason', () => {
    assert.equal(error.code, 'SMS_UNREACHABLE');
    assert.match(error.message, /\(ECONNREFUSED\)/);
    assert.ok(isSmsError(error, 'SMS_BUSY', 'SMS_UNREACHABLE'));
    assert.ok(!isSmsError(error, 'SMS_BUSY'));
  });

  it('has known facts as own properties, and no others', () => {
    const full = new SmsError('serverError', {
      params: { status: 503 },
      statusCode: 503,
      errorCode: undefined,
      messageId: 'm1',
      waiting: 0,
      searched: ['feed', 'status'],
    });
    const { code, statusCode, messageId, waiting, searched } = full;
    assert.deepEqual(
      { code, statusCode, messageId, waiting, searched },
      {
        code: 'SMS_SERVICE',
        statusCode: 503,
        messageId: 'm1',
        waiting: 0,
        searched: ['feed', 'status'],
      },
    );
    assert.ok(!Object.hasOwn(full, 'errorCode') && !Object.hasOwn(full, 'field'));
  });

  it('becomes a plain object with its facts and without its cause', () => {
    const plain = new SmsError('onceTaken', { field: 'once', messageId: 'm1', searched: ['feed'], waiting: 3, cause });
    assert.deepEqual(JSON.parse(JSON.stringify(plain)), {
      code: 'SMS_INPUT',
      message: plain.message,
      field: 'once',
      messageId: 'm1',
      waiting: 3,
      searched: ['feed'],
    });
  });

  it('keeps its facts with further facts and in another language', () => {
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

  it('needs exactly the parameters of its message to compile', () => {
    // @ts-expect-error a parameter is missing
    assert.ok(new SmsError('busy').message.includes('{{limit}}'));
    // @ts-expect-error the parameter has another name
    new SmsError('busy', { params: { limits: 1 } });
    // @ts-expect-error the text has no parameter
    new SmsError('closed', { params: { detail: 'x' } });
    // @ts-expect-error only one of the two texts has no parameter
    new SmsError(Math.random() < 0.5 ? 'closed' : 'busy', {});
    const busy: SmsError = new SmsError('busy', { params: { limit: 1 } });
    assert.ok(busy.message.includes('1'));
  });
});
