import type { Account } from './account';
import type { History } from './history';
import { keyOf } from './keys';
import type { HandsetSummary, IncomingMessage, OutboundMessage } from './model';
import { describeMessage } from './shown-messages';

/** Selects handsets. */
export interface HandsetQuery {
  /** Part of a number, a name or a message body. Blank for all handsets. */
  search: string;
  limit: number;
}

/**
 * Lists the handsets that a user added, those of the address book, and those with messages. The handset with the latest
 * message comes first. Each handset has its last message, or its last message that contains the search text.
 */
export function listHandsets(
  account: Account,
  history: History,
  { search, limit }: HandsetQuery,
): { handsets: HandsetSummary[]; total: number } {
  const sought = search.trim().toLowerCase();
  const numbers = new Set([...account.handsets, ...account.numbers, ...history.handsets]);
  const matches: { msisdn: string; message: OutboundMessage | IncomingMessage | undefined }[] = [];
  for (const msisdn of numbers) {
    const messages = history.messagesOf(msisdn);
    const isNamed = `${msisdn} ${account.nameOf(msisdn) ?? ''}`.toLowerCase().includes(sought.replace(/^\+/, ''));
    const message = isNamed ? messages.at(-1) : findLast(messages, sought);
    if (isNamed || message !== undefined) matches.push({ msisdn, message });
  }
  matches.sort((a, b) => rank(b.message) - rank(a.message));
  const handsets = matches.slice(0, limit).map(({ msisdn, message }): HandsetSummary => {
    const name = account.nameOf(msisdn);
    return {
      msisdn,
      ...(name !== undefined && { name }),
      ...(message !== undefined && { last: describeMessage(message, msisdn) }),
      canReply: history.lastSentTo(msisdn) !== undefined,
    };
  });
  return { handsets, total: matches.length };
}

function findLast<T extends { body: string }>(messages: readonly T[], sought: string): T | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    if (messages[index]?.body.toLowerCase().includes(sought)) return messages[index];
  }
  return undefined;
}

function rank(message: object | undefined): number {
  return message === undefined ? 0 : keyOf(message);
}
