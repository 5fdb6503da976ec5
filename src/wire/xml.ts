import { XMLParser, XMLValidator } from 'fast-xml-parser';
import type { SmsError } from '../errors';
import { decodeXmlEntities } from './entities';
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

/** A section of CDATA (captured), or what says nothing: a comment, a processing instruction or the declaration, each to its end. */
const section = /(<!\[CDATA\[.*?(?:\]\]>|$))|<!--.*?(?:-->|$)|<\?.*?(?:\?>|$)/gs;

/** A tag, or as much as can be read of it, and the values in it, in which a `>` ends no tag. */
const openTag = /<(?:[^>"']+|"[^"]*"|'[^']*')*/g;
const quoted = /"[^"]*"|'[^']*'/g;

/**
 * Parses an XML document and gives its root. What is broken or cut off is refused, and so is a DTD. References that XML does not have stay
 * as they are, and a prefix need not be declared. Values are text, whatever they look like. A document has at most 2 MiB, 50,000 marks
 * (`<` and `=`), 50,000 pieces of white space in its tags, and elements that are nested 100 deep.
 *
 * @throws SmsError `SMS_RESPONSE` (reason `responseUnreadable`) whose `detail` says why
 */
export function parseXml(...encoded: Encoded): XmlElement {
  if (encoded[0].length > maxBytes) throw unreadable('answer', 'XML of more than 2 MiB');
  const text = decodeText(...encoded);
  if (text.split(/[<=]/, mostMarks + 2).length > mostMarks + 1)
    throw unreadable('answer', 'XML with too many elements and attributes');
  const tags = text.replace(section, '');
  if (tags.includes('<!')) throw unreadable('answer', 'a DTD, which is not accepted');
  // The validator takes seconds, and hundreds of MB, for a million names without a value.
  const names = (tags.match(openTag) ?? []).join('').replace(quoted, '');
  if (names.split(/\s+/, mostMarks + 2).length > mostMarks + 1)
    throw unreadable('answer', 'XML with too much white space in its tags');
  // It looks long at each `&`.
  if (XMLValidator.validate(tags.replaceAll('&', '_')) !== true) throw broken();
  const [root, ...others] = parse(text.replace(section, '$1')).filter((node) => !('#text' in node));
  if (root === undefined || '#cdata' in root || others.length > 0) throw broken();
  return createElement(root);
}

function parse(markup: string): ParsedNode[] {
  try {
    return parser.parse(markup);
  } catch {
    throw broken();
  }
}

function createElement(node: ParsedNode): XmlElement {
  const [[tag, inside]] = Object.entries(node) as [[string, readonly ParsedNode[]]];
  const [prefix, name] = splitName(tag.replace(/^<+/, ''));
  const attributes: Record<string, string> = Object.create(null);
  for (const [marked, value] of Object.entries(node[':@'] ?? {})) {
    const [namespace, local] = splitName(marked.slice(1));
    // The element's own goes before those of other namespaces, and declarations of namespaces are none.
    if (namespace === '' ? local !== 'xmlns' : namespace !== 'xmlns' && !(local in attributes))
      attributes[local] = decode(value);
  }
  const content = inside.map((child) => textOf(child) ?? createElement(child));
  const sections = inside.map((child) => child['#cdata']?.[0]['#text']).filter((section) => section !== undefined);
  const isCdataAlone = inside.every((child) => isBlank(child['#text']));
  return {
    name,
    prefix,
    attributes,
    children: content.filter((piece) => typeof piece !== 'string'),
    text: content.filter((piece) => typeof piece === 'string').join(''),
    cdata: sections.length > 0 && isCdataAlone ? sections.join('') : undefined,
    inner: () => formatMarkup(content),
  };
}

function splitName(name: string): [prefix: string, local: string] {
  const colon = name.indexOf(':');
  return [name.slice(0, Math.max(colon, 0)), name.slice(colon + 1)];
}

function textOf(node: ParsedNode): string | undefined {
  return node['#text'] === undefined ? node['#cdata']?.[0]['#text'] : decode(node['#text']);
}

function decode(text: string): string {
  return text.includes('&') ? decodeXmlEntities(text) : text;
}

function broken(): SmsError {
  return unreadable('answer', 'XML that is broken, cut off or nested too deeply');
}

/** An element of an XML document. */
export interface XmlElement {
  /** Local name. */
  readonly name: string;
  /** What stands before the colon of its name, empty without one. */
  readonly prefix: string;
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
