import type { NodeAPI } from 'node-red';
import { type AnswerNews, explainLimited, type OutcomeNews, type Sent } from '../../src';
import { type SmsMessage, withAckId } from './outcome';
import { createParts } from './parts';
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
  const { recipients, failed } = translateLimits(RED, sent);
  const copies = failed.length === 0 ? [] : createFailures(RED, message, failed, { messageId, redelivered, duplicate });
  if (accepted.length === 0) return [null, copies, null, null];
  const sms: Record<string, unknown> = {};
  if (messageId !== undefined) sms.messageId = messageId;
  if (statusCode !== undefined) sms.statusCode = statusCode;
  if (resolvedBy !== undefined) sms.resolvedBy = resolvedBy;
  sms.isError = false;
  sms.recipients = recipients;
  sms.accepted = accepted;
  sms.failed = failed;
  sms.encoding = encoding;
  sms.parts = parts;
  if (redelivered) sms.redelivered = true;
  if (duplicate) sms.duplicate = true;
  message.sms = withAckId(message, sms);
  return [message, copies, null, null];
}

/** A copy of the message for each recipient that failed, which a `join` node can gather. */
function createFailures(
  RED: NodeAPI,
  message: SmsMessage,
  failed: Sent['failed'],
  {
    messageId,
    redelivered,
    duplicate,
  }: Pick<OutcomeNews, 'redelivered' | 'duplicate'> & { messageId: string | undefined },
): SmsMessage[] {
  const id = RED.util.generateId();
  const { parts, ...whole } = message;
  return failed.map((result, index) => {
    const copy = copyRest(RED, whole);
    copy.topic = result.msisdn;
    const sms: Record<string, unknown> = messageId === undefined ? { ...result } : { messageId, ...result };
    if (redelivered) sms.redelivered = true;
    if (duplicate) sms.duplicate = true;
    copy.sms = withAckId(message, sms);
    copy.parts = createParts({ parts }, { id, count: failed.length, index });
    return copy;
  });
}

/** A copy without what each copy has of its own: the list of all recipients may stand there, thousands times thousands. */
function copyRest(RED: NodeAPI, { topic: _topic, sms: _sms, ...rest }: SmsMessage): SmsMessage {
  return RED.util.cloneMessage(rest);
}

/** Tells in the language of the server why a limit keeps recipients back. */
function translateLimits(RED: NodeAPI, sent: Sent): Pick<Sent, 'recipients' | 'failed'> {
  if (!sent.limited?.length) return sent;
  const texts = new Map(sent.limited.map((one) => [one.msisdn, translateError(RED, explainLimited(one)).message]));
  const translate = <Result extends { msisdn: string }>(result: Result): Result => {
    const errorMessage = texts.get(result.msisdn);
    return errorMessage === undefined ? result : { ...result, errorMessage };
  };
  return { recipients: sent.recipients.map(translate), failed: sent.failed.map(translate) };
}

/** Output 3: a copy of the message with the reply. Output 4: one that says why none came. */
export function createAnswerOutputs(
  RED: NodeAPI,
  message: SmsMessage,
  { answer, recipient, messageId, redelivered }: AnswerNews,
): SendOutputs {
  const copy = copyRest(RED, message);
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
