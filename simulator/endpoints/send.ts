import type { Account } from '../account';
import { createErrorAnswer, createRefusal } from '../answer';
import { isAuthenticated } from '../authentication';
import type { Call, Work } from '../exchange';
import { linkCall } from '../links';
import { type Messaging, RefusedError, type Submission } from '../messaging';
import { countParts } from '../parts';
import { isCallbackUrl } from '../wire/callback-url';
import { formatDelivery, xmlType } from '../wire/send';

const maxBodyCharacters = 480;
const maxMessageIdCharacters = 36;
const contentTypes = ['text/plain', 'text/plain; charset=UTF-16'];

class BadRequest extends Error {}

/**
 * Creates the send endpoint (§4.1). Success is 200 for /api/3. Earlier versions answer 204 (§9) and have fewer
 * parameters (§2.1).
 */
export function createSendWork(account: Account, messaging: Messaging): Work {
  return (call) => {
    if (!isAuthenticated(account.credentials, call.authorization, call.params)) {
      return createRefusal(401, 'Wrong user name, password or API key', call.params.messageId);
    }
    try {
      const message = messaging.send(readSubmission(call));
      linkCall(message, call.request);
      if (call.apiVersion >= 3) return { status: 200, contentType: xmlType, body: formatDelivery(message) };
      return { status: 204 };
    } catch (error) {
      if (error instanceof BadRequest) return createErrorAnswer(400, error.message);
      if (error instanceof RefusedError) return createRefusal(403, error.message, call.params.messageId);
      throw error;
    }
  };
}

function readSubmission({ params, apiVersion }: Call): Submission {
  const to = (params.to ?? '').split(/\s+/).filter((item) => item !== '');
  if (to.length === 0) throw new BadRequest('Missing parameter: to');
  const { body } = params;
  if (body === undefined || body === '') throw new BadRequest('Missing parameter: body');
  if (apiVersion < 3) {
    if (to.length > 1) throw new BadRequest('Several recipients need /api/3');
    checkLength(body);
    return { apiVersion, to, body };
  }
  const submission: Submission = { apiVersion, to, body };
  if (params.from) submission.from = params.from;
  if (params.messageId) submission.messageId = params.messageId;
  if (params.contentType) submission.contentType = params.contentType;
  if (params.fragmentationLimit) submission.fragmentationLimit = Number(params.fragmentationLimit);
  if (params.callbackUrl) submission.callbackUrl = params.callbackUrl;
  if (params.callbackStatusUrl) submission.callbackStatusUrl = params.callbackStatusUrl;
  checkSubmission(submission);
  return submission;
}

function checkSubmission(submission: Submission): void {
  const { body, messageId = '', contentType, fragmentationLimit, callbackUrl, callbackStatusUrl } = submission;
  if ([...messageId].length > maxMessageIdCharacters) {
    throw new BadRequest(`messageId is longer than ${maxMessageIdCharacters} characters`);
  }
  if (contentType !== undefined && !contentTypes.includes(contentType)) {
    throw new BadRequest(`contentType must be one of: ${contentTypes.join(', ')}`);
  }
  if (fragmentationLimit === undefined) {
    checkLength(body);
  } else if (!Number.isInteger(fragmentationLimit) || fragmentationLimit < 1) {
    throw new BadRequest('fragmentationLimit must be a whole number of 1 or more');
  } else {
    const parts = countParts(body, contentType === contentTypes[1]);
    if (parts > fragmentationLimit) {
      throw new BadRequest(`body takes ${parts} parts, more than the fragmentationLimit of ${fragmentationLimit}`);
    }
  }
  if (callbackUrl !== undefined && !isCallbackUrl(callbackUrl, ['http:', 'https:', 'mailto:'])) {
    throw new BadRequest('callbackUrl must be an http, https or mailto URL');
  }
  if (callbackStatusUrl !== undefined && !isCallbackUrl(callbackStatusUrl, ['http:', 'https:'])) {
    throw new BadRequest('callbackStatusUrl must be an http or https URL');
  }
}

function checkLength(body: string): void {
  if ([...body].length > maxBodyCharacters) throw new BadRequest(`body is longer than ${maxBodyCharacters} characters`);
}
