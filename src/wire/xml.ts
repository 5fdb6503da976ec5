import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { SmsError } from '../errors';
import { decodeXmlEntities } from './entities';
import { isBlank } from './fields';

/** An element of an XML document. */
export interface XmlElement {
  /** Local name. */
  name: string;
  /** Empty when the name has none. */
  prefix: string;
  /** Decoded values by local name, without declarations of namespaces. Has no prototype. */
  attributes: Readonly<Record<string, string>>;
  children: readonly XmlElement[];
  /** The element's own text and CDATA, decoded and joined; not its children's. */
  text: string;
  /** The element's CDATA alone, when nothing but white space is around it. */
  cdata?: string;
  /** The markup between the element's tags, as HTML: without prefixes, CDATA as text. */
  inner(): string;
}

const textName = '#text';
const cdataName = '#cdata';
const attributesName = ':@';
const maxNesting = 100;
/** More than any answer of 8 MiB has that means something; without a limit, that much of empty elements takes 700 MB. */
const maxTags = 500_000;

/**
 * Every name gets a colon in front, and attributes an at sign, because the parser refuses or renames some names (`__proto__`,
 * `constructor`, `toString`). The colon goes away with the prefix. References are decoded here, since the parser's
 * decoder limits the length of the text.
 */
const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  textNodeName: textName,
  cdataPropName: cdataName,
  parseTagValue: false,
  parseAttributeValue: false,
  trimValues: false,
  processEntities: false,
  maxNestedTags: maxNesting,
  transformTagName: (name) => `:${name}`,
});

type ParsedNode = Record<string, unknown>;

/**
 * Parses an XML document strictly and gives its root. Nothing is fetched or expanded: a DTD is refused, and only the five
 * entities of XML and numeric character references are decoded. Values are text, whatever they look like. Elements may be
 * nested 100 deep, and there may be 500,000 tags.
 *
 * @throws SmsError `SMS_RESPONSE` (reason `responseUnreadable`) whose `detail` says why
 */
export function parseXml(text: string): XmlElement {
  const document = withoutRemarks(text);
  let nodes: unknown;
  try {
    if (XMLValidator.validate(document) !== true) throw unreadable('broken XML');
    nodes = parser.parse(document);
  } catch (error) {
    if (error instanceof SmsError) throw error;
    throw unreadable('broken XML');
  }
  const roots: XmlElement[] = [];
  for (const node of nodes as ParsedNode[]) {
    const element = createElement(node);
    if (element === undefined) throw unreadable('broken XML');
    roots.push(element);
  }
  const [root] = roots;
  if (root === undefined || roots.length > 1) throw unreadable('broken XML');
  return root;
}

/**
 * Removes the XML declaration, comments and processing instructions, none of which carries data, and checks on the way that
 * every piece of markup is closed and none is a DTD: neither the validator nor the parser does.
 */
function withoutRemarks(text: string): string {
  let kept = '';
  let from = 0;
  let depth = 0;
  let tags = 0;
  let end = 0;
  for (let start = text.indexOf('<'); start !== -1; ) {
    if (depth === 0 && !isBlank(text.slice(end, start))) throw unreadable('broken XML');
    let isRemark = false;
    if (text.startsWith('<!--', start)) {
      end = endOf(text, '-->', start + 4);
      isRemark = true;
    } else if (text.startsWith('<![CDATA[', start)) {
      if (depth === 0) throw unreadable('broken XML');
      end = endOf(text, ']]>', start + 9);
    } else if (text.charCodeAt(start + 1) === 0x3f) {
      end = endOf(text, '?>', start + 2);
      isRemark = true;
    } else if (text.charCodeAt(start + 1) === 0x21) {
      throw unreadable(
        /^<!doctype/i.test(text.slice(start, start + 9)) ? 'a DTD, which is not accepted' : 'broken XML',
      );
    } else {
      end = endOfTag(text, start + 1);
      if (text.charCodeAt(start + 1) === 0x2f) depth--;
      else if (text.charCodeAt(end - 2) !== 0x2f) depth++;
      if (++tags > maxTags) throw unreadable('XML with too many elements');
      if (depth > maxNesting) throw unreadable('XML that is nested too deeply');
    }
    if (isRemark) {
      kept += text.slice(from, start);
      from = end;
    }
    start = text.indexOf('<', end);
  }
  if (depth > 0) throw unreadable('XML that is cut off');
  if (!isBlank(text.slice(end))) throw unreadable('broken XML');
  return (kept + text.slice(from)).trim();
}

