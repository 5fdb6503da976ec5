import assert from 'node:assert/strict';
import { isSmsError } from '../../../src/errors';
import { parseMsisdn, parseRecipients, refuseSenderName } from '../../../src/message/recipients';
import fc from '../../fast-check';

describe('parseRecipients (§2.1 `to`)', () => {
  const accepted: [title: string, to: unknown, recipients: string[]][] = [
    ['a leading +', '+64215551234', ['64215551234']],
    ['items separated by spaces', '64215551234 64215551235', ['64215551234', '64215551235']],
    ['items separated by commas, semicolons, tabs and newlines', 'a,b;c\td\r\ne , ;f', ['a', 'b', 'c', 'd', 'e', 'f']],
    ['an array of strings and numbers', ['64215551234', 64215551235], ['64215551234', '64215551235']],
    ['formatting characters in a number', '+64(21)555-12.3/4', ['64215551234']],
    ['a number with spaces in an array', ['+64 (21) 555-1234', '64\u00a021\t5551235'], ['64215551234', '64215551235']],
    ['a number of 7 digits', '1234567', ['1234567']],
    ['a number of 15 digits', '123456789012345', ['123456789012345']],
    ['contacts and groups unchanged', 'Anna on-call_team Zoë 24/7-team', ['Anna', 'on-call_team', 'Zoë', '24/7-team']],
    ['an array with blank items', ['', '  ', null, undefined, 'Anna'], ['Anna']],
    ['an array item that is a name with a comma', ['Anna,Bob'], ['Anna,Bob']],
    ['repeated items as one recipient', '+64215551234 Anna 64-215551234 Anna', ['64215551234', 'Anna']],
    ['full-width digits', '６４２１５５５１２３４', ['64215551234']],
    ['Arabic-Indic digits', '٦٤٢١٥٥٥١٢٣٤', ['64215551234']],
    ['mathematical digits', '𝟼𝟺𝟸𝟷𝟻𝟻𝟻𝟷𝟸𝟹𝟺', ['64215551234']],
    ['a BOM inside a number', '6421\ufeff5551234', ['64215551234']],
    ['a number with a zero-width space', '6421\u200b5551234', ['64215551234']],
    ['a number between direction marks', '\u202a+64215551234\u202c', ['64215551234']],
    ['non-breaking hyphens in a number', '64‑21‑555‑1234', ['64215551234']],
  ];
  for (const [title, to, recipients] of accepted) {
    it(`accepts ${title}`, () => assert.deepEqual(parseRecipients(to), recipients));
  }

  const refused: [title: string, to: unknown, reason: string][] = [
    ['undefined', undefined, 'recipientsEmpty'],
    ['an empty string', '', 'recipientsEmpty'],
    ['text without a visible character', '\u200b', 'recipientsEmpty'],
    ['a number of 6 digits', '123456', 'recipientNumber'],
    ['a number of 16 digits', '1234567890123456', 'recipientNumber'],
    ['a number with a leading zero', '0215551234', 'recipientNumber'],
    ['a short number in the middle of a list', '64215551234, 021, Anna', 'recipientNumber'],
    ['an array item that is a single dash', ['-'], 'recipientNumber'],
    ['a dash between two numbers', '64215551234 - 64215551235', 'recipientNumber'],
    ['a negative number', -64215551234, 'recipientNumber'],
    ['a fraction', 6421555.1234, 'recipientNumber'],
    ['a number that is too large', [6.4e21], 'recipientNumber'],
    ['a number that ends in .0', '64211234567.0', 'recipientDecimal'],
    ['a number with spaces that ends in .0', ['64 211 234 567.0'], 'recipientDecimal'],
    ['a number in exponent form', '6.42e10', 'recipientDecimal'],
    ['a number in exponent form without a point', '642E8', 'recipientDecimal'],
    ['a number in exponent form with a +', '6.42E+10', 'recipientPlus'],
    ['a number split by spaces', '+64 21 555 123', 'recipientSplit'],
    ['a + separated from its number by a space', '+ 64215551234', 'recipientSplit'],
    ['a national number split by a space', '(021) 555-123', 'recipientNumber'],
    ['two leading +', '++64215551234', 'recipientPlus'],
    ['a + within a number', '64+215551234', 'recipientPlus'],
    ['an array item that is a name with a space', ['Anna Smith'], 'recipientSpace'],
    ['a number and a name in one item', ['64215551234 Anna'], 'recipientSpace'],
    ['a boolean', true, 'recipientsType'],
    ['a boolean in an array', ['64215551234', false], 'recipientsType'],
    ['a Buffer', Buffer.from('64215551234'), 'recipientsType'],
  ];
  for (const [title, to, reason] of refused) {
    it(`refuses ${title}`, () => {
      assert.throws(() => parseRecipients(to), { name: 'SmsError', code: 'SMS_INPUT', reason, field: 'to' });
    });
  }

  it('quotes at most 40 characters of a refused item', () => {
    assert.throws(() => parseRecipients('021 "x"'), { params: { item: '"021"' } });
    assert.throws(
      () => parseRecipients(['0'.repeat(1000)]),
      (error) => isSmsError(error) && JSON.parse(String(error.params.item)).length === 40,
    );
  });

  it('suggests joining a number split by spaces', () => {
    assert.throws(() => parseRecipients('64215551234\n+64 21 555 123'), {
      params: { item: '"+64 21 555 123"', joined: '6421555123' },
    });
    assert.throws(() => parseRecipients('(021) 555-123'), { params: { item: '"(021) 555-123"' } });
  });

  it('returns valid recipients or throws an SmsError for any value', () => {
    const item = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...'0123456789+-()./ ,;\ne\u200b６') }),
      fc.double(),
      fc.integer(),
      fc.anything(),
    );
    fc.assert(
      fc.property(fc.oneof(item, fc.array(item)), (to) => {
        let recipients: string[];
        try {
          recipients = parseRecipients(to);
        } catch (error) {
          assert.ok(isSmsError(error, 'SMS_INPUT') && error.field === 'to', String(error));
          return;
        }
        assert.ok(recipients.length > 0);
        assert.equal(new Set(recipients).size, recipients.length);
        for (const recipient of recipients) assert.doesNotMatch(recipient, /\s|^$|.\+/);
        assert.deepEqual(parseRecipients(recipients), recipients);
      }),
    );
  });

  it('refuses more than 5,000 different recipients', () => {
    const numbers = Array.from({ length: 5_000 }, (_, index) => String(64_210_000_000 + index));
    for (const to of [numbers.join(' '), [...numbers, ...numbers]]) {
      assert.deepEqual(parseRecipients(to), numbers);
    }
    for (const to of [`${numbers.join()},Anna`, [...numbers, 'Anna']]) {
      assert.throws(() => parseRecipients(to), { code: 'SMS_INPUT', reason: 'recipientsTooMany', field: 'to' });
    }
  });
});

describe('parseMsisdn', () => {
  it('returns the digits of a valid phone number', () => {
    assert.equal(parseMsisdn('+64 (21) 555-123'), '6421555123');
    assert.equal(parseMsisdn('６４２１\u200b５５５１２３'), '6421555123');
    for (const text of ['64211234567.0', '021555123', 'NZ Post', '']) assert.equal(parseMsisdn(text), undefined);
  });
});

describe('refuseSenderName', () => {
  it('refuses the name of the sender as a recipient', () => {
    for (const to of ['NZ Post', ' NZ Post ', ['6421555123', 'NZ Post']]) {
      assert.throws(() => refuseSenderName(to, 'NZ Post'), { reason: 'recipientSender', field: 'to' });
    }
  });

  it('accepts a recipient that is not the name of the sender', () => {
    for (const from of ['+6421555123', undefined, '', 5]) refuseSenderName(from, from);
    refuseSenderName('staff', 'NZ Post');
  });
});
