import type { NodeAPI } from 'node-red';
import { asSmsError, type SmsError } from '../../src';
import { formatMinute, nextMinute } from './minutes';

const catalogs = '@messaging-service/node-red-sms/';

/** The catalog of the account node, which contains the texts of all runtimes. */
const catalog = `${catalogs}sms-account:sms-account.`;

/** Node types whose catalogs contain the labels of properties. */
const labelledTypes = ['sms-account', 'sms-send', 'sms-ask', 'sms-feed', 'sms-callback-in'];

type Params = Readonly<Record<string, string | number>>;

/** Returns a text in the language of the server. */
export function translate(RED: NodeAPI, key: string, params: Params = {}): string {
  return RED._(catalog + key, params);
}

/** Converts any error into a {@link SmsError} with a message in the language of the server. */
export function translateError(RED: NodeAPI, error: unknown): SmsError {
  const smsError = asSmsError(error);
  const text = translate(RED, `errors.${smsError.reason}`, formatParams(RED, smsError.params));
  // If the catalog has no text for this error, `text` is only the key, so the error keeps its English message.
  if (text.endsWith(`errors.${smsError.reason}`)) return smsError.with({}, smsError.message);
  const { waiting } = smsError;
  return smsError.with({}, waiting ? `${text} ${translate(RED, 'errors.storedWaiting', { waiting })}` : text);
}

/** Replaces property names by the labels of the form, and ISO 8601 times by local times with their zone. */
function formatParams(RED: NodeAPI, params: Params): Params {
  const formattedParams = Object.entries(params).map(([name, value]) => {
    if (name === 'field' || name === 'setting') return [name, labelOf(RED, String(value))];
    return [name, name === 'until' ? formatInZone(nextMinute(Date.parse(String(value)))) : value];
  });
  return Object.fromEntries(formattedParams);
}

function labelOf(RED: NodeAPI, property: string): string {
  for (const type of labelledTypes) {
    const key = `${type}.label.${property}`;
    const label = RED._(`${catalogs}${type}:${key}`);
    if (!label.endsWith(key)) return label;
  }
  return property;
}

/** Formats a time such as `2026-11-22 14:05 UTC`. Includes the zone, because the account can use a different zone. */
function formatInZone(date: Date): string {
  const zone = date.toLocaleTimeString('en-US', { timeZoneName: 'short' }).split(' ').pop();
  return `${formatMinute(date)} ${zone}`;
}
