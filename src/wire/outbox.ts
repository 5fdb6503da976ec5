import type { OutboxRecipient, OutboxRecord } from '../model';
import { decodeText, type Encoded } from './charset';
import { isBlank, isObject, isUnsafeKey, type JsonObject, present, readErrorCode, unreadable } from './fields';

const recordNames: ReadonlySet<string> = new Set(
  'messageId body recipientCount recipients messageDate statusCode deleted recipientsList'.split(' '),
);
const recipientNames: ReadonlySet<string> = new Set(['from', 'to', 'name', 'statusCode', 'channel']);

/**
 * Reads the answer to a poll for outgoing messages (§2.4), which is a JSON list. Omits entries without any field of a
 * message, and blank text fields. Additional fields stay as received, except that an `errorCode` of digits becomes a
 * number.
 *
 * @throws SmsError `SMS_RESPONSE` if the bytes are not JSON, or do not contain a list of messages
 */
export function parseOutbox(...encoded: Encoded): OutboxRecord[] {
  const list = parseJson(decodeText(...encoded));
  if (!Array.isArray(list)) throw unreadable('answer', 'JSON without a list of messages');
  const records = (list as unknown[])
    .filter(isObject)
    .map(createRecord)
    .filter((record) => record !== undefined);
  if (records.length === 0 && list.length > 0) throw unreadable('answer', 'a list without messages');
  return records;
}

/** Parses JSON, and drops keys that could change the prototype of an object. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(quoteLongIntegers(text), (key, value) => (isUnsafeKey(key) ? undefined : value));
  } catch {
    throw unreadable('answer', 'not JSON');
  }
}

/** Puts whole numbers of 16 and more digits into quotes, because as numbers, identifiers would lose digits. */
function quoteLongIntegers(json: string): string {
  let isInQuotes = false;
  return json.replace(/\\.|"|-?\d[\d.e+-]*/gi, (token) => {
    if (token === '"') isInQuotes = !isInQuotes;
    return !isInQuotes && /^-?\d{16,}$/.test(token) ? `"${token}"` : token;
  });
}

/**
 * Creates a record, even without a messageId, because the service has advanced its poll date and will not return the
 * message again.
 */
function createRecord(entry: JsonObject): OutboxRecord | undefined {
  const { messageId, body, recipientCount, recipients, messageDate, statusCode, deleted, recipientsList } = entry;
  const isDeleted = /^\s*(?:true|1)\s*$/i.test(String(deleted));
  const fields = {
    ...textFieldsOf({ messageId, body, recipients, messageDate, statusCode }),
    ...present({ recipientCount: numberOf(recipientCount), deleted: isBlank(deleted) ? undefined : isDeleted }),
  };
  const list = [recipientsList].flat().filter(isObject).map(createRecipient);
  if (Object.keys(fields).length === 0 && list.length === 0) return undefined;
  const record = { ...fields, body: typeof body === 'string' ? body : (fields.body ?? ''), recipientsList: list };
  return addAdditional(record, entry, recordNames);
}

function createRecipient(entry: JsonObject): OutboxRecipient {
  const { from, to, name, statusCode, channel } = entry;
  return addAdditional(textFieldsOf({ from, to, name, statusCode, channel }), entry, recipientNames);
}

/** Copies the additional fields (§1) of an entry to its record. */
function addAdditional<T extends object>(record: T, entry: JsonObject, knownNames: ReadonlySet<string>): T {
  const fields: JsonObject = record as JsonObject;
  for (const name in entry) {
    if (!knownNames.has(name)) fields[name] = entry[name];
  }
  if (typeof fields.errorCode === 'string') fields.errorCode = readErrorCode(fields.errorCode);
  return record;
}

function textFieldsOf<Name extends string>(values: Record<Name, unknown>): { [Key in Name]?: string } {
  const present: { [Key in Name]?: string } = {};
  for (const name in values) {
    const value: unknown = values[name];
    if (typeof value !== 'object' && !isBlank(value)) present[name] = String(value);
  }
  return present;
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'string' && isBlank(value)) return undefined;
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}
