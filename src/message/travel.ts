import { SmsError } from '../errors';
import type { ContentType } from '../model';
import { isBlank, readWholeNumber } from '../wire/fields';
import { type Encoding, measureText } from './gsm';

/** How a text travels. */
export interface Travel {
  encoding: Encoding;
  parts: number;
  /** Absent: not sent. */
  contentType?: ContentType;
}

const longestMessageId = 36;
const utf16: ContentType = 'text/plain; charset=UTF-16';
const contentTypes: readonly ContentType[] = ['text/plain', utf16];

/**
 * Reads text of one line (§2.1 `from`, `messageId`), without white space around it; blank: `undefined`.
 *
 * @throws SmsError `SMS_INPUT` with the field
 */
export function parseText(value: unknown, field: 'from' | 'messageId'): string | undefined {
  if (isBlank(value)) return undefined;
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new SmsError('textType', { field, params: { field } });
  return String(value).trim();
}

/**
 * Reads the identifier of a message (§2.1), of at most 36 characters; blank: `undefined`.
 *
 * @throws SmsError `SMS_INPUT` with the field `messageId`
 */
export function parseMessageId(value: unknown): string | undefined {
  const messageId = parseText(value, 'messageId');
  if (messageId === undefined || messageId.length <= longestMessageId) return messageId;
  const { characters: length } = measureText(messageId, 'UCS-2');
  if (length > longestMessageId) throw new SmsError('messageIdTooLong', { field: 'messageId', params: { length } });
  return messageId;
}

/**
 * Reads the fragmentation limit (§2.1); blank: `undefined`.
 *
 * @throws SmsError `SMS_INPUT` with the field `fragmentationLimit`
 */
export function parseFragmentationLimit(value: unknown): number | undefined {
  if (isBlank(value)) return undefined;
  const limit = typeof value === 'string' ? readWholeNumber(value) : value;
  if (typeof limit !== 'number' || !Number.isSafeInteger(limit) || limit < 1) {
    throw new SmsError('fragmentationLimit', { field: 'fragmentationLimit' });
  }
  return limit;
}

/**
 * Says how a text travels, and refuses one that is too long.
 *
 * @param contentType one of the two of §2.1, blank, or `auto` for UTF-16 when the text needs it
 * @param limits most parts, or else the longest text in characters (Unicode code points); without both, any length passes
 * @throws SmsError `SMS_INPUT` with the field `contentType` or `body`
 */
export function planTravel(
  body: string,
  contentType: unknown,
  limits: { fragmentationLimit: number | undefined; maxLength: number | undefined },
): Travel {
  const text = measureText(body);
  const auto = text.encoding === 'UCS-2' ? utf16 : undefined;
  const sent = contentType === 'auto' ? auto : parseContentType(contentType);
  const { encoding, parts, characters } = sent === utf16 ? measureText(body, 'UCS-2') : text;
  const { fragmentationLimit, maxLength } = limits;
  if (fragmentationLimit !== undefined) {
    if (parts > fragmentationLimit) {
      throw new SmsError('bodyTooManyParts', { field: 'body', params: { parts, limit: fragmentationLimit } });
    }
  } else if (maxLength !== undefined && characters > maxLength) {
    throw new SmsError('bodyTooLong', { field: 'body', params: { length: characters, limit: maxLength } });
  }
  return { encoding, parts, ...(sent === undefined ? undefined : { contentType: sent }) };
}

/**
 * Reads a content type (§2.1); blank: `undefined`.
 *
 * @throws SmsError `SMS_INPUT` with the field `contentType`
 */
function parseContentType(value: unknown): ContentType | undefined {
  if (isBlank(value)) return undefined;
  const given = typeof value === 'string' ? value.replace(/\s+/g, '').toLowerCase() : undefined;
  const known = contentTypes.find((contentType) => contentType.replace(' ', '').toLowerCase() === given);
  if (!known) throw new SmsError('contentType', { field: 'contentType' });
  return known;
}
