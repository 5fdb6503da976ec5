import { SmsError } from '../errors';

/** Name and value of a received parameter. */
export type Field = readonly [name: string, value: string];

const wholeNumber = /^-?\d+$/;
const unsafeKeys: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Names of properties that the library sets in records. Parameters of the service never replace them. */
const reservedNames: ReadonlySet<string> = new Set('messageId from via redelivered ackId sent query'.split(' '));

/** Whether a value is absent, empty or only white space. */
export function isBlank(value: unknown): value is '' | null | undefined {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '');
}

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** Whether a value is an object and not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a text without the white space around it, or `undefined` if the text is blank. */
export function trimmed(text: string | undefined): string | undefined {
  return isBlank(text) ? undefined : text.trim();
}

/**
 * Drops a leading `+` and white space around a recipient, so that the submitted and the reported form are equal (§2.2).
 */
export function normaliseRecipient(recipient: unknown): string {
  return String(recipient ?? '')
    .trim()
    .replace(/^\+/, '');
}

/** Removes the formatting characters of a number, such as spaces, brackets and `+`. */
export function removeFormatting(text: string): string {
  return text.replace(/[()./\s+-]/g, '');
}

/** Whether a name is not allowed as a key of a record, because it could change the prototype of the record. */
export function isUnsafeKey(name: string): boolean {
  return unsafeKeys.has(name);
}

/** Maps names to values. If a name repeats, the first value counts. */
export function readFields(fields: Iterable<Field>): Map<string, string> {
  const byName = new Map<string, string>();
  for (const [name, value] of fields) {
    if (!byName.has(name)) byName.set(name, value);
  }
  return byName;
}

type Present<Values> = { [Key in keyof Values]?: Exclude<Values[Key], undefined> };

/** Returns the properties that are not `undefined`. */
export function present<Values extends object>(values: Values): Present<Values> {
  const defined: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) if (value !== undefined) defined[name] = value;
  return defined as Present<Values>;
}

/** Returns the fields with these names as properties. Leaves out blank fields. */
export function presentFields<Name extends string>(
  fields: ReadonlyMap<string, string>,
  names: readonly Name[],
): { [Key in Name]?: string } {
  return Object.fromEntries(names.map((name) => [name, fields.get(name)]).filter(([, value]) => !isBlank(value)));
}

/** Reads an `errorCode`: a number if it reads as a whole number, otherwise the text as received. */
export function readErrorCode(text: string): number | string {
  return readWholeNumber(text) ?? text;
}

/**
 * Reads a whole number in decimal digits. Returns `undefined` for any other text, and for a number that is too large to
 * be exact.
 */
export function readWholeNumber(text: string): number | undefined {
  const trimmed = text.trim();
  const number = Number(trimmed);
  return wholeNumber.test(trimmed) && Number.isSafeInteger(number) ? number : undefined;
}

/**
 * Returns the parameters that the service has added (§1): those whose names are neither known nor reserved. An
 * `errorCode` that reads as a whole number becomes a number.
 */
export function additionalFields(
  fields: ReadonlyMap<string, string>,
  knownNames: ReadonlySet<string>,
): Record<string, string | number> {
  const additional: Record<string, string | number> = {};
  for (const [name, value] of fields) {
    if (name === '' || reservedNames.has(name) || knownNames.has(name) || isUnsafeKey(name)) continue;
    additional[name] = name === 'errorCode' ? readErrorCode(value) : value;
  }
  return additional;
}

/**
 * Creates the error of an answer or a callback that cannot be read.
 *
 * @param detail reason in a few words, without received data
 */
export function unreadable(source: 'answer' | 'callback', detail: string): SmsError {
  return new SmsError(source === 'answer' ? 'responseUnreadable' : 'callbackUnreadable', { params: { detail } });
}
