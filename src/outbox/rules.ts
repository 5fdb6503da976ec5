import { isOptedOut, keyOfOptOut } from '../consent/opt-outs';
import { isAllowed, isNumber } from '../consent/prefixes';
import { isSmsError, SmsError, type SmsErrorDetails, type SmsErrorReason } from '../errors';
import { nextAllowed, type QuietHours } from '../message/times';
import { addChanges, type Changes, createChanges, type ReadKey } from '../store/store';
import { applyLimits, type Counting, type Limited, type LimitSettings } from './limits';

/** Options of a node that decide when a message can be sent. */
export interface TimeOptions {
  /**
   * Stores the message until it is sent, for at most `expireMs`. If `expireMs` is `undefined`, there is no time limit.
   */
  keep?: { expireMs: number | undefined } | undefined;
  /**
   * Earliest time at which the message can be sent, in ms since 1970. Until then, the message is stored as `at.keep`
   * says.
   */
  at?: { time: number; keep: { expireMs: number | undefined } };
  /** Exempts the message from consent and quiet hours. */
  essential?: boolean;
  /** Key under which a newer input replaces or withdraws the stored message. */
  replaceKey?: string;
}

/**
 * Settings of the rules, combined from all deployed account nodes. The values change when nodes are deployed or
 * removed.
 */
export interface RuleSettings {
  /** Limits of all account nodes. A message must satisfy each of them. */
  limits: readonly LimitSettings[];
  /** Quiet hours of all account nodes. A message must satisfy each of them. */
  quietHours: readonly QuietHours[];
  /** Whether any deployed account node has `optOut`. */
  optOut: boolean;
  /** Allowed prefixes of numbers, by id of the sending node. A node without an entry can send to all numbers. */
  prefixes: ReadonlyMap<string, ReadonlySet<string>>;
}

/** A message that is about to be sent, with the recipients that no earlier rule has withheld. */
export interface Leaving extends Counting {
  rules: RuleSettings;
  item: Timed & { node: string; options: { unlimited: boolean } };
}

/** A recipient that a rule withholds, with the reason and the parameters of its error. Can be stored as JSON. */
export interface Withheld {
  msisdn: string;
  reason: SmsErrorReason;
  params: Readonly<Record<string, string | number>>;
  /** Set if an earlier try with an unknown outcome might have reached the recipient. */
  mayBeSent?: true;
}

/** The decision of a rule. */
export interface Verdict {
  withheld: readonly Withheld[];
  /** Time before which the message cannot be sent to any recipient, in ms since 1970. */
  notBefore?: number;
}

/**
 * Decides which recipients must not receive the message, and whether the message must wait. A rule sees only recipients
 * that no earlier rule withheld.
 *
 * @param isLeaving true just before the message is sent, false before the connection is opened
 */
type Rule = (leaving: Leaving, readKey: ReadKey, changes: Changes, isLeaving: boolean) => Verdict;

/** Maximum number of scheduled messages. */
export const maxScheduled = 100_000;

/** The properties of a message that decide when it can be sent. */
interface Timed {
  /** Time at which a user chose to send the message before its scheduled time, in ms since 1970. */
  sendNowAt?: number;
  isManuallyResent?: true;
  options: Pick<TimeOptions, 'at' | 'essential'>;
}

/**
 * Returns the time at which a message can be sent, in ms since 1970: `now`, its scheduled time, or the end of quiet
 * hours. Quiet hours do not apply to essential messages. If a user chose to send the message now or again, returns
 * `now`.
 */
export function mayLeaveAt(item: Timed, now: number, quietHours: readonly QuietHours[]): number {
  const { options, sendNowAt, isManuallyResent } = item;
  if (isManuallyResent || sendNowAt !== undefined) return now;
  const from = Math.max(now, options.at?.time ?? now);
  return options.essential || quietHours.length === 0 ? from : nextAllowed(from, quietHours);
}

/**
 * Returns the options of a new message. A message with `at` gets `keep` if it might have to wait for its time or for
 * the end of quiet hours, or if it can be replaced.
 */
export function keepUntilDue<Options extends TimeOptions>(options: Options, now: number, rules: RuleSettings): Options {
  if (options.keep || !options.at) return options;
  const mayHaveToWait =
    options.at.time > now || options.replaceKey !== undefined || (rules.quietHours.length > 0 && !options.essential);
  return mayHaveToWait ? { ...options, keep: options.at.keep } : options;
}

/** Withholds numbers outside the allowed prefixes of the account node, even if the message is essential. */
const prefixRule: Rule = (leaving) => ({ withheld: outsideOf(leaving) });

/** Returns the recipients outside the allowed prefixes of the account node. Needs no store. */
function outsideOf({ recipients, rules, item }: Omit<Leaving, 'time'>): Withheld[] {
  const allowed = rules.prefixes.get(item.node);
  const outside = allowed ? recipients.filter((msisdn) => !isAllowed(msisdn, allowed)) : [];
  return outside.map((msisdn) => ({ msisdn, reason: 'notAllowed', params: {} }));
}

