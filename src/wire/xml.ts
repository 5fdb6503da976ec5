import { XMLParser, XMLValidator } from 'fast-xml-parser';
import type { SmsError } from '../errors';
import { decodeText, type Encoded } from './charset';
import { decodeEntities } from './entities';
import { isBlank, unreadable } from './fields';

const maxBytes = 2 * 1024 * 1024;
/** Maximum number of attributes in one tag. The validator takes 8 s for half a million. */
const maxAttributes = 1_000;

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
  // With a prefix, names such as `__proto__` are harmless. The parser transforms the names of empty elements twice, so
  // the function adds the prefix only if it is missing.
  attributeNamePrefix: '<',
  transformTagName: (name) => (name.startsWith('<') ? name : `<${name}`),
});

/** A node as the parser returns it. Its content is under `<name`, and its attributes are under `:@`. */
interface ParsedNode {
  readonly '#text'?: string;
  readonly '#cdata'?: readonly [ParsedNode];
  readonly ':@'?: Readonly<Record<string, string>>;
}

/** A CDATA section (captured), a comment, a processing instruction or the XML declaration. */
const section = /(<!\[CDATA\[.*?(?:\]\]>|$))|<!--.*?(?:-->|$)|<\?.*?(?:\?>|$)/gs;

/** A tag up to its `>`, or up to the first quote that is not closed. A `>` inside a value does not end the tag. */
const openTag = /<(?:[^>"']+|"[^"]*"|'[^']*')*/g;
const quoted = /"[^"]*"|'[^']*'/g;

/**
 * Parses an XML document and returns its root. Refuses DTDs and documents that are broken or cut off. Values stay text,
 * even if they look like numbers. Unknown entities stay as they are, and prefixes need no declaration. A document has
 * at most 2 MiB, 1,000 attributes in one tag and 100 nested elements.
 *
 * @throws SmsError `SMS_RESPONSE` (reason `responseUnreadable`) whose `detail` says why
 */
export function parseXml(...encoded: Encoded): XmlElement {
  if (encoded[0].length > maxBytes) throw unreadable('answer', 'XML of more than 2 MiB');
  const text = decodeText(...encoded);
  const tags = text.replace(section, '');
  if (tags.includes('<!')) throw unreadable('answer', 'a DTD, which is not accepted');
  for (const [tag] of tags.matchAll(openTag)) {
    if (tag.replace(quoted, '').split('=', maxAttributes + 2).length > maxAttributes + 1)
      throw unreadable('answer', `XML with more than ${maxAttributes.toLocaleString('en')} attributes in one tag`);
  }
  // Replaces each `&`, because the validator is slow with entities and does not check them.
  if (XMLValidator.validate(tags.replaceAll('&', '_')) !== true) throw broken();
  const [root, ...otherRoots] = parse(text.replace(section, '$1')).filter((node) => !('#text' in node));
  if (root === undefined || '#cdata' in root || otherRoots.length > 0) throw broken();
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
  const [[tag, childNodes]] = Object.entries(node) as [[string, readonly ParsedNode[]]];
  const [prefix, name] = splitName(tag.slice(1));
  const attributes: Record<string, string> = Object.create(null);
  for (const [attributeName, value] of Object.entries(node[':@'] ?? {})) {
    const [namespace, local] = splitName(attributeName.slice(1));
    // An attribute without a prefix takes precedence over a prefixed one with the same local name. Namespace
    // declarations are left out.
    if (namespace === '' ? local !== 'xmlns' : namespace !== 'xmlns' && !(local in attributes))
      attributes[local] = decode(value);
  }
  const content = childNodes.map((child) => textOf(child) ?? createElement(child));
  const sections = childNodes.map((child) => child['#cdata']?.[0]['#text']).filter((section) => section !== undefined);
  const isCdataAlone = childNodes.every((child) => isBlank(child['#text']));
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
  return text.includes('&') ? decodeEntities(text) : text;
}

function broken(): SmsError {
  return unreadable('answer', 'XML that is broken, cut off or nested too deeply');
}

/** An element of an XML document. */
export interface XmlElement {
  /** Local name. */
  readonly name: string;
  /** Part of the name before the colon; empty if there is none. */
  readonly prefix: string;
  /** Decoded values by local name, without namespace declarations. Has no prototype. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** Text and CDATA of the element itself, decoded and joined, without the text of its children. */
  readonly text: string;
  /** CDATA of the element; `undefined` if anything but white space surrounds it. */
  readonly cdata: string | undefined;
  /** Writes the content of the element as HTML: without prefixes, and with CDATA as escaped text. */
  inner(): string;
}

const voidElements = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

/** Returns the content of an element: its markup if it has child elements, otherwise its CDATA or text. */
export function contentOf(element: XmlElement): string {
  return element.children.length > 0 ? element.inner() : (element.cdata ?? element.text);
}

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
