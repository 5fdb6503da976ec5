/**
 * Replacements of typographic look-alikes outside GSM 03.38, for content type `gsm`.
 *
 * Source: Unicode CLDR, transform Latin-ASCII (`common/transforms/Latin-ASCII.xml`): its quotation marks, dashes,
 * spaces, punctuation, arrows and ligatures of the block U+FB00, but no letters and no modifier letters. This table
 * differs from CLDR:
 *
 * - Bullets, control characters, U+00B4, U+0060, U+2034, U+2043 and most invisible marks have no entry in CLDR.
 * - Low and angle quotation marks become plain quotation marks, because `,,` and `<<` are hard to read in a message.
 * - Soft hyphens are dropped, because the position of a line break is unknown.
 * - The sign × becomes the letter x, because `*` is rarely understood.
 */
const replacements: ReadonlyMap<string, string> = new Map(
  (
    [
      ["'", '‘ ’ ‚ ‛ ‹ › ′ ´ ` ＇'],
      ['"', '“ ” „ ‟ « » ″ 〝 〞 ＂'],
      ["'''", '‴'],
      ['-', '‐ ‑ ‒ – — ― − ⁃ ︱ ︲ ﹘ ﹣ －'],
      ['...', '… ︙'],
      ['..', '‥'],
      ['.', '․'],
      ['*', '• ‣ ∙ · ● ◦ ▪ ■ ⁎'],
      ['x', '×'],
      ['/', '⁄ ∕'],
      ['|', '¦'],
      ['||', '‖ ∥'],
      ['!!', '‼'],
      ['??', '⁇'],
      ['?!', '⁈'],
      ['!?', '⁉'],
      ['->', '→'],
      ['<-', '←'],
      ['<->', '↔'],
      ['ff', 'ﬀ'],
      ['fi', 'ﬁ'],
      ['fl', 'ﬂ'],
      ['ffi', 'ﬃ'],
      ['ffl', 'ﬄ'],
      ['st', 'ﬅ ﬆ'],
      // Characters that a reader sees as a space, as a line break or not at all.
      [' ', [...'\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000']],
      ['\n', [...'\v\u0085\u2028\u2029']],
      ['', [...'\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff']],
    ] as [string, string | string[]][]
  ).flatMap(([replacement, characters]) =>
    (typeof characters === 'string' ? characters.split(' ') : characters).map((character): [string, string] => [
      character,
      replacement,
    ]),
  ),
);

/** Replaces typographic look-alikes outside GSM 03.38, and counts them. Letters never change. */
export function replaceLookAlikes(body: string): { body: string; replacements: number } {
  let count = 0;
  const replacedBody = body.replace(/[^\n\r\x20-\x5f\x61-\x7e]/gu, (character) => {
    const replacement = replacements.get(character);
    if (replacement === undefined) return character;
    count++;
    return replacement;
  });
  return { body: replacedBody, replacements: count };
}
