import { SmsError } from '../errors';

const separators = /[\s,;]+/;
/** Digits, with formatting characters around and between them, or those alone. White space gets this far in list items only. */
const numberLike = /^\+?[\d()./\s-]*$/;
const formatting = /[()./\s+-]/g;
const msisdn = /^[1-9]\d{6,14}$/;
const listIndex = /^\d+$/;
/** Of a text. More of them would hold up the process while each is looked up, counted and remembered. */
const mostRecipients = 5_000;
/** Repetitions and all. To read more of them would, too. */
const mostRead = 100_000;

/**
 * Reads the recipients of a message (§2.1 `to`): text, whose items are separated by white space, commas or semicolons,
 * or a number, or a list of texts and numbers, one item each.
 *
 * An item of digits is an MSISDN: a leading `+` and formatting characters are dropped, and 7 to 15 digits without
 * a leading zero must remain; one of formatting characters alone is refused. Any other item names a contact or a group and stays as it is. Repeated items
 * are given once, in the order of their first appearance; there may be 5,000 different ones, and 100,000 in all.
 *
 * @throws SmsError `SMS_INPUT` with the field `to`
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
  let count = 0;
  for (const item of itemsOf(to)) {
    const text = textOf(item);
    if (text !== '') recipients.add(parseItem(text));
    if (recipients.size > mostRecipients || ++count > mostRead)
      throw new SmsError('recipientsTooMany', { field: 'to' });
  }
  if (recipients.size === 0) throw new SmsError('recipientsEmpty', { field: 'to' });
  return [...recipients];
}

/**
 * The number that a text is, without the formatting characters among its digits; `undefined`: it is none.
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
  const digits = text.replace(formatting, '');
  return msisdn.test(digits) ? digits : undefined;
}

function itemsOf(to: unknown): Iterable<unknown> {
  if (typeof to === 'string') return to.split(separators, mostRead + 1);
  return Array.isArray(to) ? presentItems(to) : [to];
}

/** The items of a list without its holes. There may be thousands of millions of them, so that none is looked at. */
function* presentItems(list: readonly unknown[]): Iterable<unknown> {
  for (const name of Object.keys(list)) if (listIndex.test(name)) yield list[Number(name)];
}

function textOf(item: unknown): string {
  if (typeof item === 'string') return item.trim();
  if (typeof item === 'number') {
    // The sign and the point of a number would pass for formatting.
    if (!Number.isSafeInteger(item) || item < 0) throw refusal('recipientNumber', String(item));
    return String(item);
  }
  if (item === undefined || item === null) return '';
  throw new SmsError('recipientsType', { field: 'to' });
}

function parseItem(item: string): string {
  if (item.lastIndexOf('+') > 0) throw refusal('recipientPlus', item);
  if (numberLike.test(item)) {
    const digits = parseMsisdn(item);
    if (digits === undefined) throw refusal('recipientNumber', item);
    return digits;
  }
  if (/\s/.test(item)) throw refusal('recipientSpace', item);
  return item;
}

function refusal(reason: 'recipientNumber' | 'recipientPlus' | 'recipientSpace', item: string): SmsError {
  const quoted = JSON.stringify(item.length > 40 ? `${item.slice(0, 39)}…` : item);
  return new SmsError(reason, { field: 'to', params: { item: quoted } });
}
