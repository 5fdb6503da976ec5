import assert from 'node:assert/strict';
import { flattenForm, formatForm, parseForm } from '../../../src/wire/form';
import fc from '../../fast-check';

const utf8Form = 'application/x-www-form-urlencoded';

describe('parseForm', () => {
  const labelled = (charset: string) => `${utf8Form}; charset=${charset}`;
  const cases: [title: string, form: string | Buffer, pairs: string, contentType?: string][] = [
    ['pairs in order, also with repeated names', 'b=1&a=2&b=3', 'b→1 a→2 b→3'],
    ['decoded + and escapes', 'a+b=c%20d%2B%26%3D&%C3%A9=%F0%9F%98%80', 'a b→c d+&= é→😀'],
    ['names without a value, but no empty pairs', '&&a&b=&=c&&', 'a→ b→ →c'],
    ['malformed escapes as they are', 'a=100%&b=%zz%4&c=%%41', 'a→100% b→%zz%4 c→%A'],
    ['escapes that are not UTF-8 with replacement characters', 'a=%E9x', 'a→\ufffdx'],
    ['a value in UTF-16BE after its byte order mark (§2.3 contentType)', 'a=%FE%FF%04%39%00%41', 'a→йA'],
    ['a value in UTF-16LE after its byte order mark (§2.3 contentType)', 'a=%FF%FE%39%04A%00', 'a→йA'],
    [
      'an unescaped value in UTF-16 after its byte order mark',
      Buffer.from('a=\xfe\xff\0H\0i&b=1', 'latin1'),
      'a→Hi b→1',
    ],
    ['no part of a line break after the form', 'a=1&b=2\r\n', 'a→1 b→2'],
    ['no white space or mark before the form', '\ufeff\t\n messageId=1&b=+2', 'messageId→1 b→ 2'],
    [
      'names that could reach a prototype like any other name',
      '__proto__=1&constructor=2',
      '__proto__→1 constructor→2',
    ],
    [
      'values by the charset of the content type',
      Buffer.from('a=%E9+%80&b=é', 'latin1'),
      'a→é € b→é',
      labelled('ISO-8859-1'),
    ],
    ['escapes as UTF-8 if an ASCII form is labelled UTF-16', 'a=%D0%B9', 'a→й', labelled('UTF-16')],
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
  it('keeps all values of repeated names and of names with brackets', () => {
    const fields = [...flattenForm({ a: ['1', '2'], b: { c: { d: '3' }, e: ['4'] }, f: 5, g: null })];
    assert.equal(fields.map((field) => field.join()).join(' '), 'a,1 a,2 b[c][d],3 b[e],4 f,5');
  });
});

describe('formatForm', () => {
  it('encodes as a browser does, and a lone surrogate as U+FFFD', () => {
    const body = 'a+b&c=d é\n€*-._~ \ud800';
    const form = 'to=1+2&body=a%2Bb%26c%3Dd+%C3%A9%0A%E2%82%AC*-._%7E+%EF%BF%BD';
    assert.equal(formatForm(Object.entries({ to: '1 2', body })), form);
  });

  it('is decoded to the same names and values', () => {
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
