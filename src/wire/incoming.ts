import type { IncomingRecord, Via } from '../model';
import type { Encoded } from './charset';
import { additionalFields, type Field, isBlank, presentFields, readFields, unreadable } from './fields';
import { isOtherFormat, parseForm } from './form';

const optionalFields = ['messageId', 'to', 'inReplyToId', 'messageDate', 'contentType', 'displayName'] as const;
/** An incoming message has at least one of these fields. */
const identifyingFields: ReadonlySet<string> = new Set(['messageId', 'from', 'body']);
/** Names that do not count as additional parameters, besides the reserved names. */
const knownFields: ReadonlySet<string> = new Set([...optionalFields, 'body', 'isReply', 'awaited', 'optOut']);

/**
 * Reads the answer to a poll for an incoming message (§2.3). The service can leave out fields.
 *
 * @throws SmsError `SMS_RESPONSE` if messageId, sender and body are all missing
 */
export function parseIncoming(...encoded: Encoded): IncomingRecord {
  const fields = parseForm(...encoded);
  if (isOtherFormat(fields) || !fields.some(([name, value]) => identifyingFields.has(name) && !isBlank(value))) {
    throw unreadable('answer', 'no incoming message in it');
  }
  return createIncoming(fields, 'poll');
}

/**
 * Creates the record of an incoming message from its fields under the names of §2.3, with {@link additionalFields}.
 * Blank optional fields are left out; `from` and `body` are empty if they are missing. If a name repeats, the first
 * value counts.
 */
export function createIncoming(fields: Iterable<Field>, via: Via): IncomingRecord {
  const byName = readFields(fields);
  const present = presentFields(byName, optionalFields);
  const required = { from: byName.get('from') ?? '', body: byName.get('body') ?? '' };
  const derived = { isReply: present.inReplyToId !== undefined, via };
  return Object.assign(present, required, additionalFields(byName, knownFields), derived);
}
