import { SmsError } from '../errors';
import type { SendResponse } from '../model';
import { parseErrorHeading } from '../wire/send';
import type { Answer, Call } from './exchange';
import { leavesOutcomeUnknown } from './failure';
import type { Redact } from './redact';

/** Maximum length of a reason of the service, in characters. */
const maxDetailLength = 500;
/** Control characters, line separators and marks that change the writing direction. */
const unsafeCharacters = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu;

type ServiceError = Pick<SendResponse, 'errorCode' | 'errorMessage'>;

/** Creates the error of an answer with an error status (§7). */
export function createStatusError(
  answer: Answer,
  effect: Call['effect'],
  redact: Redact,
  service: ServiceError = {},
): SmsError {
  const { statusCode, retryAfter } = answer;
  const { errorCode, errorMessage } = service;
  const facts = { statusCode, errorCode, errorMessage, retryAfter };
  if (statusCode === 400) {
    const reason = findBadRequestReason(answer, redact);
    const detail = toLine(reason ?? errorMessage ?? '');
    if (detail === '') return new SmsError(effect === 'read' ? 'badRequestBareRead' : 'badRequestBare', facts);
    return new SmsError('badRequest', { ...facts, errorMessage: errorMessage ?? reason, params: { detail } });
  }
  if (statusCode === 401) return new SmsError('unauthorized', facts);
  // A refused read has a separate reason, because the reason for sends mentions recipients and limits.
  if (statusCode === 403 && effect === 'read') return new SmsError('forbiddenRead', facts);
  if (statusCode === 403) return new SmsError('forbidden', { ...facts, params: { detail: formatDetail(service) } });
  if (statusCode === 429) return new SmsError('tooManyRequests', facts);
  if (statusCode === 404) return new SmsError('notFound', facts);
  const params = { status: statusCode };
  const isUncertain = effect === 'send' && leavesOutcomeUnknown(statusCode);
  if (statusCode >= 500) {
    return new SmsError(isUncertain ? 'serverErrorUncertain' : 'serverError', { ...facts, params });
  }
  if (isUncertain) return new SmsError('statusUncertain', { ...facts, params });
  return new SmsError(statusCode >= 300 && statusCode < 400 ? 'redirect' : 'statusUnexpected', { ...facts, params });
}

/** Returns the reason of a 400: the status line (§7.1) or, if that gives no reason, the heading of the error page. */
function findBadRequestReason(answer: Answer, redact: Redact): string | undefined {
  const reason = answer.statusText.trim();
  if (reason !== '' && reason.toLowerCase() !== 'bad request') return redact(reason);
  return parseErrorHeading(answer.bytes, answer.contentType, redact);
}

/** Creates the error of an answer that reports an error in its root element: no message was sent (§2.2). */
export function createRootError(answer: Answer, service: ServiceError): SmsError {
  const { statusCode, retryAfter } = answer;
  const { errorCode, errorMessage } = service;
  const facts = { statusCode, errorCode, errorMessage, retryAfter };
  if (errorCode === 401) return new SmsError('unauthorized', facts);
  const reason = errorCode === 403 ? 'forbidden' : 'serviceError';
  return new SmsError(reason, { ...facts, params: { detail: formatDetail(service) } });
}

function formatDetail({ errorCode, errorMessage }: ServiceError): string {
  const detail = toLine([errorCode, errorMessage].filter((part) => part !== undefined && part !== '').join(' '));
  return detail && `: ${detail}`;
}

/** Turns a text into one line of at most 500 characters that is safe in a log. */
function toLine(text: string): string {
  const line = text.replace(unsafeCharacters, ' ').trim();
  const characters = [...line.slice(0, 2 * maxDetailLength + 2)];
  return characters.length > maxDetailLength ? `${characters.slice(0, maxDetailLength - 1).join('')}…` : line;
}
