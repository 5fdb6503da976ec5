import { SmsError } from '../errors';
import type { ContentType, OutboundMessage } from '../model';
import { formatCallbackUrl } from '../wire/callback-url';
import { isBlank } from '../wire/fields';
import { type Encoding, measureText } from './gsm';
import { parseRecipients } from './recipients';

/** A message as somebody wrote it: any field may be anything. */
export interface Draft {
  to: unknown;
  body: unknown;
  from?: unknown;
  messageId?: unknown;
  fragmentationLimit?: unknown;
  /** `auto`: UTF-16 when the text needs it. */
  contentType?: unknown;
  callbackUrl?: unknown;
  callbackStatusUrl?: unknown;
}

/** A draft that was found in order, and how its text travels. */
export interface CheckedDraft {
  message: OutboundMessage;
  encoding: Encoding;
  parts: number;
}

const longestMessageId = 36;
const utf16: ContentType = 'text/plain; charset=UTF-16';
const contentTypes: readonly ContentType[] = ['text/plain', utf16];

/**
 * Checks a draft field by field (§2.1, §8) and leaves out what is blank.
 *
 * @param maxLength longest body in characters (Unicode code points) when there is no fragmentation limit
 * @throws SmsError `SMS_INPUT` whose `field` names the first field at fault
 */
export function checkDraft(draft: Draft, maxLength: number | undefined): CheckedDraft {
  const to = parseRecipients(draft.to);
  const body = parseBody(draft.body);
  const from = parseText(draft.from, 'from');
  const messageId = parseText(draft.messageId, 'messageId');
  if (messageId !== undefined && countCharacters(messageId) > longestMessageId) {
    throw new SmsError('messageIdTooLong', { field: 'messageId', params: { length: countCharacters(messageId) } });
  }
  const fragmentationLimit = parseFragmentationLimit(draft.fragmentationLimit);
  const text = measureText(body);
  const contentType =
    draft.contentType === 'auto' ? autoContentType(text.encoding) : parseContentType(draft.contentType);
  const { encoding, parts, characters } = contentType === utf16 ? measureText(body, 'UCS-2') : text;
  if (fragmentationLimit !== undefined) {
    if (parts > fragmentationLimit)
      throw new SmsError('bodyTooManyParts', { field: 'body', params: { parts, limit: fragmentationLimit } });
  } else if (maxLength !== undefined && characters > maxLength) {
    throw new SmsError('bodyTooLong', { field: 'body', params: { length: characters, limit: maxLength } });
  }
  const callbackUrl = formatCallbackUrl(draft.callbackUrl, 'callbackUrl');
  const callbackStatusUrl = formatCallbackUrl(draft.callbackStatusUrl, 'callbackStatusUrl');
  const message: OutboundMessage = { to, body };
  if (from !== undefined) message.from = from;
  if (messageId !== undefined) message.messageId = messageId;
  if (fragmentationLimit !== undefined) message.fragmentationLimit = fragmentationLimit;
  if (contentType !== undefined) message.contentType = contentType;
  if (callbackUrl !== undefined) message.callbackUrl = callbackUrl;
  if (callbackStatusUrl !== undefined) message.callbackStatusUrl = callbackStatusUrl;
  return { message, encoding, parts };
}

function parseBody(value: unknown): string {
  let body: string;
  if (typeof value === 'string') body = value;
  else if (typeof value === 'number' || typeof value === 'boolean') body = String(value);
  else if (Buffer.isBuffer(value)) body = value.toString('utf8');
  else if (isBlank(value)) body = '';
  else throw new SmsError('bodyType', { field: 'body' });
  if (isBlank(body)) throw new SmsError('bodyEmpty', { field: 'body' });
  return body;
}

function parseText(value: unknown, field: 'from' | 'messageId'): string | undefined {
  if (isBlank(value)) return undefined;
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new SmsError('textType', { field, params: { field } });
  return String(value).trim();
}

function parseFragmentationLimit(value: unknown): number | undefined {
  if (isBlank(value)) return undefined;
  const limit = typeof value === 'string' && /^\s*\d+\s*$/.test(value) ? Number(value) : value;
  if (typeof limit !== 'number' || !Number.isSafeInteger(limit) || limit < 1) {
    throw new SmsError('fragmentationLimit', { field: 'fragmentationLimit' });
  }
  return limit;
}

function parseContentType(value: unknown): ContentType | undefined {
  if (isBlank(value)) return undefined;
  const given = String(value).replace(/\s+/g, '').toLowerCase();
  const known = contentTypes.find((contentType) => contentType.replace(' ', '').toLowerCase() === given);
  if (!known) throw new SmsError('contentType', { field: 'contentType' });
  return known;
}

function autoContentType(encoding: Encoding): ContentType | undefined {
  return encoding === 'UCS-2' ? utf16 : undefined;
}

function countCharacters(text: string): number {
  return [...text].length;
}
