import { SmsError } from '../errors';
import type { SendResponse } from '../model';
import { parseErrorHeading } from '../wire/send';
import type { Answer, Call } from './exchange';
import { leavesOpen } from './failure';
import type { Redact } from './redact';

/** Of what the service says, in characters. */
const longestDetail = 500;
/** Control characters, ends of lines and overrides of the direction of writing. */
const notOfLine = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu;

type ServiceError = Pick<SendResponse, 'errorCode' | 'errorMessage'>;

/** Turns an answer with a status that is no success into its error (§7). */
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
  // Of a send it speaks of recipients and limits, which would mislead whoever reads.
  if (statusCode === 403 && effect === 'read') return new SmsError('forbiddenRead', facts);
  if (statusCode === 403) return new SmsError('forbidden', { ...facts, params: { detail: formatDetail(service) } });
  if (statusCode === 429) return new SmsError('tooManyRequests', facts);
  if (statusCode === 404) return new SmsError('notFound', facts);
  const params = { status: statusCode };
  if (statusCode >= 500) {
    const isOpen = effect === 'send' && leavesOpen(statusCode);
    return new SmsError(isOpen ? 'serverErrorUncertain' : 'serverError', { ...facts, params });
  }
  return new SmsError(statusCode >= 300 && statusCode < 400 ? 'redirect' : 'statusUnexpected', { ...facts, params });
}

/**
 * The status line carries the reason of a 400 (§7.1); a server that drops it leaves it in the page's heading, and so it does where
 * the status line is not in UTF-8.
 */
function findBadRequestReason(answer: Answer, redact: Redact): string | undefined {
  const reason = answer.statusText.trim();
  const isTold = reason !== '' && reason.toLowerCase() !== 'bad request';
  if (isTold && !reason.includes('\ufffd')) return redact(reason);
  return parseErrorHeading(answer.bytes, answer.contentType, redact) ?? (isTold ? redact(reason) : undefined);
}

/** `isError="true"` at the root means that no message was sent (§2.2). */
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

/** What may stand in a log: one line of readable length, without what moves the cursor or turns the direction of writing. */
function toLine(text: string): string {
  const line = text.replace(notOfLine, ' ').trim();
  const characters = [...line.slice(0, 2 * longestDetail + 2)];
  return characters.length > longestDetail ? `${characters.slice(0, longestDetail - 1).join('')}…` : line;
}
