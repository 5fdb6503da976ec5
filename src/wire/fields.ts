import { SmsError } from '../errors';

/** A parameter as received, by its name. */
export type Field = readonly [name: string, value: string];

const wholeNumber = /^-?\d+$/;
const unsafeKeys: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Names that this library gives values to in every record that comes in, whatever the service sends under them. */
const ownNames: ReadonlySet<string> = new Set(['messageId', 'from', 'via', 'redelivered', 'ackId', 'sent']);

/** Says whether a value is absent, empty or only white space. */
export function isBlank(value: unknown): value is '' | null | undefined {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '');
}

/** An object of JSON. */
export type JsonObject = Record<string, unknown>;

/** Says whether a value is one. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text without the white space around it; `undefined` when it is blank. */
export function trimmed(text: string | undefined): string | undefined {
  return isBlank(text) ? undefined : text.trim();
}

/** Brings a recipient into the form in which it is kept: a `+` more or a space around it is still the same one (§2.2). */
export function normaliseRecipient(recipient: unknown): string {
  return String(recipient ?? '')
    .trim()
    .replace(/^\+/, '');
}

/** Says whether a name must never become a key of a record, because it could reach the record's prototype. */
export function isUnsafeKey(name: string): boolean {
  return unsafeKeys.has(name);
}

/** Gathers fields by name; the first of several values of one name holds. */
export function readFields(fields: Iterable<Field>): Map<string, string> {
  const byName = new Map<string, string>();
  for (const [name, value] of fields) {
    if (!byName.has(name)) byName.set(name, value);
  }
  return byName;
}

type Present<Values> = { [Key in keyof Values]?: Exclude<Values[Key], undefined> };

/** The properties that are not `undefined`. */
export function present<Values extends object>(values: Values): Present<Values> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) if (value !== undefined) kept[name] = value;
  return kept as Present<Values>;
}

/** The given fields that are not blank, as properties. */
export function presentFields<Name extends string>(
  fields: ReadonlyMap<string, string>,
  names: readonly Name[],
): { [Key in Name]?: string } {
  const given = names.map((name) => [name, fields.get(name)]).filter(([, value]) => !isBlank(value));
  return Object.fromEntries(given);
}

/** An `errorCode` as records have it: a number when it reads as a whole number, else the text as received. */
export function readErrorCode(text: string): number | string {
  return readWholeNumber(text) ?? text;
}

/** The whole number that a text is in decimal digits, white space around it aside; `undefined` when it is none, or too large to be exact. */
export function readWholeNumber(text: string): number | undefined {
  const trimmed = text.trim();
  const number = Number(trimmed);
  return wholeNumber.test(trimmed) && Number.isSafeInteger(number) ? number : undefined;
}

/** The fields that the service may have added since (§1), as received but for an `errorCode`: all but those in `known` and those of every record. */
export function additionalFields(
  fields: ReadonlyMap<string, string>,
  known: ReadonlySet<string>,
): Record<string, string | number> {
  const additional: Record<string, string | number> = {};
  for (const [name, value] of fields) {
    if (name === '' || ownNames.has(name) || known.has(name) || isUnsafeKey(name)) continue;
    additional[name] = name === 'errorCode' ? readErrorCode(value) : value;
  }
  return additional;
}

/**
 * The error of bytes that cannot be read: of an answer of the service, or of a callback.
 *
 * @param detail why, in a few words, and with nothing of what the bytes say
 */
export function unreadable(what: 'answer' | 'callback', detail: string): SmsError {
  return new SmsError(what === 'answer' ? 'responseUnreadable' : 'callbackUnreadable', { params: { detail } });
}
