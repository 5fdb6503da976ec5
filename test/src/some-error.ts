import { SmsError, type SmsErrorDetails, type SmsErrorReason } from '../../src/errors';

/** Creates an error for any reason, without the parameters of its text. */
export function createError(reason: SmsErrorReason): SmsError {
  return new SmsError(reason, { params: {} } as SmsErrorDetails<SmsErrorReason>);
}
