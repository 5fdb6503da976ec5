import { isOptedOut, keyOfOptOut } from '../consent/opt-outs';
import { isAllowed, isNumber } from '../consent/prefixes';
import { isSmsError, SmsError, type SmsErrorDetails, type SmsErrorReason } from '../errors';
import { nextAllowed, type QuietHours } from '../message/times';
import { addChanges, type Changes, createChanges, type Look } from '../store/store';
import { type Counting, judgeLimits, type Limited, type LimitSettings, takeWithinLimits } from './limits';

/** What a node asks for as to when a text leaves. */
export interface TimeOptions {
  /** Keep it until it is sent, or for so long; `undefined` in it: for ever. */
  keep?: { expireMs: number | undefined } | undefined;
  /** Not before this time, in ms since 1970; one that may not leave yet is kept so. */
  at?: { time: number; keep: { expireMs: number | undefined } };
  /** Neither consent nor quiet hours hold for it. */
  essential?: boolean;
  /** Key of a stored message that a newer input replaces or withdraws. */
  replaceKey?: string;
}

/** What the rules go by, of all account nodes that are deployed: it changes as others are. */
export interface RuleSettings {
  /** All of them hold, and each of them limits something. */
  limits: readonly LimitSettings[];
  /** All of them hold. */
  quietHours: readonly QuietHours[];
  /** Whether one of them has `optOut`. */
  optOut: boolean;
  /** Beginnings of the numbers that a node may write to, by its id; none: all. */
  prefixes: ReadonlyMap<string, ReadonlySet<string>>;
}

/** A text that is about to leave, to those whom no rule before has withheld. */
export interface Leaving extends Counting {
  rules: RuleSettings;
  text: Timed & { node: string; options: { unlimited: boolean } };
}

/** A recipient that a text does not go to, and why: the reason of an error and what it names. Plain data. */
export interface Withheld {
  msisdn: string;
  reason: SmsErrorReason;
  params: Readonly<Record<string, string | number>>;
  /** When it may be sent to again, in ms since 1970, where that is known. */
  until?: number;
  /** An earlier try went to it, whose outcome is unknown. */
  mayBeSent?: true;
}

/** What a rule has decided. */
export interface Verdict {
  withheld: readonly Withheld[];
  /** Nobody may be sent to before that, in ms since 1970. */
  notBefore?: number;
}

/**
 * A reason not to send to somebody, or not yet. It decides purely, in the step that marks that a text leaves, about the recipients that
 * are left.
 *
 * @param isLeaving whoever is not withheld is sent to when this is written; else it is only asked, before a request is made
 */
type Rule = (leaving: Leaving, look: Look, changes: Changes, isLeaving: boolean) => Verdict;

/** As many texts may wait for their time. */
export const mostScheduled = 100_000;

/** What says when a text may leave. */
interface Timed {
  /** When a person sent it before its time, in ms. */
  sendNowAt?: number;
  isManuallyResent?: true;
  options: Pick<TimeOptions, 'at' | 'essential'>;
}

/**
 * When a text may leave, in ms since 1970: `now`, unless its own time is yet to come, or it would be in quiet hours then, which do not
 * hold for an essential one. What a person sends waits for neither.
 */
export function mayLeaveAt(text: Timed, now: number, quietHours: readonly QuietHours[]): number {
  const { options, sendNowAt, isManuallyResent } = text;
  if (isManuallyResent || sendNowAt !== undefined) return now;
  const from = Math.max(now, options.at?.time ?? now);
  return options.essential || quietHours.length === 0 ? from : nextAllowed(from, quietHours);
}

/**
 * The options of a text that comes: one that has a time of its own and may not leave yet is kept, though that was not asked for. So is it
 * where quiet hours might begin while it waits for its turn.
 */
export function keepUntilDue<Options extends TimeOptions>(options: Options, now: number, rules: RuleSettings): Options {
  if (options.keep || !options.at) return options;
  const mayHaveToWait =
    options.at.time > now || options.replaceKey !== undefined || (rules.quietHours.length > 0 && !options.essential);
  return mayHaveToWait ? { ...options, keep: options.at.keep } : options;
}

/** Whom the account node of a text may not write to is withheld, for essential texts too. */
const prefixRule: Rule = (leaving) => ({ withheld: outsideOf(leaving) });

/** Whom the account node of a text may not write to for certain, whatever is remembered. */
export function outsideOf({ recipients, rules, text }: Omit<Leaving, 'moment'>): Withheld[] {
  const allowed = rules.prefixes.get(text.node);
  const outside = allowed ? recipients.filter((msisdn) => !isAllowed(msisdn, allowed)) : [];
  return outside.map((msisdn) => ({ msisdn, reason: 'notAllowed', params: {} }));
}

