import type { FeedAccountPlace, IncomingMessage, OutboundMessage, RecordIds } from '../model';
import { recordIdOf, summariseRecipients, summariseStatus } from './records';
import { escapeText, formatAttributes, formatElement, xmlDeclaration } from './xml';

/** The account details that the feed carries (§2.6). */
export interface FeedAccountDetails {
  balance: number;
  type: string;
  currency: string;
  place: FeedAccountPlace;
}

/** One message as the feed shows it. */
export interface FeedItem {
  id: string;
  type: 'out' | 'reply';
  title: string;
  body: string;
  author: string;
  /** ISO 8601 UTC. */
  published: string;
  updated: string;
  statusCode?: string;
  /** Address of the message, where the messageId stands in it. */
  link?: string;
  /** Where it stands in a field of its own. */
  messageId?: string;
}

/** What a feed says, before its format is chosen. */
export interface FeedContent {
  account: FeedAccountDetails;
  /** Newest first. */
  items: FeedItem[];
  /** Address of the feed. */
  link: string;
  /** ISO 8601 UTC. */
  updated: string;
}

const feedTitle = 'Recent messages';
const namespace = ' xmlns:sms="urn:messaging-service:feed"';

/**
 * An outbound message as a feed item.
 * @param where what it is called, and the address of the feed, which its link begins with
 */
export function toFeedItem(
  message: OutboundMessage,
  sender: string,
  where: { recordIds: RecordIds; feed: string },
): FeedItem {
  const messageId = encodeURIComponent(message.messageId);
  const changes = message.recipients.flatMap(({ history }) => history.at(-1)?.date ?? []);
  return {
    id: `urn:sms:out:${encodeURIComponent(recordIdOf(message, where.recordIds))}`,
    ...(where.recordIds === 'link' && { link: `${where.feed}?messageId=${messageId}` }),
    ...(where.recordIds === 'field' && { messageId: message.messageId }),
    type: 'out',
    title: `To ${summariseRecipients(message)}`,
    body: message.body,
    author: message.from ?? sender,
    published: message.messageDate,
    updated: changes.reduce((latest, date) => (date > latest ? date : latest), message.messageDate),
    statusCode: summariseStatus(message),
  };
}

/** An incoming message as a feed item. */
export function toReplyFeedItem(message: IncomingMessage): FeedItem {
  return {
    id: `urn:sms:reply:${message.messageId}`,
    type: 'reply',
    title: `From ${message.displayName ?? message.from}`,
    body: message.body,
    author: message.from,
    published: message.messageDate,
    updated: message.messageDate,
  };
}

/** ATOM 1.0 (§2.6). */
export function formatAtom({ account, items, link, updated }: FeedContent): string {
  const { attributes, elements } = formatAccount(account);
  const entries = items.map((item) =>
    [
      '<entry>',
      formatElement('id', item.id),
      formatElement('title', item.title),
      formatElement('published', item.published),
      formatElement('updated', item.updated),
      `<author>${formatElement('name', item.author)}</author>`,
      `<category${formatAttributes({ term: item.type })}/>`,
      `<content type="text">${escapeText(item.body)}</content>`,
      item.link === undefined ? '' : `<link${formatAttributes({ href: item.link })}/>`,
      formatElement('sms:messageId', item.messageId),
      formatElement('sms:statusCode', item.statusCode),
      '</entry>',
    ].join(''),
  );
  return [
    xmlDeclaration,
    `<feed xmlns="http://www.w3.org/2005/Atom"${namespace}${attributes}>`,
    formatElement('id', 'urn:sms:feed'),
    formatElement('title', feedTitle),
    formatElement('updated', updated),
    `<author>${formatElement('name', 'SMS simulator')}</author>`,
    `<link${formatAttributes({ rel: 'self', href: link })}/>`,
    elements,
    ...entries,
    '</feed>',
  ].join('');
}

/** RSS 2.0 (§2.6). */
export function formatRss({ account, items, link, updated }: FeedContent): string {
  const { attributes, elements } = formatAccount(account);
  const entries = items.map((item) =>
    [
      '<item>',
      `<guid isPermaLink="false">${escapeText(item.id)}</guid>`,
      formatElement('title', item.title),
      formatElement('link', item.link),
      formatElement('pubDate', new Date(item.published).toUTCString()),
      formatElement('atom:updated', item.updated),
      formatElement('dc:creator', item.author),
      formatElement('category', item.type),
      formatElement('description', item.body),
      formatElement('sms:messageId', item.messageId),
      formatElement('sms:statusCode', item.statusCode),
      '</item>',
    ].join(''),
  );
  return [
    xmlDeclaration,
    `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/"${namespace}>`,
    `<channel${attributes}>`,
    formatElement('title', feedTitle),
    formatElement('link', link),
    formatElement('description', 'Messages sent and received'),
    formatElement('lastBuildDate', new Date(updated).toUTCString()),
    elements,
    ...entries,
    '</channel></rss>',
  ].join('');
}

function formatAccount({ balance, type, currency, place }: FeedAccountDetails): {
  attributes: string;
  elements: string;
} {
  const names = { balance, accountType: type, currency };
  const prefixed = Object.fromEntries(Object.entries(names).map(([name, value]) => [`sms:${name}`, value]));
  const elements = Object.entries(prefixed)
    .map(([name, value]) => formatElement(name, String(value)))
    .join('');
  switch (place) {
    case 'elements':
      return { attributes: '', elements };
    case 'attributes':
      return { attributes: formatAttributes(prefixed), elements: '' };
    case 'nested':
      return { attributes: '', elements: `<sms:account>${elements}</sms:account>` };
    case 'nestedAttributes':
      return { attributes: '', elements: `<sms:account${formatAttributes({ balance, type, currency })}/>` };
  }
}
