import type { FlowDelivery, InboxRecord, Parameters, RecordOfKind } from '../../src';
import type { SmsMessage } from './outcome';

/** A message as every receiving node sends it: what a person reads, who the other party is, and the whole record. */
export function createReceivedMessage({ kind, record }: RecordOfKind, additions: object = {}): SmsMessage {
  const sms = Object.assign(copyRecord(record), additions);
  if (kind === 'status') {
    const { statusCode, from } = record;
    return { payload: statusCode, topic: from, sms };
  }
  if (kind === 'incoming') {
    const { body, from } = record;
    return { payload: body, topic: from, sms };
  }
  const { body, recipientsList } = record;
  const topic = recipientsList
    .map(({ to }) => to)
    .filter((to) => to)
    .join(' ');
  return { payload: body, topic, sms };
}

/** A message as it is delivered: marked when it may have been before, and with what the flow has to bring back. */
export function createDeliveredMessage(delivery: FlowDelivery): SmsMessage {
  const { redelivered, ackId } = delivery;
  const additions: { redelivered?: true; ackId?: string } = {};
  if (redelivered) additions.redelivered = true;
  if (ackId !== undefined) additions.ackId = ackId;
  return createReceivedMessage(delivery, additions);
}

/** The flow may change what it gets; the inbox may have to deliver it again. Most of a record is text, which nobody can change. */
export function copyRecord(record: InboxRecord): Parameters {
  const copy: Parameters = { ...record };
  for (const name in copy) if (typeof copy[name] === 'object') copy[name] = structuredClone(copy[name]);
  return copy;
}

/** One message of several that are made of one. */
interface Part {
  id: string;
  count: number;
  index: number;
}

/** The `msg.parts` by which a `join` node gathers them; one after it can gather what the given message is a part of itself. */
export function createParts({ parts }: SmsMessage, { id, count, index }: Part): object {
  return { ...(parts === undefined ? undefined : { parts }), id, type: 'array', count, index };
}
