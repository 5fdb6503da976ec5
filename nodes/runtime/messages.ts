import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { type FlowDelivery, type InboxRecord, isBlank, type Parameters, type RecordOfKind } from '../../src';

/** A message that passes through, with whatever `msg.sms` it has. */
export interface SmsMessage extends NodeMessage {
  sms?: unknown;
  parts?: unknown;
  error?: unknown;
}

/** A message at the input of a node, as one that can be written to, and how to say that it is done with. */
export interface Input {
  node: Node;
  message: SmsMessage;
  done(error?: Error): void;
}

/** What nodes write to a message itself, in the place of what it has. */
const written = ['payload', 'sms'] as const;

/** A message at the input of a node as one that can be written to: some other node may have frozen it, or a part of it. */
export function toWritable(message: SmsMessage): SmsMessage {
  if (Object.isExtensible(message) && written.every((name) => isWritable(message, name))) return message;
  const readable = Object.keys(message).flatMap((name): [string, unknown][] => {
    try {
      return [[name, message[name as keyof SmsMessage]]];
    } catch {
      return [];
    }
  });
  return Object.fromEntries(readable) as unknown as SmsMessage;
}

function isWritable(message: SmsMessage, name: string): boolean {
  const property = Object.getOwnPropertyDescriptor(message, name);
  return property ? property.writable === true : !(name in message);
}

/** A copy of a message without some of its properties, nor those that cannot be copied, such as one that is nested too deep. */
export function copyMessage(RED: NodeAPI, message: SmsMessage, without: readonly string[] = []): SmsMessage {
  const names = Object.keys(message).filter((name) => !without.includes(name));
  const copy = (some: string[]): SmsMessage =>
    RED.util.cloneMessage(Object.fromEntries(some.map((name) => [name, message[name as keyof SmsMessage]])));
  try {
    return copy(names);
  } catch {
    const entries = names.flatMap((name) => {
      try {
        return Object.entries(copy([name]));
      } catch {
        return [];
      }
    });
    return Object.fromEntries(entries);
  }
}

/** The message itself if it can be copied, else what can be copied of it. */
export function copyable(RED: NodeAPI, message: SmsMessage): SmsMessage {
  const copy = copyMessage(RED, message);
  return Object.keys(copy).length === Object.keys(message).length ? message : copy;
}

/** Ends an input whose outcome is in the flow. */
export function complete({ done }: Pick<Input, 'done'>): void {
  try {
    done();
  } catch {
    // Node-RED gives a copy to a Complete node, and of this one none can be made. It is no failure of what was done.
  }
}

/** What a message acknowledges when it comes back to the node that it came from. */
export function ackIdOf(message: SmsMessage): string | undefined {
  try {
    const { sms } = message;
    if (typeof sms !== 'object' || sms === null || !Object.hasOwn(sms, 'ackId')) return undefined;
    const { ackId } = sms as { ackId?: unknown };
    return typeof ackId === 'string' ? ackId : undefined;
  } catch {
    // What cannot be read acknowledges nothing.
    return undefined;
  }
}

/** The record that takes the place of what a message has: whoever gets it can still acknowledge what the message came from. */
export function withAckId<Sms extends object>(message: SmsMessage, record: Sms): Sms & { ackId?: string } {
  const ackId = ackIdOf(message);
  return ackId === undefined ? record : { ...record, ackId };
}

/**
 * Takes what comes to the input of a node for acknowledgements of what it sent; everything else goes no further. With `msg.error` the flow
 * has failed; one whose error was cleared has not.
 */
export function takeAcknowledgements(
  node: Node,
  subscription: () => { acknowledge(ackId: string, failed: boolean): boolean } | undefined,
): void {
  node.on('input', (message: SmsMessage, _send, done) => {
    const ackId = ackIdOf(message);
    if (ackId !== undefined) subscription()?.acknowledge(ackId, !isBlank(message.error));
    complete({ done });
  });
}

/** A message as every receiving node sends it: what a person reads, who the other party is, and the whole record. */
export function createReceivedMessage({ kind, record }: RecordOfKind, additions: object = {}): SmsMessage {
  const sms = Object.assign(copyRecord(record), additions);
  if (kind === 'status') return { payload: record.statusCode, topic: record.from, sms };
  if (kind === 'incoming') return { payload: record.body, topic: record.from, sms };
  const recipients = record.recipientsList.flatMap(({ to }) => to || []);
  return { payload: record.body, topic: recipients.join(' '), sms };
}

/** A message as it is delivered: marked when it may have been before, and with what the flow has to bring back. */
export function createDeliveredMessage(delivery: FlowDelivery): SmsMessage {
  const { redelivered, ackId } = delivery;
  return createReceivedMessage(delivery, {
    ...(redelivered ? { redelivered } : undefined),
    ...(ackId === undefined ? undefined : { ackId }),
  });
}

/** The flow may change what it gets; the inbox may have to deliver it again. Most of a record is text, which nobody can change. */
export function copyRecord(record: InboxRecord): Parameters {
  const copy: Parameters = { ...record };
  for (const name in copy) if (typeof copy[name] === 'object') copy[name] = structuredClone(copy[name]);
  return copy;
}

/** One message of several that are made of one. */
interface Part {
  id: string;
  count: number;
  index: number;
}

/** The `msg.parts` by which a `join` node gathers them; one after it can gather what the given message is a part of itself. */
export function createParts({ parts }: SmsMessage, { id, count, index }: Part): object {
  return { ...(parts === undefined ? undefined : { parts }), id, type: 'array', count, index };
}
