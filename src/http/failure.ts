import { SmsError, type SmsErrorFacts } from '../errors';

/** Error codes of OpenSSL and Node.js for TLS failures, and their reasons. The first match counts. */
const tlsFailures: readonly [RegExp, 'certificateName' | 'certificateDate' | 'certificateUntrusted' | 'noTls'][] = [
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'certificateName'],
  [/^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/, 'certificateDate'],
  [/^(?:UNABLE_TO_(?:GET|VERIFY)_|(?:DEPTH_ZERO_)?SELF_SIGNED_|CERT_)/, 'certificateUntrusted'],
  [/^(?:INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_)/, 'certificateUntrusted'],
  [/^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL)$/, 'noTls'],
];

/** Failure of a proxy: the proxy cannot be reached, or refuses the request. Nothing was sent. */
export class ProxyFailure extends Error {
  /** @param detail short reason without private data, or the HTTP status with which the proxy answered */
  constructor(
    readonly detail: string | number,
    options?: ErrorOptions,
  ) {
    super(`${typeof detail === 'number' ? `HTTP ${detail}` : detail} of the proxy`, options);
  }
}

/** Node.js refused the TLS settings. */
export class TlsFailure extends Error {
  /** Error code of OpenSSL. Errors of a PFX have no code. */
  readonly code: string;

  constructor(cause: unknown) {
    super('TLS settings', { cause });
    this.code = codeOf(cause) ?? 'PFX not readable';
  }
}

/**
 * Creates the error of a request that was never sent. Failures of TLS and of a proxy have separate reasons.
 *
 * @param call.host host of the base URL, with its port
 * @param facts.detail as {@link describeFailure} returns it
 */
export function createUnreachable(
  { host, effect }: { host: string; effect: 'send' | 'read' },
  { detail, ...facts }: SmsErrorFacts & { detail: string },
): SmsError {
  const details = { ...facts, params: { host, detail } };
  const { cause } = facts;
  if (cause instanceof ProxyFailure && cause.detail === 407) return new SmsError('proxyLogin', details);
  if (cause instanceof ProxyFailure && cause.detail === 403) return new SmsError('proxyRefused', details);
  if (cause instanceof TlsFailure) return new SmsError('tlsInvalid', details);
  // Ignores certificate errors of a proxy here, because the TLS settings of the account do not apply to a proxy.
  const code = (cause instanceof ProxyFailure ? undefined : codeOf(cause)) ?? '';
  const [, reason] = tlsFailures.find(([pattern]) => pattern.test(code)) ?? [];
  return new SmsError(reason ?? (effect === 'send' ? 'unreachable' : 'unreachableRead'), details);
}

/**
 * Creates the error of a send whose answer cannot be read. The message might have been accepted.
 *
 * @param detail reason in a few words
 */
export function createUnread(detail: string, facts: SmsErrorFacts): SmsError {
  return new SmsError('responseUncertain', { ...facts, params: { detail } });
}

/**
 * Whether an HTTP status leaves the outcome of a send unknown:
 *
 * - 500 and above, except 503, which means that the message was not accepted
 * - 2xx, except 200 and 204
 */
export function leavesOutcomeUnknown(statusCode: number): boolean {
  if (statusCode >= 500) return statusCode !== 503;
  return statusCode >= 200 && statusCode < 300 && statusCode !== 200 && statusCode !== 204;
}

/**
 * Describes a failure by its code and, if known, its address. Omits messages of lower layers, because they can contain
 * private data.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof ProxyFailure) return error.message;
  return [codeOf(error) ?? 'connection failed', placeOf(error)].filter((part) => part !== undefined).join(' ');
}

function codeOf(error: unknown): string | undefined {
  for (let level = error, depth = 0; level instanceof Error && depth < 5; level = level.cause, depth++) {
    const { code } = level as { code?: unknown };
    if (typeof code === 'string') return code;
  }
  return undefined;
}

/** Returns the host or address of a failed connection. If a proxy is used, this is not the host of the base URL. */
function placeOf(error: unknown): string | undefined {
  const { syscall, hostname, address, port } = Object(error) as Record<string, unknown>;
  if (syscall === 'getaddrinfo' && typeof hostname === 'string') return hostname;
  return syscall === 'connect' && typeof address === 'string' ? `${address}:${port}` : undefined;
}
