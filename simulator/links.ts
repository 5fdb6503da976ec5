import type { CallbackAttempt, IncomingMessage, LoggedRequest, OutboundMessage } from './model';

type Message = OutboundMessage | IncomingMessage;
type Call = LoggedRequest | CallbackAttempt;

const calls = new WeakMap<Message, Call>();
const messages = new WeakMap<Call, Message>();

/** Notes which request sent or fetched a message, or which callback told of it; the last one counts. */
export function linkCall(message: Message, call: Call): void {
  calls.set(message, call);
  messages.set(call, message);
}

/** The request or callback of a message; undefined for one of a former process. */
export function callOf(message: Message): Call | undefined {
  return calls.get(message);
}

/** The message that a request or callback was about. */
export function messageOf(call: object): Message | undefined {
  return messages.get(call as Call);
}
