import { SmsError, type SmsErrorCode, type SmsErrorDetails, type SmsErrorReason } from '../errors';
import { addChanges, type Changes, createChanges, type Look } from '../store/store';
import { consentRule } from './consent-rule';
import { timeRule } from './due';
import { limitRule } from './limits';
import { prefixRule } from './prefix-rule';
import type { Leaving, Rule, RuleSettings, Verdict, Withheld } from './rule';
import type { Moment } from './sliding-window';

/** Every reason not to send to a recipient, in the order in which they are asked: whom one withholds, the next does not see. */
const rules: readonly Rule[] = [prefixRule, consentRule, timeRule, limitRule];

/** The codes of what the rules say: nothing was sent, on account of this side alone. */
const codes: ReadonlySet<SmsErrorCode> = new Set(['SMS_NOT_ALLOWED', 'SMS_OPTED_OUT', 'SMS_LIMIT']);

/** Whether any rule concerns texts now. */
export function holdsAny(settings: RuleSettings): boolean {
  return rules.some((rule) => rule.holds(settings));
}

/** The keys that {@link askRules}, {@link passRules} and {@link giveBack} look at. */
export function keysOfRules(leaving: Pick<Leaving, 'recipients' | 'settings' | 'options'>): string[] {
  return [...new Set(rules.flatMap((rule) => rule.keys(leaving)))];
}

/** Whether somebody is withheld for certain, so that it is worth to ask before a request is made. */
export function isWithholdingKnown(leaving: Leaving): boolean {
  return rules.some((rule) => rule.isKnown?.(leaving) ?? false);
}

/** Whether a text must not leave while the store fails. */
export function needsStore(leaving: Leaving): boolean {
  return rules.some((rule) => rule.needsStore?.(leaving) ?? false);
}

/** @throws SmsError when nobody is left of the recipients of a text that comes in, whatever is remembered */
export function assertAnyAllowed(leaving: Leaving): void {
  const { withheld } = prefixRule.decide(leaving, () => undefined, createChanges(), false);
  const [first, ...others] = withheld;
  if (first && withheld.length === leaving.recipients.length) throw createWithheldError([first, ...others]);
}

/** Says whom a text may not go to now. Nobody is counted. */
export function askRules(leaving: Leaving, look: Look, changes: Changes): Verdict {
  return decide(leaving, look, changes, false);
}

/**
 * Says the same as the text leaves, and counts whom it goes to; those who are not sent to after all are given back. Where anybody is
 * withheld it does not leave, and nothing changes.
 */
export function passRules(leaving: Leaving, look: Look, changes: Changes): Verdict {
  const counted = createChanges();
  const verdict = decide(leaving, look, counted, true);
  if (isClear(verdict)) addChanges(changes, counted);
  return verdict;
}

/** Takes back what {@link passRules} counted at a moment for these recipients. */
export function giveBack(leaving: Leaving, countedAt: Moment, look: Look, changes: Changes): void {
  for (const rule of rules) rule.giveBack?.(leaving, countedAt, look, changes);
}

/** Whether all may be sent to now. */
export function isClear({ withheld, notBefore }: Verdict): boolean {
  return withheld.length === 0 && notBefore === undefined;
}

/** What becomes of one recipient that is withheld. Who may have been sent to before is not called unsent. */
export function explainWithheld({ reason, params, mayBeSent }: Withheld): SmsError {
  const error = createError(reason, params);
  return mayBeSent ? new SmsError('uncertainBefore', { params: { detail: error.code } }) : error;
}

/**
 * The error of a text that nobody is left for: that of the first rule, of several the one that ends first.
 *
 * @param withheld in the order of the rules, at least one
 */
export function createWithheldError(withheld: readonly [Withheld, ...Withheld[]]): SmsError {
  const { code } = explainWithheld(withheld[0]);
  const first = withheld
    .filter((one) => explainWithheld(one).code === code)
    .reduce((first, one) => ((one.until ?? 0) < (first.until ?? 0) ? one : first), withheld[0]);
  return createError(first.reason, first.params);
}

/** A text may not leave yet: an outcome of one that is not kept. When it may, in ISO 8601, is its `until`. */
export class TooEarly extends SmsError {
  /** ms since 1970 */
  readonly at: number;

  constructor({ at, reason, params }: NonNullable<Verdict['notBefore']>) {
    super(reason, { params, until: new Date(at).toISOString() } as SmsErrorDetails<SmsErrorReason>);
    this.at = at;
  }
}

/** Says whether nothing was sent because a rule, or all of them together, left nobody to send to. */
export function isWithheldError(error: unknown): error is SmsError {
  return error instanceof SmsError && codes.has(error.code);
}

function decide(leaving: Leaving, look: Look, changes: Changes, isLeaving: boolean): Verdict {
  const withheld: Withheld[] = [];
  let { recipients } = leaving;
  for (const rule of rules) {
    if (recipients.length === 0) break;
    const verdict = rule.decide({ ...leaving, recipients }, look, changes, isLeaving);
    withheld.push(...verdict.withheld);
    // It counts for no rule before it may leave.
    if (verdict.notBefore) return { withheld, notBefore: verdict.notBefore };
    const gone = new Set(verdict.withheld.map(({ msisdn }) => msisdn));
    if (gone.size > 0) recipients = recipients.filter((msisdn) => !gone.has(msisdn));
  }
  return { withheld };
}

function createError(reason: SmsErrorReason, params: Withheld['params']): SmsError {
  return new SmsError(reason, { params } as SmsErrorDetails<SmsErrorReason>);
}
