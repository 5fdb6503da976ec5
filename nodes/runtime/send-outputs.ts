import type { NodeAPI } from 'node-red';
import type { AnswerNews, OutcomeNews, Sent } from '../../src';
import type { SmsMessage } from './outcome';

/** What leaves a sending node: at outputs 1 to 4. */
export type SendOutputs = [
  accepted: SmsMessage | null,
  failed: SmsMessage[],
  reply: SmsMessage | null,
  noReply: SmsMessage | null,
];

/** Output 1: the message, when a recipient was accepted. Output 2: a copy for each recipient that failed. */
export function createOutputs(
  RED: NodeAPI,
  message: SmsMessage,
  { encoding, parts, redelivered, duplicate }: OutcomeNews,
  sent: Sent,
): SendOutputs {
  const { messageId, statusCode, resolvedBy, recipients, accepted, failed } = sent;
  const id = messageId === undefined ? undefined : { messageId };
  const marks = { ...(redelivered ? { redelivered } : undefined), ...(duplicate ? { duplicate } : undefined) };
  const groupId = failed.length > 0 ? RED.util.generateId() : '';
  const copies = failed.map((result, index): SmsMessage => {
    const copy = RED.util.cloneMessage(message);
    copy.topic = result.msisdn;
    copy.sms = { ...id, ...result, ...marks };
    copy.parts = {
      ...(message.parts === undefined ? undefined : { parts: message.parts }),
      id: groupId,
      type: 'array',
      count: failed.length,
      index,
    };
    return copy;
  });
  if (accepted.length === 0) return [null, copies, null, null];
  message.sms = {
    ...id,
    ...(statusCode === undefined ? undefined : { statusCode }),
    ...(resolvedBy === undefined ? undefined : { resolvedBy }),
    isError: false,
    recipients,
    accepted,
    failed,
    encoding,
    parts,
    ...marks,
  };
  return [message, copies, null, null];
}

/** Output 3: a copy of the message with the reply. Output 4: one that says why none came. */
export function createAnswerOutputs(
  RED: NodeAPI,
  message: SmsMessage,
  { answer, recipient, messageId, redelivered }: AnswerNews,
): SendOutputs {
  const copy: SmsMessage = RED.util.cloneMessage(message);
  const mark = redelivered ? { redelivered } : undefined;
  if ('reply' in answer) {
    copy.payload = answer.reply.body;
    copy.topic = answer.reply.from;
    copy.sms = { ...answer.reply, ...mark };
    return [null, [], copy, null];
  }
  copy.topic = recipient;
  copy.sms = { ...(messageId === undefined ? undefined : { messageId }), msisdn: recipient, ...answer, ...mark };
  return [null, [], null, copy];
}
