import { XMLParser, XMLValidator } from 'fast-xml-parser';
import type { SmsError } from '../errors';
import { characterOf, noXmlCharacters } from './entities';
import { isBlank, unreadable } from './fields';
import { decodeText, type Encoded } from './text';

const maxBytes = 2 * 1024 * 1024;
const mostMarks = 50_000;

const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  parseTagValue: false,
  parseAttributeValue: false,
  processEntities: false,
  trimValues: false,
  cdataPropName: '#cdata',
  jPath: false,
  maxNestedTags: 99,
  // Behind a mark no name means anything to JavaScript. That of an empty element comes here twice.
  attributeNamePrefix: '<',
  transformTagName: (name) => (name.startsWith('<') ? name : `<${name}`),
});

/** A text, CDATA, or, under its name behind `<` or `<<`, what an element holds; `:@` are its attributes, each name behind `<`. */
interface ParsedNode {
  readonly '#text'?: string;
  readonly '#cdata'?: readonly [ParsedNode];
  readonly ':@'?: Readonly<Record<string, string>>;
}

/**
 * Parses an XML document and gives its root. What is not well-formed is refused, and so is a DTD. Values are text, whatever they look
 * like. A document has at most 2 MiB, 50,000 marks (`<` and `=`), and elements that are nested 100 deep.
 *
 * @param mend makes XML of a text that almost is; with it, a prefix that is declared nowhere stands for its own namespace
 * @throws SmsError `SMS_RESPONSE` (reason `responseUnreadable`) whose `detail` says why
 */
export function parseXml(encoded: Encoded, mend?: (text: string) => string): XmlElement {
  if (encoded[0].length > maxBytes) throw unreadable('answer', 'XML of more than 2 MiB');
  const decoded = decodeText(...encoded);
  const text = mend === undefined ? decoded : mend(decoded);
  if (text.length > maxBytes) throw unreadable('answer', 'XML of more than 2 MiB');
  if (text.split(/[<=]/, mostMarks + 2).length > mostMarks + 1)
    throw unreadable('answer', 'XML with too many elements and attributes');
  const read = readMarkup(text);
  // The validator looks long at each `&`, and believes any name behind it: that is for `decode`.
  if (read === undefined || XMLValidator.validate(read.tags.replaceAll('&', '_')) !== true) throw broken();
  const [root, ...others] = parse(read.markup).filter((node) => !('#text' in node));
  if (root === undefined || '#cdata' in root || others.length > 0) throw broken();
  return createElement(root, outermost, mend !== undefined);
}

function parse(markup: string): ParsedNode[] {
  try {
    return parser.parse(markup);
  } catch {
    throw broken();
  }
}

/** URIs by what declares them, `xmlns` or `xmlns:prefix`; what is declared around an element is the prototype. */
type Scope = Record<string, string>;

const outermost: Scope = Object.assign(Object.create(null), { xmlns: '', 'xmlns:xml': 'xml' });

function createElement(node: ParsedNode, around: Scope, isLenient: boolean): XmlElement {
  const [[tag, inside]] = Object.entries(node) as [[string, readonly ParsedNode[]]];
  const given = Object.entries(node[':@'] ?? {}).map(([name, value]): [string, string] => {
    return [name.slice(1), decode(value.replace(/[\t\n]/g, ' '))];
  });
  const own = given.filter(([name]) => name !== 'xmlns' && !name.startsWith('xmlns:'));
  const scope: Scope = own.length === given.length ? around : Object.create(around);
  for (const [name, value] of given) if (scope !== around) scope[name] = value;
  const resolve = (name: string, ofNoPrefix = ''): [local: string, namespace: string] => {
    const [prefix = '', local] = name.split(':');
    if (local === undefined) return [name, ofNoPrefix];
    const namespace = scope[`xmlns:${prefix}`] || (isLenient && prefix);
    if (namespace === false) throw broken();
    return [local, namespace];
  };
  const attributes: Record<string, string> = Object.create(null);
  const expandedNames = new Set<string>();
  for (const [name, value] of own) {
    const [local, namespace] = resolve(name);
    expandedNames.add(`${local} ${namespace}`);
    // The element's own goes before those of other namespaces.
    if (local === name || !(local in attributes)) attributes[local] = value;
  }
  if (expandedNames.size < own.length) throw broken();
  const [name, namespace] = resolve(tag.replace(/^<+/, ''), scope.xmlns);
  const content = inside.map((child) => textOf(child) ?? createElement(child, scope, isLenient));
  const sections = inside.map((child) => child['#cdata']?.[0]['#text']).filter((section) => section !== undefined);
  const isCdataAlone = inside.every((child) => isBlank(child['#text']));
  return {
    name,
    namespace,
    attributes,
    children: content.filter((piece) => typeof piece !== 'string'),
    text: content.filter((piece) => typeof piece === 'string').join(''),
    cdata: sections.length > 0 && isCdataAlone ? sections.join('') : undefined,
    inner: () => formatMarkup(content),
  };
}

function textOf(node: ParsedNode): string | undefined {
  return node['#text'] === undefined ? node['#cdata']?.[0]['#text'] : decode(node['#text']);
}

/** Decodes the five entities of XML and references to characters that XML has, each once. */
function decode(text: string): string {
  return text.replace(/&([^&;]*);?/g, (reference, name: string) => {
    const character = reference.endsWith(';') ? characterOf(name) : undefined;
    if (character === undefined) throw broken();
    return character;
  });
}

function broken(): SmsError {
  return unreadable('answer', 'XML that is broken, cut off or nested too deeply');
}

/** An element of an XML document. */
export interface XmlElement {
  /** Local name. */
  readonly name: string;
  /** The URI of its namespace, empty when it is in none. */
  readonly namespace: string;
  /** Decoded values by local name, without declarations of namespaces. Has no prototype. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** The element's own text and CDATA, decoded and joined; not its children's. */
  readonly text: string;
  /** The element's CDATA alone, when nothing but white space is around it. */
  readonly cdata: string | undefined;
  /** The markup between the element's tags, as HTML: without prefixes, CDATA as text. */
  inner(): string;
}

const voidElements = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

/** What an element says: its CDATA or text verbatim, or its markup when it holds elements, so that none of it is lost. */
export function contentOf(element: XmlElement): string {
  return element.children.length > 0 ? element.inner() : (element.cdata ?? element.text);
}

/** Elements and text as HTML: names without prefixes, no empty tag but those of HTML, each text escaped. */
function formatMarkup(content: readonly (XmlElement | string)[]): string {
  return content.map((piece) => (typeof piece === 'string' ? escapeText(piece) : formatElement(piece))).join('');
}

function formatElement(element: XmlElement): string {
  let tag = `<${element.name}`;
  for (const [name, value] of Object.entries(element.attributes)) {
    tag += ` ${name}="${escapeText(value).replaceAll('"', '&quot;')}"`;
  }
  return voidElements.has(element.name) ? `${tag}>` : `${tag}>${element.inner()}</${element.name}>`;
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

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
function readMarkup(text: string): { markup: string; tags: string } | undefined {
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
