import type { Feed, FeedAccount, FeedEntry, FeedFormat } from '../model';
import { readDate } from './date';
import { isBlank, isUnsafeKey, present, trimmed, unreadable } from './fields';
import type { Encoded } from './text';
import { contentOf, parseXml, type XmlElement } from './xml';

/** The service gives 300 at most (§8). */
const maxEntries = 10_000;

/**
 * Reads a feed of recent messages (§2.6) in ATOM 1.0 or RSS 2.0; the same data give the same entries.
 *
 * - Dates are ISO 8601 UTC; one that cannot be read is none, and stays among the `fields`. When only one of `published` and
 *   `updated` is told, it stands for both.
 * - `body` is the content, else, where that is blank, the summary or description. HTML stays HTML, unescaped once; XHTML is the markup inside
 *   its `div`, and text with elements in it is its markup. An entry without an author has the feed's.
 * - `fields` holds the other elements of an entry by local name. One that has only text is that text, trimmed; any
 *   other is an object of its attributes and child elements by local name, in the same way, with its own text, if any,
 *   as `text`. What comes several times under one name is an array.
 * - The account details are found at feed level by local name, whatever the case: as elements, as attributes, or, before all others, in an element named like `account`.
 *
 * @throws SmsError `SMS_RESPONSE` when it is no such feed, or one of more than 10,000 entries
 */
export function parseFeed(...encoded: Encoded): Feed {
  const root = parseXml(...encoded);
  if (root.name === 'feed') return createFeed('ATOM', [root]);
  const channel = root.children.find(({ name }) => name === 'channel');
  if (root.name === 'rss' && channel !== undefined) return createFeed('RSS', [channel, root]);
  throw unreadable('answer', 'neither an ATOM nor an RSS feed');
}

/** @param frames the elements that hold what is at feed level: in RSS the channel and the root around it */
function createFeed(format: FeedFormat, frames: readonly XmlElement[]): Feed {
  const entryName = format === 'ATOM' ? 'entry' : 'item';
  const children = frames.flatMap((frame) => frame.children).filter((child) => !frames.includes(child));
  const entries = children.filter(({ name }) => name === entryName);
  const feedLevel = children.filter(({ name }) => name !== entryName);
  if (entries.length > maxEntries) throw unreadable('answer', 'a feed with too many entries');
  const parts = new Parts(feedLevel, frames[0]?.prefix);
  const author = authorIn(parts, format);
  return {
    format,
    ...present({
      title: trimmed(markupOf(parts.take('title'))),
      updated: parts.date(['updated', 'lastBuildDate', 'pubDate', 'date']),
    }),
    account: findAccount(frames, feedLevel),
    entries: entries.map((entry) => createEntry(entry, format, author)),
  };
}

/** @param feedAuthor whose the entry is when it does not say */
function createEntry(entry: XmlElement, format: FeedFormat, feedAuthor: string | undefined): FeedEntry {
  const parts = new Parts(entry.children, entry.prefix);
  const isAtom = format === 'ATOM';
  const own = [...parts.own('content'), ...parts.own('summary')];
  // Under another prefix that is ATOM's, too, which an extension's without content is not taken for.
  const others = own.length > 0 ? [] : [...parts.named('content'), ...parts.named('summary')].filter(hasContent);
  const bodies = isAtom ? [...own, ...others] : [...parts.named('encoded'), ...parts.own('description')];
  // Content that lies elsewhere says nothing here.
  const body = bodies.find(hasContent) ?? bodies.find(({ attributes }) => attributes.src === undefined);
  const published = parts.date(['pubDate', 'published']);
  const updated = parts.date(['updated', 'date']);
  return {
    ...present({
      id: trimmed(parts.take(isAtom ? 'id' : 'guid')?.text),
      title: trimmed(markupOf(parts.take('title'))),
      body: markupOf(parts.place(body)),
      published: published ?? updated,
      updated: updated ?? published,
      author: authorIn(parts, format) ?? feedAuthor,
      link: linkOf(parts.takeAll('link')),
    }),
    categories: parts
      .takeAll('category')
      .map(({ attributes, text }) => trimmed(attributes.term ?? text))
      .filter((category) => category !== undefined),
    fields: parts.rest(),
  };
}

/** The child elements of an entry or a feed, each of which has one place in the record. */
class Parts {
  readonly #elements: readonly XmlElement[];
  readonly #prefix: string;
  readonly #placed = new Set<XmlElement | undefined>();

