import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { isSmsError } from '../../../src/errors';
import { checkDraft, type Draft } from '../../../src/message/draft';

const utf16 = 'text/plain; charset=UTF-16';

function check(draft: Partial<Draft>, maxLength: number | undefined = 480) {
  return checkDraft({ to: '6421555123', body: 'hello', contentType: 'auto', ...draft }, maxLength);
}

function refuses(draft: Partial<Draft>, field: string, maxLength?: number): void {
  assert.throws(
    () => check(draft, maxLength),
    (error: unknown) => {
      assert.ok(isSmsError(error, 'SMS_INPUT'), String(error));
      assert.equal(error.field, field);
      assert.ok(!error.message.includes('a private body'));
      return true;
    },
    `${field}: ${inspect(draft)}`,
  );
}

const blanks: unknown[] = [undefined, null, '', ' ', ' \t\r\n ', '\u00a0'];

describe('checkDraft (§2.1)', () => {
  it('returns only recipients and body if the rest is blank', () => {
    for (const blank of blanks) {
      const { message } = check({
        from: blank,
        messageId: blank,
        fragmentationLimit: blank,
        contentType: blank,
        callbackUrl: blank,
        callbackStatusUrl: blank,
      });
      assert.deepEqual(message, { to: ['6421555123'], body: 'hello' });
    }
  });

  it('returns all fields', () => {
    const { message } = check({
      to: ['+64 21 555 123', 6421555124],
      from: ' Shop ',
      messageId: 4711,
      fragmentationLimit: 2,
      contentType: 'text/plain',
      callbackUrl: 'https://example.com/{!body}',
      callbackStatusUrl: 'http://example.com/',
    });
    assert.deepEqual(message, {
      to: ['6421555123', '6421555124'],
      body: 'hello',
      from: 'Shop',
      messageId: '4711',
      fragmentationLimit: 2,
      contentType: 'text/plain',
      callbackUrl: 'https://example.com/{!body}',
      callbackStatusUrl: 'http://example.com/',
    });
  });

  describe('the body of a draft', () => {
    it('can be a number, a boolean or a Buffer, and loses a leading BOM', () => {
      for (const [body, text] of [
        [0, '0'],
        [-1.5, '-1.5'],
        [false, 'false'],
        [Buffer.from('grüße ✓'), 'grüße ✓'],
        ['\ufeff spaces stay ', ' spaces stay '],
      ] as const) {
        assert.equal(check({ body }).message.body, text);
      }
    });

    it('is refused if it is blank or has another type', () => {
      const buffers = [Buffer.alloc(0), Buffer.from('  '), new Uint8Array([65])];
      const others = [{}, ['hello'], () => 'hello', Symbol('hello'), 10n, new Date(), { toString: () => 'hello' }];
      for (const body of [...blanks, '\ufeff', ...buffers, ...others]) {
        refuses({ body }, 'body');
      }
    });
  });

  describe('maxLength, in Unicode code points,', () => {
    it('refuses one character more than the limit', () => {
      for (const character of ['a', '€', 'ü', '✓', '𝄞', '👍']) {
        assert.equal(check({ body: character.repeat(480) }).message.body.length, character.length * 480);
        refuses({ body: character.repeat(481) }, 'body', 480);
      }
    });

    it('is not a limit if it is blank', () => {
      assert.equal(checkDraft({ to: '6421555123', body: 'a'.repeat(100_000) }, undefined).parts, 654);
    });

    it('does not apply if there is a fragmentation limit', () => {
      assert.equal(check({ body: 'a'.repeat(1_000), fragmentationLimit: 7 }).parts, 7);
      refuses({ body: 'a'.repeat(1_000), fragmentationLimit: 6 }, 'body');
    });
  });

  describe('the fragmentationLimit of a draft', () => {
    it('is a whole number of 1 or more, also as text', () => {
      for (const limit of [1, 9, '1', ' 12 ']) {
        assert.equal(check({ fragmentationLimit: limit }).message.fragmentationLimit, Number(limit));
      }
      const numbers = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60];
      for (const limit of [...numbers, '0', '-1', '1.5', '1e3', '0x1', 'two', true, [1], {}]) {
        refuses({ fragmentationLimit: limit }, 'fragmentationLimit');
      }
    });
  });

  describe('the contentType of a draft', () => {
    it('is UTF-16 for auto if a character is outside GSM 03.38', () => {
      assert.equal(check({ body: 'Grüße @£€[]{}~^|\\ ΔΦ\n' }).message.contentType, undefined);
      for (const body of ['ç', '✓', '👍', '“quoted”', 'naïve', '`', '\t']) {
        const checked = check({ body: `x${body}` });
        assert.equal(checked.message.contentType, utf16, body);
        assert.equal(checked.encoding, 'UCS-2');
      }
    });

    it('is one of two values in any spelling', () => {
      for (const given of [utf16, 'text/plain;charset=utf-16', ' TEXT/PLAIN; Charset=UTF-16 ']) {
        assert.equal(check({ contentType: given }).message.contentType, utf16);
      }
      assert.equal(check({ contentType: 'text/plain', body: '✓' }).message.contentType, 'text/plain');
      for (const contentType of [
        'text/html',
        'UTF-16',
        'text/plain; charset=UTF-8',
        'automatic',
        1,
        Object.create(null),
        true,
      ]) {
        refuses({ contentType }, 'contentType');
      }
    });

    it('determines the encoding and the number of parts', () => {
      const body = 'a'.repeat(71);
      assert.deepEqual([check({ body }).encoding, check({ body }).parts], ['GSM-7', 1]);
      const wide = check({ body, contentType: utf16 });
      assert.deepEqual([wide.encoding, wide.parts], ['UCS-2', 2]);
      const typed = check({ body: '✓', contentType: 'text/plain' });
      assert.deepEqual([typed.encoding, typed.parts], ['UCS-2', 1]);
      refuses({ body, contentType: utf16, fragmentationLimit: 1 }, 'body');
    });
  });

  describe('messageId and from of a draft', () => {
    it('refuses a messageId of more than 36 characters', () => {
      assert.equal(check({ messageId: 'x'.repeat(36) }).message.messageId, 'x'.repeat(36));
      assert.equal(check({ messageId: ` ${'x'.repeat(36)} ` }).message.messageId, 'x'.repeat(36));
      assert.equal(check({ messageId: '👍'.repeat(36) }).message.messageId, '👍'.repeat(36));
      refuses({ messageId: 'x'.repeat(37) }, 'messageId');
    });

    it('can be text or a number', () => {
      for (const value of [true, {}, [], ['x'], Buffer.from('x')]) {
        refuses({ messageId: value }, 'messageId');
        refuses({ from: value }, 'from');
      }
      assert.equal(check({ from: 642100000001 }).message.from, '642100000001');
    });
  });

  it('returns the body before the replacements of content type gsm', () => {
    const checked = check({ contentType: 'gsm', body: '“hello”' });
    assert.equal(checked.message.body, '"hello"');
    assert.deepEqual([checked.originalBody, checked.replacements], ['“hello”', 2]);
    assert.equal(check({ contentType: 'gsm', body: 'hello' }).originalBody, undefined);
  });

  it('does not quote the body in an error', () => {
    refuses({ body: `a private body${'x'.repeat(500)}` }, 'body');
    refuses({ body: 'a private body', messageId: 'x'.repeat(37) }, 'messageId');
  });
});
