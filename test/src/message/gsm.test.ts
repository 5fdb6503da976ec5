import assert from 'node:assert/strict';
import { charactersOutside, type Encoding, measureText, planEncoding } from '../../../src/message/gsm';
import fc from '../../fast-check';

/** GSM 03.38 as 3GPP TS 23.038 prints it: rows of the basic set by code, then the extension table. */
const basicCodePoints = [
  [0x40, 0xa3, 0x24, 0xa5, 0xe8, 0xe9, 0xf9, 0xec, 0xf2, 0xc7, 0x0a, 0xd8, 0xf8, 0x0d, 0xc5, 0xe5],
  [0x394, 0x5f, 0x3a6, 0x393, 0x39b, 0x3a9, 0x3a0, 0x3a8, 0x3a3, 0x398, 0x39e, 0xc6, 0xe6, 0xdf, 0xc9],
  [0x20, 0x21, 0x22, 0x23, 0xa4, ...span(0x25, 0x3f)],
  [0xa1, ...span(0x41, 0x5a), 0xc4, 0xd6, 0xd1, 0xdc, 0xa7],
  [0xbf, ...span(0x61, 0x7a), 0xe4, 0xf6, 0xf1, 0xfc, 0xe0],
].flat();
const extensionCodePoints = [0x0c, 0x5e, 0x7b, 0x7d, 0x5c, 0x5b, 0x7e, 0x5d, 0x7c, 0x20ac];
const basic = basicCodePoints.map((code) => String.fromCodePoint(code));
const extension = extensionCodePoints.map((code) => String.fromCodePoint(code));

function span(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

/** Counts parts in the simplest way: puts characters into parts one at a time. */
function measureByHand(text: string, forced?: Encoding) {
  const characters = [...text];
  const isGsm = characters.every((character) => basic.includes(character) || extension.includes(character));
  const encoding = forced ?? (isGsm ? 'GSM-7' : 'UCS-2');
  const sizes = characters.map((character) =>
    encoding === 'GSM-7' ? (extension.includes(character) ? 2 : character.length) : character.length,
  );
  const units = sizes.reduce((sum, size) => sum + size, 0);
  const room = encoding === 'GSM-7' ? { single: 160, part: 153 } : { single: 70, part: 67 };
  const parts: number[] = [];
  for (const size of sizes) {
    const last = parts.at(-1);
    if (last === undefined || last + size > room.part) parts.push(size);
    else parts[parts.length - 1] = last + size;
  }
  return {
    characters: characters.length,
    encoding,
    units,
    parts: units <= room.single ? Math.min(units, 1) : parts.length,
    left: units <= room.single ? room.single - units : room.part - (parts.at(-1) ?? 0),
  };
}

const gsmText = fc.array(fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...basic) }, fc.constantFrom(...extension)), {
  maxLength: 500,
});
const anyText = fc.array(
  fc.oneof(fc.constantFrom(...basic, ...extension), fc.constantFrom('й', '😀', '漢', '\ud800', '\udc00', '`', 'ç')),
  { maxLength: 500 },
);

describe('charactersOutside (§2.1 body)', () => {
  it('returns every character outside GSM 03.38', () => {
    assert.equal(basic.length, 127);
    const alphabet = new Set([...basic, ...extension]);
    for (let code = 0; code <= 0xffff; code++) {
      const character = String.fromCharCode(code);
      const isOutside = charactersOutside(character, 1).length > 0;
      assert.notEqual(isOutside, alphabet.has(character), `U+${code.toString(16)}`);
    }
  });

  it('returns each character once, up to a maximum', () => {
    assert.deepEqual(charactersOutside('naïve Й, naïve €', 9), ['ï', 'Й']);
    assert.deepEqual(charactersOutside('ok 😀 й', 1), ['😀']);
    assert.deepEqual(charactersOutside('lone \ud83d and 😀', 9), ['\ud83d', '😀']);
    assert.deepEqual(charactersOutside('plain €', 9), []);
  });
});

