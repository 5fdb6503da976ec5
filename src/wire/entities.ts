const xmlEntities: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);

/** Names of the characters from U+00A0 to U+00FF, in their order. */
const latin1Names =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml';

/** What the names of {@link decodeHtmlEntities} stand for. */
export const htmlEntities: ReadonlyMap<string, string> = new Map([
  ...xmlEntities,
  ...latin1Names.split(' ').map((name, index): [string, string] => [name, String.fromCharCode(0xa0 + index)]),
  ['euro', '€'],
  ['hellip', '…'],
  ['ndash', '–'],
  ['mdash', '—'],
  ['lsquo', '‘'],
  ['rsquo', '’'],
  ['ldquo', '“'],
  ['rdquo', '”'],
]);

/** Longer than any reference that means something, such as `&#1114111;`, also with a few leading zeros. */
const longestReference = 32;

/** Decodes the five entities of XML and numeric character references, each once; other references stay as they are. */
export function decodeXmlEntities(text: string): string {
  return decode(text, xmlEntities);
}

/** Decodes what {@link decodeXmlEntities} does and the names that HTML gives to the characters of Latin-1 and a few more. */
export function decodeHtmlEntities(text: string): string {
  return decode(text, htmlEntities);
}

/** Takes millions of references without a pause, which `replace` with a function does not. */
function decode(text: string, entities: ReadonlyMap<string, string>): string {
  let decoded = '';
  let from = 0;
  for (let start = text.indexOf('&'); start !== -1; start = text.indexOf('&', start + 1)) {
    const end = endOfReference(text, start + 1);
    const character = end === -1 ? undefined : readReference(text.slice(start + 1, end), entities);
    if (character === undefined) continue;
    decoded += text.slice(from, start) + character;
    from = end + 1;
  }
  return from === 0 ? text : decoded + text.slice(from);
}

function endOfReference(text: string, start: number): number {
  for (let end = start; end < start + longestReference; end++) if (text.charCodeAt(end) === 0x3b) return end;
  return -1;
}

function readReference(name: string, entities: ReadonlyMap<string, string>): string | undefined {
  if (name.charCodeAt(0) !== 0x23) return entities.get(name);
  const [, decimal, hexadecimal] = /^#(?:(\d+)|[xX]([\da-fA-F]+))$/.exec(name) ?? [];
  const codePoint = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16);
  const isCharacter = codePoint > 0 && codePoint <= 0x10ffff && !(codePoint >= 0xd800 && codePoint <= 0xdfff);
  return isCharacter ? String.fromCodePoint(codePoint) : undefined;
}
