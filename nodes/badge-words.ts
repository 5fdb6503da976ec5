import type { SmsErrorCode } from '../src/errors';

/** Words of the badge for each error code. */
const short = {
  SMS_CONFIG: 'not configured',
  SMS_INPUT: 'invalid input',
  SMS_BAD_REQUEST: 'request refused',
  SMS_UNAUTHORIZED: 'unauthorized',
  SMS_FORBIDDEN: 'forbidden',
  SMS_SERVICE: 'service error',
  SMS_RESPONSE: 'unreadable answer',
  SMS_UNREACHABLE: 'unreachable',
  SMS_UNCERTAIN: 'outcome unknown',
  SMS_BUSY: 'queue full',
  SMS_CLOSED: 'stopped',
  SMS_UNDELIVERED: 'undelivered',
  SMS_STORE: 'store not writable',
  SMS_EXPIRED: 'expired',
  SMS_REPLACED: 'replaced',
  SMS_WITHDRAWN: 'withdrawn',
  SMS_QUIET: 'quiet hours',
  SMS_LIMIT: 'limit reached',
  SMS_NOT_ALLOWED: 'number not allowed',
  SMS_OPTED_OUT: 'opted out',
} satisfies Record<SmsErrorCode | 'SMS_REPLACED' | 'SMS_WITHDRAWN', string>;

const status = {
  connecting: 'connecting',
  listening: 'listening',
  waiting: 'waiting __seconds__ s',
  paused: 'paused: __n__ unacknowledged',
  sending: 'sending __n__',
  sent: 'sent',
  alreadySent: 'already sent',
  failed: '__failed__ of __total__ failed',
  reading: 'reading',
  messages: 'messages: __n__',
  pathTaken: 'path in use',
  formerUnread: 'import: __former__ (__detail__)',
  certificateUntrusted: 'untrusted issuer',
  certificateName: 'wrong host name',
  certificateDate: 'certificate expired',
  noTls: 'no TLS',
  tlsInvalid: 'wrong TLS settings',
  notFound: 'not found: 404',
  proxyLogin: 'proxy wants login',
  proxyRefused: 'proxy refuses',
  waitingMessages: 'waiting __n__',
  outage: '__error__, __n__ waiting',
  waitingUntil: 'waiting __n__, next __next__',
  awaitingReply: 'awaiting __n__ replies',
  quiet: 'quiet until __until__',
  limitHandset: 'limit per number until __until__',
  limitDay: 'limit per day until __until__',
};

/**
 * The English words of all badges, as in the catalog of `sms-account`. The runtime always sends these words, also on a
 * server with another language. The editor translates them.
 */
export const badgeWords = { short, status } as const;

/** Key of a badge's words in the catalog of `sms-account`. */
export type BadgeKey = `short.${keyof typeof short}` | `status.${keyof typeof status}`;

export type BadgeParams = Readonly<Record<string, string | number>>;

/** Formats the words of a badge with its parameters. */
export function formatBadge(key: BadgeKey, params: BadgeParams = {}): string {
  return (templates.get(key) ?? '').replace(/__(\w+)__/g, (_place, name: string) => String(params[name]));
}

/**
 * Translates the words of a badge. Returns unknown words unchanged.
 *
 * @param translate returns the text of a key, with its parameters filled in
 */
export function translateBadge(words: string, translate: (key: string, params: BadgeParams) => string): string {
  for (const [key, pattern] of patterns) {
    const match = pattern.exec(words);
    if (!match) continue;
    const { error, ...params } = { ...match.groups };
    return translate(key, error === undefined ? params : { ...params, error: translateBadge(error, translate) });
  }
  return words;
}

const templates = new Map(
  Object.entries(badgeWords).flatMap(([group, words]) =>
    Object.entries(words).map(([name, template]) => [`${group}.${name}`, template] as const),
  ),
);

/**
 * Returns the regular expression for the value of a badge parameter. The values of `error`, `former` and `detail` can
 * be any text. Other values are numbers, times or dates.
 */
const values = (name: string) => (['error', 'former', 'detail'].includes(name) ? '.+' : '[\\d.:-]+');

const patterns = [...templates].map(([key, template]) => {
  const escaped = template.replace(/[.()]/g, '\\$&');
  const source = escaped.replace(/__(\w+)__/g, (_place, name: string) => `(?<${name}>${values(name)})`);
  return [key, new RegExp(`^${source}$`)] as const;
});