describe('measureText', () => {
  const vectors: [title: string, text: string, encoding: Encoding, units: number, parts: number][] = [
    ['one part for 160 septets', 'a'.repeat(160), 'GSM-7', 160, 1],
    ['two parts for 161 septets', 'a'.repeat(161), 'GSM-7', 161, 2],
    ['two parts for 81 extension characters', '€'.repeat(81), 'GSM-7', 162, 2],
    ['three parts if two would split an escape sequence', `${'a'.repeat(152)}€${'a'.repeat(152)}`, 'GSM-7', 306, 3],
    ['one part for 70 UTF-16 units', 'й'.repeat(70), 'UCS-2', 70, 1],
    ['two parts for 71 UTF-16 units', 'й'.repeat(71), 'UCS-2', 71, 2],
    ['three parts if two parts would split an emoji', `${'й'.repeat(66)}😀${'й'.repeat(66)}`, 'UCS-2', 134, 3],
    ['two parts if the cut splits off an accent', `${'й'.repeat(66)}e\u0301${'й'.repeat(66)}`, 'UCS-2', 134, 2],
    ['two parts for 71 characters if one of them is outside GSM 03.38', `${'a'.repeat(70)}й`, 'UCS-2', 71, 2],
  ];
  for (const [title, text, encoding, units, parts] of vectors) {
    it(`counts ${title}`, () => {
      const measure = measureText(text);
      assert.deepEqual([measure.encoding, measure.units, measure.parts], [encoding, units, parts]);
      assert.equal(measure.characters, [...text].length);
    });
  }

  it('counts the same parts as a simple model for any text', () => {
    fc.assert(
      fc.property(fc.oneof(gsmText, anyText), fc.constantFrom(undefined, 'UCS-2' as const), (characters, forced) => {
        const text = characters.join('');
        assert.deepEqual(measureText(text, forced), measureByHand(text, forced));
      }),
    );
  });
});

describe('content type `gsm`', () => {
  const plan = (body: string, limits: { fragmentationLimit?: number; maxLength?: number } = {}) =>
    planEncoding(body, 'gsm', { fragmentationLimit: undefined, maxLength: undefined, ...limits });

  const replaced: [title: string, body: string, sentBody: string, replacements: number][] = [
    ['replaces curly quotes with straight quotes', '“It’s ‘fine’”', "\"It's 'fine'\"", 5],
    ['replaces dashes with hyphens', 'a – b — c ‑ d − e', 'a - b - c - d - e', 4],
    ['replaces an ellipsis with three dots', 'so…', 'so...', 1],
    ['replaces special spaces and tabs with plain spaces', 'a\u00a0b\u202fc\u2009d\te', 'a b c d e', 4],
    ['replaces ligatures with single letters', 'oﬃce ﬁle', 'office file', 2],
    ['removes invisible marks', 'a\u200bb\u00adc', 'abc', 2],
    ['replaces only characters outside GSM 03.38', 'Zoë – café'.replace('ë', 'é'), 'Zoé - café', 1],
  ];
  for (const [title, body, sentBody, replacements] of replaced) {
    it(title, () => {
      assert.deepEqual(plan(body), { body: sentBody, encoding: 'GSM-7', parts: 1, replacements });
    });
  }

  it('sends UTF-16 if one character has no replacement', () => {
    for (const body of ['“Привет”', '“ok” 👍', 'naïve – œuvre']) {
      const { contentType, encoding, ...rest } = plan(body);
      assert.deepEqual([contentType, encoding], ['text/plain; charset=UTF-16', 'UCS-2']);
      assert.deepEqual(rest, { body, parts: 1 });
    }
  });

  it('applies the limits after the replacements', () => {
    assert.equal(plan('“'.repeat(160), { fragmentationLimit: 1 }).parts, 1);
    assert.throws(() => plan('…'.repeat(60), { fragmentationLimit: 1 }), { reason: 'bodyTooManyParts' });
    assert.throws(() => plan('…'.repeat(4), { maxLength: 10 }), {
      reason: 'bodyTooLong',
      params: { length: 12, limit: 10 },
    });
  });

  it('replaces no letters except ligatures', () => {
    for (let code = 0x80; code <= 0xffff; code++) {
      const character = String.fromCharCode(code);
      const { body, replacements } = plan(character);
      assert.equal(
        charactersOutside(body, 1).length === 0,
        replacements === 1 || (body === character && charactersOutside(character, 1).length === 0),
      );
      if (replacements) assert.doesNotMatch(character, /(?![\ufb00-\ufb06])\p{L}/u, `U+${code.toString(16)}`);
    }
  });
});
