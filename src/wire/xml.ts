import type { SmsError } from '../errors';
import { decodeXmlEntities } from './entities';
import { isBlank } from './fields';
import { unreadable } from './unreadable';

/** An element of an XML document. */
export interface XmlElement {
  /** Local name. */
  readonly name: string;
  /** The URI of its namespace, empty when it is in none; a prefix that is declared nowhere stands for itself. */
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

const maxNesting = 100;
/** Names by the hundred thousand in one tag cost many times as much each. */
const maxAttributes = 10_000;
/**
 * Elements, attributes and sections of CDATA together: more than any answer has that means something, while 8 MiB of them
 * would take seconds of the event loop and hundreds of megabytes.
 */
const maxParts = 400_000;

const space = '[ \\t\\n]';
const name = '[A-Za-z_:\\u00c0-\\uffff][\\w:.\\-\\u00b7-\\uffff]*';
const tagStart = new RegExp(`</?${name}`, 'y');
const attribute = new RegExp(`${space}+(${name})${space}*=${space}*(?:"([^"]*)"|'([^']*)')`, 'y');
const tagEnd = new RegExp(`${space}*/?>`, 'y');
const bareAmpersand = /&(?!#\d+;|#x[\da-f]+;|[a-z]\w*;)/i;

/**
 * Parses an XML document strictly and gives its root. Nothing is fetched or expanded: a DTD is refused, and only the five
 * entities of XML and numeric character references are decoded. Values are text, whatever they look like. Elements may be
 * nested 100 deep, a tag may have 10,000 attributes, and a document 400,000 elements, attributes and sections of CDATA.
 *
 * @throws SmsError `SMS_RESPONSE` (reason `responseUnreadable`) whose `detail` says why
 */
export function parseXml(source: string): XmlElement {
  const text = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source;
  const open: ParsedElement[] = [];
  let root: ParsedElement | undefined;
  let parts = 0;
  let end = 0;
  for (let start = text.indexOf('<'); start !== -1; start = text.indexOf('<', end)) {
    const parent = open.at(-1);
    addText(text.slice(end, start), parent);
    if (text.startsWith('<!--', start)) {
      end = endOf(text, '-->', start + 4);
    } else if (text.startsWith('<?', start)) {
      end = endOf(text, '?>', start + 2);
    } else if (text.startsWith('<![CDATA[', start)) {
      end = endOf(text, ']]>', start + 9);
      if (parent === undefined) throw broken();
      parent.addCdata(text.slice(start + 9, end - 3));
      parts++;
    } else if (text.startsWith('<!', start)) {
      const isDtd = /^<!doctype/i.test(text.slice(start, start + 9));
      throw isDtd ? unreadable('answer', 'a DTD, which is not accepted') : broken();
    } else {
      const tag = readTag(text, start);
      end = tag.end;
      if (tag.kind === 'closing') {
        if (open.pop()?.fullName !== tag.name) throw broken();
        continue;
      }
      if (root !== undefined && parent === undefined) throw broken();
      const element = new ParsedElement(tag.name, tag.attributes, parent);
      root ??= element;
      parent?.addChild(element);
      if (tag.kind === 'opening' && open.push(element) > maxNesting) {
        throw unreadable('answer', 'XML that is nested too deeply');
      }
      parts += 1 + tag.attributes.size;
    }
    if (parts > maxParts) throw unreadable('answer', 'XML with too many elements');
  }
  if (open.length > 0) throw cutOff();
  addText(text.slice(end), undefined);
  if (root === undefined) throw broken();
  return root;
}

/** @param parent the element that the text stands in; outside of the root only white space may stand */
function addText(text: string, parent: ParsedElement | undefined): void {
  if (text === '') return;
  if (parent === undefined ? !isBlank(text) : text.includes('&') && bareAmpersand.test(text)) throw broken();
  parent?.addText(decodeXmlEntities(text));
}

interface Tag {
  kind: 'opening' | 'closing' | 'empty';
  /** As it is written, prefix and all. */
  name: string;
  /** Decoded, by their names as they are written. */
  attributes: ReadonlyMap<string, string>;
  /** The position behind it. */
  end: number;
}

const noAttributes: ReadonlyMap<string, string> = new Map();

function readTag(text: string, start: number): Tag {
  const isClosing = text[start + 1] === '/';
  tagStart.lastIndex = start;
  if (!tagStart.test(text)) throw brokenTag(text, start);
  const name = text.slice(start + (isClosing ? 2 : 1), tagStart.lastIndex);
  const { attributes, end } = isClosing
    ? { attributes: noAttributes, end: tagStart.lastIndex }
    : readAttributes(text, tagStart.lastIndex);
  tagEnd.lastIndex = end;
  const isEnded = tagEnd.test(text);
  const isEmpty = isEnded && text[tagEnd.lastIndex - 2] === '/';
  if (!isEnded || (isClosing && isEmpty)) throw brokenTag(text, start);
  return { kind: isClosing ? 'closing' : isEmpty ? 'empty' : 'opening', name, attributes, end: tagEnd.lastIndex };
}

function readAttributes(text: string, start: number): Pick<Tag, 'attributes' | 'end'> {
  let attributes: Map<string, string> | undefined;
  for (let end = start; ; end = attribute.lastIndex) {
    attribute.lastIndex = end;
    const [, name, quoted, apostrophed = ''] = attribute.exec(text) ?? [];
    if (name === undefined) return { attributes: attributes ?? noAttributes, end };
    attributes ??= new Map();
    if (attributes.has(name)) throw broken();
    if (attributes.size === maxAttributes) throw unreadable('answer', 'XML with too many attributes in a tag');
    attributes.set(name, decodeXmlEntities(quoted ?? apostrophed));
  }
}

function endOf(text: string, mark: string, from: number): number {
  const start = text.indexOf(mark, from);
  if (start === -1) throw cutOff();
  return start + mark.length;
}

function brokenTag(text: string, start: number): SmsError {
  return hasTagEnd(text, start + 1) ? broken() : cutOff();
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

function broken(): SmsError {
  return unreadable('answer', 'broken XML');
}

function cutOff(): SmsError {
  return unreadable('answer', 'XML that is cut off');
}

class ParsedElement implements XmlElement {
  readonly fullName: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: ParsedElement[] = [];
  text = '';
  readonly #content: (ParsedElement | string)[] = [];
  readonly #declared: ReadonlyMap<string, string>;
  readonly #parent: ParsedElement | undefined;
  #cdata: string | undefined;
  #isCdataAlone = true;

  constructor(fullName: string, attributes: ReadonlyMap<string, string>, parent: ParsedElement | undefined) {
    this.fullName = fullName;
    this.attributes = attributes.size === 0 ? nothing : byLocalName(attributes);
    this.#declared = attributes;
    this.#parent = parent;
  }

  get name(): string {
    return localName(this.fullName);
  }

  get namespace(): string {
    const prefix = this.fullName.slice(0, Math.max(0, this.fullName.lastIndexOf(':')));
    const declaration = prefix === '' ? 'xmlns' : `xmlns:${prefix}`;
    for (let element: ParsedElement | undefined = this; element !== undefined; element = element.#parent) {
      const uri = element.#declared.get(declaration);
      if (uri !== undefined) return uri;
    }
    return prefix;
  }

  get cdata(): string | undefined {
    return this.#isCdataAlone ? this.#cdata : undefined;
  }

  addText(text: string): void {
    if (text.trim() !== '') this.#isCdataAlone = false;
    this.text += text;
    this.#content.push(text);
  }

  addCdata(text: string): void {
    this.#cdata = (this.#cdata ?? '') + text;
    this.text += text;
    this.#content.push(text);
  }

  addChild(child: ParsedElement): void {
    this.children.push(child);
    this.#content.push(child);
  }

  inner(): string {
    let markup = '';
    for (const piece of this.#content) markup += typeof piece === 'string' ? escapeText(piece) : outer(piece);
    return markup;
  }
}

/** What an element says: its CDATA or text verbatim, or its markup when it holds elements, so that none of it is lost. */
export function contentOf(element: XmlElement): string {
  return element.children.length > 0 ? element.inner() : (element.cdata ?? element.text);
}

const nothing: Readonly<Record<string, string>> = Object.freeze(Object.create(null));

function byLocalName(attributes: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  const values: Record<string, string> = Object.create(null);
  for (const [name, value] of attributes) {
    if (name === 'xmlns' || name.startsWith('xmlns:')) continue;
    const local = localName(name);
    // The element's own goes before those of other namespaces.
    if (local === name || !(local in values)) values[local] = value;
  }
  return values;
}

function localName(fullName: string): string {
  return fullName.slice(fullName.lastIndexOf(':') + 1);
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
