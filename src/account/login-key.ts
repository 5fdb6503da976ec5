import { createHash } from 'node:crypto';
import type { Authentication } from '../login';

/** Tells logins at services apart, and gives nothing away: 32 hexadecimal digits. */
export function keyOfLogin({ baseUrl, authentication }: { baseUrl: string; authentication: Authentication }): string {
  const login = authentication.type === 'bearer' ? authentication.apiKey : authentication.userId;
  return createHash('sha256')
    .update(JSON.stringify([baseUrl, authentication.type === 'bearer', login]))
    .digest('hex')
    .slice(0, 32);
}