  /** @param prefix of the parent; children with the same one are the format's own, not an extension's */
  constructor(elements: readonly XmlElement[], prefix = '') {
    this.#elements = elements;
    this.#prefix = prefix;
  }

  /** All elements of this name. */
  named(name: string): XmlElement[] {
    return this.#elements.filter((element) => element.name === name);
  }

  /** All elements of this name that are the format's own. */
  own(name: string): XmlElement[] {
    return this.named(name).filter(({ prefix }) => prefix === this.#prefix);
  }

  /** Notes that an element has its place. */
  place(element: XmlElement | undefined): XmlElement | undefined {
    this.#placed.add(element);
    return element;
  }

  /** The first element of this name, rather the format's own than an extension's. */
  take(name: string): XmlElement | undefined {
    return this.place(this.#all(name)[0]);
  }

  /** All elements of this name that are the format's own; when there are none, all of this name. */
  takeAll(name: string): XmlElement[] {
    const elements = this.#all(name);
    for (const element of elements) this.place(element);
    return elements;
  }

  /** The first of these names that has a date that can be read; the others stay for {@link rest}. */
  date(names: readonly string[]): string | undefined {
    for (const name of names) {
      const text = trimmed(this.#all(name)[0]?.text);
      const date = text === undefined ? undefined : readDate(text);
      if (text === undefined || date !== undefined) this.take(name);
      if (date !== undefined) return date;
    }
    return undefined;
  }

  /** What has no place. */
  rest(): Record<string, unknown> {
    const fields: Record<string, unknown> = {};
    for (const element of this.#elements) {
      if (!this.#placed.has(element)) addField(fields, element.name, fieldOf(element));
    }
    return fields;
  }

  #all(name: string): XmlElement[] {
    const own = this.own(name);
    return own.length === 0 ? this.named(name) : own;
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

function authorIn(parts: Parts, format: FeedFormat): string | undefined {
  const isAtom = format === 'ATOM';
  const elements = [...parts.takeAll('author'), ...(isAtom ? [] : parts.takeAll('creator'))];
  const names = elements.map((element) => element.children.find(({ name }) => name === 'name') ?? element);
  const author = names.map(({ text }) => trimmed(text)).find((name) => name !== undefined);
  if (isAtom || author === undefined) return author;
  // RSS 2.0 has authors as `bob@example.com (Bob)`.
  return trimmed(/^[^\s()@]+@[^\s()@]+\s*\((.+)\)$/.exec(author)?.[1]) ?? author;
}

/** The address of an alternate link, else of any. */
function linkOf(elements: readonly XmlElement[]): string | undefined {
  const addressOf = ({ attributes, text }: XmlElement) => trimmed(attributes.href ?? text);
  const links = elements.filter((link) => addressOf(link) !== undefined);
  const link = links.find(({ attributes }) => (attributes.rel ?? 'alternate') === 'alternate') ?? links[0];
  return link && addressOf(link);
}

type AccountDetail = 'balance' | 'type' | 'currency';

/** Which detail of the account a name stands for, if any, whatever its case. */
function detailOf(name: string): AccountDetail | undefined {
  return /^(?:account)?(balance|type|currency)$/.exec(name.toLowerCase())?.[1] as AccountDetail | undefined;
}

/**
 * What stands in an element named like an account comes before what merely lies about; of each, elements before attributes, and
 * the attributes of the feed itself last. Among equals the first holds.
 */
function findAccount(frames: readonly XmlElement[], feedLevel: readonly XmlElement[]): FeedAccount {
  const named = feedLevel.filter(({ name }) => /account/i.test(name));
  const others = feedLevel.filter((element) => detailOf(element.name) !== undefined || hasDetail(element));
  const told = [...toldIn(named), ...toldIn(others), ...frames.flatMap(attributesOf)];
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

type Told = [name: string, text: string];

/** What elements say, however deep. */
function toldIn(elements: readonly XmlElement[]): Told[] {
  const all = elements.flatMap(withDescendants);
  return [...all.map(({ name, text }): Told => [name, text]), ...all.flatMap(attributesOf)];
}

function withDescendants(element: XmlElement): XmlElement[] {
  return [element, ...element.children.flatMap(withDescendants)];
}

function attributesOf({ attributes }: XmlElement): Told[] {
  return Object.entries(attributes);
}

/** `type` is an attribute of many elements of a feed, and tells of the account only where its other details are. */
function hasDetail({ attributes }: XmlElement): boolean {
  return Object.keys(attributes).some((name) => name.toLowerCase() !== 'type' && detailOf(name) !== undefined);
}

function readBalance(text: string): number | string {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : text;
}
