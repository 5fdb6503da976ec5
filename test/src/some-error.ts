import { SmsError, type SmsErrorDetails, type SmsErrorReason } from '../../src/errors';

/** An error of any reason, for who does not ask for its text. */
export function createError(reason: SmsErrorReason): SmsError {
  return new SmsError(reason, { params: {} } as SmsErrorDetails<SmsErrorReason>);
}
