// How long the XML takes to be read that is worst for it, within the bounds of 2 MiB and 50,000 marks: npx tsx bench/worst-xml.ts
import { parseFeed } from '../src/wire/feed';
import { parseXml } from '../src/wire/xml';

const parseAnswer = (bytes: Uint8Array) => parseXml(bytes);
const size = 2 * 1024 * 1024 - 200;
const fill = (piece: string, length = size) => piece.repeat(Math.floor(length / piece.length));
const feed = (title: string) =>
  `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>${title}</title></entry></feed>`;
const attributes = Array.from({ length: 49_900 }, (_, at) => `p:a${at}="1"`).join(' ');

const documents: readonly [name: string, read: (bytes: Uint8Array) => unknown, text: string][] = [
  ['attributes with a prefix', parseAnswer, `<a xmlns:p="u" ${attributes}/>`],
  ['elements with a prefix', parseAnswer, `<a xmlns:p="u">${'<p:b p:c="1"/>'.repeat(24_000)}</a>`],
  ['empty elements', parseAnswer, `<a>${'<b/>'.repeat(49_900)}</a>`],
  ['a namespace for each element', parseAnswer, `<a>${'<b xmlns:p="u" p:x="1"/>'.repeat(16_000)}</a>`],
  ['text', parseAnswer, `<a>${fill('abc ')}</a>`],
  ['an attribute of > alone', parseAnswer, `<a b="${fill('>')}"/>`],
  ['CDATA', parseAnswer, `<a>${'<![CDATA[x]]>'.repeat(49_000)}</a>`],
  ['references, in an answer', parseAnswer, `<a>${fill('&#65;')}</a>`],
  ['references, in a feed', parseFeed, feed(fill('&#65;'))],
  ['entities, in a feed', parseFeed, feed(fill('&lt;'))],
  ['bare & in a feed', parseFeed, feed(fill('& aaaaaaa', size / 1.6))],
  [']]> in a feed', parseFeed, feed(fill(']]>', size / 2))],
  ['characters that XML has not, in a feed', parseFeed, feed(fill('\u0001'))],
  ['elements of XHTML in an entry', parseFeed, feed(fill('<b>x</b>', 190_000))],
];

for (const [name, read, text] of documents) {
  const bytes = Buffer.from(text);
  const times = Array.from({ length: 3 }, () => {
    const begin = performance.now();
    read(bytes);
    return performance.now() - begin;
  });
  console.log(`${name.padEnd(40)} ${times.map((ms) => `${ms.toFixed(0)} ms`.padStart(8)).join('')}`);
}
