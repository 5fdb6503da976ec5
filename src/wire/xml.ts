import type { SmsError } from '../errors';
import { characterOf, noXmlCharacters, xmlEntities } from './entities';
import { isBlank, unreadable } from './fields';
import { decodeText, type Encoded } from './text';

const maxBytes = 2 * 1024 * 1024;
const mostMarks = 50_000;
const mostLevels = 100;

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
  return readDocument(text.replace(/\r\n?/g, '\n'), mend !== undefined);
}

/** URIs by what declares them, `xmlns` or `xmlns:prefix`; what is declared around an element is the prototype. */
type Scope = Record<string, string>;

const outermost: Scope = Object.assign(Object.create(null), { xmlns: '', 'xmlns:xml': 'xml' });

/** Decodes the five entities of XML and references to characters that XML has, each once. */
function decode(text: string): string {
  const [before = '', ...rest] = text.split('&');
  if (rest.length === 0) return text;
  const known = new Map(xmlEntities);
  let decoded = before;
  for (const piece of rest) {
    const end = piece.indexOf(';');
    const name = piece.slice(0, end);
    const character = end === -1 ? undefined : (known.get(name) ?? characterOf(name));
    if (character === undefined) throw broken();
    known.set(name, character);
    decoded += character + piece.slice(end + 1);
  }
  return decoded;
}

function broken(): SmsError {
  return unreadable('answer', 'XML that is broken, cut off or nested too deeply');
}

/** An element of an XML document. */
export class XmlElement {
  /** Its name as its tags have it. */
  readonly tag: string;
  /** Local name. */
  readonly name: string;
  /** The URI of its namespace, empty when it is in none. */
  readonly namespace: string;
  /** Decoded values by local name, without declarations of namespaces. Has no prototype. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlElement[] = [];
  /** The element's own text and CDATA, decoded and joined; not its children's. */
  text = '';
  /** What is declared in it and around it. */
  readonly scope: Scope;
  readonly #content: (XmlElement | string)[] = [];
  #cdata: string | undefined;
  #isCdataAlone = true;

  /**
   * @param given its attributes, as its tag has them
   * @param isLenient a prefix that is declared nowhere stands for its own namespace
   */
  constructor(tag: string, given: string, around: Scope, isLenient: boolean) {
    const values = [...given.matchAll(attributeParts)].map(([, name = '', value = '']): [string, string] => {
      return [name, decode(value.slice(1, -1).replace(/[\t\n]/g, ' '))];
    });
    const own = values.filter(([name]) => name !== 'xmlns' && !name.startsWith('xmlns:'));
    const scope: Scope = own.length === values.length ? around : Object.create(around);
    for (const [name, value] of values) if (scope !== around) scope[name] = value;
    const resolve = (name: string, ofNoPrefix = ''): [local: string, namespace: string] => {
      const [prefix = '', local] = name.split(':');
      if (local === undefined) return [name, ofNoPrefix];
      const namespace = scope[`xmlns:${prefix}`] || (isLenient && prefix);
      if (namespace === false) throw broken();
      return [local, namespace];
    };
    const attributes: Record<string, string> = Object.create(null);
    const names = new Set(values.map(([name]) => name));
    const expandedNames = new Set<string>();
    for (const [name, value] of own) {
      const [local, namespace] = resolve(name);
      expandedNames.add(`${local} ${namespace}`);
      // The element's own goes before those of other namespaces.
      if (local === name || !(local in attributes)) attributes[local] = value;
    }
    if (names.size < values.length || expandedNames.size < own.length) throw broken();
    this.tag = tag;
    [this.name, this.namespace] = resolve(tag, scope.xmlns);
    this.attributes = attributes;
    this.scope = scope;
  }

  /** The element's CDATA alone, when nothing but white space is around it. */
  get cdata(): string | undefined {
    return this.#isCdataAlone ? this.#cdata : undefined;
  }

  /** Adds what stands next in it: an element, text that is decoded, or CDATA. */
  add(piece: XmlElement | string, isCdata = false): void {
    this.#content.push(piece);
    if (typeof piece !== 'string') {
      this.children.push(piece);
      return;
    }
    this.text += piece;
    if (isCdata) this.#cdata = (this.#cdata ?? '') + piece;
    else if (!isBlank(piece)) this.#isCdataAlone = false;
  }

  /** The markup between the element's tags, as HTML: without prefixes, CDATA as text. */
  inner(): string {
    return formatMarkup(this.#content);
  }
}

const voidElements = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

/** What an element says: its CDATA or text verbatim, or its markup when it holds elements, so that none of it is lost. */
export function contentOf(element: XmlElement): string {
  return element.children.length > 0 ? element.inner() : (element.cdata ?? element.text);
}

/** Elements and text as HTML: names without prefixes, no empty tag but those of HTML, each text escaped. */
function formatMarkup(content: readonly (XmlElement | string)[]): string {
  let markup = '';
  for (const piece of content) markup += typeof piece === 'string' ? escapeText(piece) : formatElement(piece);
  return markup;
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
const value = `(?:"[^<"]*"|'[^<']*')`;
const attributeParts = new RegExp(`(${name})${equals}(${value})`, 'g');
const declaration = new RegExp(
  `^<\\?xml${space}+version${equals}(["'])1\\.\\d+\\1(?:${space}+encoding${equals}(["'])[A-Za-z][\\w.\\-]*\\2)?(?:${space}+standalone${equals}(["'])(?:yes|no)\\3)?${space}*\\?>`,
);
/** Text, CDATA, a closing tag, an opening one with its attributes, a comment or a processing instruction, each as the grammar of XML has it. */
const piece = new RegExp(
  `((?![^<]*\\]\\]>)[^<]+)|<!\\[CDATA\\[(.*?)\\]\\]>|</(${name})${space}*>|<(${name})((?:${space}+${name}${equals}${value})*)${space}*(/?)>|<!--[^-]*(?:-[^-]+)*-->|<\\?(?![xX][mM][lL][ \\t\\r\\n?])${simpleName}(?:${space}.*?)?\\?>`,
  'sy',
);

/** Reads the text of a document, whose lines end as XML has it, piece by piece: no comment and no processing instruction says anything. */
function readDocument(text: string, isLenient: boolean): XmlElement {
  if (text.search(noXmlCharacters) >= 0) throw broken();
  const document = new XmlElement('', '', outermost, false);
  const open = [document];
  piece.lastIndex = declaration.exec(text)?.[0].length ?? 0;
  for (let start = piece.lastIndex; start < text.length; start = piece.lastIndex) {
    const [found, characters, cdata, closed, opened, attributes = '', end] = piece.exec(text) ?? [];
    if (text.startsWith('<!DOCTYPE', start)) throw unreadable('answer', 'a DTD, which is not accepted');
    const around = open.at(-1);
    if (found === undefined || around === undefined) throw broken();
    if (characters !== undefined || cdata !== undefined) {
      if (around === document && /[^ \t\n]/.test(found)) throw broken();
      around.add(cdata ?? decode(found), cdata !== undefined);
    } else if (closed !== undefined) {
      if (open.pop()?.tag !== closed) throw broken();
    } else if (opened !== undefined) {
      const element = new XmlElement(opened, attributes, around.scope, isLenient);
      around.add(element);
      if (end === '') open.push(element);
      if (open.length > mostLevels + 1) throw broken();
    }
  }
  const [root, ...others] = document.children;
  if (root === undefined || others.length > 0 || open.length > 1) throw broken();
  return root;
}
