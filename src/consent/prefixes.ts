import { SmsError } from '../errors';

const separators = /[\s,]+/;
const prefix = /^\+?[1-9]\d{0,14}$/;

/**
 * Parses the allowed prefixes of numbers, separated by spaces, commas or new lines. Drops a leading `+`. Blank: all
 * numbers are allowed.
 *
 * @throws SmsError `SMS_CONFIG` with the field `prefixes` if an item is not all digits, or begins with zero
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parsePrefixes } from '@messaging-service/node-red-sms';
 *
 * assert.deepEqual(parsePrefixes('+64, 61'), ['64', '61']);
 * ```
 */
export function parsePrefixes(value: unknown): string[] {
  const items = String(value ?? '')
    .split(separators)
    .filter((item) => item !== '');
  if (!items.every((item) => prefix.test(item))) throw new SmsError('prefixInvalid', { field: 'prefixes' });
  return [...new Set(items.map((item) => item.replace('+', '')))];
}

/** Returns whether messages can be sent to a recipient. Address-book items cannot be checked, and are allowed. */
export function isAllowed(recipient: string, prefixes: ReadonlySet<string>): boolean {
  if (prefixes.size === 0 || !isNumber(recipient)) return true;
  return [...recipient].some((_digit, index) => prefixes.has(recipient.slice(0, index + 1)));
}

/** Returns whether a recipient is a number, as opposed to an address-book item. */
export function isNumber(recipient: string): boolean {
  return /^\d{7,15}$/.test(recipient);
}
