import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isSmsError } from '../../../src/errors';
import { parseRecipients } from '../../../src/message/recipients';

describe('recipients (§2.1 to)', () => {
  const accepted: [title: string, to: unknown, recipients: string[]][] = [
    ['one MSISDN', '64215551234', ['64215551234']],
    ['a leading + that is dropped', '+64215551234', ['64215551234']],
    ['items separated by spaces', '64215551234 64215551235', ['64215551234', '64215551235']],
    ['items separated by commas, semicolons, tabs and newlines', 'a,b;c\td\r\ne , ;f', ['a', 'b', 'c', 'd', 'e', 'f']],
    ['separators around the list', '  ,64215551234; ', ['64215551234']],
    ['a list of text and numbers', ['64215551234', 64215551235], ['64215551234', '64215551235']],
    ['a bare number', 64215551234, ['64215551234']],
    ['formatting characters among digits', '+64(21)555-12.3/4', ['64215551234']],
    [
      'white space within an item of a list',
      ['+64 (21) 555-1234', '64\u00a021\t5551235'],
      ['64215551234', '64215551235'],
    ],
    ['7 digits', '1234567', ['1234567']],
    ['15 digits', '123456789012345', ['123456789012345']],
    [
      'contacts and groups as they are',
      'Anna on-call_team Zoë 24/7-team',
      ['Anna', 'on-call_team', 'Zoë', '24/7-team'],
    ],
    ['blank items of a list', ['', '  ', null, undefined, 'Anna'], ['Anna']],
    ['a hole in a list', Object.assign([], { 1: 'Anna' }), ['Anna']],
    ['a comma within an item of a list', ['Anna,Bob'], ['Anna,Bob']],
    ['repeated items once', '+64215551234 Anna 64-215551234 Anna', ['64215551234', 'Anna']],
    ['a name that says what a number is not', 'x64215551234', ['x64215551234']],
    ['a name that could reach a prototype', '__proto__ constructor', ['__proto__', 'constructor']],
  ];
  for (const [title, to, recipients] of accepted) {
    it(`takes ${title}`, () => assert.deepEqual(parseRecipients(to), recipients));
  }

  const refused: [title: string, to: unknown, reason: string][] = [
    ['a missing list', undefined, 'recipientsEmpty'],
    ['null', null, 'recipientsEmpty'],
    ['an empty text', '', 'recipientsEmpty'],
    ['separators alone', ' ,;\n', 'recipientsEmpty'],
    ['an empty list', [], 'recipientsEmpty'],
    ['a list of blank items', ['', null], 'recipientsEmpty'],
    ['6 digits', '123456', 'recipientNumber'],
    ['16 digits', '1234567890123456', 'recipientNumber'],
    ['a leading zero', '0215551234', 'recipientNumber'],
    ['a leading zero after the +', '+0215551234', 'recipientNumber'],
    ['a short number in the middle of a list', '64215551234, 021, Anna', 'recipientNumber'],
    ['a number cut up by spaces', '+64 21 555 123', 'recipientNumber'],
    ['a number with a space after its country code', '+64 215551234', 'recipientNumber'],
    ['a number cut up by spaces in the middle of a list', 'Anna, 64 21 555 123', 'recipientNumber'],
    ['a short number before another', '021, 022', 'recipientNumber'],
    ['formatting characters alone', ['-'], 'recipientNumber'],
    ['a + that stands apart from its number', '+ 64215551234', 'recipientNumber'],
    ['a dash between two numbers', '64215551234 - 64215551235', 'recipientNumber'],
    ['a negative number', -64215551234, 'recipientNumber'],
    ['a fraction', 6421555.1234, 'recipientNumber'],
    ['a number with an exponent', [6.4e21], 'recipientNumber'],
    ['NaN', Number.NaN, 'recipientNumber'],
    ['a + in the middle', '64+215551234', 'recipientPlus'],
    ['a + after a bracket', '(+64)215551234', 'recipientPlus'],
    ['two + in front', '++64215551234', 'recipientPlus'],
    ['a + within a name', 'Anna+Bob', 'recipientPlus'],
    ['white space within a name of a list', ['Anna Smith'], 'recipientSpace'],
    ['a number and a name in one item of a list', ['64215551234 Anna'], 'recipientSpace'],
    ['a boolean', true, 'recipientsType'],
    ['an object', { to: '64215551234' }, 'recipientsType'],
    ['a boolean in a list', ['64215551234', false], 'recipientsType'],
    ['a list in a list', [['64215551234']], 'recipientsType'],
    ['a buffer', Buffer.from('64215551234'), 'recipientsType'],
    ['a function', () => '64215551234', 'recipientsType'],
  ];
  for (const [title, to, reason] of refused) {
    it(`refuses ${title}`, () => {
      assert.throws(() => parseRecipients(to), { name: 'SmsError', code: 'SMS_INPUT', reason, field: 'to' });
    });
  }

  it('quotes the item at fault, cut to 40 characters', () => {
    assert.throws(() => parseRecipients('021 "x"'), { params: { item: '"021"' } });
    assert.throws(
      () => parseRecipients(['0'.repeat(1000)]),
      (error) => isSmsError(error) && JSON.parse(String(error.params.item)).length === 40,
    );
  });

  it('gives recipients or an SmsError for any value whatever, and what it gives it takes again', () => {
    const item = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...'0123456789+-()./ ,;\na') }),
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

  it('looks only at what is there in a list of thousands of millions, in its order', () => {
    const to: string[] = [];
    to[2_125_551_234] = '64215551235';
    to[1_000] = '64215551234';
    assert.deepEqual(parseRecipients(to), ['64215551234', '64215551235']);
    to[3_000_000_000] = '021';
    assert.throws(() => parseRecipients(to), { reason: 'recipientNumber', field: 'to' });
    assert.throws(() => parseRecipients(new Array(4_000_000_000)), { reason: 'recipientsEmpty', field: 'to' });
  });

  it('takes the items of a list and not its other properties', () => {
    assert.deepEqual(parseRecipients(/\d+/.exec('to 64215551234')), ['64215551234']);
  });

  it('takes 5,000 recipients, however often they are repeated, and refuses one more', () => {
    const numbers = Array.from({ length: 5_000 }, (_, index) => String(64_210_000_000 + index));
    for (const to of [numbers.join(' '), [...numbers, ...numbers]]) {
      assert.deepEqual(parseRecipients(to), numbers);
    }
    for (const to of [`${numbers.join()},Anna`, [...numbers, 'Anna']]) {
      assert.throws(() => parseRecipients(to), { code: 'SMS_INPUT', reason: 'recipientsTooMany', field: 'to' });
    }
  });

  it('takes 100,000 items, repetitions and all, and refuses one more', () => {
    const number = '64215551234';
    const items = Array<string>(100_000).fill(number);
    for (const separator of [' ', ',', ', ']) {
      assert.deepEqual(parseRecipients(items.join(separator)), [number]);
      assert.throws(() => parseRecipients([...items, number].join(separator)), { reason: 'recipientsTooMany' });
    }
    assert.deepEqual(parseRecipients(items), [number]);
    assert.throws(() => parseRecipients([...items, number]), { reason: 'recipientsTooMany' });
  });

  it('looks at no item behind the one that is too many', () => {
    const numbers = Array.from({ length: 5_001 }, (_, index) => String(64_210_000_000 + index));
    assert.throws(() => parseRecipients([...numbers, false]), { reason: 'recipientsTooMany' });
  });
});
