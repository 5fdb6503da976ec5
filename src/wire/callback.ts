import { isSmsError } from '../errors';
import type { IncomingRecord, StatusRecord } from '../model';
import { decodeText } from './charset';
import { type Field, isBlank, readFields, unreadable } from './fields';
import { decodeMarked, flattenForm, parseForm } from './form';
import { createIncoming } from './incoming';
import { createStatus } from './status';
import { contentOf, parseXml, type XmlElement } from './xml';

/** Maximum number of recipients in a reply. The service sends one. */
const maxRecipients = 30;

/** Request body at a callback endpoint. */
export interface CallbackRequest {
  /** Content-Type header. */
  contentType?: string | undefined;
  bytes?: Uint8Array;
  /** Form that another body parser has already read. Then `bytes` is absent. */
  form?: Readonly<Record<string, unknown>>;
}

/** Records of a callback (§6), by kind. */
export type CallbackEvent =
  | { kind: 'incoming'; records: IncomingRecord[] }
  | { kind: 'status'; records: StatusRecord[] };

/**
 * Reads a callback in XMLv3 or FORMv1 (§6.4, §6.5). Only the request body decides which format it is. The content
 * type gives only the charset. Each recipient of an XMLv3 reply becomes a record. A reply must have a sender, and a
 * status must have a status code.
 *
 * @throws SmsError `SMS_RESPONSE` (reason `callbackUnreadable`) whose message states the reason in one line
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseCallback } from '@messaging-service/node-red-sms';
 *
 * const event = parseCallback({ bytes: Buffer.from('messageId=1&from=6421555123&body=Hello') });
 * assert.equal(event.kind, 'incoming');
 * assert.equal(event.records[0]?.body, 'Hello');
 * ```
 */
export function parseCallback({ contentType, bytes, form }: CallbackRequest): CallbackEvent {
  if (bytes !== undefined && bytes.length > 0) {
    const text = decodeText(bytes, contentType).trimStart();
    if (text === '') throw unreadable('callback', 'no body');
    if (text.startsWith('<')) return readXml(bytes, contentType);
    if (text.startsWith('{') || text.startsWith('['))
      throw unreadable('callback', 'JSON is not accepted; send XMLv3 or FORMv1');
    return readForm(asCallback(() => parseForm(bytes, contentType)));
  }
  const fields = [...flattenForm(form)].map(readParsed);
  const [firstField] = fields;
  if (firstField === undefined) throw unreadable('callback', 'no body');
  if (firstField[0].startsWith('<'))
    throw unreadable('callback', 'XML that is labelled as a form; send it as text/xml');
  return readForm(fields);
}

/** Trims names and values, but not the body. If another body parser has left a value escaped, decodes the value. */
function readParsed([name, value]: Field): Field {
  return [name.trim(), name.trim() === 'body' ? decodeMarked(value) : decodeMarked(value).trim()];
}

function readForm(fields: readonly Field[]): CallbackEvent {
  const byName = readFields(fields);
  if (!isBlank(byName.get('statusCode'))) return { kind: 'status', records: [createStatus(byName, 'callback')] };
  if (byName.has('body') && !isBlank(byName.get('from')))
    return { kind: 'incoming', records: [createIncoming(byName, 'callback')] };
  throw unreadable('callback', 'the form is neither a reply (from, body) nor a status (statusCode)');
}

function readXml(bytes: Uint8Array, contentType: string | undefined): CallbackEvent {
  const root = asCallback(() => parseXml(bytes, contentType));
  if (root.name === 'inbound-message') return { kind: 'incoming', records: readReplies(root) };
  if (root.name === 'status-update') return { kind: 'status', records: [readStatus(root)] };
  throw unreadable('callback', 'the root element is neither inbound-message nor status-update');
}

/** Parses a callback with a parser that was written for answers. Its errors then name the callback, not an answer. */
function asCallback<Parsed>(parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (error) {
    if (!isSmsError(error)) throw error;
    throw unreadable('callback', String(error.params.detail));
  }
}

function readReplies(root: XmlElement): IncomingRecord[] {
  const recipients = root.children.filter(({ name }) => name === 'recipient');
  const sharedFields = [
    ...rename(Object.entries(root.attributes), { messageId: 'inReplyToId', receivedDate: 'messageDate' }),
    ...childrenOf(root).filter(([name]) => name !== 'recipient'),
  ];
  if (recipients.length > maxRecipients) throw unreadable('callback', 'too many recipients');
  const records: IncomingRecord[] = [];
  for (const recipient of recipients) {
    const body = recipient.children.find(({ name }) => name === 'body');
    const ownFields = [...rename(Object.entries(recipient.attributes), { msisdn: 'from' }), ...childrenOf(recipient)];
    // Leaves out the messageId, because in this format, it is the same for all replies to one message.
    const fields = [...ownFields, ...sharedFields].filter(([name]) => name !== 'messageId' && name !== 'body');
    const text = body === undefined ? '' : contentOf(body);
    const record = createIncoming([['body', text], ...fields], 'callback');
    if (!isBlank(record.from)) records.push(record);
    // Refuses the whole callback with a 400, because the service then keeps the message. If the callback were accepted,
    // the reply of this recipient would be lost.
    else if (!isBlank(record.body))
      throw unreadable('callback', 'a recipient of the inbound-message has a body but no msisdn');
  }
  if (records.length === 0) throw unreadable('callback', 'the inbound-message has no recipient with msisdn');
  return records;
}

function readStatus(root: XmlElement): StatusRecord {
  const names = { statusId: 'messageId', messageId: 'inReplyToId' };
  const byName = readFields(rename([...childrenOf(root), ...Object.entries(root.attributes)], names));
  if (isBlank(byName.get('statusCode'))) throw unreadable('callback', 'the status-update has no statusCode');
  return createStatus(byName, 'callback');
}

function childrenOf(element: XmlElement): Field[] {
  return element.children.map((child) => [child.name, contentOf(child).trim()]);
}

/** Renames fields. `names` maps names in XMLv3 to names in polled records. Other names do not change. */
function rename(fields: readonly Field[], names: Readonly<Record<string, string>>): Field[] {
  return fields.map(([name, value]) => [Object.hasOwn(names, name) ? (names[name] ?? name) : name, value]);
}
