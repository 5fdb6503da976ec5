import type { Arrival } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';

/** Creates an incoming message whose body is its identifier. */
export function incoming(messageId: string | undefined, fields: Partial<IncomingRecord> = {}): IncomingRecord {
  const record = { from: '6421555001', body: messageId ?? 'hello', messageDate: '2026-03-01T10:00:00.123Z' };
  return { ...(messageId !== undefined && { messageId }), ...record, isReply: false, via: 'poll', ...fields };
}

/** Creates the answer of a poll with these messages, each given by its record or identifier. */
export function polled(...records: (IncomingRecord | string)[]): Arrival {
  const all = records.map((record) => (typeof record === 'string' ? incoming(record) : record));
  return { kind: 'incoming', via: 'poll', records: all };
}

/** Creates a callback to the node `callback`. By default, the record has no identifier (XMLv3, §6.4). */
export function calledBack(record: IncomingRecord = incoming(undefined)): Arrival {
  const address = { node: 'callback', path: '/sms' };
  return { kind: 'incoming', via: 'callback', records: [{ ...record, via: 'callback' }], address };
}
