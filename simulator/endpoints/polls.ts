import type { Account } from '../account';
import { createUnauthorized } from '../answer';
import { isAuthenticated } from '../authentication';
import type { Work } from '../exchange';
import { linkCall } from '../links';
import type { Messaging } from '../messaging';
import type { IncomingMessage, StatusUpdate } from '../model';
import type { UnreadQueue } from '../unread';
import { formatIncoming, formatOutbox, formatStatuses } from '../wire/records';

const formType = 'application/x-www-form-urlencoded';

/** Wraps the work of an endpoint, so that it answers 401 if a request is not authenticated (§5, §7.2). */
export function withAuthentication(account: Account, work: Work): Work {
  return (call) => {
    if (isAuthenticated(account.credentials, call.authorization, call.params)) return work(call);
    return createUnauthorized();
  };
}

/** Creates the function that answers a poll with one incoming message (§4.2). */
export function createIncomingWork(incoming: UnreadQueue<IncomingMessage>): Work {
  return async (call) => {
    const [message] = await incoming.take(1, call);
    if (message !== undefined) linkCall(message, call.request);
    if (call.isGone()) return undefined;
    return message === undefined
      ? { status: 204 }
      : { status: 200, contentType: formType, body: formatIncoming(message) };
  };
}

/** Creates the function that answers a poll with status updates (§4.4), at most `batch` in one answer. */
export function createStatusWork(statuses: UnreadQueue<StatusUpdate>, batch: number): Work {
  return async (call) => {
    const updates = await statuses.take(batch, call);
    if (call.isGone()) return undefined;
    return updates.length === 0
      ? { status: 204 }
      : { status: 200, contentType: formType, body: formatStatuses(updates) };
  };
}

/** Creates the function that answers a poll with the messages sent since the last poll date (§4.3). */
export function createOutboxWork(account: Account, messaging: Messaging): Work {
  return () => ({
    status: 200,
    contentType: 'application/json; charset=UTF-8',
    body: formatOutbox(messaging.takeSinceLastPoll(), account),
  });
}
