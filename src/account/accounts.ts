import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '../clock';
import type { Authentication } from '../login';
import type { Account } from './account';
import type { JoinedMembership, Membership } from './membership';
import type { AccountSettings } from './settings';
import type { Stats } from './stats';

/** The accounts of a process, by login. */
export interface Accounts {
  /** See {@link joinAccount}. */
  join(settings: AccountSettings): JoinedMembership;
}

/** Creates an empty set of accounts. Different sets share no state. */
export function createAccounts(): Accounts {
  const accounts = new Map<string, Account>();
  /** Counters by login. They remain while the login has no members. */
  const allStats = new Map<string, Stats>();

  const create = (key: string, clock: Clock): Account => {
    // Loads these modules only when the first account is created.
    const { Account } = require('./account') as typeof import('./account');
    const { Stats } = require('./stats') as typeof import('./stats');
    const stats = allStats.get(key) ?? new Stats(clock);
    allStats.set(key, stats);
    const account: Account = new Account({
      key,
      clock,
      stats,
      find: (formerKey) => accounts.get(formerKey),
      onIdle() {
        if (accounts.get(key) === account) accounts.delete(key);
      },
    });
    return account;
  };

  return {
    join(settings) {
      const key = keyOfLogin(settings);
      const account = accounts.get(key) ?? create(key, settings.clock ?? systemClock);
      const membership = account.join(settings);
      accounts.set(key, account);
      return membership;
    },
  };
}

const accountsOfProcess = createAccounts();

/**
 * Joins the account of a login. All members with the same base URL and login share connections, queue, inbox and one
 * poll loop per endpoint. A loop has the settings of the member that started it. Connections and queue have the
 * settings of the first member. The limits of all members apply to every message.
 *
 * @throws SmsError `SMS_CONFIG` if the settings are invalid
 *
 * @example
 * ```ts
 * import { joinAccount, MemoryStore, parseBaseUrl } from '@messaging-service/node-red-sms';
 *
 * const account = joinAccount({
 *   id: 'my program',
 *   baseUrl: parseBaseUrl(process.env.SMS_BASE_URL),
 *   authentication: { type: 'bearer', apiKey: process.env.SMS_API_KEY ?? '' },
 *   method: 'POST',
 *   timeoutMs: 30_000,
 *   concurrency: 8,
 *   queueLimit: 10_000,
 *   pauseMs: 30_000,
 *   parallelPolls: 1,
 *   dedupe: true,
 *   dedupeMs: 72 * 3_600_000,
 *   storeName: 'memory',
 *   createStore: () => new MemoryStore(),
 * });
 * const subscription = account.subscribe('incoming', {
 *   id: 'my handler',
 *   wants: () => true,
 *   acknowledge: 'auto',
 *   ackTimeoutMs: 30_000,
 *   maxAttempts: 5,
 *   async send({ record: { from, body } }) {
 *     console.log(from, body);
 *     subscription.close();
 *     await account.leave();
 *     return true;
 *   },
 *   onUndelivered: () => {},
 *   onState: ({ name }) => console.log(name),
 *   onFailing: ({ message }) => console.error(message),
 *   onRecovered: () => {},
 * });
 * ```
 */
export function joinAccount(settings: AccountSettings): Membership {
  return accountsOfProcess.join(settings);
}

/**
 * Returns a key for a login, from which the login cannot be derived: 32 hexadecimal digits.
 *
 * @example
 * ```ts
 * import { keyOfLogin } from '@messaging-service/node-red-sms';
 *
 * const login = { baseUrl: 'https://sms.example.com', authentication: { type: 'bearer', apiKey: 'secret' } } as const;
 * console.log(keyOfLogin(login)); // 0faff64d729e9576b09298ffbe647081
 * ```
 */
export function keyOfLogin({ baseUrl, authentication }: { baseUrl: string; authentication: Authentication }): string {
  const login = authentication.type === 'bearer' ? authentication.apiKey : authentication.userId;
  return createHash('sha256')
    .update(JSON.stringify([baseUrl, authentication.type === 'bearer', login]))
    .digest('hex')
    .slice(0, 32);
}
