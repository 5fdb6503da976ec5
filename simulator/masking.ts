import type { CallbackAttempt, LoggedRequest } from './model';
import { isForm, isMultipart } from './params';

const mask = '••••••';
const secretHeaders = new Set(['authorization', 'proxy-authorization', 'cookie']);
const secretName = /password|token|secret|api[_-]?key/i;
const callbackName = /^callback(Status)?Url$/i;

/**
 * Returns a logged request without credentials (§5) and without tokens in URLs. The body of a form is omitted, because
 * `params` has its fields. Any other body is masked completely if it seems to contain a secret.
 */
export function maskRequest(request: LoggedRequest): LoggedRequest {
  const contentType = request.headers['content-type'];
  const headers = Object.entries(request.headers).map(([name, value]) => [name, maskHeader(name, value)]);
  return {
    ...request,
    path: maskUrl(request.path),
    query: maskFields(request.query),
    params: maskFields(request.params),
    headers: Object.fromEntries(headers),
    body: isForm(contentType) || isMultipart(contentType) ? '' : maskBody(request.body),
  };
}

/** Returns a callback without the token in its URL. */
export function maskCallback(callback: CallbackAttempt): CallbackAttempt {
  return { ...callback, url: maskUrl(callback.url) };
}

function maskBody(body: string): string {
  return secretName.test(body) ? mask : body;
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

/**
 * Masks the login and the secret parameters of a URL. Covers wrong spellings that browsers and Node.js accept, e.g.
 * `http:user:password@host`.
 */
function maskUrl(url: string): string {
  const [address = '', ...pairs] = url
    .replace(/^(\s*(?!mailto:)[\w+.-]+:[/\\]*)[^/\\?#]*@/i, `$1${mask}@`)
    .split(/(?=[?&;#])/);
  const maskedPairs = pairs.map((pair) => {
    const [name = ''] = new URLSearchParams(pair.slice(1)).keys();
    return secretName.test(name) ? pair.replace(/=.*/s, `=${mask}`) : pair;
  });
  return [address, ...maskedPairs].join('');
}
