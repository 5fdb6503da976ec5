import type { FlowDelivery, InboxRecord, RecordOfKind } from '../../src';
import type { SmsMessage } from './outcome';

/** A message as every receiving node sends it: what a person reads, who the other party is, and the whole record. */
export function createReceivedMessage({ kind, record }: RecordOfKind, additions: object = {}): SmsMessage {
  // The flow may change what it gets; the inbox may have to deliver it again.
  const sms = { ...(isFlat(record) ? record : structuredClone(record)), ...additions };
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

/** Most records hold texts alone, which cannot be changed: a copy of the record itself will do, and is far cheaper. */
function isFlat(record: InboxRecord): boolean {
  for (const name in record) if (typeof record[name] === 'object') return false;
  return true;
}
