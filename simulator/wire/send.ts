import type { OutboundMessage, OutboundRecipient } from '../model';
import { formatAttributes, xmlDeclaration } from './xml';

/** Media type of a send answer. */
export const xmlType = 'text/xml; charset=UTF-8';

/** Formats the answer to an accepted send (§2.2), with one element for each item of `to`. */
export function formatDelivery(message: OutboundMessage): string {
  const recipients = firstPerItem(message).map(
    ({ item, isError, errorCode, errorMessage }) =>
      `<recipient${formatAttributes({ msisdn: item, isError, errorCode, errorMessage })}/>`,
  );
  const root = formatAttributes({ messageId: message.messageId, isError: false });
  return `${xmlDeclaration}<outbound-message-delivery${root}>${recipients.join('')}</outbound-message-delivery>`;
}

/** Formats the answer to a refused send (§2.2). No message was sent. */
export function formatRefusal(errorCode: number, errorMessage: string, messageId?: string): string {
  const root = formatAttributes({ messageId, isError: true, errorCode, errorMessage });
  return `${xmlDeclaration}<outbound-message-delivery${root}/>`;
}

/**
 * Returns one recipient per item of `to`. For a group, returns a failed recipient only if all its members have failed.
 */
function firstPerItem({ to: items, recipients }: OutboundMessage): OutboundRecipient[] {
  const byItem = new Map<string, OutboundRecipient>();
  for (const recipient of recipients) {
    for (const item of [recipient.item, ...(recipient.otherItems ?? [])]) {
      const earlierRecipient = byItem.get(item);
      if (earlierRecipient === undefined || (earlierRecipient.isError && !recipient.isError))
        byItem.set(item, { ...recipient, item });
    }
  }
  return items.flatMap((item) => byItem.get(item) ?? []);
}