/** Withholds opted-out numbers, unless the message is essential. */
const consentRule: Rule = (leaving, readKey, changes, isLeaving) => {
  const numbers = askedForConsent(leaving);
  // Another instance might be adding a number to the list now. The commit therefore compares the keys with the store.
  if (isLeaving) for (const msisdn of numbers) changes.compare.add(keyOfOptOut(msisdn));
  const withheld = numbers.filter((msisdn) => isOptedOut(msisdn, readKey));
  return { withheld: withheld.map((msisdn) => ({ msisdn, reason: 'optedOut', params: {} })) };
};

/**
 * Returns the numbers that must be looked up in the list of opted-out numbers. If there are any, the message cannot be
 * sent while the store fails.
 */
export function askedForConsent({ recipients, rules, item }: Leaving): string[] {
  return rules.optOut && !item.options.essential ? recipients.filter(isNumber) : [];
}

/**
 * Makes a message wait for its scheduled time or for the end of quiet hours. The outbox refuses a message that cannot
 * wait.
 */
const timeRule: Rule = ({ item, time: { now }, rules }) => {
  const at = mayLeaveAt(item, now, rules.quietHours);
  return { withheld: [], ...(at > now && { notBefore: at }) };
};

/** Withholds recipients over a limit of the account until the limit ends. */
const limitRule: Rule = (leaving, readKey, changes, isLeaving) => {
  if (leaving.rules.limits.length === 0) return { withheld: [] };
  return { withheld: applyLimits(leaving, readKey, changes, isLeaving).map(explainLimited) };
};

/** Describes which limit withholds a recipient, and when the limit ends. */
function explainLimited({ msisdn, limit, max, lengthMs, until }: Limited): Withheld {
  const end = new Date(Math.ceil(until / 1_000) * 1_000).toISOString().replace('.000', '');
  if (limit === 'day') return { msisdn, reason: 'limitDay', params: { limit: max, until: end } };
  return { msisdn, reason: 'limitHandset', params: { limit: max, minutes: lengthMs / 60_000, until: end } };
}

/** All rules, in the order in which they decide. A rule does not see recipients that an earlier rule withholds. */
const inOrder: readonly Rule[] = [prefixRule, consentRule, timeRule, limitRule];

/** Returns whether any rule is set. If so, `markLeaving` asks the rules again just before a message is sent. */
export function hasRules({ prefixes, optOut, quietHours, limits }: RuleSettings): boolean {
  return prefixes.size > 0 || optOut || quietHours.length > 0 || limits.length > 0;
}

/** @throws SmsError if the account node allows none of the recipients of a new message */
export function assertAnyAllowed(leaving: Omit<Leaving, 'time'>): void {
  const outside = outsideOf(leaving);
  const [first] = outside;
  if (first && outside.length === leaving.recipients.length) throw explainWithheld(first);
}

/**
 * Applies all rules. Returns the recipients that cannot receive a message now, and whether the message must wait.
 *
 * @param isLeaving true to count the recipients that are not withheld; absent: counts nothing
 */
export function askRules(leaving: Leaving, readKey: ReadKey, changes: Changes, isLeaving = false): Verdict {
  const withheld: Withheld[] = [];
  let { recipients } = leaving;
  for (const rule of inOrder) {
    if (recipients.length === 0) break;
    const verdict = rule({ ...leaving, recipients }, readKey, changes, isLeaving);
    withheld.push(...verdict.withheld);
    // If the message must wait, skips the limits, because they would count its recipients.
    if (verdict.notBefore !== undefined) return { withheld, notBefore: verdict.notBefore };
    const withheldNumbers = new Set(verdict.withheld.map(({ msisdn }) => msisdn));
    if (withheldNumbers.size > 0) recipients = recipients.filter((msisdn) => !withheldNumbers.has(msisdn));
  }
  return { withheld };
}

/**
 * Returns whether a message can be sent to all its recipients now. If not, changes nothing. If so, counts the
 * recipients. If the message is then not sent to some of them, the caller must remove their counts.
 */
export function passRules(leaving: Leaving, readKey: ReadKey, changes: Changes): boolean {
  // Without rules, a message waits only for its scheduled time. That time has already passed, even if the clock has
  // been set back since then.
  if (!hasRules(leaving.rules)) return true;
  const counted = createChanges();
  const { withheld, notBefore } = askRules(leaving, readKey, counted, true);
  const mayLeave = withheld.length === 0 && notBefore === undefined;
  if (mayLeave) addChanges(changes, counted);
  return mayLeave;
}

/**
 * Creates the error of a recipient that a rule withholds. If an earlier try might have reached the recipient, the error
 * does not say that nothing was sent.
 */
export function explainWithheld({ reason, params, mayBeSent }: Withheld): SmsError {
  const error = new SmsError(reason, { params } as SmsErrorDetails<SmsErrorReason>);
  return mayBeSent ? new SmsError('uncertainBefore', { params: { detail: error.code } }) : error;
}

/**
 * Creates the error of a message that is not stored and cannot be sent before `at`, in ms since 1970. The error
 * contains `until` in ISO 8601.
 */
export function createTooEarly(at: number): SmsError {
  const until = new Date(at).toISOString();
  return new SmsError('quiet', { params: { until }, until });
}

/**
 * Returns whether the error says that nothing was sent, because rules withheld all recipients or the message must wait.
 */
export function isWithheldError(error: unknown): error is SmsError {
  return isSmsError(error, 'SMS_NOT_ALLOWED', 'SMS_OPTED_OUT', 'SMS_LIMIT', 'SMS_QUIET');
}
