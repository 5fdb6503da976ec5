import { XMLParser, XMLValidator } from 'fast-xml-parser';
import type { SmsError } from '../errors';
import { decodeXmlEntities } from './entities';
import { isBlank } from './fields';
import { decodeText, type OnUnknownCharset } from './text';
import { unreadable } from './unreadable';
import { formatMarkup, type XmlElement } from './xml-element';
import { readMarkup } from './xml-grammar';

const maxBytes = 2 * 1024 * 1024;
const tooManyMarks = /^(?:[^<=]*[<=]){50001}/;

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
export function parseXml(
  bytes: Uint8Array,
  contentType?: string,
  onUnknownCharset?: OnUnknownCharset,
  mend?: (text: string) => string,
): XmlElement {
  if (bytes.length > maxBytes) throw unreadable('answer', 'XML of more than 2 MiB');
  const decoded = decodeText(bytes, contentType, onUnknownCharset);
  const text = mend === undefined ? decoded : mend(decoded);
  if (text.length > maxBytes) throw unreadable('answer', 'XML of more than 2 MiB');
  if (tooManyMarks.test(text)) throw unreadable('answer', 'XML with too many elements and attributes');
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

function decode(text: string): string {
  const decoded = decodeXmlEntities(text);
  if (decoded === undefined) throw broken();
  return decoded;
}

function broken(): SmsError {
  return unreadable('answer', 'XML that is broken, cut off or nested too deeply');
}
