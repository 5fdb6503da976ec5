import assert from 'node:assert/strict';
import { flattenForm, formatForm, parseForm } from '../../../src/wire/form';
import fc from '../../fast-check';

const utf8Form = 'application/x-www-form-urlencoded';

describe('parseForm', () => {
  const labelled = (charset: string) => `${utf8Form}; charset=${charset}`;
  const cases: [title: string, form: string | Buffer, pairs: string, contentType?: string][] = [
    ['all pairs in their order', 'b=1&a=2&b=3', 'b→1 a→2 b→3'],
    ['`+` as a space and escapes as characters', 'a+b=c%20d%2B%26%3D&%C3%A9=%F0%9F%98%80', 'a b→c d+&= é→😀'],
    ['names without a value, but no empty pairs', '&&a&b=&=c&&', 'a→ b→ →c'],
    ['malformed escapes unchanged', 'a=100%&b=%zz%4&c=%%41', 'a→100% b→%zz%4 c→%A'],
    ['U+FFFD for escapes that are not UTF-8', 'a=%E9x', 'a→\ufffdx'],
    ['the text of a UTF-16BE value', 'a=%FE%FF%04%39%00%41', 'a→йA'],
    ['the text of a UTF-16LE value', 'a=%FF%FE%39%04A%00', 'a→йA'],
    ['the text of a UTF-16 value without escapes', Buffer.from('a=\xfe\xff\0H\0i&b=1', 'latin1'), 'a→Hi b→1'],
    ['the last pair without the line break at its end', 'a=1&b=2\r\n', 'a→1 b→2'],
    ['the first pair without the white space before it', '\ufeff\t\n messageId=1&b=+2', 'messageId→1 b→ 2'],
    [
      'fields named __proto__ or constructor like any other field',
      '__proto__=1&constructor=2',
      '__proto__→1 constructor→2',
    ],
    [
      'text decoded with the charset of the content type',
      Buffer.from('a=%E9+%80&b=é', 'latin1'),
      'a→é € b→é',
      labelled('ISO-8859-1'),
    ],
    ['UTF-8 escapes as characters although the charset is UTF-16', 'a=%D0%B9', 'a→й', labelled('UTF-16')],
  ];
  for (const [title, form, pairs, contentType = utf8Form] of cases) {
    it(`returns ${title}`, () => {
      const read = parseForm(Buffer.from(form as string), contentType);
      assert.equal(read.map(([name, value]) => `${name}→${value}`).join(' '), pairs);
    });
  }

  it('refuses more than 500,000 pairs', () => {
    assert.throws(() => parseForm(Buffer.from('&a'.repeat(1_000_000))), { code: 'SMS_RESPONSE' });
  });
});

describe('flattenForm', () => {
  it('returns a field for each value in arrays and objects', () => {
    const fields = [...flattenForm({ a: ['1', '2'], b: { c: { d: '3' }, e: ['4'] }, f: 5, g: null })];
    assert.equal(fields.map((field) => field.join()).join(' '), 'a,1 a,2 b[c][d],3 b[e],4 f,5');
  });
});

describe('formatForm', () => {
  it('encodes names and values as a browser does', () => {
    const body = 'a+b&c=d é\n€*-._~ \ud800';
    const form = 'to=1+2&body=a%2Bb%26c%3Dd+%C3%A9%0A%E2%82%AC*-._%7E+%EF%BF%BD';
    assert.equal(formatForm(Object.entries({ to: '1 2', body })), form);
  });

  it('returns a form that parses back to the original pairs', () => {
    const part = fc.string({ unit: 'grapheme' });
    const name = part.filter((text) => text !== '');
    fc.assert(
      fc.property(fc.array(fc.tuple(name, part)), (pairs) => {
        const form = formatForm(pairs);
        assert.deepEqual(parseForm(Buffer.from(form)), pairs);
        assert.deepEqual([...new URLSearchParams(form)], pairs);
      }),
    );
  });
});
