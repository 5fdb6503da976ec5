import { SmsError } from '../errors';

/**
 * The error of bytes that cannot be read: of an answer of the service, or of a callback.
 *
 * @param detail why, in a few words, and with nothing of what the bytes say
 */
export function unreadable(what: 'answer' | 'callback', detail: string): SmsError {
  return new SmsError(what === 'answer' ? 'responseUnreadable' : 'callbackUnreadable', { params: { detail } });
}
