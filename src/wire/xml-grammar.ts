import { noXmlCharacters } from './entities';
import { unreadable } from './unreadable';

const space = '[ \\t\\r\\n]';
const letter =
  'A-Z_a-z\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c\\u200d\\u2070-\\u218f\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd';
const simpleName = `[${letter}][${letter}\\d.\\-\\u00b7\\u0300-\\u036f\\u203f\\u2040]*`;
const name = `${simpleName}(?::${simpleName})?`;
const equals = `${space}*=${space}*`;
const attribute = `${space}+${name}${equals}(?:"[^<"]*"|'[^<']*')`;
const declaration = new RegExp(
  `^<\\?xml${space}+version${equals}(["'])1\\.\\d+\\1(?:${space}+encoding${equals}(["'])[A-Za-z][\\w.\\-]*\\2)?(?:${space}+standalone${equals}(["'])(?:yes|no)\\3)?${space}*\\?>`,
);
/** Only white space is around the root. */
const outside = /^[ \t\r\n]*<.*>[ \t\r\n]*$/s;
/** Text, CDATA, a tag, or (captured) a comment or processing instruction, each as the grammar of XML has it. */
const piece = new RegExp(
  `(?![^<]*\\]\\]>)[^<]+|<!\\[CDATA\\[.*?\\]\\]>|</${name}${space}*>|<${name}(?:${attribute})*${space}*/?>|(<!--[^-]*(?:-[^-]+)*-->|<\\?(?![xX][mM][lL][ \\t\\r\\n?])${simpleName}(?:${space}.*?)?\\?>)`,
  'sy',
);

/**
 * Checks the text of a document against what the grammar of XML says of each of its pieces; how tags, names and references belong
 * together is left to the parser. A parser reads comments and processing instructions in its own ways, so they are left out.
 *
 * @returns its tags, texts and CDATA as `markup`, and its tags alone; `undefined` when something else is in it
 * @throws SmsError for a DTD
 */
export function readMarkup(text: string): { markup: string; tags: string } | undefined {
  let markup = '';
  let tags = '';
  piece.lastIndex = declaration.exec(text)?.[0].length ?? 0;
  for (let start = piece.lastIndex; start < text.length; start = piece.lastIndex) {
    const [found, aside] = piece.exec(text) ?? [];
    if (found === undefined) {
      if (text.startsWith('<!DOCTYPE', start)) throw unreadable('answer', 'a DTD, which is not accepted');
      return undefined;
    }
    if (aside !== undefined) continue;
    markup += found;
    if (found.startsWith('<') && !found.startsWith('<!')) tags += found;
  }
  return text.search(noXmlCharacters) >= 0 || !outside.test(markup) ? undefined : { markup, tags };
}
