import type { NodeAPI } from 'node-red';
import { type AnswerEvent, explainWithheld, type OutcomeEvent, type ReportEvent, type Sent } from '../../src';
import { copyMessage, copyRecord, createParts, type SmsMessage, withAckId } from './messages';
import { translateError } from './texts';

/** Flow messages that are sent at the same time, by output of the node. */
export type SendOutputs = [first: SmsMessage | null, second: SmsMessage[], ...report: SmsMessage[]];

/** The outcome of a message that was sent. */
export type SentEvent = OutcomeEvent & { outcome: Sent };

/**
 * Number of copies that are created at a time. Creating all at once would take too much memory, because each copy can
 * contain a list of all 5,000 recipients.
 */
const sliceSize = 100;

/**
 * Properties that are not copied from the input, because their values can contain the list of all recipients. Each copy
 * gets its own values instead.
 */
const perCopy = ['topic', 'sms'];

/**
 * Creates the outputs of `sms-send`: the input at output 1 if a recipient was accepted, and a copy at output 2 for each
 * failed recipient. To save memory, each returned function creates at most 100 copies, and only when it is called.
 */
export function createOutputs(RED: NodeAPI, message: SmsMessage, event: SentEvent): (() => SendOutputs)[] {
  const outcome = translateWithheld(RED, event.outcome);
  const createAccepted = () => {
    if (event.outcome.accepted.length === 0) return null;
    message.sms = withAckId(message, createRecord(event, outcome));
    return message;
  };
  if (outcome.failed.length === 0) return [() => [createAccepted(), []]];
  const failures = prepareFailures(RED, message, event, outcome.failed);
  const createFailures = (start: number) => failures.slice(start, start + sliceSize).map((create) => create());
  const slices = [(): SendOutputs => [createAccepted(), createFailures(0)]];
  for (let start = sliceSize; start < failures.length; start += sliceSize) {
    slices.push(() => [null, createFailures(start)]);
  }
  return slices;
}

/** Creates the `msg.sms` of output 1. */
function createRecord({ encoding, parts, replacements, ...event }: SentEvent, outcome: Sent): object {
  const { messageId, statusCode, resolvedBy, recipients, accepted, failed } = outcome;
  const result = { messageId, statusCode, resolvedBy, isError: false, recipients, accepted, failed };
  const sms = { ...result, encoding, parts, replacements };
  return withMarks(sms, event);
}

/** Adds the flags `redelivered` and `duplicate` to a record if they are true, and removes undefined properties. */
function withMarks(record: object, { redelivered, duplicate }: { redelivered: boolean; duplicate?: boolean }): object {
  const markedRecord = { ...record, redelivered: redelivered || undefined, duplicate: duplicate || undefined };
  return Object.fromEntries(Object.entries(markedRecord).filter(([, value]) => value !== undefined));
}

/**
 * Prepares a copy of the current input for each failed recipient. The copies have `msg.parts`, so that a `join` node
 * can combine them.
 */
function prepareFailures(
  RED: NodeAPI,
  message: SmsMessage,
  event: SentEvent,
  failed: Sent['failed'],
): (() => SmsMessage)[] {
  const id = RED.util.generateId();
  const { sms: inputSms } = message;
  // Copies the input now. Until the last copy is created, a node after output 1 can change the original.
  const { parts, ...inputCopy } = copyMessage(RED, message, perCopy);
  return failed.map((result, index) => () => {
    const copy = copyMessage(RED, inputCopy);
    copy.topic = result.msisdn;
    copy.sms = withAckId({ sms: inputSms }, withMarks({ messageId: event.outcome.messageId, ...result }, event));
    copy.parts = createParts({ parts }, { id, count: failed.length, index });
    return copy;
  });
}

/** If rules of the account refused recipients, translates the reasons into the language of the server. */
function translateWithheld(RED: NodeAPI, sent: Sent): Sent {
  if (!sent.withheld?.length) return sent;
  const messageByMsisdn = new Map(
    sent.withheld.map((refusal) => [refusal.msisdn, translateError(RED, explainWithheld(refusal)).message]),
  );
  const translate = <Result extends { msisdn: string }>(result: Result): Result => {
    const errorMessage = messageByMsisdn.get(result.msisdn);
    return errorMessage === undefined ? result : { ...result, errorMessage };
  };
  return { ...sent, recipients: sent.recipients.map(translate), failed: sent.failed.map(translate) };
}

/**
 * Creates a copy of the flow message: at output 1 with the answer, or at output 2 with the reason why there is no
 * answer.
 */
export function createAnswerOutputs(RED: NodeAPI, message: SmsMessage, event: AnswerEvent): SendOutputs {
  const { result, recipient, messageId } = event;
  const copy = copyMessage(RED, message, perCopy);
  if (!('reason' in result)) {
    const { reply, answer } = result;
    copy.payload = answer ?? reply.body;
    copy.topic = reply.from;
    copy.sms = withAckId(message, withMarks({ ...copyRecord(reply), answer }, event));
    return [copy, []];
  }
  const { withheld, ...reason } = result;
  const translated = withheld && { errorMessage: translateError(RED, explainWithheld(withheld)).message };
  copy.topic = recipient;
  copy.sms = withAckId(message, withMarks({ messageId, msisdn: recipient, ...reason, ...translated }, event));
  return [null, [copy]];
}

/** Creates a copy of the flow message at output 3 with the report. */
export function createReportOutputs(RED: NodeAPI, message: SmsMessage, event: ReportEvent): SendOutputs {
  const { result, ...handsets } = event.report;
  const copy = copyMessage(RED, message, ['sms']);
  copy.payload = result;
  copy.sms = withMarks({ messageId: event.messageId, ...handsets }, event);
  return [null, [], copy];
}
