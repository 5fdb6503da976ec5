import { SmsError } from '../errors';

const separators = /[\s,]+/;
const prefix = /^\+?\d{1,15}$/;
const msisdn = /^\d{7,15}$/;

/**
 * Reads the beginnings of numbers that may be written to, separated by spaces, commas or new lines; a leading `+` is dropped. Blank: all.
 *
 * @throws SmsError `SMS_CONFIG` with the field `prefixes` when one is not of digits alone
 */
export function parsePrefixes(value: unknown): string[] {
  const items = String(value ?? '')
    .split(separators)
    .filter((item) => item !== '');
  const wrong = items.find((item) => !prefix.test(item));
  if (wrong !== undefined) throw new SmsError('prefixInvalid', { field: 'prefixes' });
  return [...new Set(items.map((item) => item.replace('+', '')))];
}

/** Whether a recipient may be written to. An address-book item cannot be told. */
export function isAllowed(recipient: string, prefixes: readonly string[]): boolean {
  return prefixes.length === 0 || !isNumber(recipient) || prefixes.some((begin) => recipient.startsWith(begin));
}

/** Whether a recipient is a number, and no address-book item. */
export function isNumber(recipient: string): boolean {
  return msisdn.test(recipient);
}
