import type { Account } from '../account';
import type { IncomingMessage, OutboundMessage } from '../model';
import { recordIdOf, summariseRecipients, summariseStatus } from './records';
import { escapeText, formatAttributes, formatElement, xmlDeclaration } from './xml';

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
}

/** Contents of a feed, independent of its format. */
export interface FeedContent {
  account: Account;
  /** Newest first. */
  items: FeedItem[];
  /** Address of the feed. */
  link: string;
  /** ISO 8601 UTC. */
  updated: string;
}

const feedTitle = 'Recent messages';
const namespace = ' xmlns:sms="urn:messaging-service:feed"';

export function toFeedItem(message: OutboundMessage, account: Account): FeedItem {
  const changes = message.recipients.flatMap(({ history }) => history.at(-1)?.date ?? []);
  return {
    id: `urn:sms:out:${encodeURIComponent(recordIdOf(message, account))}`,
    type: 'out',
    title: `To ${summariseRecipients(message)}`,
    body: message.body,
    author: message.from ?? account.defaultSender,
    published: message.messageDate,
    updated: changes.reduce((latest, date) => (date > latest ? date : latest), message.messageDate),
    statusCode: summariseStatus(message),
  };
}

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

/** Formats the feed as ATOM 1.0 (§2.6). */
export function formatAtom({ account, items, link, updated }: FeedContent): string {
  const details = formatAccount(account);
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
      formatElement('sms:statusCode', item.statusCode),
      '</entry>',
    ].join(''),
  );
  return [
    xmlDeclaration,
    `<feed xmlns="http://www.w3.org/2005/Atom"${namespace}>`,
    formatElement('id', 'urn:sms:feed'),
    formatElement('title', feedTitle),
    formatElement('updated', updated),
    `<author>${formatElement('name', 'SMS simulator')}</author>`,
    `<link${formatAttributes({ rel: 'self', href: link })}/>`,
    details,
    ...entries,
    '</feed>',
  ].join('');
}

/** Formats the feed as RSS 2.0 (§2.6). */
export function formatRss({ account, items, link, updated }: FeedContent): string {
  const details = formatAccount(account);
  const entries = items.map((item) =>
    [
      '<item>',
      `<guid isPermaLink="false">${escapeText(item.id)}</guid>`,
      formatElement('title', item.title),
      formatElement('pubDate', new Date(item.published).toUTCString()),
      formatElement('atom:updated', item.updated),
      formatElement('dc:creator', item.author),
      formatElement('category', item.type),
      formatElement('description', item.body),
      formatElement('sms:statusCode', item.statusCode),
      '</item>',
    ].join(''),
  );
  return [
    xmlDeclaration,
    `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/"${namespace}>`,
    '<channel>',
    formatElement('title', feedTitle),
    formatElement('link', link),
    formatElement('description', 'Messages sent and received'),
    formatElement('lastBuildDate', new Date(updated).toUTCString()),
    details,
    ...entries,
    '</channel></rss>',
  ].join('');
}

function formatAccount({ balance, type, currency }: Account): string {
  return [
    formatElement('sms:balance', String(balance)),
    formatElement('sms:accountType', type),
    formatElement('sms:currency', currency),
  ].join('');
}
