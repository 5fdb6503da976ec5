import { isOutbound } from './history';
import { keyOf } from './keys';
import { callOf } from './links';
import type { IncomingMessage, OutboundMessage, ShownMessage } from './model';

/** Describes a message as a handset shows it. */
export function describeMessage(message: OutboundMessage | IncomingMessage, msisdn: string): ShownMessage {
  const call = callOf(message);
  const link = call === undefined ? undefined : keyOf(call);
  return {
    key: keyOf(message),
    msisdn,
    at: message.messageDate,
    messageId: message.messageId,
    ...(isOutbound(message) ? describeSent(message, msisdn) : describeTyped(message)),
    ...(link !== undefined && { call: link }),
  };
}

function describeSent(
  message: OutboundMessage,
  msisdn: string,
): Pick<ShownMessage, 'isFromHandset' | 'body'> & Partial<ShownMessage> {
  const recipient = message.recipients.find((candidate) => candidate.msisdn === msisdn);
  return {
    isFromHandset: false,
    body: message.deliveredBody ?? message.body,
    parts: message.parts,
    ...(message.from !== undefined && { sender: message.from }),
    ...(recipient !== undefined && { statusCode: recipient.statusCode }),
    ...(recipient?.isError && { refusal: recipient.errorMessage ?? '' }),
  };
}

function describeTyped(message: IncomingMessage): Pick<ShownMessage, 'isFromHandset' | 'body'> & Partial<ShownMessage> {
  const { body, inReplyToId, readAt, calledBackAt } = message;
  return {
    isFromHandset: true,
    body,
    ...(inReplyToId !== undefined && { inReplyToId }),
    ...(readAt !== undefined && { readAt }),
    ...(calledBackAt !== undefined && { calledBackAt }),
  };
}