/** Who wants no more texts is withheld, but from essential texts. */
const consentRule: Rule = (leaving, look, changes, isLeaving) => {
  const numbers = askedForConsent(leaving);
  // Another instance may be putting somebody on the list.
  if (isLeaving) for (const msisdn of numbers) changes.compare.add(keyOfOptOut(msisdn));
  const withheld = numbers.filter((msisdn) => isOptedOut(msisdn, look));
  return { withheld: withheld.map((msisdn) => ({ msisdn, reason: 'optedOut', params: {} })) };
};

/** Those of whom somebody has to say whether they want texts: while the store fails, nobody can. */
export function askedForConsent({ recipients, rules, text }: Leaving): string[] {
  return rules.optOut && !text.options.essential ? recipients.filter(isNumber) : [];
}

/** The time is no reason to withhold somebody: the text has to wait, or, where it is not kept, is refused. */
const timeRule: Rule = ({ text, moment: { now }, rules }) => {
  const at = mayLeaveAt(text, now, rules.quietHours);
  return { withheld: [], ...(at > now && { notBefore: at }) };
};

/** The limits of one's own, which stop loops and bills: who is over one is withheld until it ends. */
const limitRule: Rule = (leaving, look, changes, isLeaving) => {
  if (leaving.rules.limits.length === 0) return { withheld: [] };
  const limited = (isLeaving ? takeWithinLimits : judgeLimits)(leaving, look, changes);
  return { withheld: limited.map(explainLimited) };
};

/** Says which limit keeps somebody back, and when it ends. */
export function explainLimited({ msisdn, limit, most, lengthMs, until }: Limited): Withheld {
  const end = new Date(Math.ceil(until / 1_000) * 1_000).toISOString().replace('.000', '');
  if (limit === 'day') return { msisdn, reason: 'limitDay', params: { limit: most, until: end }, until };
  return { msisdn, reason: 'limitHandset', params: { limit: most, minutes: lengthMs / 60_000, until: end }, until };
}

/** Every reason not to send to a recipient, in the order in which they are asked: whom one withholds, the next does not see. */
const inOrder: readonly Rule[] = [prefixRule, consentRule, timeRule, limitRule];

/** Whether any rule concerns texts now: each is marked then before it leaves. */
export function holdsAny({ prefixes, optOut, quietHours, limits }: RuleSettings): boolean {
  return prefixes.size > 0 || optOut || quietHours.length > 0 || limits.length > 0;
}

/** @throws SmsError when nobody is left of the recipients of a text that comes in, whatever is remembered */
export function assertAnyAllowed(leaving: Omit<Leaving, 'moment'>): void {
  const [first, ...others] = outsideOf(leaving);
  if (first && others.length + 1 === leaving.recipients.length) throw explainWithheld(first);
}

/**
 * Says whom a text may not go to now.
 *
 * @param isLeaving who may is counted; absent: nobody
 */
export function askRules(leaving: Leaving, look: Look, changes: Changes, isLeaving = false): Verdict {
  const withheld: Withheld[] = [];
  let { recipients } = leaving;
  for (const rule of inOrder) {
    if (recipients.length === 0) break;
    const verdict = rule({ ...leaving, recipients }, look, changes, isLeaving);
    withheld.push(...verdict.withheld);
    // It counts for no rule before it may leave.
    if (verdict.notBefore !== undefined) return { withheld, notBefore: verdict.notBefore };
    const gone = new Set(verdict.withheld.map(({ msisdn }) => msisdn));
    if (gone.size > 0) recipients = recipients.filter((msisdn) => !gone.has(msisdn));
  }
  return { withheld };
}

/**
 * Says whether a text may leave to all, and counts them then; those who are not sent to after all are given back. Where it may not, nothing
 * changes.
 */
export function passRules(leaving: Leaving, look: Look, changes: Changes): boolean {
  // A time of its own has come, even where the clock has been set back since.
  if (!holdsAny(leaving.rules)) return true;
  const counted = createChanges();
  const { withheld, notBefore } = askRules(leaving, look, counted, true);
  const mayLeave = withheld.length === 0 && notBefore === undefined;
  if (mayLeave) addChanges(changes, counted);
  return mayLeave;
}

/** What becomes of one recipient that is withheld. Who may have been sent to before is not called unsent. */
export function explainWithheld({ reason, params, mayBeSent }: Withheld): SmsError {
  const error = new SmsError(reason, { params } as SmsErrorDetails<SmsErrorReason>);
  return mayBeSent ? new SmsError('uncertainBefore', { params: { detail: error.code } }) : error;
}

/** A text may not leave before `at`, in ms since 1970: an outcome of one that is not kept. When it may, in ISO 8601, is its `until`. */
export function createTooEarly(at: number): SmsError {
  const until = new Date(at).toISOString();
  return new SmsError('quiet', { params: { until }, until });
}

/** Says whether nothing was sent because a rule, or all of them together, left nobody to send to, or has the text wait. */
export function isWithheldError(error: unknown): error is SmsError {
  return isSmsError(error, 'SMS_NOT_ALLOWED', 'SMS_OPTED_OUT', 'SMS_LIMIT', 'SMS_QUIET');
}
