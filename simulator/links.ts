import type { CallbackAttempt, IncomingMessage, LoggedRequest, OutboundMessage } from './model';

type Message = OutboundMessage | IncomingMessage;
type Call = LoggedRequest | CallbackAttempt;

const calls = new WeakMap<Message, Call>();
const messages = new WeakMap<Call, Message>();

/**
 * Links a message with the request that sent or fetched it, or with the callback that reported it. Only the latest link
 * of a message counts.
 */
export function linkCall(message: Message, call: Call): void {
  calls.set(message, call);
  messages.set(call, message);
}

/**
 * Returns the request or callback of a message. Returns undefined for messages from before a restart of the simulator.
 */
export function callOf(message: Message): Call | undefined {
  return calls.get(message);
}

export function messageOf(call: object): Message | undefined {
  return messages.get(call as Call);
}
