import type { NodeAPI } from 'node-red';
import { asSmsError, type SmsError } from '../../src';
import { formatMinute, nextMinute } from './minutes';

const catalogs = '@messaging-service/node-red-sms/';

/** All texts that the runtimes share stand in the catalog of the account node. */
const catalog = `${catalogs}sms-account:sms-account.`;

/** The types in whose forms a property of a setting or field has its label. */
const labelling = ['sms-account', 'sms-send', 'sms-ask', 'sms-feed', 'sms-callback-in'];

type Params = Readonly<Record<string, string | number>>;

/** Looks a shared text up in the language of the server. */
export function translate(RED: NodeAPI, key: string, params: Params = {}): string {
  return RED._(catalog + key, params);
}

/** Turns whatever was thrown into a {@link SmsError} with its text in the language of the server. */
export function translateError(RED: NodeAPI, error: unknown): SmsError {
  const known = asSmsError(error);
  const text = translate(RED, `errors.${known.reason}`, formatParams(RED, known.params));
  // A catalog that does not know the reason gives the key back.
  if (text.endsWith(`errors.${known.reason}`)) return known.with({}, known.message);
  const { waiting } = known;
  return known.with({}, waiting ? `${text} ${translate(RED, 'errors.storedWaiting', { waiting })}` : text);
}

/** An error names a property as the flow file does, and a time as ISO 8601; a person reads what the form calls it, and the clock of the server with its zone. */
function formatParams(RED: NodeAPI, params: Params): Params {
  const places = Object.entries(params).map(([place, value]) => {
    if (place === 'field' || place === 'setting') return [place, labelOf(RED, String(value))];
    return [place, place === 'until' ? formatInZone(nextMinute(Date.parse(String(value)))) : value];
  });
  return Object.fromEntries(places);
}

function labelOf(RED: NodeAPI, property: string): string {
  for (const type of labelling) {
    const key = `${type}.label.${property}`;
    const label = RED._(`${catalogs}${type}:${key}`);
    if (!label.endsWith(key)) return label;
  }
  return property;
}

/** Such as `2026-11-22 14:05 UTC`: the account may be in another zone. */
function formatInZone(date: Date): string {
  const zone = date.toLocaleTimeString('en-US', { timeZoneName: 'short' }).split(' ').pop();
  return `${formatMinute(date)} ${zone}`;
}
