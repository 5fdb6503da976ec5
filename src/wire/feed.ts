import type { Feed, FeedAccount, FeedEntry, FeedFormat } from '../model';
import { readDate } from './date';
import { characterOf, noXmlCharacters } from './entities';
import { isBlank, isUnsafeKey, present, trimmed, unreadable } from './fields';
import type { OnUnknownCharset } from './text';
import { contentOf, parseXml, type XmlElement } from './xml';

/** The service gives 300 at most (§8). */
const maxEntries = 10_000;

/**
 * Reads a feed of recent messages (§2.6) in ATOM 1.0 or RSS (2.0, and 1.0 in RDF); the same data give the same entries.
 *
 * - Dates are ISO 8601 UTC; one that cannot be read is none, and stays among the `fields`. When only one of `published` and
 *   `updated` is told, it stands for both.
 * - `body` is the content, else, where that is blank, the summary or description. HTML stays HTML, unescaped once; XHTML is the markup inside
 *   its `div`, and text with elements in it is its markup. An entry without an author has the feed's.
 * - `fields` holds the other elements of an entry by local name. One that has only text is that text, trimmed; any
 *   other is an object of its attributes and child elements by local name, in the same way, with its own text, if any,
 *   as `text`. What comes several times under one name is an array.
 * - The account details are found at feed level by local name, whatever the case, hyphens and underscores: as elements, as
 *   attributes, or, before all others, inside an element named like `account`.
 *
 * @throws SmsError `SMS_RESPONSE` when it is no such feed, or one of more than 10,000 entries
 */
export function parseFeed(bytes: Uint8Array, contentType?: string, onUnknownCharset?: OnUnknownCharset): Feed {
  const root = parseXml(bytes, contentType, onUnknownCharset, mend);
  if (root.name === 'feed') return createFeed('ATOM', [root]);
  const channel = root.children.find(({ name }) => name === 'channel');
  if ((root.name === 'rss' || root.name === 'RDF') && channel !== undefined) return createFeed('RSS', [channel, root]);
  throw unreadable('answer', 'neither an ATOM nor an RSS feed');
}

/**
 * What real feeds have that XML has not, in a form that it has: white space before the declaration, characters that XML has not (they
 * become U+FFFD), a `&` that begins no reference, `]]>` in a text, `--` in a comment.
 */
function mend(text: string): string {
  return text
    .replace(/^\s*(?:<\?xml\s[^<>]*\?>)?/, '')
    .replace(noXmlCharacters, (run) => '\ufffd'.repeat([...run].length))
    .replace(/<!\[CDATA\[.*?(?:\]\]>|$)|<!--.*?(?:-->|$)|\]\]>|&(?!(?:amp|lt|gt|quot|apos);)(?:#?\w+;)?/gs, (piece) => {
      if (piece.startsWith('<')) return piece.startsWith('<!--') ? '' : piece;
      if (piece === ']]>') return ']]&gt;';
      return characterOf(piece.slice(1, -1)) === undefined ? `&amp;${piece.slice(1)}` : piece;
    });
}

/** @param frames the elements that hold what is at feed level: in RSS the channel and the root around it */
function createFeed(format: FeedFormat, frames: readonly XmlElement[]): Feed {
  const entryName = format === 'ATOM' ? 'entry' : 'item';
  const entryElements: XmlElement[] = [];
  const feedLevel: XmlElement[] = [];
  for (const child of frames.flatMap(({ children }) => children)) {
    if (child.name === entryName) entryElements.push(child);
    else if (!frames.includes(child)) feedLevel.push(child);
  }
  if (entryElements.length > maxEntries) throw unreadable('answer', 'a feed with too many entries');
  const parts = new Parts(feedLevel, frames[0]?.namespace);
  const author = authorIn(parts, format);
  return {
    format,
    ...present({
      title: trimmed(markupOf(parts.take('title'))),
      updated: parts.date(['updated', 'lastBuildDate', 'pubDate', 'modified', 'date']),
    }),
    account: findAccount(frames, feedLevel),
    entries: entryElements.map((entry) => createEntry(entry, format, author)),
  };
}

