import type { Account } from './account';
import type { History } from './history';
import { keyOf } from './keys';
import type { HandsetSummary, IncomingMessage, OutboundMessage } from './model';
import { describeText } from './texts';

/** Selects handsets. */
export interface HandsetQuery {
  /** Part of a number, a name or a message body. Blank for all handsets. */
  search: string;
  limit: number;
}

/**
 * Lists the handsets that a user added, those of the address book, and those with messages, the latest first. Each has
 * its last message, or its last message that contains the search text.
 */
export function listHandsets(
  account: Account,
  history: History,
  { search, limit }: HandsetQuery,
): { handsets: HandsetSummary[]; total: number } {
  const sought = search.trim().toLowerCase();
  const numbers = new Set([...account.handsets, ...account.numbers, ...history.handsets]);
  const found: { msisdn: string; text: OutboundMessage | IncomingMessage | undefined }[] = [];
  for (const msisdn of numbers) {
    const texts = history.textsOf(msisdn);
    const isNamed = `${msisdn} ${account.nameOf(msisdn) ?? ''}`.toLowerCase().includes(sought.replace(/^\+/, ''));
    const text = isNamed ? texts.at(-1) : findLast(texts, sought);
    if (isNamed || text !== undefined) found.push({ msisdn, text });
  }
  found.sort((one, other) => rank(other.text) - rank(one.text));
  const handsets = found.slice(0, limit).map(({ msisdn, text }): HandsetSummary => {
    const name = account.nameOf(msisdn);
    return {
      msisdn,
      ...(name !== undefined && { name }),
      ...(text !== undefined && { last: describeText(text, msisdn) }),
      canReply: history.lastSentTo(msisdn) !== undefined,
    };
  });
  return { handsets, total: found.length };
}

function findLast<T extends { body: string }>(texts: readonly T[], sought: string): T | undefined {
  for (let index = texts.length - 1; index >= 0; index -= 1) {
    if (texts[index]?.body.toLowerCase().includes(sought)) return texts[index];
  }
  return undefined;
}

function rank(text: object | undefined): number {
  return text === undefined ? 0 : keyOf(text);
}
