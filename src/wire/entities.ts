/** Names and characters of the five XML entities. */
const xmlEntities: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);

/** Entity names of the characters from U+00A0 to U+00FF, in order. */
const latin1Names =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml';

const htmlEntities: ReadonlyMap<string, string> = new Map([
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

/** Decodes the five XML entities and character references, in one pass. Other entities stay as they are. */
export function decodeXmlEntities(text: string): string {
  return decode(text, xmlEntities);
}

/** Decodes XML entities, the HTML entities of Latin-1 and some more HTML entities, in one pass. */
export function decodeHtmlEntities(text: string): string {
  return decode(text, htmlEntities);
}

function decode(text: string, entities: ReadonlyMap<string, string>): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (reference, decimal, hexadecimal, name) => {
    if (name !== undefined) return entities.get(name) ?? reference;
    const codePoint = Number(decimal ?? `0x${hexadecimal}`);
    return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : reference;
  });
}