function endOf(text: string, mark: string, from: number): number {
  const start = text.indexOf(mark, from);
  if (start === -1) throw unreadable('XML that is cut off');
  return start + mark.length;
}

function endOfTag(text: string, from: number): number {
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x3e) return index + 1;
    if (code === 0x22 || code === 0x27) {
      index = text.indexOf(code === 0x22 ? '"' : "'", index + 1);
      if (index === -1) break;
    }
  }
  throw unreadable('XML that is cut off');
}

function createElement(node: ParsedNode): XmlElement | undefined {
  for (const name in node) {
    if (name !== attributesName && name !== textName && name !== cdataName) {
      return new ParsedElement(name, node[attributesName], node[name] as ParsedNode[]);
    }
  }
  return undefined;
}

class ParsedElement implements XmlElement {
  readonly name: string;
  readonly prefix: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlElement[] = [];
  readonly text: string;
  declare readonly cdata?: string;
  readonly #content: (XmlElement | string)[] = [];

  constructor(name: string, attributes: unknown, content: readonly ParsedNode[]) {
    const colon = name.lastIndexOf(':');
    this.name = name.slice(colon + 1);
    const start = name.lastIndexOf(':', colon - 1) + 1;
    this.prefix = colon > start ? name.slice(start, colon) : '';
    this.attributes = readAttributes(attributes);
    let text = '';
    let cdata: string | undefined;
    let isCdataAlone = true;
    for (const node of content) {
      let piece: string;
      if (typeof node[textName] === 'string') {
        piece = decodeXmlEntities(node[textName]);
        if (piece.trim() !== '') isCdataAlone = false;
      } else if (node[cdataName] !== undefined) {
        piece = (node[cdataName] as [{ [textName]: string }])[0][textName];
        cdata = (cdata ?? '') + piece;
      } else {
        const child = createElement(node);
        if (child !== undefined) {
          this.children.push(child);
          this.#content.push(child);
        }
        continue;
      }
      text += piece;
      this.#content.push(piece);
    }
    this.text = text;
    if (cdata !== undefined && isCdataAlone) this.cdata = cdata;
  }

  inner(): string {
    return this.#content.map((piece) => (typeof piece === 'string' ? escapeText(piece) : outer(piece))).join('');
  }
}

const noAttributes: Readonly<Record<string, string>> = Object.freeze(Object.create(null));

function readAttributes(parsed: unknown): Readonly<Record<string, string>> {
  if (parsed === undefined) return noAttributes;
  const attributes: Record<string, string> = Object.create(null);
  for (const [key, value] of Object.entries(parsed as Record<string, string>)) {
    if (key === '@xmlns' || key.startsWith('@xmlns:')) continue;
    const name = key.slice(Math.max(key.lastIndexOf(':'), 0) + 1);
    attributes[name] = decodeXmlEntities(value);
  }
  return attributes;
}

const voidElements = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

function outer(element: XmlElement): string {
  let tag = `<${element.name}`;
  for (const [name, value] of Object.entries(element.attributes)) {
    tag += ` ${name}="${escapeText(value).replaceAll('"', '&quot;')}"`;
  }
  return voidElements.has(element.name) ? `${tag}>` : `${tag}>${element.inner()}</${element.name}>`;
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function unreadable(detail: string): SmsError {
  return new SmsError('responseUnreadable', { params: { detail } });
}
