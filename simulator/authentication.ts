import type { Credentials } from './model';

/**
 * Whether a request is authenticated (§5): by an `Authorization` header (Bearer or Basic), otherwise by the parameters
 * userId and password.
 */
export function isAuthenticated(
  credentials: Credentials,
  authorization: string | undefined,
  params: Readonly<Record<string, string>>,
): boolean {
  if (authorization === undefined) {
    return params.userId === credentials.userId && params.password === credentials.password;
  }
  const [scheme = '', token = ''] = authorization.split(/ +(.*)/s);
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return token === credentials.apiKey;
    case 'basic':
      return Buffer.from(token, 'base64').toString('utf8') === `${credentials.userId}:${credentials.password}`;
    default:
      return false;
  }
}
