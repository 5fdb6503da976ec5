import type { OutboundMessage, OutboundRecipient } from '../model';
import { formatAttributes, xmlDeclaration } from './xml';

/** Media type of a send answer. */
export const xmlType = 'text/xml; charset=UTF-8';

/** The send answer of an accepted request (§2.2): one element per item as submitted. */
export function formatDelivery(message: OutboundMessage): string {
  const recipients = firstPerItem(message).map(
    ({ item, isError, errorCode, errorMessage }) =>
      `<recipient${formatAttributes({ msisdn: item, isError, errorCode, errorMessage })}/>`,
  );
  const root = formatAttributes({ messageId: message.messageId, isError: false });
  return `${xmlDeclaration}<outbound-message-delivery${root}>${recipients.join('')}</outbound-message-delivery>`;
}

/** The send answer when nothing was sent (§2.2). */
export function formatRefusal(errorCode: number, errorMessage: string, messageId?: string): string {
  const root = formatAttributes({ messageId, isError: true, errorCode, errorMessage });
  return `${xmlDeclaration}<outbound-message-delivery${root}/>`;
}

/** A group stands for its members: it failed only when all of them did. */
function firstPerItem({ to: items, recipients }: OutboundMessage): OutboundRecipient[] {
  const byItem = new Map<string, OutboundRecipient>();
  for (const recipient of recipients) {
    for (const item of [recipient.item, ...(recipient.otherItems ?? [])]) {
      const seen = byItem.get(item);
      if (seen === undefined || (seen.isError && !recipient.isError)) byItem.set(item, { ...recipient, item });
    }
  }
  return items.flatMap((item) => byItem.get(item) ?? []);
}
