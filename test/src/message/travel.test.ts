import assert from 'node:assert/strict';
import { planTravel } from '../../../src/message/travel';

describe('a content type (§2.1)', () => {
  const plan = (contentType: unknown) =>
    planTravel('hello', contentType, { fragmentationLimit: undefined, maxLength: undefined });

  it('is refused when it is not text, whatever text could be made of it', () => {
    const trap = () => {
      throw new Error('a trap');
    };
    for (const value of [Object.create(null), { toString: trap }, ['text/plain'], new String('text/plain'), Symbol()]) {
      assert.throws(() => plan(value), { name: 'SmsError', code: 'SMS_INPUT', field: 'contentType' });
    }
    assert.equal(plan('text/plain').contentType, 'text/plain');
  });
});
