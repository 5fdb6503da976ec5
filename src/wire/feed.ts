import type { Feed, FeedAccount, FeedEntry, FeedFormat } from '../model';
import type { Encoded } from './charset';
import { readDate } from './date';
import { isBlank, isUnsafeKey, present, trimmed, unreadable } from './fields';
import { contentOf, parseXml, type XmlElement } from './xml';

/**
 * Reads a feed of recent messages (§2.6) in ATOM 1.0 or RSS 2.0. Both formats give the same entries for the same
 * messages.
 *
 * - Dates become ISO 8601 UTC. Unreadable dates stay in `fields`. If only one of `published` and `updated` is
 *   present, the other gets the same value.
 * - `body` is the content or, if the content is blank, the summary or description. HTML stays HTML, unescaped once.
 *   XHTML becomes the markup inside its `div`.
 * - If an entry has no author, it gets the author of the feed.
 * - `fields` holds all other elements by local name. An element that has only text becomes this text, trimmed. Any
 *   other element becomes an object of its attributes, its child elements and its own text (`text`). Repeated elements
 *   become an array.
 * - Account details are searched at feed level by local name, regardless of case: first in an element with a name
 *   like `account`, then as elements, then as attributes.
 *
 * @throws SmsError `SMS_RESPONSE` if the bytes are not such a feed
 */
export function parseFeed(...encoded: Encoded): Feed {
  const root = parseXml(...encoded);
  if (root.name === 'feed') return createFeed('ATOM', [root]);
  const channel = root.children.find(({ name }) => name === 'channel');
  if (root.name === 'rss' && channel !== undefined) return createFeed('RSS', [channel, root]);
  throw unreadable('answer', 'neither an ATOM nor an RSS feed');
}

/** @param frames elements that contain the data of the feed: the root or, in RSS, the channel and the root */
function createFeed(format: FeedFormat, frames: readonly XmlElement[]): Feed {
  const entryName = format === 'ATOM' ? 'entry' : 'item';
  const children = frames.flatMap((frame) => frame.children).filter((child) => !frames.includes(child));
  const entries = children.filter(({ name }) => name === entryName);
  const feedLevel = children.filter(({ name }) => name !== entryName);
  const parts = new Parts(feedLevel, frames[0]?.prefix);
  const author = authorIn(parts, format);
  return {
    format,
    ...present({
      title: trimmed(markupOf(parts.useFirst('title'))),
      updated: parts.date(['updated', 'lastBuildDate', 'pubDate', 'date']),
    }),
    account: findAccount(frames, feedLevel),
    entries: entries.map((entry) => createEntry(entry, format, author)),
  };
}

/** @param feedAuthor author of the feed, for an entry without an author */
function createEntry(entry: XmlElement, format: FeedFormat, feedAuthor: string | undefined): FeedEntry {
  const parts = new Parts(entry.children, entry.prefix);
  const isAtom = format === 'ATOM';
  const ownBodies = [...parts.withoutExtensions('content'), ...parts.withoutExtensions('summary')];
  // If no `content` or `summary` has the prefix of the entry, uses those with another prefix, except empty ones,
  // because they belong to extensions.
  const otherPrefixBodies =
    ownBodies.length > 0 ? [] : [...parts.withName('content'), ...parts.withName('summary')].filter(hasContent);
  const bodies = isAtom
    ? [...ownBodies, ...otherPrefixBodies]
    : [...parts.withName('encoded'), ...parts.withoutExtensions('description')];
  // Skips an empty element with `src`, because its content is stored at another address.
  const body = bodies.find(hasContent) ?? bodies.find(({ attributes }) => attributes.src === undefined);
  const published = parts.date(['pubDate', 'published']);
  const updated = parts.date(['updated', 'date']);
  return {
    ...present({
      id: trimmed(parts.useFirst(isAtom ? 'id' : 'guid')?.text),
      title: trimmed(markupOf(parts.useFirst('title'))),
      body: markupOf(parts.markUsed(body)),
      published: published ?? updated,
      updated: updated ?? published,
      author: authorIn(parts, format) ?? feedAuthor,
      link: linkOf(parts.useAll('link')),
    }),
    categories: parts
      .useAll('category')
      .map(({ attributes, text }) => trimmed(attributes.term ?? text))
      .filter((category) => category !== undefined),
    fields: parts.unusedFields(),
  };
}

/** Child elements of an entry or a feed. Notes which elements were used. The others become `fields`. */
class Parts {
  readonly #elements: readonly XmlElement[];
  readonly #prefix: string;
  readonly #usedElements = new Set<XmlElement | undefined>();

  /** @param prefix prefix of the parent; children with another prefix belong to an extension */
  constructor(elements: readonly XmlElement[], prefix = '') {
    this.#elements = elements;
    this.#prefix = prefix;
  }

  withName(name: string): XmlElement[] {
    return this.#elements.filter((element) => element.name === name);
  }

