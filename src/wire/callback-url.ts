import { SmsError } from '../errors';

/** Variables in a callback URL, which the service replaces by values before it calls (§6.2). Case does not matter. */
const variables = /(\{!(?:messageId|body|recipient\.msisdn|recipient\.displayname|status)\})/i;
/** Characters that could split a header or a request line. */
const unsafeCharacters = /[\s\p{Cc}\p{Zl}\p{Zp}]/u;
const webUrl = /^https?:\/\/[^/?#]/i;
const mailtoUrl = /^mailto:[^@?]+@[^@?]+/i;
const address = /^[^\s\p{Cc}@,;:<>()[\]\\"]+@[^\s\p{Cc}@,;:<>()[\]\\"]+$/u;

/**
 * Formats a callback URL for the send request (§6). Removes white space around a URL. An object becomes a mailto URL,
 * whose parameters are encoded once (§6.3). The request encodes them again as a form. Variables (§6.2) do not change.
 * Returns `undefined` for a blank value.
 *
 * @throws SmsError `SMS_INPUT` with the field, for any other value
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { formatCallbackUrl } from '@messaging-service/node-red-sms';
 *
 * const url = formatCallbackUrl({ mailto: 'ops@example.com', subject: 'Reply' }, 'callbackUrl');
 * assert.equal(url, 'mailto:ops@example.com?Subject=Reply');
 * ```
 */
export function formatCallbackUrl(value: unknown, field: 'callbackUrl' | 'callbackStatusUrl'): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') {
    const url = value.trim();
    if (url === '') return undefined;
    const isWeb = webUrl.test(url) && URL.canParse(url);
    if (unsafeCharacters.test(url) || !(isWeb || (field === 'callbackUrl' && mailtoUrl.test(url)))) {
      throw unusable(field);
    }
    return url;
  }
  if (typeof value !== 'object' || field === 'callbackStatusUrl' || Array.isArray(value)) throw unusable(field);
  return formatMailto(value, field);
}

/**
 * Returns the tokens of a callback URL (query parameter `token`) in two forms: decoded, and as written in the URL.
 * Errors must not contain them.
 */
export function readCallbackTokens(url = ''): string[] {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const parameters = query.split('&').filter((parameter) => new URLSearchParams(parameter).has('token'));
  return parameters.flatMap((parameter) => [
    ...new URLSearchParams(parameter).getAll('token'),
    parameter.slice(parameter.indexOf('=') + 1),
  ]);
}

function formatMailto(value: { mailto?: unknown; subject?: unknown; body?: unknown }, field: string): string {
  const { mailto, subject, body } = value;
  if (typeof mailto !== 'string') throw new SmsError('mailto', { field, params: { field } });
  const addresses = mailto.split(',').map((item) => item.trim());
  if (!addresses.every((item) => address.test(item))) throw new SmsError('mailto', { field, params: { field } });
  const parameters: string[] = [];
  for (const [name, parameter] of [
    // Removes line breaks, because a line break in a subject would start another header.
    ['Subject', parameterText(subject, field)?.replace(/[\s\p{Cc}]+/gu, ' ')],
    ['Body', parameterText(body, field)?.replace(/\r\n?/g, '\n')],
  ] as const) {
    if (parameter !== undefined && parameter.trim() !== '') parameters.push(`${name}=${encode(parameter)}`);
  }
  const query = parameters.length === 0 ? '' : `?${parameters.join('&')}`;
  return `mailto:${addresses.map(encodeAddress).join(',')}${query}`;
}

function parameterText(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new SmsError('mailto', { field, params: { field } });
}

function encodeAddress(text: string): string {
  return encode(text).replaceAll('%40', '@').replaceAll('%2B', '+');
}

function encode(text: string): string {
  return text
    .split(variables)
    .map((piece) => (variables.test(piece) ? piece : encodeURIComponent(piece.replace(/\p{Cs}/gu, '\ufffd'))))
    .join('');
}

function unusable(field: 'callbackUrl' | 'callbackStatusUrl'): SmsError {
  const schemes = field === 'callbackUrl' ? 'http/https/mailto' : 'http/https';
  return new SmsError('callbackUrl', { field, params: { field, schemes } });
}
