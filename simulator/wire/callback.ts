import type { CallbackFormat, IncomingMessage, StatusUpdate } from '../model';
import { formatForm } from './records';
import { escapeText, formatAttributes, formatCdata, formatElement, xmlDeclaration } from './xml';

/** The body of a callback with its media type. */
export interface CallbackPayload {
  body: string;
  contentType: string;
}

const xmlType = 'text/xml; charset=UTF-8';
const formType = 'application/x-www-form-urlencoded';

/** Formats the body of a reply callback (§6.4). */
export function formatReplyCallback(message: IncomingMessage, format: CallbackFormat): CallbackPayload {
  if (format === 'FORMv1') {
    const body = formatForm([
      ['messageId', message.messageId],
      ['to', message.receivedOn],
      ['from', message.from],
      ['inReplyToId', message.inReplyToId ?? ''],
      ['body', message.body],
    ]);
    return { body, contentType: formType };
  }
  const root = formatAttributes({ messageId: message.inReplyToId ?? '', receivedDate: message.messageDate });
  const recipient = formatAttributes({ displayName: message.displayName, msisdn: message.from });
  const body = `<recipient${recipient}><body>${formatCdata(message.body)}</body></recipient>`;
  return { body: `${xmlDeclaration}<inbound-message${root}>${body}</inbound-message>`, contentType: xmlType };
}

/** Formats the body of a status callback (§6.5). */
export function formatStatusCallback(update: StatusUpdate, format: CallbackFormat): CallbackPayload {
  if (format === 'FORMv1') {
    const body = formatForm([
      ['messageId', update.messageId],
      ['to', update.to],
      ['from', update.from],
      ['inReplyToId', update.inReplyToId],
      ['statusCode', update.statusCode],
      ['error', update.error],
    ]);
    return { body, contentType: formType };
  }
  const elements = [
    `<messageId>${escapeText(update.inReplyToId)}</messageId>`,
    formatElement('to', update.to),
    formatElement('from', update.from),
    formatElement('statusCode', update.statusCode),
    formatElement('statusDate', update.statusDate),
    formatElement('statusId', update.messageId),
    formatElement('error', update.error),
  ];
  return { body: `${xmlDeclaration}<status-update>${elements.join('')}</status-update>`, contentType: xmlType };
}