  /** Returns all elements with a name, except elements of extensions. */
  withoutExtensions(name: string): XmlElement[] {
    return this.withName(name).filter(({ prefix }) => prefix === this.#prefix);
  }

  markUsed(element: XmlElement | undefined): XmlElement | undefined {
    this.#usedElements.add(element);
    return element;
  }

  /**
   * Marks the first element with a name as used and returns it. Prefers elements that do not belong to an extension.
   */
  useFirst(name: string): XmlElement | undefined {
    return this.markUsed(this.#candidates(name)[0]);
  }

  /**
   * Marks all elements with a name as used and returns them. Returns elements of extensions only if all elements with
   * the name belong to extensions.
   */
  useAll(name: string): XmlElement[] {
    const elements = this.#candidates(name);
    for (const element of elements) this.markUsed(element);
    return elements;
  }

  /**
   * Returns the first readable date among elements with these names, and marks it as used. Unreadable dates stay for
   * {@link unusedFields}.
   */
  date(names: readonly string[]): string | undefined {
    for (const name of names) {
      const text = trimmed(this.#candidates(name)[0]?.text);
      const date = text === undefined ? undefined : readDate(text);
      if (text === undefined || date !== undefined) this.useFirst(name);
      if (date !== undefined) return date;
    }
    return undefined;
  }

  /** Returns all elements that are not used. */
  unusedFields(): Record<string, unknown> {
    const fields: Record<string, unknown> = {};
    for (const element of this.#elements) {
      if (!this.#usedElements.has(element)) addField(fields, element.name, fieldOf(element));
    }
    return fields;
  }

  #candidates(name: string): XmlElement[] {
    const ownElements = this.withoutExtensions(name);
    return ownElements.length === 0 ? this.withName(name) : ownElements;
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

/** Returns the content of an ATOM text construct, see {@link contentOf}. For XHTML, the markup inside its `div`. */
function markupOf(element: XmlElement | undefined): string | undefined {
  if (element === undefined) return undefined;
  const [child] = element.children;
  const isXhtml = element.attributes.type === 'xhtml' && element.children.length === 1 && child?.name === 'div';
  return isXhtml ? child.inner() : contentOf(element);
}

function authorIn(parts: Parts, format: FeedFormat): string | undefined {
  const isAtom = format === 'ATOM';
  const elements = [...parts.useAll('author'), ...(isAtom ? [] : parts.useAll('creator'))];
  const names = elements.map((element) => element.children.find(({ name }) => name === 'name') ?? element);
  const author = names.map(({ text }) => trimmed(text)).find((name) => name !== undefined);
  if (isAtom || author === undefined) return author;
  // RSS 2.0 writes authors as `bob@example.com (Bob)`.
  return trimmed(/^[^\s()@]+@[^\s()@]+\s*\((.+)\)$/.exec(author)?.[1]) ?? author;
}

/** Returns the address of an alternate link, or else of the first link. */
function linkOf(elements: readonly XmlElement[]): string | undefined {
  const addressOf = ({ attributes, text }: XmlElement) => trimmed(attributes.href ?? text);
  const links = elements.filter((link) => addressOf(link) !== undefined);
  const link = links.find(({ attributes }) => (attributes.rel ?? 'alternate') === 'alternate') ?? links[0];
  return link && addressOf(link);
}

type AccountDetail = 'balance' | 'type' | 'currency';

/** Returns the account detail with a name. Ignores case. */
function detailOf(name: string): AccountDetail | undefined {
  return /^(?:account)?(balance|type|currency)$/.exec(name.toLowerCase())?.[1] as AccountDetail | undefined;
}

/**
 * Finds the account details. If a detail occurs several times, the first one in this order counts:
 *
 * - elements with a name like `account`: their content, then their attributes
 * - other elements: their content, then their attributes
 * - attributes of the feed itself
 */
function findAccount(frames: readonly XmlElement[], feedLevel: readonly XmlElement[]): FeedAccount {
  const accountElements = feedLevel.filter(({ name }) => /account/i.test(name));
  const otherElements = feedLevel.filter((element) => detailOf(element.name) !== undefined || hasDetail(element));
  const candidates = [...detailsIn(accountElements), ...detailsIn(otherElements), ...frames.flatMap(attributesOf)];
  const details = new Map<AccountDetail, string>();
  for (const [name, text] of candidates) {
    const [detail, value] = [detailOf(name), trimmed(text)];
    if (detail !== undefined && value !== undefined && !details.has(detail)) details.set(detail, value);
  }
  const balance = details.get('balance');
  return present({
    balance: balance === undefined ? undefined : readBalance(balance),
    type: details.get('type'),
    currency: details.get('currency'),
  });
}

type Candidate = [name: string, text: string];

/** Returns names and values of elements and their descendants: first all elements, then all attributes. */
function detailsIn(elements: readonly XmlElement[]): Candidate[] {
  const allElements = elements.flatMap(withDescendants);
  return [...allElements.map(({ name, text }): Candidate => [name, text]), ...allElements.flatMap(attributesOf)];
}

function withDescendants(element: XmlElement): XmlElement[] {
  return [element, ...element.children.flatMap(withDescendants)];
}

function attributesOf({ attributes }: XmlElement): Candidate[] {
  return Object.entries(attributes);
}

/**
 * Whether an element has an account detail as an attribute. `type` alone does not count, because many elements of a
 * feed have it.
 */
function hasDetail({ attributes }: XmlElement): boolean {
  return Object.keys(attributes).some((name) => name.toLowerCase() !== 'type' && detailOf(name) !== undefined);
}

function readBalance(text: string): number | string {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : text;
}
