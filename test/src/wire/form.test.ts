import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatForm, parseForm, rereadForm } from '../../../src/wire/form';
import { hostileBytes } from './hostile';

const utf8Form = 'application/x-www-form-urlencoded';
const latin1Form = 'application/x-www-form-urlencoded; charset=ISO-8859-1';

describe('a form, read', () => {
  const cases: [title: string, form: string, pairs: [string, string][]][] = [
    ['nothing', '', []],
    [
      'pairs in their order, names repeated',
      'b=1&a=2&b=3',
      [
        ['b', '1'],
        ['a', '2'],
        ['b', '3'],
      ],
    ],
    [
      '+ and escapes',
      'a+b=c%20d%2B%26%3D&%C3%A9=%F0%9F%98%80',
      [
        ['a b', 'c d+&='],
        ['é', '😀'],
      ],
    ],
    ['characters that were not escaped', 'a=é=😀', [['a', 'é=😀']]],
    [
      'names without a value',
      'a&b=&=c',
      [
        ['a', ''],
        ['b', ''],
        ['', 'c'],
      ],
    ],
    ['empty pairs as none', '&&a=1&&', [['a', '1']]],
    [
      'malformed escapes as they are',
      'a=100%&b=%zz%4&c=%%41',
      [
        ['a', '100%'],
        ['b', '%zz%4'],
        ['c', '%A'],
      ],
    ],
    ['escapes that are not UTF-8 with replacement characters', 'a=%E9x', [['a', '\ufffdx']]],
    ['a value in UTF-16BE when its mark says so (§2.3 contentType)', 'a=%FE%FF%04%39%00%41', [['a', 'йA']]],
    ['a value in UTF-16LE when its mark says so (§2.3 contentType)', 'a=%FF%FE%39%04A%00', [['a', 'йA']]],
    ['U+FEFF at the start of a value in UTF-8', 'a=%EF%BB%BFx', [['a', '\ufeffx']]],
    ['line breaks of a value', 'a=1%0D%0A', [['a', '1\r\n']]],
    [
      'a line break after the form as no part of it',
      'a=1&b=2\r\n',
      [
        ['a', '1'],
        ['b', '2'],
      ],
    ],
    [
      'names that could reach a prototype as any other',
      '__proto__=1&constructor=2',
      [
        ['__proto__', '1'],
        ['constructor', '2'],
      ],
    ],
  ];
  for (const [title, form, pairs] of cases) {
    it(`gives ${title}`, () => assert.deepEqual(parseForm(Buffer.from(form), utf8Form), pairs));
  }

  it('decodes escapes and characters by the charset of the content type', () => {
    assert.deepEqual(parseForm(Buffer.from('a=%E9+%80&b=é', 'latin1'), latin1Form), [
      ['a', 'é €'],
      ['b', 'é'],
    ]);
  });

  it('decodes escapes and characters by a charset that the platform knows', () => {
    const form = (charset: string) => `application/x-www-form-urlencoded; charset=${charset}`;
    assert.deepEqual(parseForm(Buffer.from('a=%CF%F0+x'), form('windows-1251')), [['a', 'Пр x']]);
    const korean = Buffer.concat([Buffer.from('a='), Uint8Array.of(0xb0, 0xa1), Buffer.from('%B0%A1&b=1')]);
    assert.deepEqual(parseForm(korean, form('euc-kr')), [
      ['a', '가가'],
      ['b', '1'],
    ]);
  });

  it('takes a value as it is when the charset is not known, and says so', () => {
    const told: string[] = [];
    const contentType = 'application/x-www-form-urlencoded; charset=klingon';
    const pairs = parseForm(Buffer.from('a=%E9&b=%C3%A9'), contentType, (charset) => told.push(charset));
    assert.deepEqual(pairs, [
      ['a', 'é'],
      ['b', 'é'],
    ]);
    assert.deepEqual(told, ['klingon']);
  });

  const utf16Field = 'contentType=text%2Fplain%3B+charset%3DUTF-16';
  for (const [title, body, text] of [
    ['UTF-16BE without a mark', '%00H%00i', 'Hi'],
    ['UTF-16BE of another alphabet', '%04%1F%04%40%008', 'Пр8'],
    ['UTF-16BE with a line break', '%00H%00%0A%00i', 'H\ni'],
    ['UTF-16BE of characters of two units', '%D8%3D%DE%00', '😀'],
    ['UTF-16LE without a mark', 'H%00i%00', 'Hi'],
    ['UTF-8 that is valid', '%D0%9F%D1%80', 'Пр'],
    ['ASCII of an even length', 'Hi%21%21', 'Hi!!'],
    ['UTF-8 with a character that its sender had lost', 'ab%EF%BF%BDc', 'ab\ufffdc'],
    ['UTF-8 with a form feed', 'page1%0Cpage22', 'page1\fpage22'],
    ['UTF-16BE of letters whose first byte is a form feed', '%0C%05%0C%26', 'అద'],
    ['half a unit', '%00H%00', '\0H\0'],
    ['what is neither', '%D8%00%FF', '\ufffd\0\ufffd'],
    ['half a pair', '%D8%3D%00a', '\ufffd=\0a'],
  ] as const) {
    it(`reads ${title} in a form whose contentType says UTF-16 (§2.3)`, () => {
      const read = (form: string, header?: string) =>
        parseForm(Buffer.from(form), header).find(([name]) => name === 'body')?.[1];
      assert.equal(read(`body=${body}&${utf16Field}`), text);
      assert.equal(read(`${utf16Field}&body=${body}`), text);
    });
  }

  it('does not take a value for UTF-16 when nothing says so', () => {
    assert.deepEqual(parseForm(Buffer.from('body=%00H%00i&contentType=text%2Fplain'))[0], ['body', '\0H\0i']);
  });

  it('decodes escapes as UTF-8 where the content type says UTF-16 and the form is ASCII', () => {
    assert.deepEqual(parseForm(Buffer.from('a=%D0%B9'), `${utf8Form}; charset=UTF-16`), [['a', 'й']]);
  });

  it('takes white space before the first name for no part of it', () => {
    for (const before of ['\r\n', ' ', '\t\n ']) {
      assert.deepEqual(parseForm(Buffer.from(`${before}messageId=1&b=+2`)), [
        ['messageId', '1'],
        ['b', ' 2'],
      ]);
    }
  });

  it('reads a form that is UTF-16 as a whole', () => {
    const bytes = Buffer.from('a=1&b=%D0%B9', 'utf16le');
    assert.deepEqual(parseForm(bytes), [
      ['a', '1'],
      ['b', 'й'],
    ]);
    assert.deepEqual(parseForm(bytes.swap16()), [
      ['a', '1'],
      ['b', 'й'],
    ]);
  });

  it('gives pairs for any bytes', () => {
    fc.assert(
      fc.property(
        hostileBytes(['a=1&b=%20+%C3%A9&c']),
        fc.constantFrom(undefined, latin1Form),
        (bytes, contentType) => {
          for (const pair of parseForm(bytes, contentType))
            assert.deepEqual(
              pair.map((part) => typeof part),
              ['string', 'string'],
            );
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('agrees with the standard where escapes are well-formed', () => {
    const part = fc.string({ unit: 'grapheme' });
    fc.assert(
      fc.property(fc.array(fc.tuple(part, part)), (pairs) => {
        const form = pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&');
        assert.deepEqual(parseForm(Buffer.from(form)), [...new URLSearchParams(form)]);
      }),
    );
  });

  it('reads a form of line breaks, at its end and elsewhere', () => {
    const breaks = '\r\n'.repeat(500_000);
    assert.deepEqual(parseForm(Buffer.from(`a=${breaks}1${breaks}`)), [['a', `${breaks}1`]]);
  });

  it('reads megabytes of tiny pairs and of malformed escapes', () => {
    assert.equal(parseForm(Buffer.from('%=%&'.repeat(200_000))).length, 200_000);
    assert.equal(parseForm(Buffer.from(`a=${'%'.repeat(1_000_000)}`))[0]?.[1].length, 1_000_000);
  });

  it('refuses more pairs than any answer has, which would take hundreds of megabytes', () => {
    assert.throws(() => parseForm(Buffer.from('&a'.repeat(1_000_000))), { code: 'SMS_RESPONSE' });
  });

  it('refuses more names than any answer has, of which a record would take more than a second', () => {
    const form = Array.from({ length: 20_001 }, (_, index) => `${index}=1`).join('&');
    assert.throws(() => parseForm(Buffer.from(form)), { code: 'SMS_RESPONSE', message: /too many names/ });
    assert.equal(parseForm(Buffer.from(form.slice(4))).length, 20_000);
  });
});

describe('a form that another parser has read', () => {
  /** What the parser of Express makes of a value: all of it in UTF-8, or its escapes as they are. */
  function parsed(part: string): string {
    const spaced = part.replaceAll('+', ' ');
    try {
      return decodeURIComponent(spaced);
    } catch {
      return spaced;
    }
  }

  for (const [title, part, text] of [
    ['UTF-16BE with its mark', '%FE%FF%04%1F%04%40%00+%00%2B', 'Пр +'],
    ['UTF-16LE with its mark, in small letters', '%ff%fe%1f%04%40%04', 'Пр'],
    ['UTF-16BE that is no UTF-8', '%00c%00a%00f%00%E9%00+%00%2B', 'café +'],
    ['UTF-16BE that passes for UTF-8', '%00H%00i%00+%00%2B', 'Hi +'],
    ['UTF-16LE that passes for UTF-8', 'H%00i%00', 'Hi'],
    ['UTF-8', '%D0%9F+%2B+100%25', 'П + 100%'],
    ['UTF-8 that looks like an escape', '100%2541!', '100%41!'],
    ['UTF-8 with a per cent sign before digits', 'Rabatt+20%25ab+%E2%82%AC', 'Rabatt 20%ab €'],
    ['UTF-8 with a per cent sign before digits, and a plus', '20%25ab%2B%21%21', '20%ab+!!'],
    ['UTF-8 with a per cent sign before digits, and a line break', '20%25ab%0A', '20%ab\n'],
    ['UTF-8 that begins like the mark of UTF-16', '%25FE%25FF%E2%82%AC!', '%FE%FF€!'],
    ['half a unit that is no UTF-8', '%04%E9%00', '%04%E9%00'],
  ] as const) {
    it(`is read as if it were read here, with a value in ${title}`, () => {
      const contentType = 'text/plain; charset=UTF-16';
      assert.deepEqual(rereadForm({ contentType, body: parsed(part) }), [
        ['contentType', contentType],
        ['body', text],
      ]);
    });
  }

  it('keeps a value that is UTF-8 and one that is neither, when nothing says UTF-16', () => {
    for (const value of ['\0H\0i', 'Caf%E9', '1+1', ' %FE%FF'])
      assert.deepEqual(rereadForm({ a: value }), [['a', value]]);
    assert.deepEqual(rereadForm({ a: '%FE%FF%00H%00i' }), [['a', 'Hi']]);
  });

  it('has no white space before its first name, nor a line break after it', () => {
    for (const [before, after] of [
      ['\r\n', '\n'],
      ['\t \n', '\r\n\r\n'],
    ]) {
      assert.deepEqual(rereadForm({ [`${before}messageId`]: ' 1\n', statusCode: `RCV${after}` }), [
        ['messageId', ' 1\n'],
        ['statusCode', 'RCV'],
      ]);
    }
    assert.deepEqual(rereadForm({ '\nmessageId': '1\r\n' }), [['messageId', '1']]);
    assert.deepEqual(rereadForm({}), []);
  });

  it('keeps the line breaks at the end of a text that ends it, which may have been escaped', () => {
    assert.deepEqual(rereadForm({ from: '1', body: 'yes\n' }), [
      ['from', '1'],
      ['body', 'yes\n'],
    ]);
  });

  it('keeps every value of repeated names and of names with brackets', () => {
    assert.deepEqual(rereadForm({ a: ['1', '2'], b: { c: { d: '3' }, e: ['4'] }, f: 5, g: null }), [
      ['a', '1'],
      ['a', '2'],
      ['b[c][d]', '3'],
      ['b[e]', '4'],
      ['f', '5'],
    ]);
  });
});

describe('a form, written', () => {
  it('encodes as a browser does', () => {
    assert.equal(
      formatForm([
        ['to', '6421 6422'],
        ['body', 'a+b&c=d é\n€*-._~'],
      ]),
      'to=6421+6422&body=a%2Bb%26c%3Dd+%C3%A9%0A%E2%82%AC*-._%7E',
    );
    assert.equal(formatForm([]), '');
  });

  it('gives back every name and value when it is decoded once', () => {
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

  it('writes a lone surrogate as a replacement character', () => {
    assert.equal(formatForm([['body', '\ud800']]), 'body=%EF%BF%BD');
  });

  it('cannot be made to write a further parameter or header (header injection)', () => {
    const form = formatForm([
      ['body', 'x&to=1\r\nHost: evil'],
      ['messageId', '\r\n\r\nGET /'],
    ]);
    assert.doesNotMatch(form, /[\r\n ]/);
    assert.deepEqual([...new URLSearchParams(form).keys()], ['body', 'messageId']);
  });
});
