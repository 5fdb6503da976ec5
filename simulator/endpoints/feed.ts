import type { Account } from '../account';
import { createErrorAnswer } from '../answer';
import type { Clock } from '../clock';
import type { Work } from '../exchange';
import type { History } from '../history';
import { type FeedItem, formatAtom, formatRss, toFeedItem, toReplyFeedItem } from '../wire/feed';

const defaultSize = 8;
const maxSize = 300;

/**
 * Creates the feed of recent messages (§4.5), newest first. A size over 300 counts as 300 (§8).
 *
 * @param link returns the address of the feed
 */
export function createFeedWork(account: Account, clock: Clock, history: History, link: () => string): Work {
  return ({ params }) => {
    const { format = 'ATOM', type, size = String(defaultSize) } = params;
    if (format !== 'ATOM' && format !== 'RSS') return createErrorAnswer(400, 'format must be ATOM or RSS');
    if (type !== undefined && type !== 'out' && type !== 'reply') {
      return createErrorAnswer(400, 'type must be out or reply');
    }
    if (!/^[1-9]\d*$/.test(size)) return createErrorAnswer(400, 'size must be a whole number of 1 or more');
    const count = Math.min(Number(size), maxSize);
    const sent = type === 'reply' ? [] : history.messages.slice(-count);
    const received = type === 'out' ? [] : history.incoming.slice(-count);
    const items: FeedItem[] = [
      ...sent.map((message) => toFeedItem(message, account)),
      ...received.map(toReplyFeedItem),
    ];
    items.sort((a, b) => (a.published < b.published ? 1 : a.published > b.published ? -1 : 0));
    const content = {
      account,
      items: items.slice(0, count),
      link: link(),
      updated: new Date(clock.now()).toISOString(),
    };
    return format === 'ATOM'
      ? { status: 200, contentType: 'application/atom+xml; charset=UTF-8', body: formatAtom(content) }
      : { status: 200, contentType: 'application/rss+xml; charset=UTF-8', body: formatRss(content) };
  };
}
