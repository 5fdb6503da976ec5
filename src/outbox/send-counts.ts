import { SmsError } from '../errors';
import { isUnknown, type Outcome } from './outgoing';

/** What became of texts since the process started: `sent`, `failed` and `limited` in recipients, the others in messages. */
export class SendCounts {
  sent = 0;
  failed = 0;
  limited = 0;
  refused = 0;
  uncertain = 0;
  resolved = 0;
  expired = 0;
  /** Texts that were not kept, and came in quiet hours. */
  quiet = 0;

  /** Counts the outcome of a text that went to so many recipients. */
  add(outcome: Outcome, recipients: number): void {
    if (!(outcome instanceof SmsError)) {
      let limited = 0;
      for (const { errorCode } of outcome.failed) if (errorCode === 'SMS_LIMIT') limited++;
      this.sent += outcome.accepted.length;
      this.failed += outcome.failed.length - limited;
      this.limited += limited;
      if (outcome.resolvedBy) this.resolved++;
    } else if (isUnknown(outcome)) this.uncertain++;
    else if (outcome.code === 'SMS_EXPIRED') this.expired++;
    else if (outcome.code === 'SMS_LIMIT') this.limited += recipients;
    else if (outcome.code === 'SMS_QUIET') this.quiet++;
    else this.refused++;
  }
}
