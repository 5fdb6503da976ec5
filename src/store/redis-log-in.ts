import type { Redis } from 'ioredis';
import type { RedisServer } from './redis-url';

/** What servers say to a password that they do not need, and Redis before version 6 to the name of a user. */
const unneeded = /no password is set|without any password configured|wrong number of arguments for 'auth'/;

/**
 * Says who uses a new connection, and which database: not the client, which tells the console of a password that the server does
 * not need.
 *
 * @throws the refusal of the server, that of the password first
 */
export async function logIn(redis: Redis, { username, password = '', db }: RedisServer): Promise<void> {
  const steps: Promise<unknown>[] = [];
  if (username || password) {
    const authenticating = username ? redis.auth(username, password) : redis.auth(password);
    steps.push(authenticating.catch(passUnneeded));
  }
  // A user who needs no other needs no permission for it.
  if (db !== 0) steps.push(redis.select(db));
  const refused = (await Promise.allSettled(steps)).find((step) => step.status === 'rejected');
  if (refused) throw refused.reason;
}

function passUnneeded(error: unknown): void {
  if (!(error instanceof Error && unneeded.test(error.message))) throw error;
}
