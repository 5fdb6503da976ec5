import { SmsError, type SmsErrorFacts } from '../errors';

/** What OpenSSL and Node call a failure of TLS, to what a person has to do about it; the first that fits holds. */
const tlsFailures: readonly [RegExp, 'certificateName' | 'certificateDate' | 'certificateUntrusted' | 'noTls'][] = [
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'certificateName'],
  [/^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/, 'certificateDate'],
  [/^(?:UNABLE_TO_(?:GET|VERIFY)_|(?:DEPTH_ZERO_)?SELF_SIGNED_|CERT_)/, 'certificateUntrusted'],
  [/^(?:INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_)/, 'certificateUntrusted'],
  [/^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL)$/, 'noTls'],
];

/** A proxy that cannot be reached, or that does not let a request through: nothing was sent. */
export class ProxyFailure extends Error {
  /** @param detail why, in a few words that may be shown, or the status that it has answered with */
  constructor(
    readonly detail: string | number,
    options?: ErrorOptions,
  ) {
    super(`${typeof detail === 'number' ? `HTTP ${detail}` : detail} of the proxy`, options);
  }
}

/** TLS settings that no connection can be begun with. */
export class TlsFailure extends Error {
  /** OpenSSL's, which has none for a PFX. */
  readonly code: string;

  constructor(cause: unknown) {
    super('TLS settings', { cause });
    this.code = codeOf(cause) ?? 'PFX not readable';
  }
}

/**
 * The error of a request that never left, with its own reason where TLS is why, since that is mended in a way of its own.
 *
 * @param call.host as the base URL has it, with its port
 * @param facts.detail as {@link describeFailure} gives it
 */
export function createUnreachable(
  { host, effect }: { host: string; effect: 'send' | 'read' },
  { detail, ...facts }: SmsErrorFacts & { detail: string },
): SmsError {
  const details = { ...facts, params: { host, detail } };
  const { cause } = facts;
  // What a proxy wants is not mended at the base URL or in the network.
  if (cause instanceof ProxyFailure && cause.detail === 407) return new SmsError('proxyLogin', details);
  if (cause instanceof ProxyFailure && cause.detail === 403) return new SmsError('proxyRefused', details);
  if (cause instanceof TlsFailure) return new SmsError('tlsInvalid', details);
  // A certificate of the proxy is not mended by the TLS settings of the account.
  const code = (cause instanceof ProxyFailure ? undefined : codeOf(cause)) ?? '';
  const [, reason] = tlsFailures.find(([pattern]) => pattern.test(code)) ?? [];
  return new SmsError(reason ?? (effect === 'send' ? 'unreachable' : 'unreachableRead'), details);
}

/**
 * The error of a send whose answer cannot be read, and which may have been accepted.
 *
 * @param detail why, in a few words
 */
export function createUnread(detail: string, facts: SmsErrorFacts): SmsError {
  return new SmsError('responseUncertain', { ...facts, params: { detail } });
}

/** Says whether the service may have taken a text that it answers with this status: 503 alone says that it has not. */
export function leavesOpen(statusCode: number): boolean {
  return statusCode >= 500 && statusCode !== 503;
}

/**
 * Names a failure by its code, and by the place that was tried where the system tells it: messages of lower layers may quote what
 * must not be shown.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof ProxyFailure) return error.message;
  return [codeOf(error) ?? 'connection failed', placeOf(error)].filter((part) => part !== undefined).join(' ');
}

function codeOf(error: unknown): string | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 5; current = current.cause, depth++) {
    const { code } = current as { code?: unknown };
    if (typeof code === 'string') return code;
  }
  return undefined;
}

/** With a proxy it is another than that of the base URL. */
function placeOf(error: unknown): string | undefined {
  const { syscall, hostname, address, port } = Object(error) as Record<string, unknown>;
  if (syscall === 'getaddrinfo' && typeof hostname === 'string') return hostname;
  return syscall === 'connect' && typeof address === 'string' ? `${address}:${port}` : undefined;
}
