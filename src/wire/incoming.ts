import type { IncomingRecord, Via } from '../model';
import { additionalFields, type Field, isBlank, presentFields, readFields, unreadable } from './fields';
import { isOtherwise, parseForm } from './form';
import type { Encoded } from './text';

const optionalFields = ['messageId', 'to', 'inReplyToId', 'messageDate', 'contentType', 'displayName'] as const;
/** A message has at least one of them. */
const neededFields: ReadonlySet<string> = new Set(['messageId', 'from', 'body']);
/** Names that this library gives values to, beside those of every record. */
const knownFields: ReadonlySet<string> = new Set([...optionalFields, 'body', 'isReply', 'awaited', 'optOut']);

/**
 * Reads the answer to a poll for an incoming message (§2.3), of which the service may send some fields only.
 *
 * @throws SmsError `SMS_RESPONSE` when it has neither a messageId nor a sender nor a body
 */
export function parseIncoming(...encoded: Encoded): IncomingRecord {
  const fields = parseForm(...encoded);
  if (isOtherwise(fields) || !fields.some(([name, value]) => neededFields.has(name) && !isBlank(value))) {
    throw unreadable('answer', 'no incoming message in it');
  }
  return createIncoming(fields, 'poll');
}

/**
 * Makes the record of an incoming message from its fields under the names of §2.3. Blank optional fields are left out,
 * `from` and `body` are empty when missing, additional parameters are those of {@link additionalFields}. Of a repeated name
 * the first value holds.
 */
export function createIncoming(fields: Iterable<Field>, via: Via): IncomingRecord {
  const byName = readFields(fields);
  const present = presentFields(byName, optionalFields);
  const own = { from: byName.get('from') ?? '', body: byName.get('body') ?? '' };
  const told = { isReply: present.inReplyToId !== undefined, via };
  return Object.assign(present, own, additionalFields(byName, knownFields), told);
}