/** @param feedAuthor whose the entry is when it does not say */
function createEntry(entry: XmlElement, format: FeedFormat, feedAuthor: string | undefined): FeedEntry {
  const parts = new Parts(entry.children, entry.namespace);
  const isAtom = format === 'ATOM';
  const summary = isAtom ? 'summary' : 'description';
  const takeContent = (kind: Kind) => (isAtom ? parts.takeOwn('content', kind) : parts.take('encoded', kind));
  const body =
    takeContent(hasContent) ??
    parts.takeOwn(summary, hasContent) ??
    takeContent(isInline) ??
    parts.takeOwn(summary, isInline);
  const published = parts.date(['pubDate', 'published', 'issued', 'created', 'available']);
  const updated = parts.date(['updated', 'modified', 'date', 'lastBuildDate']);
  return {
    ...present({
      id: parts.text(isAtom ? 'id' : 'guid') ?? trimmed(entry.attributes.about),
      title: trimmed(markupOf(parts.take('title'))),
      body: markupOf(body),
      published: published ?? updated,
      updated: updated ?? published,
      author: authorIn(parts, format) ?? feedAuthor,
      link: linkOf(parts.takeAll('link')),
    }),
    categories: categoriesOf(parts.takeAll('category')),
    fields: parts.rest(),
  };
}

type Kind = (element: XmlElement) => boolean;

const isAny: Kind = () => true;

/** The child elements of an entry or a feed, each of which has one place in the record. */
class Parts {
  readonly #elements: readonly XmlElement[];
  readonly #namespace: string;
  readonly #byName = new Map<string, XmlElement[]>();
  readonly #taken = new Set<XmlElement>();

  /** @param namespace of the parent; children of the same one are the format's own, not an extension's */
  constructor(elements: readonly XmlElement[], namespace = '') {
    this.#elements = elements;
    this.#namespace = namespace;
    for (const element of elements) {
      const namesakes = this.#byName.get(element.name);
      if (namesakes === undefined) this.#byName.set(element.name, [element]);
      else namesakes.push(element);
    }
  }

  /** The first element of this name and kind, rather the format's own than an extension's. */
  take(name: string, isOfKind: Kind = isAny): XmlElement | undefined {
    const element = this.#find(name, isOfKind);
    if (element !== undefined) this.#taken.add(element);
    return element;
  }

  /** The first element of this name that is the format's own, and of this kind. */
  takeOwn(name: string, isOfKind: Kind): XmlElement | undefined {
    const element = this.#byName.get(name)?.find((namesake) => this.#isOwn(namesake) && isOfKind(namesake));
    if (element !== undefined) this.#taken.add(element);
    return element;
  }

