import type { Account } from './account';
import { type History, isOutbound, type Message } from './history';
import { keyOf } from './keys';
import { callOf } from './links';
import type { HandsetSummary, IncomingMessage, OutboundMessage, ShownMessage } from './model';

/**
 * Lists the handsets of `account.numbers`, then all other handsets with messages. If there are more than `limit`, omits
 * the first ones.
 */
export function listHandsets(account: Account, history: History, limit: number): HandsetSummary[] {
  const numbers = new Set([...account.numbers, ...history.lastMessages.keys()]);
  return [...numbers].slice(-limit).map((msisdn) => {
    const name = account.nameOf(msisdn);
    const message = history.lastMessages.get(msisdn);
    return {
      msisdn,
      ...(name !== undefined && { name }),
      ...(message !== undefined && { last: describeMessage(message, msisdn) }),
    };
  });
}

/** Describes the last messages of a handset as the handset shows them, oldest first. */
export function listTexts(history: History, msisdn: string, limit: number): ShownMessage[] {
  const messages = history.messagesOf(msisdn).slice(-limit);
  return messages.map((message) => describeMessage(message, msisdn));
}

function describeMessage(message: Message, msisdn: string): ShownMessage {
  const call = callOf(message);
  return {
    key: keyOf(message),
    msisdn,
    at: message.messageDate,
    messageId: message.messageId,
    ...(isOutbound(message) ? describeSent(message, msisdn) : describeTyped(message)),
    ...(call !== undefined && { call: keyOf(call) }),
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
