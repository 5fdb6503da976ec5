import { parsePrefixes } from '../../src/consent/prefixes';
import { isSmsError, type SmsErrorReason } from '../../src/errors';
import { isLoopback, parseBaseUrl, parseRedisUrl } from '../../src/login';
import { parseFragmentationLimit, parseMessageId, planEncoding } from '../../src/message/gsm';
import { parseRecipients } from '../../src/message/recipients';
import { parseAt, parseQuietHours, parseTimeOfDay, parseTimeZone } from '../../src/message/times';
import { formatCallbackUrl } from '../../src/wire/callback-url';
import { isBlank } from '../../src/wire/fields';
import { isEnv, isInRange, isOpenEnded, limits, parseKey, type Range } from '../limits';
import { isPath, isPublicUrl, parsePath } from '../runtime/callback-path';

const lengths = limits['sms-account'].maxLength;

/** The reason why a form refuses a value, as a key of the catalog and the parameters of its text. */
export interface Refusal {
  key: string;
  params?: Readonly<Record<string, string | number>>;
}

/** The result of a check. `undefined`: the value is valid. */
export type Verdict = Refusal | undefined;

/** Catalog keys for errors whose usual text is not suitable for a form. */
const wordsOfForms: { readonly [Reason in SmsErrorReason]?: string } = {
  baseUrlMissing: 'sms-account.form.baseUrlMissing',
  baseUrlInvalid: 'sms-account.form.baseUrlInvalid',
  baseUrlHttp: 'sms-account.form.baseUrlHttp',
  redisUrlMissing: 'sms-account.form.redisUrlMissing',
  redisUrlInvalid: 'sms-account.form.redisUrlInvalid',
  mailto: 'sms-send.errors.mail',
  prefixInvalid: 'sms-account.form.prefixes',
  timeOfDay: 'sms-account.form.timeOfDay',
  quietHalf: 'sms-account.form.quietHalf',
  quietEqual: 'sms-account.form.quietEqual',
  timeZoneUnknown: 'sms-account.form.timeZone',
};

/** Checks a number. A blank value is valid, because it means a default or no limit. */
export function checkNumber(value: unknown, range: Range): Verdict {
  return isBlank(value) ? undefined : checkRequiredNumber(value, range);
}

/** Checks a number that cannot be blank. */
export function checkRequiredNumber(value: unknown, range: Range): Verdict {
  if (isEnv(value) || isInRange(value, range)) return undefined;
  const kind = range.whole ? 'whole' : 'number';
  const { min, max } = range;
  return { key: `sms-account.form.${kind}${isOpenEnded(range) ? 'From' : 'Between'}`, params: { min, max } };
}

export const checkRedisUrl = judgeBy(parseRedisUrl);
export const checkPrefixes = judgeBy(parsePrefixes);
export const checkTimeZone = judgeBy(parseTimeZone);
export const checkRecipients = judgeBy(parseRecipients);
export const checkMessageId = judgeOptionalBy(parseMessageId);
export const checkFragmentationLimit = judgeOptionalBy(parseFragmentationLimit);

export function checkKey(field: 'once' | 'replace', value: unknown): Verdict {
  return judge(value, (text) => parseKey(field, text));
}

export function checkBaseUrl(value: unknown, allowHttp: boolean): Verdict {
  return judge(value, (text) => parseBaseUrl(text, allowHttp));
}

/** Matches the path of an endpoint (§3, §4). In an address, the part before this path is the base URL. */
const call = /\/api\/\d\/sms\//;

/**
 * Suggests a base URL if the typed address is the address of an endpoint or lacks a scheme. Also returns the catalog
 * key of a hint.
 */
export function mendBaseUrl(value: unknown): { key: string; url: string } | undefined {
  const typedUrl = String(value ?? '').trim();
  const hasScheme = typedUrl.includes('://');
  const address = hasScheme ? typedUrl : `https://${typedUrl}`;
  if (isEnv(typedUrl) || !URL.canParse(address)) return undefined;
  const { protocol, host, hostname, pathname } = new URL(address);
  // Suggests nothing for a single word without a scheme, because it might not be a host name.
  if (!hasScheme && !isLoopback(hostname) && !hostname.includes('.')) return undefined;
  const end = pathname.search(call);
  if (hasScheme && end < 0) return undefined;
  const scheme = hasScheme || !isLoopback(hostname) ? protocol : 'http:';
  const url = `${scheme}//${host}${end < 0 ? pathname : pathname.slice(0, end)}`.replace(/\/$/, '');
  return { url, key: end < 0 ? 'sms-account.form.baseUrlScheme' : 'sms-account.form.baseUrlCall' };
}

