import type { NodeAPI } from 'node-red';
import { type AnswerEvent, explainWithheld, type OutcomeEvent, type ReportEvent, type Sent } from '../../src';
import { copyMessage, copyRecord, createParts, type SmsMessage, withAckId } from './messages';
import { translateError } from './texts';

/** What leaves a sending node, by its outputs: accepted, failed; where it waits, reply and no reply; the report. */
export type SendOutputs = [accepted: SmsMessage | null, failed: SmsMessage[], ...later: (SmsMessage | null)[]];

/** An outcome by which a text was sent. */
export type SentNews = OutcomeEvent & { outcome: Sent };

/** How many copies are made in one go: each may hold a list of all recipients, thousands times thousands. */
const sliceSize = 100;

/** What each copy has of its own: the list of all recipients may stand there. */
const own = ['topic', 'sms'];

/**
 * Output 1: the message, when a recipient was accepted. Output 2: a copy for each recipient that failed. In slices, each made when it
 * is sent.
 */
export function createOutputs(RED: NodeAPI, message: SmsMessage, news: SentNews): (() => SendOutputs)[] {
  const outcome = translateWithheld(RED, news.outcome);
  const createAccepted = () => {
    if (news.outcome.accepted.length === 0) return null;
    message.sms = withAckId(message, createRecord(news, outcome));
    return message;
  };
  if (outcome.failed.length === 0) return [() => [createAccepted(), []]];
  const failures = prepareFailures(RED, message, news, outcome.failed);
  const createFailures = (start: number) => failures.slice(start, start + sliceSize).map((create) => create());
  const slices = [(): SendOutputs => [createAccepted(), createFailures(0)]];
  for (let start = sliceSize; start < failures.length; start += sliceSize) {
    slices.push(() => [null, createFailures(start)]);
  }
  return slices;
}

/** The `msg.sms` of output 1. */
function createRecord({ encoding, parts, replacements, ...news }: SentNews, outcome: Sent): object {
  const { messageId, statusCode, resolvedBy, recipients, accepted, failed } = outcome;
  const result = { messageId, statusCode, resolvedBy, isError: false, recipients, accepted, failed };
  const sms = { ...result, encoding, parts, replacements };
  return withMarks(sms, news);
}

/** A record without what is absent, and with what is to be known of how it came. */
function withMarks(record: object, { redelivered, duplicate }: { redelivered: boolean; duplicate?: boolean }): object {
  const marked = { ...record, redelivered: redelivered || undefined, duplicate: duplicate || undefined };
  return Object.fromEntries(Object.entries(marked).filter(([, value]) => value !== undefined));
}

/** Makes a copy of the message, as it is now, for each recipient that failed, which a `join` node can gather. */
function prepareFailures(
  RED: NodeAPI,
  message: SmsMessage,
  news: SentNews,
  failed: Sent['failed'],
): (() => SmsMessage)[] {
  const id = RED.util.generateId();
  const { sms: before } = message;
  // Whoever gets the message itself may change it before the last copy is made.
  const { parts, ...whole } = copyMessage(RED, message, own);
  return failed.map((result, index) => () => {
    const copy = copyMessage(RED, whole);
    copy.topic = result.msisdn;
    copy.sms = withAckId({ sms: before }, withMarks({ messageId: news.outcome.messageId, ...result }, news));
    copy.parts = createParts({ parts }, { id, count: failed.length, index });
    return copy;
  });
}

/** Tells in the language of the server why recipients were withheld. */
function translateWithheld(RED: NodeAPI, sent: Sent): Sent {
  if (!sent.withheld?.length) return sent;
  const texts = new Map(sent.withheld.map((one) => [one.msisdn, translateError(RED, explainWithheld(one)).message]));
  const translate = <Result extends { msisdn: string }>(result: Result): Result => {
    const errorMessage = texts.get(result.msisdn);
    return errorMessage === undefined ? result : { ...result, errorMessage };
  };
  return { ...sent, recipients: sent.recipients.map(translate), failed: sent.failed.map(translate) };
}

/** Output 3: a copy of the message with the reply. Output 4: one that says why none came. */
export function createAnswerOutputs(RED: NodeAPI, message: SmsMessage, news: AnswerEvent): SendOutputs {
  const { result, recipient, messageId } = news;
  const copy = copyMessage(RED, message, own);
  if (!('reason' in result)) {
    copy.payload = result.reply.body;
    copy.topic = result.reply.from;
    copy.sms = withMarks(copyRecord(result.reply), news);
    return [null, [], copy];
  }
  copy.topic = recipient;
  copy.sms = withMarks({ messageId, msisdn: recipient, ...result }, news);
  return [null, [], null, copy];
}

/**
 * The last output: a copy of the message with what became of it.
 *
 * @param waits there are outputs 3 and 4 before it
 */
export function createReportOutputs(RED: NodeAPI, message: SmsMessage, news: ReportEvent, waits: boolean): SendOutputs {
  const { result, ...handsets } = news.report;
  const copy = copyMessage(RED, message, ['sms']);
  copy.payload = result;
  copy.sms = withMarks({ messageId: news.messageId, ...handsets }, news);
  return [null, [], ...(waits ? [null, null] : []), copy];
}
