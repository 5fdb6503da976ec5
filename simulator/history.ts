import { isMsisdn } from './account';
import { countBefore, keyOf } from './keys';
import type { IncomingMessage, OutboundMessage, StatusUpdate } from './model';

/**
 * One clean-up removes this fraction of the maximum number of messages. It removes many at a time, so that clean-ups
 * are rare.
 */
const forgottenShare = 0.01;

type Message = OutboundMessage | IncomingMessage;

/** Whether a message was sent to handsets, and not by a handset. */
export function isOutbound(message: Message): message is OutboundMessage {
  return 'recipients' in message;
}

/**
 * The messages in both directions, by time and by handset. The number of messages is limited, and the oldest are
 * removed first. A message counts once for each handset that it was sent to. Adding a message takes constant time.
 */
export class History {
  readonly messages: OutboundMessage[] = [];
  readonly incoming: IncomingMessage[] = [];
  readonly statuses: StatusUpdate[] = [];
  readonly #order: Message[] = [];
  readonly #byId = new Map<string, OutboundMessage>();
  readonly #byHandset = new Map<string, Message[]>();
  readonly #lastSent = new Map<string, OutboundMessage>();
  /** Removed handsets, each with the key of its removal. Messages with a lower key stay hidden. */
  readonly #removed = new Map<string, number>();
  readonly #keep: number;
  #size = 0;

  /** @param keep maximum number of messages, and maximum number of statuses */
  constructor(keep: number) {
    this.#keep = keep;
  }

  addMessage(message: OutboundMessage): void {
    this.messages.push(message);
    this.#byId.set(message.messageId, message);
    for (const msisdn of handsetsOf(message)) this.#addTo(msisdn, message);
    this.#add(message);
  }

  addIncoming(message: IncomingMessage): void {
    this.incoming.push(message);
    this.#addTo(message.from, message);
    this.#add(message);
  }

  addStatus(update: StatusUpdate): void {
    keyOf(update);
    this.statuses.push(update);
    if (this.statuses.length > this.#keep) this.statuses.splice(0, this.#batch);
  }

  /** Returns the message with a messageId. If there are several, returns the last one. */
  find(messageId: string): OutboundMessage | undefined {
    return this.#byId.get(messageId);
  }

  lastSentTo(msisdn: string): OutboundMessage | undefined {
    return this.#lastSent.get(msisdn);
  }

  /** All handsets with messages. */
  get handsets(): Iterable<string> {
    return this.#byHandset.keys();
  }

  /** Returns all messages of a handset, oldest first. */
  messagesOf(msisdn: string): readonly Message[] {
    return this.#byHandset.get(msisdn) ?? [];
  }

  /** Returns the messages that were sent after the message with a key. */
  sentAfter(key: number): OutboundMessage[] {
    return this.messages.slice(countBefore(this.messages, key + 1));
  }

  /** Removes a handset from the view. A message to several handsets stays visible for the other handsets. */
  removeHandset(msisdn: string): void {
    this.#removed.set(msisdn, keyOf({}));
    this.#byHandset.delete(msisdn);
    this.#lastSent.delete(msisdn);
  }

  /** The list of removed handsets, to save it. */
  get removed(): [msisdn: string, upTo: number][] {
    return [...this.#removed];
  }

  /** Restores the saved list of removed handsets. Must run before their messages are added. */
  restoreRemoved(removed: readonly [msisdn: string, upTo: number][]): void {
    for (const [msisdn, upTo] of removed) this.#removed.set(msisdn, upTo);
  }

  clear(): void {
    for (const list of [this.messages, this.incoming, this.statuses, this.#order]) list.length = 0;
    for (const map of [this.#byId, this.#byHandset, this.#lastSent, this.#removed]) map.clear();
    this.#size = 0;
  }

  get #batch(): number {
    return Math.max(1, Math.floor(this.#keep * forgottenShare));
  }

  #addTo(msisdn: string, message: Message): void {
    if (keyOf(message) <= (this.#removed.get(msisdn) ?? 0)) return;
    if (
      isOutbound(message) &&
      message.recipients.some((recipient) => recipient.msisdn === msisdn && !recipient.isError)
    ) {
      this.#lastSent.set(msisdn, message);
    }
    const messages = this.#byHandset.get(msisdn);
    if (messages === undefined) this.#byHandset.set(msisdn, [message]);
    else messages.push(message);
  }

  #add(message: Message): void {
    keyOf(message);
    this.#order.push(message);
    this.#size += weigh(message);
    if (this.#size > this.#keep) this.#makeRoom();
  }

  #makeRoom(): void {
    const goal = this.#keep - this.#batch;
    let count = 0;
    for (const message of this.#order) {
      if (this.#size <= goal || count === this.#order.length - 1) break;
      this.#size -= weigh(message);
      count += 1;
    }
    const removedMessages = this.#order.splice(0, count);
    const end = keyOf(this.#order[0] ?? {});
    for (const list of [this.messages, this.incoming]) list.splice(0, countBefore(list, end));
    const handsets = new Set(removedMessages.flatMap(handsetsOf));
    for (const msisdn of handsets) {
      const handsetMessages = this.#byHandset.get(msisdn);
      handsetMessages?.splice(0, countBefore(handsetMessages, end));
      if (handsetMessages?.length === 0) this.#byHandset.delete(msisdn);
      const lastMessage = this.#lastSent.get(msisdn);
      if (lastMessage !== undefined && keyOf(lastMessage) < end) this.#lastSent.delete(msisdn);
    }
    for (const message of removedMessages) {
      if (isOutbound(message) && this.#byId.get(message.messageId) === message) this.#byId.delete(message.messageId);
    }
  }
}

/** Whether a record is a message of either direction, and not a status. */
export function isMessage(record: object): record is Message {
  return 'recipients' in record || 'receivedOn' in record;
}

/** Returns the handsets that a message was sent to or came from. Omits items that are not numbers. */
export function handsetsOf(message: Message): string[] {
  if (!isOutbound(message)) return [message.from];
  return message.recipients.flatMap(({ msisdn }) => (isMsisdn(msisdn) ? [msisdn] : []));
}

function weigh(message: Message): number {
  return isOutbound(message) ? message.recipients.length : 1;
}
