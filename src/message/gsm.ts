import { SmsError } from '../errors';
import type { ContentType } from '../model';
import { readWholeNumber } from '../wire/fields';

/** How the network carries a text: in the default alphabet (GSM 03.38, also 3GPP TS 23.038), or as UTF-16 units. */
export type Encoding = 'GSM-7' | 'UCS-2';

/** What a text takes to send. */
export interface TextMeasure {
  /** Unicode code points; a lone surrogate counts as one. */
  characters: number;
  encoding: Encoding;
  /** SMS parts; 0 for an empty text. */
  parts: number;
  /** Septets, escapes included, or UTF-16 units. */
  units: number;
  /** Septets or UTF-16 units that the last part has room for. */
  left: number;
}

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

const basicSet =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà';
const extensionTable = '\f^{}\\[~]|€';

const limits = { 'GSM-7': { single: 160, part: 153 }, 'UCS-2': { single: 70, part: 67 } } as const;

const alphabet: ReadonlySet<string> = new Set(basicSet + extensionTable);

/**
 * Counts the characters, units and parts of a text: 160 septets or 70 UTF-16 units in one part, 153 or 67 in each of
 * several. An escape sequence or a surrogate pair is never split over two parts, so a part may stay one unit short.
 *
 * @param encoding `UCS-2` counts as for a message with the UTF-16 content type. `GSM-7` counts a unit outside the
 *   alphabet as one septet. When absent, the text's own: GSM-7 if every character is in it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { measureText } from '@messaging-service/node-red-sms';
 *
 * assert.equal(measureText('Hello').encoding, 'GSM-7');
 * assert.equal(measureText('Привет '.repeat(11)).parts, 2);
 * ```
 */
export function measureText(text: string, encoding?: Encoding): TextMeasure {
  const used = encoding ?? (charactersOutside(text, 1).length === 0 ? 'GSM-7' : 'UCS-2');
  const { single, part } = limits[used];
  let characters = 0;
  let units = 0;
  let fullParts = 0;
  let inPart = 0;
  for (const character of text) {
    const isExtension = used === 'GSM-7' && extensionTable.includes(character);
    const size = isExtension ? 2 : character.length;
    characters++;
    units += size;
    inPart += size;
    if (inPart > part) {
      fullParts++;
      inPart = size;
    }
  }
  const parts = units === 0 ? 0 : units <= single ? 1 : fullParts + 1;
  return { characters, encoding: used, parts, units, left: parts > 1 ? part - inPart : single - units };
}

/** The first characters of a text that are outside GSM 03.38 (basic set and extension table), each once, at most `most`. */
export function charactersOutside(text: string, most: number): string[] {
  const found = new Set<string>();
  for (const character of text) {
    if (!alphabet.has(character)) found.add(character);
    if (found.size === most) break;
  }
  return [...found];
}

/**
 * Reads text of one line (§2.1 `from`, `messageId`), without white space around it, if there is any.
 *
 * @throws SmsError `SMS_INPUT` with the field
 */
export function parseText(value: unknown, field: 'from' | 'messageId'): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new SmsError('textType', { field, params: { field } });
  return String(value).trim();
}

/**
 * Reads the identifier of a message (§2.1), of at most 36 characters, if there is one.
 *
 * @throws SmsError `SMS_INPUT` with the field `messageId`
 */
export function parseMessageId(value: unknown): string | undefined {
  const messageId = parseText(value, 'messageId');
  // It may be hundreds of millions long.
  const { characters: length } = measureText(messageId ?? '', 'UCS-2');
  if (length > longestMessageId) throw new SmsError('messageIdTooLong', { field: 'messageId', params: { length } });
  return messageId;
}

/**
 * Reads the fragmentation limit (§2.1), if there is one.
 *
 * @throws SmsError `SMS_INPUT` with the field `fragmentationLimit`
 */
export function parseFragmentationLimit(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const limit = typeof value === 'string' ? readWholeNumber(value) : value;
  if (typeof limit !== 'number' || !Number.isSafeInteger(limit) || limit < 1) {
    throw new SmsError('fragmentationLimit', { field: 'fragmentationLimit' });
  }
  return limit;
}

/**
 * Says how a text travels, and refuses one that is too long.
 *
 * @param contentType one of the two of §2.1, or `auto` for UTF-16 when the text needs it; absent: none is sent
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
 * Reads a content type (§2.1), if there is one.
 *
 * @throws SmsError `SMS_INPUT` with the field `contentType`
 */
function parseContentType(value: unknown): ContentType | undefined {
  if (value === undefined) return undefined;
  const given = typeof value === 'string' ? value.replace(/\s+/g, '').toLowerCase() : undefined;
  const known = contentTypes.find((contentType) => contentType.replace(' ', '').toLowerCase() === given);
  if (!known) throw new SmsError('contentType', { field: 'contentType' });
  return known;
}
