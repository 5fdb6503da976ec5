import type { Account } from '../account';
import type { IncomingMessage, OutboundMessage, StatusUpdate } from '../model';

/** Formats one incoming message as a form (§2.3). */
export function formatIncoming(message: IncomingMessage): string {
  return formatForm([
    ['messageId', message.messageId],
    ['from', message.from],
    ['to', message.to],
    ['inReplyToId', message.inReplyToId],
    ['body', message.body],
    ['messageDate', message.messageDate],
    ['contentType', message.contentType],
  ]);
}

/**
 * Formats status updates (§2.5). Several updates repeat the names, so the n-th value of a name belongs to the n-th
 * update. Therefore, even an empty `error` is included if there are several updates.
 */
export function formatStatuses(updates: readonly StatusUpdate[]): string {
  const several = updates.length > 1;
  return formatForm(
    updates.flatMap((update): [string, string | undefined][] => [
      ['messageId', update.messageId],
      ['to', update.to],
      ['from', update.from],
      ['statusCode', update.statusCode],
      ['inReplyToId', update.inReplyToId],
      ['error', update.error ?? (several ? '' : undefined)],
    ]),
  );
}

/** Encodes a form. Omits undefined values. */
export function formatForm(fields: readonly (readonly [string, string | undefined])[]): string {
  const form = new URLSearchParams();
  for (const [name, value] of fields) if (value !== undefined) form.append(name, value);
  return form.toString();
}

/** Formats the JSON list of outbound messages (§2.4). */
export function formatOutbox(messages: readonly OutboundMessage[], account: Account): string {
  return JSON.stringify(
    messages.map((message) => ({
      messageId: recordIdOf(message, account),
      body: message.body,
      recipientCount: message.recipients.length,
      recipients: summariseRecipients(message),
      messageDate: message.messageDate,
      statusCode: summariseStatus(message),
      deleted: message.deleted,
      recipientsList: message.recipients.map((recipient) => ({
        from: message.from ?? account.defaultSender,
        to: recipient.msisdn,
        name: recipient.name ?? '',
        statusCode: documented(recipient.statusCode),
        channel: 'Sms',
      })),
    })),
  );
}

/** Returns the id of a message in outbox and feed. */
export function recordIdOf({ messageId, recordId }: OutboundMessage, { ownRecordIds }: Account): string {
  return ownRecordIds ? recordId : messageId;
}

/**
 * Lists the first two recipients by name or number, and the number of others (§2.4), e.g. `Anna, 642155512 and 3
 * others`.
 */
export function summariseRecipients({ recipients }: OutboundMessage): string {
  const names = recipients.slice(0, 2).map((recipient) => recipient.name ?? recipient.msisdn);
  const otherCount = recipients.length - names.length;
  if (otherCount === 0) return names.join(', ');
  return `${names.join(', ')} and ${otherCount} ${otherCount === 1 ? 'other' : 'others'}`;
}

/**
 * Returns one status code for the whole message (§2.4): the status of the first recipient whose status is not RCV, or
 * RCV.
 */
export function summariseStatus({ recipients }: OutboundMessage): string {
  return documented(recipients.find((recipient) => recipient.statusCode !== 'RCV')?.statusCode ?? 'RCV');
}

/** Replaces PND (no status yet), which only the simulator uses, by SNT, the first status of the service. */
function documented(statusCode: string): string {
  return statusCode === 'PND' ? 'SNT' : statusCode;
}