/**
 * Checks one of the two times of quiet hours. Ignores an invalid `other`, because the field of that time reports it.
 */
export function checkQuietTime(setting: 'quietFrom' | 'quietTo', value: unknown, other: unknown): Verdict {
  const ownVerdict = judge(value, (text) => parseTimeOfDay(setting, text));
  const isOtherKnown = !isEnv(other) && attempt(() => parseTimeOfDay(setting, other)) === undefined;
  return ownVerdict ?? (isOtherKnown ? judge(value, (text) => parseQuietHours(text, other, 'UTC')) : undefined);
}

/**
 * Checks that a text is a time. Accepts times in the past and far in the future, because they can be valid when a
 * message arrives.
 */
export function checkAt(value: unknown): Verdict {
  return judge(value, (text) => parseAt(text, 'UTC', Number.MAX_SAFE_INTEGER));
}

/** Returns advice if recipients are valid but probably contain a mistake. */
export function adviseRecipients(value: string): Verdict {
  if (isEnv(value)) return undefined;
  const groups = value.split(/[,;\n]/).map((group) => group.trim().split(/\s+/));
  const isName = (item: string | undefined): boolean => item !== undefined && item !== '' && !/[\p{Nd}+]/u.test(item);
  for (const group of groups) {
    const [first, second] = group.slice(group.findIndex((item, index) => isName(item) && isName(group[index + 1])));
    if (isName(first) && isName(second))
      return { key: 'sms-send.hint.twoContacts', params: { first: String(first), second: String(second) } };
  }
  return undefined;
}

/** Checks a fixed body. Ignores an invalid limit, because the field of the limit reports it. */
export function checkText(
  body: string,
  contentType: unknown,
  limits: { fragmentationLimit: unknown; maxLength: unknown },
): Verdict {
  if (isBlank(body)) return { key: 'sms-account.errors.bodyEmpty' };
  const { fragmentationLimit, maxLength } = limits;
  if (isEnv(fragmentationLimit) || checkFragmentationLimit(fragmentationLimit)) return undefined;
  return judge(body, () =>
    planEncoding(body, isBlank(contentType) ? undefined : contentType, {
      fragmentationLimit: isBlank(fragmentationLimit) ? undefined : parseFragmentationLimit(fragmentationLimit),
      maxLength: isInRange(maxLength, lengths) ? Number(maxLength) : undefined,
    }),
  );
}

export function checkCallbackUrl(value: unknown, field: 'callbackUrl' | 'callbackStatusUrl'): Verdict {
  return judge(value, (text) => formatCallbackUrl(text, field));
}

/** The fields of an e-mail callback. */
export interface Mail {
  mailto?: unknown;
  subject?: unknown;
  body?: unknown;
}

export function checkMail(mail: Mail): Verdict {
  if (isBlank(mail.mailto)) return { key: 'sms-send.errors.mailMissing' };
  return attempt(() => formatCallbackUrl(mail, 'callbackUrl'));
}

export function checkPath(value: string): Verdict {
  const path = parsePath(value);
  if (path === undefined) return { key: 'sms-account.errors.callbackPathMissing' };
  return isEnv(value) || isPath(path) ? undefined : { key: 'sms-account.errors.callbackPathInvalid' };
}

export function checkPublicUrl(value: string): Verdict {
  if (isBlank(value) || isEnv(value) || isPublicUrl(value)) return undefined;
  return { key: 'sms-callback-in.errors.publicUrl' };
}

function judgeBy(parse: (value: string) => unknown): (value: unknown) => Verdict {
  return (value) => judge(value, parse);
}

/** Like {@link judgeBy}, but accepts blank values, because the runtime ignores them. */
function judgeOptionalBy(parse: (value: string) => unknown): (value: unknown) => Verdict {
  return (value) => (isBlank(value) ? undefined : judge(value, parse));
}

/** Checks a value as the runtime does. Accepts an environment variable, whose value is known only at run time. */
function judge(value: unknown, parse: (value: string) => unknown): Verdict {
  return isEnv(value) ? undefined : attempt(() => parse(value as string));
}

/** Runs a check of the runtime and returns its error as a verdict. */
export function attempt(parse: () => unknown): Verdict {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (!isSmsError(error)) throw error;
    return { key: wordsOfForms[error.reason] ?? `sms-account.errors.${error.reason}`, params: error.params };
  }
}
