import type { NodeAPI } from 'node-red';
import { type AnswerNews, createLimitError, type OutcomeNews, type Sent } from '../../src';
import type { SmsMessage } from './outcome';
import { translateError } from './texts';

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
  const { messageId, statusCode, resolvedBy, accepted } = sent;
  const translate = createLimitTranslator(RED, sent);
  const [recipients, failed] = [sent.recipients.map(translate), sent.failed.map(translate)];
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

/** Tells in the language of the server why a limit keeps a recipient back. */
function createLimitTranslator(RED: NodeAPI, { limited = [] }: Sent) {
  const texts = new Map(limited.map((one) => [one.msisdn, translateError(RED, createLimitError([one])).message]));
  return <Result extends { msisdn: string }>(result: Result): Result => {
    const errorMessage = texts.get(result.msisdn);
    return errorMessage === undefined ? result : { ...result, errorMessage };
  };
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
