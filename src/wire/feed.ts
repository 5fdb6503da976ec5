import type { Feed, FeedAccount, FeedEntry, FeedFormat } from '../model';
import { readDate } from './date';
import { isBlank, isUnsafeKey } from './fields';
import { decodeText } from './text';
import { unreadable } from './unreadable';
import { parseXml, type XmlElement } from './xml';

/**
 * Reads a feed of recent messages (§2.6) in ATOM 1.0 or RSS (2.0, and 1.0 in RDF); the same data give the same entries.
 *
 * - Dates are ISO 8601 UTC; one that cannot be read is none, and stays among the `fields`. When only one of `published` and
 *   `updated` is told, it stands for both.
 * - `body` is the content, else the summary or description. HTML stays HTML, unescaped once; XHTML is the markup inside
 *   its `div`.
 * - `fields` holds the other elements of an entry by local name. One that has only text is that text, trimmed; any
 *   other is an object of its attributes and child elements by local name, in the same way, with its own text, if any,
 *   as `text`. What comes several times under one name is an array.
 * - The account details are found at feed level by local name, whatever the case: as elements, as attributes, or inside
 *   an element whose name begins with `account`.
 *
 * @throws SmsError `SMS_RESPONSE` when it is no such feed
 */
export function parseFeed(bytes: Uint8Array, contentType?: string): Feed {
  const root = parseXml(decodeText(bytes, contentType));
  if (root.name === 'feed') return createFeed('ATOM', [root]);
  const channel = root.children.find(({ name }) => name === 'channel');
  if ((root.name === 'rss' || root.name === 'RDF') && channel !== undefined) return createFeed('RSS', [channel, root]);
  throw unreadable('answer', 'neither an ATOM nor an RSS feed');
}

/** @param frames the elements that hold what is at feed level: in RSS the channel and the root around it */
function createFeed(format: FeedFormat, frames: readonly XmlElement[]): Feed {
  const entryName = format === 'ATOM' ? 'entry' : 'item';
  const createEntry = format === 'ATOM' ? createAtomEntry : createRssEntry;
  const entries: FeedEntry[] = [];
  const feedLevel: XmlElement[] = [];
  for (const child of frames.flatMap(({ children }) => children)) {
    if (child.name === entryName) entries.push(createEntry(child));
    else if (!frames.includes(child)) feedLevel.push(child);
  }
  const parts = new Parts(feedLevel, frames[0]?.prefix);
  return {
    format,
    ...present({ title: parts.text('title'), updated: parts.date(['updated', 'lastBuildDate', 'pubDate', 'date']) }),
    account: findAccount(frames, feedLevel),
    entries,
  };
}

function createAtomEntry(entry: XmlElement): FeedEntry {
  const parts = new Parts(entry.children, entry.prefix);
  return {
    ...present({
      id: parts.text('id'),
      title: markupOf(parts.take('title'))?.trim(),
      body: markupOf(parts.takeOwn('content') ?? parts.takeOwn('summary')),
      ...bothDates(parts.date(['published', 'issued', 'created']), parts.date(['updated', 'modified'])),
      author: authorOf(parts.takeAll('author')),
      link: linkOf(parts.takeAll('link')),
    }),
    categories: categoriesOf(parts.takeAll('category')),
    fields: parts.rest(),
  };
}

function createRssEntry(item: XmlElement): FeedEntry {
  const parts = new Parts(item.children, item.prefix);
  return {
    ...present({
      id: parts.text('guid') ?? trimmed(item.attributes.about),
      title: parts.text('title'),
      body: textOf(parts.take('encoded') ?? parts.takeOwn('description')),
      ...bothDates(parts.date(['pubDate', 'published']), parts.date(['updated', 'modified', 'date', 'lastBuildDate'])),
      author: nameIn(authorOf([...parts.takeAll('author'), ...parts.takeAll('creator')])),
      link: linkOf(parts.takeAll('link')),
    }),
    categories: categoriesOf(parts.takeAll('category')),
    fields: parts.rest(),
  };
}

