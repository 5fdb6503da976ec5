import { SmsError } from '../errors';
import type { ContentType } from '../model';
import { readWholeNumber } from '../wire/fields';
import { replaceLookAlikes } from './replacements';

/** Encoding of a message on the network: the default alphabet (GSM 03.38, also 3GPP TS 23.038) or UTF-16 units. */
export type Encoding = 'GSM-7' | 'UCS-2';

/** Size of a message on the network. */
export interface TextMeasure {
  /** Number of Unicode code points. A lone surrogate counts as one. */
  characters: number;
  encoding: Encoding;
  /** Number of SMS parts; 0 for an empty body. */
  parts: number;
  /** Number of septets, including escapes, or of UTF-16 units. */
  units: number;
  /** Number of septets or UTF-16 units that still fit into the last part. */
  left: number;
}

/** A body as it is sent, and its encoding. */
export interface EncodingPlan {
  /** The body after the replacements of content type `gsm`. */
  body: string;
  encoding: Encoding;
  parts: number;
  /** Value of the parameter `contentType`. Absent: the parameter is not sent. */
  contentType?: ContentType;
  /** Number of characters that content type `gsm` has replaced; absent if none. */
  replacements?: number;
}

const maxMessageIdLength = 36;
const utf16: ContentType = 'text/plain; charset=UTF-16';
const contentTypes: readonly ContentType[] = ['text/plain', utf16];

const basicSet =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà';
const extensionTable = '\f^{}\\[~]|€';

const limits = { 'GSM-7': { single: 160, part: 153 }, 'UCS-2': { single: 70, part: 67 } } as const;

const alphabet: ReadonlySet<string> = new Set(basicSet + extensionTable);

/**
 * Counts the characters, units and parts of a body. A single part has 160 septets or 70 UTF-16 units. Each of several
 * parts has 153 or 67. An escape sequence or a surrogate pair is never split over two parts, so a part can stay one
 * unit short.
 *
 * @param encoding `UCS-2` counts as for a message with the UTF-16 content type. `GSM-7` counts a unit outside the
 *   alphabet as one septet. Absent: GSM-7 if every character of the body is in the alphabet, otherwise UCS-2.
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
  const usedEncoding = encoding ?? (charactersOutside(text, 1).length === 0 ? 'GSM-7' : 'UCS-2');
  const { single, part } = limits[usedEncoding];
  let characters = 0;
  let units = 0;
  let fullParts = 0;
  let inPart = 0;
  for (const character of text) {
    const isExtension = usedEncoding === 'GSM-7' && extensionTable.includes(character);
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
  return { characters, encoding: usedEncoding, parts, units, left: parts > 1 ? part - inPart : single - units };
}

/** Returns the characters outside GSM 03.38 (basic set and extension table), each once, at most `maxCount`. */
export function charactersOutside(text: string, maxCount: number): string[] {
  const characters = new Set<string>();
  for (const character of text) {
    if (!alphabet.has(character)) characters.add(character);
    if (characters.size === maxCount) break;
  }
  return [...characters];
}

/**
 * Reads a value that must be a single line (§2.1 `from`, `messageId`), and removes white space around it. Returns
 * `undefined` for `undefined`.
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
 * Reads the identifier of a message (§2.1), at most 36 characters. Returns `undefined` for `undefined`.
 *
 * @throws SmsError `SMS_INPUT` with the field `messageId`
 */
export function parseMessageId(value: unknown): string | undefined {
  const messageId = parseText(value, 'messageId');
  const { characters: length } = measureText(messageId ?? '', 'UCS-2');
  if (length > maxMessageIdLength) throw new SmsError('messageIdTooLong', { field: 'messageId', params: { length } });
  return messageId;
}

/**
 * Reads the fragmentation limit (§2.1). Returns `undefined` for `undefined`.
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
 * Chooses the encoding of a body, and refuses a body that is too long.
 *
 * @param contentType one of the two values of §2.1; `auto`: UTF-16 if the body needs it; `gsm`: like `auto`, after
 *   typographic look-alikes were replaced; absent: the parameter is not sent
 * @param limits maximum number of parts, or else maximum number of characters (Unicode code points)
 * @throws SmsError `SMS_INPUT` with the field `contentType` or `body`
 */
export function planEncoding(
  body: string,
  contentType: unknown,
  limits: { fragmentationLimit: number | undefined; maxLength: number | undefined },
): EncodingPlan {
  const lookAlikes = contentType === 'gsm' ? replaceLookAlikes(body) : { body, replacements: 0 };
  const isReplaced = lookAlikes.replacements > 0 && charactersOutside(lookAlikes.body, 1).length === 0;
  const sentBody = isReplaced ? lookAlikes.body : body;
  const measure = measureText(sentBody);
  const isAuto = contentType === 'auto' || contentType === 'gsm';
  const sentContentType = isAuto ? (measure.encoding === 'UCS-2' ? utf16 : undefined) : parseContentType(contentType);
  const { encoding, parts, characters } = sentContentType === utf16 ? measureText(sentBody, 'UCS-2') : measure;
  const { fragmentationLimit, maxLength } = limits;
  if (fragmentationLimit !== undefined) {
    if (parts > fragmentationLimit) {
      throw new SmsError('bodyTooManyParts', { field: 'body', params: { parts, limit: fragmentationLimit } });
    }
  } else if (maxLength !== undefined && characters > maxLength) {
    throw new SmsError('bodyTooLong', { field: 'body', params: { length: characters, limit: maxLength } });
  }
  return {
    body: sentBody,
    encoding,
    parts,
    ...(sentContentType && { contentType: sentContentType }),
    ...(isReplaced && { replacements: lookAlikes.replacements }),
  };
}

/**
 * Reads a content type (§2.1). Returns `undefined` for `undefined`.
 *
 * @throws SmsError `SMS_INPUT` with the field `contentType`
 */
function parseContentType(value: unknown): ContentType | undefined {
  if (value === undefined) return undefined;
  const compact = typeof value === 'string' ? value.replace(/\s+/g, '').toLowerCase() : undefined;
  const contentType = contentTypes.find((candidate) => candidate.replace(' ', '').toLowerCase() === compact);
  if (!contentType) throw new SmsError('contentType', { field: 'contentType' });
  return contentType;
}
