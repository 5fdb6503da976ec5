import type { CallbackAttempt, LoggedRequest } from './model';
import { isForm, multipartBoundary } from './params';

const mask = '••••••';
const secretHeaders = new Set(['authorization', 'proxy-authorization', 'cookie']);
const secretName = /password|token|secret|api_?key/i;
const callbackName = /^callback(Status)?Url$/i;

/** Returns a logged request without credentials (§5) and without tokens in callback URLs. */
export function maskRequest(request: LoggedRequest): LoggedRequest {
  return {
    ...request,
    query: maskFields(request.query),
    params: maskFields(request.params),
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, maskHeader(name, value)]),
    ),
    body: maskBody(request),
  };
}

function maskBody({ body, headers }: LoggedRequest): string {
  const contentType = headers['content-type'];
  if (isForm(contentType)) return maskForm(body);
  const boundary = multipartBoundary(contentType);
  return boundary === undefined ? body : maskMultipart(body, `--${boundary}`);
}

/** Returns a callback without the token in its URL. */
export function maskCallback(callback: CallbackAttempt): CallbackAttempt {
  return { ...callback, url: maskUrl(callback.url) };
}

/** Masks secret headers. The scheme stays visible, because it shows the authentication method. */
function maskHeader(name: string, value: string): string {
  if (!secretHeaders.has(name) && !secretName.test(name)) return value;
  const scheme = name.endsWith('authorization') ? /^(bearer|basic) /i.exec(value)?.[0] : undefined;
  return `${scheme ?? ''}${mask}`;
}

function maskFields(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, maskField(name, value)]));
}

function maskField(name: string, value: string): string {
  if (secretName.test(name)) return mask;
  return callbackName.test(name) ? maskUrl(value) : value;
}

/** Masks secrets in a form. The rest does not change, so that the log shows the client's encoding. */
function maskForm(form: string): string {
  return form
    .split('&')
    .map((pair) => {
      const [name, value] = [...new URLSearchParams(pair)][0] ?? ['', ''];
      const maskedValue = maskField(name, value);
      if (maskedValue === value) return pair;
      const rawName = pair.split('=', 1)[0] ?? '';
      return `${rawName}=${encodeURIComponent(maskedValue).replaceAll(encodeURIComponent(mask), mask)}`;
    })
    .join('&');
}

function maskMultipart(body: string, delimiter: string): string {
  return body
    .split(delimiter)
    .map((part) => {
      const start = part.indexOf('\r\n\r\n') + 4;
      const name = /\bname="([^"]*)"/.exec(part.slice(0, start))?.[1];
      if (name === undefined || start < 4) return part;
      const end = part.endsWith('\r\n') ? part.length - 2 : part.length;
      return `${part.slice(0, start)}${maskField(name, part.slice(start, end))}${part.slice(end)}`;
    })
    .join(delimiter);
}

function maskUrl(url: string): string {
  const queryStart = url.indexOf('?');
  const address = (queryStart < 0 ? url : url.slice(0, queryStart)).replace(/^(\w+:\/\/)[^/@]*@/, `$1${mask}@`);
  return queryStart < 0 ? address : `${address}?${maskForm(url.slice(queryStart + 1))}`;
}
