import type { OutboxRecipient, OutboxRecord } from '../model';
import { isBlank, isObject, isUnsafeKey, type JsonObject, present, readErrorCode, unreadable } from './fields';
import { decodeText, type Encoded } from './text';

const recordNames: ReadonlySet<string> = new Set(
  'messageId body recipientCount recipients messageDate statusCode deleted recipientsList'.split(' '),
);
const recipientNames: ReadonlySet<string> = new Set(['from', 'to', 'name', 'statusCode', 'channel']);

/**
 * Reads the answer to a poll for outgoing messages (§2.4): a JSON list. Entries with nothing that
 * a message has are passed over. Blank text fields are left out; what the service added since stays as received, but for
 * an `errorCode`, which is a number when it reads as one.
 *
 * @throws SmsError `SMS_RESPONSE` when it is not JSON, is nested more than 100 deep, holds no list, or a list of something else
 */
export function parseOutbox(...encoded: Encoded): OutboxRecord[] {
  const list = parseJson(decodeText(...encoded));
  if (isTooDeep(list)) throw unreadable('answer', 'JSON that is nested too deeply');
  if (!Array.isArray(list)) throw unreadable('answer', 'JSON without a list of messages');
  const records = (list as unknown[])
    .filter(isObject)
    .map(createRecord)
    .filter((record) => record !== undefined);
  if (records.length === 0 && list.length > 0) throw unreadable('answer', 'a list without messages');
  return records;
}

/** A text of JSON with such a name, as it is or escaped: of others no member needs a look, which takes a second for a million. */
const mayBeUnsafe = /__proto__|constructor|prototype|\\u/;

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // Identifiers of more digits than a number holds would otherwise fall together.
    const exact = /\d{16}/.test(text) ? quoteLongIntegers(text) : text;
    if (mayBeUnsafe.test(text)) return JSON.parse(exact, withoutUnsafeKeys);
    return exact === text ? value : JSON.parse(exact);
  } catch {
    throw unreadable('answer', 'not JSON');
  }
}

/** Says whether lists and objects are in each other more than so many deep. */
function isTooDeep(value: unknown, levels = 100): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isTooDeep(inner, levels - 1));
}

/** Takes out of a JSON value, however deep, what could reach the prototype of an object. */
function withoutUnsafeKeys(key: string, value: unknown): unknown {
  return isUnsafeKey(key) ? undefined : value;
}

/** Puts whole numbers of 16 digits and more of a valid JSON text into quotes. */
function quoteLongIntegers(json: string): string {
  let isText = false;
  return json.replace(/\\.|"|-?\d[\d.e+-]*/gi, (token) => {
    if (token === '"') isText = !isText;
    return !isText && /^-?\d{16,}$/.test(token) ? `"${token}"` : token;
  });
}

/** A message without a messageId is kept all the same: the service has moved its date on and will not give it again. */
function createRecord(entry: JsonObject): OutboxRecord | undefined {
  const { messageId, body, recipientCount, recipients, messageDate, statusCode, deleted, recipientsList } = entry;
  const isDeleted = /^\s*(?:true|1)\s*$/i.test(String(deleted));
  const known = {
    ...presentTexts({ messageId, body, recipients, messageDate, statusCode }),
    ...present({ recipientCount: numberOf(recipientCount), deleted: isBlank(deleted) ? undefined : isDeleted }),
  };
  const list = [recipientsList].flat().filter(isObject).map(createRecipient);
  if (Object.keys(known).length === 0 && list.length === 0) return undefined;
  const own = { ...known, body: typeof body === 'string' ? body : (known.body ?? ''), recipientsList: list };
  return addAdditional(own, entry, recordNames);
}

function createRecipient(entry: JsonObject): OutboxRecipient {
  const { from, to, name, statusCode, channel } = entry;
  return addAdditional(presentTexts({ from, to, name, statusCode, channel }), entry, recipientNames);
}

/** Adds what the service may have added since (§1), as received but for an `errorCode`. Each copy more of 400,000 names takes 0.4 s. */
function addAdditional<Own extends object>(own: Own, entry: JsonObject, known: ReadonlySet<string>): Own {
  const all: JsonObject = own as JsonObject;
  for (const name in entry) {
    if (!known.has(name)) all[name] = entry[name];
  }
  if (typeof all.errorCode === 'string') all.errorCode = readErrorCode(all.errorCode);
  return own;
}

function presentTexts<Name extends string>(values: Record<Name, unknown>): { [Key in Name]?: string } {
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
