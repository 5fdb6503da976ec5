import { hash } from 'node:crypto';

/** Texts, numbers and keys stand in keys of the store only as digests. */
export function digest(...parts: unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 22);
}
