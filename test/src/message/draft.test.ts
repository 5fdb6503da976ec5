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
  it('leaves out blank optional fields', () => {
    for (const blank of blanks) {
      const fields = ['from', 'messageId', 'fragmentationLimit', 'contentType', 'callbackUrl', 'callbackStatusUrl'];
      const { message } = check(Object.fromEntries(fields.map((field) => [field, blank])));
      assert.deepEqual(message, { to: ['6421555123'], body: 'hello' });
    }
  });

  it('returns all fields of a draft', () => {
    const draft = {
      fragmentationLimit: 2,
      contentType: 'text/plain',
      callbackUrl: 'https://example.com/{!body}',
      callbackStatusUrl: 'http://example.com/',
    };
    const { message } = check({ ...draft, to: ['+64 21 555 123', 6421555124], from: ' Shop ', messageId: 4711 });
    const to = ['6421555123', '6421555124'];
    assert.deepEqual(message, { ...draft, to, body: 'hello', from: 'Shop', messageId: '4711' });
  });

  it('accepts a number, a boolean or a Buffer as the body', () => {
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

  it('refuses a blank body and an object as the body', () => {
    const buffers = [Buffer.alloc(0), Buffer.from('  '), new Uint8Array([65])];
    const others = [{}, ['hello'], () => 'hello', Symbol('hello'), 10n, new Date(), { toString: () => 'hello' }];
    for (const body of [...blanks, '\ufeff', ...buffers, ...others]) refuses({ body }, 'body');
  });

  it('limits the body length in Unicode code points', () => {
    for (const character of ['a', '€', '✓', '👍']) {
      assert.equal(check({ body: character.repeat(480) }).message.body.length, character.length * 480);
      refuses({ body: `a private body${character.repeat(467)}` }, 'body', 480);
    }
    assert.equal(checkDraft({ to: '6421555123', body: 'a'.repeat(100_000) }, undefined).parts, 654);
  });

  it('limits the number of parts to fragmentationLimit', () => {
    assert.equal(check({ body: 'a'.repeat(1_000), fragmentationLimit: 7 }).parts, 7);
    refuses({ body: 'a'.repeat(1_000), fragmentationLimit: 6 }, 'body');
    for (const limit of [1, ' 12 ']) {
      assert.equal(check({ fragmentationLimit: limit }).message.fragmentationLimit, Number(limit));
    }
    const numbers = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60];
    for (const limit of [...numbers, '0', '1.5', '1e3', '0x1', 'two', true, [1], {}]) {
      refuses({ fragmentationLimit: limit }, 'fragmentationLimit');
    }
  });

  describe('with `contentType`', () => {
    it('uses UTF-16 for `auto` if a character is outside GSM 03.38', () => {
      assert.equal(check({ body: 'Grüße @£€[]{}~^|\\ ΔΦ\n' }).message.contentType, undefined);
      for (const body of ['ç', '👍', '“quoted”', '`', '\t']) {
        const checked = check({ body: `x${body}` });
        assert.deepEqual([checked.message.contentType, checked.encoding], [utf16, 'UCS-2'], body);
      }
    });

    it('accepts only text/plain and its UTF-16 variant', () => {
      for (const given of [utf16, ' TEXT/PLAIN;Charset=utf-16 ']) {
        assert.equal(check({ contentType: given }).message.contentType, utf16);
      }
      assert.equal(check({ contentType: 'text/plain', body: '✓' }).message.contentType, 'text/plain');
      for (const contentType of ['text/html', 'UTF-16', 'text/plain; charset=UTF-8', 1, Object.create(null), true]) {
        refuses({ contentType }, 'contentType');
      }
    });

    it('counts parts in the encoding of the contentType', () => {
      const body = 'a'.repeat(71);
      for (const [draft, encoding, parts] of [
        [{ body }, 'GSM-7', 1],
        [{ body, contentType: utf16 }, 'UCS-2', 2],
        [{ body: '✓', contentType: 'text/plain' }, 'UCS-2', 1],
      ] as const) {
        const checked = check(draft);
        assert.deepEqual([checked.encoding, checked.parts], [encoding, parts]);
      }
      refuses({ body, contentType: utf16, fragmentationLimit: 1 }, 'body');
    });
  });

  it('accepts a messageId of up to 36 characters', () => {
    for (const messageId of ['x'.repeat(36), '👍'.repeat(36)])
      assert.equal(check({ messageId: ` ${messageId} ` }).message.messageId, messageId);
    refuses({ messageId: 'x'.repeat(37), body: 'a private body' }, 'messageId');
    for (const value of [true, {}, [], ['x'], Buffer.from('x')]) {
      refuses({ messageId: value }, 'messageId');
      refuses({ from: value }, 'from');
    }
    assert.equal(check({ from: 642100000001 }).message.from, '642100000001');
  });

  it('returns the original body too if `gsm` replaced characters', () => {
    const checked = check({ contentType: 'gsm', body: '“hello”' });
    assert.equal(checked.message.body, '"hello"');
    assert.deepEqual([checked.originalBody, checked.replacements], ['“hello”', 2]);
    assert.equal(check({ contentType: 'gsm', body: 'hello' }).originalBody, undefined);
  });
});
