import { SmsError } from '../errors';
import { removeFormatting } from '../wire/fields';

/** Maximum number of different recipients of one message. */
const maxRecipients = 5_000;
/** Maximum number of items in a list, including repeated items. Limits the time needed for a huge list. */
const maxItems = 100_000;

const separators = /[\s,;]+/;
/** Separators between items. Spaces are not among them, because a number can also contain spaces. */
const segmentSeparators = /[,;\r\n]+/;
const invisibleMarks = /\p{Cf}/gu;
/** Digits with optional formatting characters, or formatting characters alone. */
const numberLike = /^\+?[\d()./\s-]*$/;
const msisdn = /^[1-9]\d{6,14}$/;
/**
 * Decimal numbers such as `64211234567.0` and `6.42e10`. If the point were removed like a formatting character, the
 * digits would be another person's number.
 */
const decimalNumber = /^\+?(?:\d+\.\d+|(?:\d+(?:\.\d*)?|\.\d+)e[+-]?\d+|[\d\s]+\.0+)$/i;

/**
 * Reads the recipients of a message (§2.1 `to`). `to` is a number, an array of strings and numbers, or a string.
 * Items of a string are separated by white space, commas or semicolons.
 *
 * - Invisible marks (Unicode category Cf) are dropped.
 * - An item that consists of digits of any script is an MSISDN. A leading `+` and formatting characters are dropped.
 *   Then 7 to 15 digits without a leading zero must remain. Decimal numbers are refused.
 * - Any other item names a contact or a group and does not change.
 * - Repeated items are returned once, in the order of their first appearance.
 *
 * @throws SmsError `SMS_INPUT` with the field `to`, also for more than 5,000 recipients or 100,000 items
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseRecipients } from '@messaging-service/node-red-sms';
 *
 * assert.deepEqual(parseRecipients('+6421555123; staff'), ['6421555123', 'staff']);
 * ```
 */
export function parseRecipients(to: unknown): string[] {
  const recipients = new Set<string>();
  const items = readItems(to);
  if (items.length > maxItems) throw new SmsError('recipientsTooMany', { field: 'to' });
  for (const item of items) {
    const text = readText(item);
    if (text !== '') recipients.add(parseItem(text, to));
    if (recipients.size > maxRecipients) throw new SmsError('recipientsTooMany', { field: 'to' });
  }
  if (recipients.size === 0) throw new SmsError('recipientsEmpty', { field: 'to' });
  return [...recipients];
}

/**
 * Reads a number: drops invisible marks, formatting characters and a leading `+`, and reads digits of any script.
 * Returns `undefined` if the text is not an MSISDN.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseMsisdn } from '@messaging-service/node-red-sms';
 *
 * assert.equal(parseMsisdn('+64 (21) 555-123'), '6421555123');
 * ```
 */
export function parseMsisdn(text: string): string | undefined {
  const plain = toAscii(text.replace(invisibleMarks, '')).trim();
  if (decimalNumber.test(plain)) return undefined;
  const digits = removeFormatting(plain);
  return msisdn.test(digits) ? digits : undefined;
}

/**
 * Refuses a recipient that is the name of a sender. Otherwise, an answer to `NZ Post` would go to the contacts `NZ` and
 * `Post`.
 *
 * @param from sender of the received message (`msg.sms.from`)
 * @throws SmsError `SMS_INPUT` with the field `to`, if `to` is this sender or an array that contains it, and the sender
 * is not a number
 * @example
 * ```ts
 * import { refuseSenderName } from '@messaging-service/node-red-sms';
 *
 * refuseSenderName('64215551234', '64215551234');
 * ```
 */
export function refuseSenderName(to: unknown, from: unknown): void {
  if (typeof from !== 'string' || from.trim() === '' || parseMsisdn(from) !== undefined) return;
  const isSender = (item: unknown) => typeof item === 'string' && item.trim() === from.trim();
  if (isSender(to) || (Array.isArray(to) && to.some(isSender))) throw refusal('recipientSender', from.trim());
}

function readItems(to: unknown): readonly unknown[] {
  // Removes invisible marks first, because JavaScript treats the byte order mark as white space.
  if (typeof to === 'string') return to.replace(invisibleMarks, '').split(separators, maxItems + 1);
  return Array.isArray(to) ? to : [to];
}

function readText(item: unknown): string {
  if (typeof item === 'string') return item.replace(invisibleMarks, '').trim();
  if (typeof item === 'number') {
    // Refuses negative numbers, fractions and huge numbers here: in a text, the sign and the point would be removed as
    // formatting characters.
    if (!Number.isSafeInteger(item) || item < 0) throw refusal('recipientNumber', String(item));
    return String(item);
  }
  if (item === undefined || item === null) return '';
  throw new SmsError('recipientsType', { field: 'to' });
}

function parseItem(item: string, to: unknown): string {
  const plain = toAscii(item);
  if (plain.lastIndexOf('+') > 0) throw refusal('recipientPlus', item);
  if (decimalNumber.test(plain)) throw refusal('recipientDecimal', item);
  if (numberLike.test(plain)) {
    const digits = parseMsisdn(plain);
    if (digits === undefined) throw refuseNumber(item, to);
    return digits;
  }
  if (/\s/.test(item)) throw refusal('recipientSpace', item);
  return item;
}

/**
 * Creates the error for an invalid number. If white space has split the number into several items, the error quotes the
 * whole number and explains how to write it.
 */
function refuseNumber(item: string, to: unknown): SmsError {
  const segments = typeof to === 'string' ? to.replace(invisibleMarks, '').split(segmentSeparators) : [];
  const fullNumber = segments.find((segment) => segment.trim().split(/\s+/).includes(item))?.trim();
  if (fullNumber === undefined || !/\s/.test(fullNumber) || !numberLike.test(toAscii(fullNumber))) {
    return refusal('recipientNumber', item);
  }
  const joined = parseMsisdn(fullNumber);
  return joined === undefined
    ? refusal('recipientNumber', fullNumber)
    : new SmsError('recipientSplit', { field: 'to', params: { item: quote(fullNumber), joined } });
}

/** Converts digits of all scripts, full-width characters and dashes to ASCII. */
function toAscii(text: string): string {
  // Most texts are ASCII and need no change.
  if (/^[\0-\x7f]*$/.test(text)) return text;
  return text
    .replace(/[\uff01-\uff5e]/g, (character) => String.fromCharCode(character.charCodeAt(0) - 0xfee0))
    .replace(/\p{Pd}/gu, '-')
    .replace(/\p{Nd}/gu, (digit) => String(readDigit(digit)));
}

/** Returns the value of a decimal digit. In Unicode, the digits of each script are in order from 0 to 9. */
function readDigit(digit: string): number {
  const code = digit.codePointAt(0) ?? 0;
  let position = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(code - position - 1))) position++;
  return position % 10;
}

type RefusalReason = 'recipientNumber' | 'recipientDecimal' | 'recipientPlus' | 'recipientSpace' | 'recipientSender';

function refusal(reason: RefusalReason, item: string): SmsError {
  return new SmsError(reason, { field: 'to', params: { item: quote(item) } });
}

function quote(item: string): string {
  return JSON.stringify(item.length > 40 ? `${item.slice(0, 39)}…` : item);
}
