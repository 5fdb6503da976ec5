import { isMsisdn } from './account';
import { addBounded, byKey, keyOf } from './keys';
import type { IncomingMessage, OutboundMessage, StatusUpdate } from './model';

export type Message = OutboundMessage | IncomingMessage;

/** Whether a message was sent to handsets, and not by a handset. */
export function isOutbound(message: Message): message is OutboundMessage {
  return 'recipients' in message;
}

/** Whether a record is a message of either direction, and not a status. */
export function isMessage(record: object): record is Message {
  return 'recipients' in record || 'receivedOn' in record;
}

/** Returns the handsets that a message was sent to or came from. Omits recipients without a number. */
function handsetsOf(message: Message): string[] {
  if (!isOutbound(message)) return [message.from];
  return message.recipients.flatMap(({ msisdn }) => (isMsisdn(msisdn) ? [msisdn] : []));
}

/** The messages in both directions, and their statuses. A record added to a full list replaces the oldest record. */
export class History {
  /** The last message of each handset, in the order in which the handsets appeared. */
  readonly lastMessages = new Map<string, Message>();
  readonly messages: OutboundMessage[] = [];
  readonly incoming: IncomingMessage[] = [];
  readonly statuses: StatusUpdate[] = [];
  readonly #byId = new Map<string, OutboundMessage>();
  readonly #keep: number;

  /** @param keep maximum number of records in each list */
  constructor(keep: number) {
    this.#keep = keep;
  }

  addMessage(message: OutboundMessage): void {
    this.#byId.set(message.messageId, message);
    const oldestMessage = this.#add(this.messages, message);
    if (oldestMessage === undefined) return;
    const { messageId } = oldestMessage;
    if (this.#byId.get(messageId) === oldestMessage) this.#byId.delete(messageId);
  }

  addIncoming(message: IncomingMessage): void {
    this.#add(this.incoming, message);
  }

  #add<T extends Message>(messages: T[], message: T): T | undefined {
    for (const msisdn of handsetsOf(message)) this.lastMessages.set(msisdn, message);
    const oldestMessage = addBounded(messages, message, this.#keep);
    if (oldestMessage === undefined) return undefined;
    for (const msisdn of handsetsOf(oldestMessage)) {
      if (this.lastMessages.get(msisdn) !== oldestMessage) continue;
      const lastMessage = this.messagesOf(msisdn).at(-1);
      if (lastMessage === undefined) this.lastMessages.delete(msisdn);
      else this.lastMessages.set(msisdn, lastMessage);
    }
    return oldestMessage;
  }

  addStatus(update: StatusUpdate): void {
    addBounded(this.statuses, update, this.#keep);
  }

  /** Returns the message with this messageId. If there are several, returns the last one. */
  find(messageId: string): OutboundMessage | undefined {
    return this.#byId.get(messageId);
  }

  /** Returns the last message to a handset. Skips messages that were refused for this handset. */
  lastSentTo(handset: string): OutboundMessage | undefined {
    return this.messages
      .filter(({ recipients }) => recipients.some(({ msisdn, isError }) => msisdn === handset && !isError))
      .at(-1);
  }

  /** Returns the messages to and from a handset, oldest first. */
  messagesOf(handset: string): Message[] {
    const sent = this.messages.filter(({ recipients }) => recipients.some(({ msisdn }) => msisdn === handset));
    const received = this.incoming.filter(({ from }) => from === handset);
    return [...sent, ...received].sort(byKey);
  }

  /** Returns the messages that were sent after the message with this key. */
  sentAfter(key: number): OutboundMessage[] {
    return this.messages.filter((message) => keyOf(message) > key);
  }

  clear(): void {
    for (const list of [this.messages, this.incoming, this.statuses]) list.length = 0;
    for (const index of [this.#byId, this.lastMessages]) index.clear();
  }
}
