import { SmsError } from '../errors';
import { isUnknown, type Outcome } from './outgoing';

/** What became of texts since the process started: `sent`, `failed`, `limited`, `optedOut` and `notAllowed` in recipients, the others in messages. */
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
  /** Texts that were not kept, and came in quiet hours. */
  quiet = 0;

  /** Counts the outcome of a text that went to so many recipients. */
  add(outcome: Outcome, recipients: number): void {
    if (!(outcome instanceof SmsError)) {
      this.sent += outcome.accepted.length;
      for (const { errorCode } of outcome.failed) this[countOf(errorCode) ?? 'failed']++;
      if (outcome.resolvedBy) this.resolved++;
    } else if (isUnknown(outcome)) this.uncertain++;
    else if (outcome.code === 'SMS_EXPIRED') this.expired++;
    else if (outcome.code === 'SMS_QUIET') this.quiet++;
    else {
      const withheld = countOf(outcome.code);
      if (withheld) this[withheld] += recipients;
      else this.refused++;
    }
  }
}

/** Where recipients count that a rule withholds. */
function countOf(code: unknown): 'limited' | 'optedOut' | 'notAllowed' | undefined {
  if (code === 'SMS_LIMIT') return 'limited';
  if (code === 'SMS_OPTED_OUT') return 'optedOut';
  return code === 'SMS_NOT_ALLOWED' ? 'notAllowed' : undefined;
}