  /** All elements of this name that are the format's own; when there are none, all of this name. */
  takeAll(name: string): XmlElement[] {
    const namesakes = this.#byName.get(name) ?? [];
    const own = namesakes.filter((namesake) => this.#isOwn(namesake));
    const elements = own.length === 0 ? namesakes : own;
    for (const element of elements) this.#taken.add(element);
    return elements;
  }

  text(name: string): string | undefined {
    return trimmed(this.take(name)?.text);
  }

  /** The first of these names that has a date that can be read; the others stay for {@link rest}. */
  date(names: readonly string[]): string | undefined {
    for (const name of names) {
      const text = trimmed(this.#find(name)?.text);
      const date = text === undefined ? undefined : readDate(text);
      if (text === undefined || date !== undefined) this.take(name);
      if (date !== undefined) return date;
    }
    return undefined;
  }

  /** What was not taken. */
  rest(): Record<string, unknown> {
    const fields: Record<string, unknown> = {};
    for (const element of this.#elements) {
      if (!this.#taken.has(element)) addField(fields, element.name, fieldOf(element));
    }
    return fields;
  }

  #find(name: string, isOfKind: Kind = isAny): XmlElement | undefined {
    const namesakes = this.#byName.get(name);
    return namesakes?.find((namesake) => this.#isOwn(namesake) && isOfKind(namesake)) ?? namesakes?.find(isOfKind);
  }

  #isOwn({ namespace }: XmlElement): boolean {
    return namespace === this.#namespace;
  }
}

function addField(fields: Record<string, unknown>, name: string, value: unknown): void {
  if (isUnsafeKey(name)) return;
  if (!Object.hasOwn(fields, name)) fields[name] = value;
  else if (Array.isArray(fields[name])) fields[name].push(value);
  else fields[name] = [fields[name], value];
}

function fieldOf(element: XmlElement): unknown {
  const text = element.text.trim();
  const attributes = Object.entries(element.attributes);
  if (attributes.length === 0 && element.children.length === 0) return text;
  const value: Record<string, unknown> = {};
  for (const [name, attribute] of attributes) addField(value, name, attribute);
  for (const child of element.children) addField(value, child.name, fieldOf(child));
  if (text !== '') addField(value, 'text', text);
  return value;
}

/** Content that lies elsewhere says nothing here. */
function isInline(content: XmlElement): boolean {
  return content.attributes.src === undefined || hasContent(content);
}

function hasContent({ children, text }: XmlElement): boolean {
  return children.length > 0 || !isBlank(text);
}

/** A text construct of ATOM: as {@link contentOf} gives it, but of XHTML the markup inside its `div`. */
function markupOf(element: XmlElement | undefined): string | undefined {
  if (element === undefined) return undefined;
  const [child] = element.children;
  const isXhtml = element.attributes.type === 'xhtml' && element.children.length === 1 && child?.name === 'div';
  return isXhtml ? child.inner() : contentOf(element);
}

function authorOf(elements: readonly XmlElement[]): string | undefined {
  for (const element of elements) {
    const name = element.children.find((child) => child.name === 'name') ?? element.children[0] ?? element;
    const author = trimmed(name.text);
    if (author !== undefined) return author;
  }
  return undefined;
}

function authorIn(parts: Parts, format: FeedFormat): string | undefined {
  if (format === 'ATOM') return authorOf(parts.takeAll('author'));
  return nameIn(authorOf([...parts.takeAll('author'), ...parts.takeAll('creator')]));
}

/** RSS 2.0 has authors as `bob@example.com (Bob)`. */
function nameIn(author: string | undefined): string | undefined {
  return trimmed(/^[^\s()@]+@[^\s()@]+\s*\((.+)\)$/.exec(author ?? '')?.[1]) ?? author;
}

function linkOf(elements: readonly XmlElement[]): string | undefined {
  let other: string | undefined;
  for (const element of elements) {
    const address = trimmed(element.attributes.href ?? element.text);
    if (address === undefined) continue;
    if ((element.attributes.rel ?? 'alternate') === 'alternate') return address;
    other ??= address;
  }
  return other;
}

function categoriesOf(elements: readonly XmlElement[]): string[] {
  return elements
    .map(({ attributes, text }) => trimmed(attributes.term ?? text) ?? trimmed(attributes.label))
    .filter((category) => category !== undefined);
}

type AccountDetail = 'balance' | 'type' | 'currency';

/** Which detail of the account a name stands for, if any, whatever its case, hyphens and underscores. */
function detailOf(name: string): AccountDetail | undefined {
  return /^(?:account)?(balance|type|currency)$/.exec(keyOf(name))?.[1] as AccountDetail | undefined;
}

function keyOf(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

/**
 * What stands in an element named like an account comes before what merely lies about; of each, elements before attributes, and
 * the attributes of the feed itself last. Among equals the first holds.
 */
function findAccount(frames: readonly XmlElement[], feedLevel: readonly XmlElement[]): FeedAccount {
  const inAccount: XmlElement[] = [];
  const inDetail: XmlElement[] = [];
  const others: XmlElement[] = [];
  const gather = (element: XmlElement, outer?: XmlElement[]) => {
    const isDetail = outer === inDetail || detailOf(element.name) !== undefined;
    const isAccount = outer === inAccount || keyOf(element.name).includes('account');
    const place = isAccount ? inAccount : isDetail ? inDetail : others;
    place.push(element);
    if (place !== others) for (const child of element.children) gather(child, place);
  };
  for (const element of feedLevel) gather(element);
  const told = [
    ...inAccount.map(detailIn),
    ...inAccount.flatMap(attributesOf),
    ...inDetail.map(detailIn),
    ...inDetail.flatMap(attributesOf),
    ...others.filter(hasDetail).flatMap(attributesOf),
    ...frames.flatMap(attributesOf),
  ];
  const found = new Map<AccountDetail, string>();
  for (const [name, text] of told) {
    const [detail, value] = [detailOf(name), trimmed(text)];
    if (detail !== undefined && value !== undefined && !found.has(detail)) found.set(detail, value);
  }
  const balance = found.get('balance');
  return present({
    balance: balance === undefined ? undefined : readBalance(balance),
    type: found.get('type'),
    currency: found.get('currency'),
  });
}

type Told = [name: string, text: string | undefined];

function detailIn(element: XmlElement): Told {
  const { name, attributes, children } = element;
  const child = children.find((one) => one.name === 'amount' || one.name === 'value');
  return [name, trimmed(element.text) ?? attributes.amount ?? attributes.value ?? child?.text];
}

function attributesOf({ attributes }: XmlElement): Told[] {
  return Object.entries(attributes);
}

/** `type` is an attribute of many elements of a feed, and tells of the account only where its other details are. */
function hasDetail({ attributes }: XmlElement): boolean {
  return Object.keys(attributes).some((name) => keyOf(name) !== 'type' && detailOf(name) !== undefined);
}

function readBalance(text: string): number | string {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : text;
}
