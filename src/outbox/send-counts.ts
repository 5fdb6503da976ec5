import { SmsError } from '../errors';
import { isUnknown, type Outcome } from './message-item';
import { explainWithheld, isWithheldError, type Withheld } from './rules';

/**
 * Counts the outcomes since the process started. `sent`, `failed`, `limited`, `optedOut` and `notAllowed` count
 * recipients. The other numbers count messages.
 */
export class SendCounts {
  sent = 0;
  failed = 0;
  limited = 0;
  optedOut = 0;
  notAllowed = 0;
  refused = 0;
  uncertain = 0;
  resolved = 0;
  expired = 0;
  /** Messages that arrived in quiet hours and were not stored. */
  quiet = 0;
  replaced = 0;
  withdrawn = 0;

  /**
   * Counts an outcome.
   *
   * @param recipients number of recipients of the message
   */
  add(outcome: Outcome, recipients: number, withheld?: readonly Withheld[]): void {
    if (!(outcome instanceof SmsError)) {
      this.sent += outcome.accepted.length;
      for (const { errorCode } of outcome.failed) this[countOf(errorCode) ?? 'failed']++;
      if (outcome.resolvedBy) this.resolved++;
    } else if (isUnknown(outcome)) this.uncertain++;
    else if (outcome.code === 'SMS_EXPIRED') this.expired++;
    else if (outcome.code === 'SMS_QUIET') this.quiet++;
    else if (outcome.code === 'SMS_REPLACED') this.replaced++;
    else if (outcome.code === 'SMS_WITHDRAWN') this.withdrawn++;
    else if (!isWithheldError(outcome)) this.refused++;
    else {
      const errors = withheld?.map(explainWithheld) ?? Array<SmsError>(recipients).fill(outcome);
      for (const { code } of errors) this[countOf(code) ?? 'refused']++;
    }
  }
}

/** Returns the name of the count that belongs to the error code of a rule. `undefined`: another code. */
function countOf(code: unknown): 'limited' | 'optedOut' | 'notAllowed' | undefined {
  if (code === 'SMS_LIMIT') return 'limited';
  if (code === 'SMS_OPTED_OUT') return 'optedOut';
  return code === 'SMS_NOT_ALLOWED' ? 'notAllowed' : undefined;
}
