import { XMLParser } from 'fast-xml-parser';
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

const space = '[ \\t\\r\\n]';
const name = '[A-Za-z_:\\u00c0-\\uffff][\\w:.\\-\\u00b7-\\uffff]*';
const tagStart = new RegExp(`<(/?)(${name})`, 'y');
const attribute = new RegExp(`${space}+(${name})${space}*=${space}*(?:"[^"]*"|'[^']*')`, 'y');
const tagEnd = new RegExp(`${space}*(/?)>`, 'y');
const bareAmpersand = /&(?!#\d+;|#x[\da-f]+;|[a-z][\w]*;)/i;

/**
 * Every name gets a colon in front, and attributes an at sign, because the parser refuses or renames some names (`__proto__`,
 * `constructor`, `toString`). The colon goes away with the prefix. The parser's own decoder limits the length of the text.
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
  entityDecoder: {
    decode: decodeXmlEntities,
    reset: () => {},
    setXmlVersion: () => {},
    setExternalEntities: () => {},
    addInputEntities: () => {},
  },
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
  const document = checkMarkup(text);
  let nodes: ParsedNode[];
  try {
    nodes = parser.parse(document) as ParsedNode[];
  } catch {
    throw unreadable('broken XML');
  }
  const [root] = nodes.map(createElement);
  if (root === undefined) throw unreadable('broken XML');
  return root;
}

/**
 * Checks that the text is one well-formed element, since the parser reads anything, and gives it without what carries no
 * data: the XML declaration, comments and processing instructions.
 */
function checkMarkup(text: string): string {
  let kept = '';
  let from = 0;
  const open: string[] = [];
  let tags = 0;
  let end = 0;
  for (let start = text.indexOf('<'); start !== -1; start = text.indexOf('<', end)) {
    checkText(text.slice(end, start), open.length);
    let isRemark = false;
    if (text.startsWith('<!--', start)) {
      end = endOf(text, '-->', start + 4);
      isRemark = true;
    } else if (text.charCodeAt(start + 1) === 0x3f) {
      end = endOf(text, '?>', start + 2);
      isRemark = true;
    } else if (text.startsWith('<![CDATA[', start)) {
      if (open.length === 0) throw unreadable('broken XML');
      end = endOf(text, ']]>', start + 9);
    } else if (text.charCodeAt(start + 1) === 0x21) {
      throw unreadable(
        /^<!doctype/i.test(text.slice(start, start + 9)) ? 'a DTD, which is not accepted' : 'broken XML',
      );
    } else {
      if (tags > 0 && open.length === 0) throw unreadable('broken XML');
      if (++tags > maxTags) throw unreadable('XML with too many elements');
      end = checkTag(text, start, open);
      if (open.length > maxNesting) throw unreadable('XML that is nested too deeply');
    }
    if (isRemark) {
      kept += text.slice(from, start);
      from = end;
    }
  }
  if (open.length > 0) throw unreadable('XML that is cut off');
  checkText(text.slice(end), 0);
  return (kept + text.slice(from)).trim();
}

function checkText(text: string, depth: number): void {
  if (depth === 0 ? !isBlank(text) : text.includes('&') && bareAmpersand.test(text)) throw unreadable('broken XML');
}

/** Checks a tag, opens or closes its element in `open`, and gives the position after it. */
function checkTag(text: string, start: number, open: string[]): number {
  tagStart.lastIndex = start;
  const [, slash, element] = tagStart.exec(text) ?? [];
  if (element === undefined) throw brokenTag(text, start);
  let end = tagStart.lastIndex;
  if (slash === '') {
    const attributes = new Set<string>();
    for (let count = 1; ; count++) {
      attribute.lastIndex = end;
      const [, attributeName] = attribute.exec(text) ?? [];
      if (attributeName === undefined) break;
      if (attributes.add(attributeName).size < count) throw unreadable('broken XML');
      end = attribute.lastIndex;
    }
  }
  tagEnd.lastIndex = end;
  const [match, endSlash] = tagEnd.exec(text) ?? [];
  if (match === undefined || (slash === '/' && endSlash === '/')) throw brokenTag(text, start);
  if (slash === '/' && open.pop() !== element) throw unreadable('broken XML');
  if (slash === '' && endSlash === '') open.push(element);
  return tagEnd.lastIndex;
}

function brokenTag(text: string, start: number): SmsError {
  return unreadable(hasTagEnd(text, start + 1) ? 'broken XML' : 'XML that is cut off');
}

function hasTagEnd(text: string, from: number): boolean {
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x3e) return true;
    if (code === 0x22 || code === 0x27) {
      index = text.indexOf(code === 0x22 ? '"' : "'", index + 1);
      if (index === -1) return false;
    }
  }
  return false;
}

function endOf(text: string, mark: string, from: number): number {
  const start = text.indexOf(mark, from);
  if (start === -1) throw unreadable('XML that is cut off');
  return start + mark.length;
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
        piece = node[textName];
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
    attributes[name] = value;
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