/** The child elements of an entry or a feed, each of which has one place in the record. */
class Parts {
  readonly #elements: readonly XmlElement[];
  readonly #prefix: string;
  readonly #byName = new Map<string, XmlElement[]>();
  readonly #taken = new Set<XmlElement>();

  /** @param prefix of the parent; children with the same one are the format's own, not an extension's */
  constructor(elements: readonly XmlElement[], prefix = '') {
    this.#elements = elements;
    this.#prefix = prefix;
    for (const element of elements) {
      const namesakes = this.#byName.get(element.name);
      if (namesakes === undefined) this.#byName.set(element.name, [element]);
      else namesakes.push(element);
    }
  }

  /** The first element of this name, rather the format's own than an extension's. */
  take(name: string): XmlElement | undefined {
    const element = this.#find(name);
    if (element !== undefined) this.#taken.add(element);
    return element;
  }

  /** The first element of this name that is the format's own. */
  takeOwn(name: string): XmlElement | undefined {
    const element = this.#findOwn(name);
    if (element !== undefined) this.#taken.add(element);
    return element;
  }

  /** All elements of this name that are the format's own; when there are none, all of this name. */
  takeAll(name: string): XmlElement[] {
    const namesakes = this.#byName.get(name) ?? [];
    const own = namesakes.filter(({ prefix }) => prefix === this.#prefix);
    const elements = own.length === 0 ? namesakes : own;
    for (const element of elements) this.#taken.add(element);
    return elements;
  }

  text(name: string): string | undefined {
    return trimmed(textOf(this.take(name)));
  }

  /** The first of these names that has a date that can be read; the others stay for {@link rest}. */
  date(names: readonly string[]): string | undefined {
    for (const name of names) {
      const text = trimmed(textOf(this.#find(name)));
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

  #find(name: string): XmlElement | undefined {
    return this.#findOwn(name) ?? this.#byName.get(name)?.[0];
  }

  #findOwn(name: string): XmlElement | undefined {
    return this.#byName.get(name)?.find(({ prefix }) => prefix === this.#prefix);
  }
}

function addField(fields: Record<string, unknown>, name: string, value: unknown): void {
  if (isUnsafeKey(name)) return;
  if (!Object.hasOwn(fields, name)) fields[name] = value;
  else if (Array.isArray(fields[name])) fields[name].push(value);
  else fields[name] = [fields[name], value];
}

function fieldOf(element: XmlElement): unknown {
  const text = (textOf(element) ?? '').trim();
  const attributes = Object.entries(element.attributes);
  if (attributes.length === 0 && element.children.length === 0) return text;
  const value: Record<string, unknown> = {};
  for (const [name, attribute] of attributes) addField(value, name, attribute);
  for (const child of element.children) addField(value, child.name, fieldOf(child));
  if (text !== '') addField(value, 'text', text);
  return value;
}

function textOf(element: XmlElement | undefined): string | undefined {
  return element?.cdata ?? element?.text;
}

/** A text construct of ATOM: plain or HTML as it stands, XHTML as the markup inside its `div`, other XML as markup. */
function markupOf(element: XmlElement | undefined): string | undefined {
  if (element === undefined || element.children.length === 0) return textOf(element);
  const [child] = element.children;
  const isXhtml = element.attributes.type === 'xhtml' && element.children.length === 1 && child?.name === 'div';
  return isXhtml ? child.inner() : element.inner();
}

function trimmed(text: string | undefined): string | undefined {
  return text === undefined || isBlank(text) ? undefined : text.trim();
}

function bothDates(published: string | undefined, updated: string | undefined) {
  return { published: published ?? updated, updated: updated ?? published };
}

function authorOf(elements: readonly XmlElement[]): string | undefined {
  for (const element of elements) {
    const name = element.children.find((child) => child.name === 'name') ?? element.children[0] ?? element;
    const author = trimmed(textOf(name));
    if (author !== undefined) return author;
  }
  return undefined;
}

/** RSS 2.0 has authors as `bob@example.com (Bob)`. */
function nameIn(author: string | undefined): string | undefined {
  return trimmed(/^[^\s()@]+@[^\s()@]+\s*\((.+)\)$/.exec(author ?? '')?.[1]) ?? author;
}

function linkOf(elements: readonly XmlElement[]): string | undefined {
  let other: string | undefined;
  for (const element of elements) {
    const address = trimmed(element.attributes.href ?? textOf(element));
    if (address === undefined) continue;
    if ((element.attributes.rel ?? 'alternate') === 'alternate') return address;
    other ??= address;
  }
  return other;
}

function categoriesOf(elements: readonly XmlElement[]): string[] {
  return elements
    .map(({ attributes, text, cdata }) => trimmed(attributes.term ?? cdata ?? text) ?? trimmed(attributes.label))
    .filter((category) => category !== undefined);
}

type AccountDetail = 'balance' | 'type' | 'currency';

const accountDetails: ReadonlyMap<string, AccountDetail> = new Map([
  ['balance', 'balance'],
  ['accountbalance', 'balance'],
  ['type', 'type'],
  ['accounttype', 'type'],
  ['currency', 'currency'],
  ['accountcurrency', 'currency'],
]);

/** Elements come before attributes, and those before the attributes of the feed itself; among equals the first holds. */
function findAccount(frames: readonly XmlElement[], feedLevel: readonly XmlElement[]): FeedAccount {
  const found = new Map<AccountDetail, string>();
  const candidates = feedLevel.flatMap((element) => accountElements(element, false));
  for (const { element } of candidates) {
    const detail = accountDetails.get(element.name.toLowerCase());
    if (detail !== undefined) addDetail(found, detail, detailText(element));
  }
  for (const { element, isAccount } of candidates) findInAttributes(element, isAccount, found);
  for (const frame of frames) findInAttributes(frame, true, found);
  const balance = found.get('balance');
  return present({
    balance: balance === undefined ? undefined : readBalance(balance),
    type: found.get('type'),
    currency: found.get('currency'),
  });
}

/** The element and, when it is about the account, all elements in it. */
function accountElements(element: XmlElement, isInAccount: boolean): { element: XmlElement; isAccount: boolean }[] {
  const isAccount = isInAccount || accountDetails.has(element.name.toLowerCase()) || /account/i.test(element.name);
  const inner = isAccount ? element.children.flatMap((child) => accountElements(child, true)) : [];
  return [{ element, isAccount }, ...inner];
}

/** `type` is an attribute of many elements of a feed, and tells of the account only where its other details are. */
function findInAttributes({ attributes }: XmlElement, isInAccount: boolean, found: Map<AccountDetail, string>): void {
  const names = Object.keys(attributes);
  const isAccount = isInAccount || names.some((name) => accountDetails.has(name.toLowerCase()) && !isTypeName(name));
  if (!isAccount) return;
  for (const name of names) {
    const detail = accountDetails.get(name.toLowerCase());
    if (detail !== undefined) addDetail(found, detail, attributes[name]);
  }
}

function isTypeName(name: string): boolean {
  return name.toLowerCase() === 'type';
}

function detailText(element: XmlElement): string | undefined {
  const { attributes, children } = element;
  const child = children.find(({ name }) => name === 'amount' || name === 'value');
  return trimmed(textOf(element)) ?? trimmed(attributes.amount ?? attributes.value ?? textOf(child));
}

function addDetail(found: Map<AccountDetail, string>, detail: AccountDetail, text: string | undefined): void {
  const value = trimmed(text);
  if (value !== undefined && !found.has(detail)) found.set(detail, value);
}

function readBalance(text: string): number | string {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : text;
}

type Present<Values> = { [Key in keyof Values]?: Exclude<Values[Key], undefined> };

function present<Values extends object>(values: Values): Present<Values> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Present<Values>;
}
