import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { type FlowDelivery, type InboxRecord, isBlank, type Parameters, type RecordOfKind } from '../../src';

/** A flow message, with any `msg.sms`. */
export interface SmsMessage extends NodeMessage {
  sms?: unknown;
  parts?: unknown;
  error?: unknown;
}

/** A flow message at the input of a node, and its `done`. */
export interface Input {
  node: Node;
  message: SmsMessage;
  done(error?: Error): void;
}

/** Copies a flow message, except some of its properties. */
export function copyMessage(RED: NodeAPI, message: SmsMessage, without: readonly string[] = []): SmsMessage {
  const entries = Object.entries(message).filter(([name]) => !without.includes(name));
  return RED.util.cloneMessage(Object.fromEntries(entries) as unknown as SmsMessage);
}

/** Returns the `ackId` of a flow message. With it, the flow acknowledges a received record. */
export function ackIdOf({ sms }: SmsMessage): string | undefined {
  const { ackId } = Object(sms) as { ackId?: unknown };
  return typeof ackId === 'string' ? ackId : undefined;
}

/**
 * Adds the `ackId` of the input to the record that replaces `msg.sms`. The flow can then still acknowledge the received
 * record.
 */
export function withAckId<Sms extends object>(message: SmsMessage, record: Sms): Sms & { ackId?: string } {
  const ackId = ackIdOf(message);
  return ackId === undefined ? record : { ...record, ackId };
}

/**
 * Makes a receiving node accept acknowledgements at its input. A flow message with `msg.error` reports a failure
 * instead.
 */
export function acceptAcknowledgements(
  node: Node,
  subscription: () => { acknowledge(ackId: string, hasFailed: boolean): boolean } | undefined,
): void {
  node.on('input', (message: SmsMessage, _send, done) => {
    const ackId = ackIdOf(message);
    if (ackId !== undefined) subscription()?.acknowledge(ackId, !isBlank(message.error));
    done();
  });
}

/**
 * Creates the flow message of a record: `payload` is the body or the status code, `topic` is the handset or the
 * recipients, and `sms` is the whole record.
 */
export function createReceivedMessage({ kind, record }: RecordOfKind, additions: object = {}): SmsMessage {
  const sms = Object.assign(copyRecord(record), additions);
  if (kind === 'status') return { payload: record.statusCode, topic: record.from, sms };
  if (kind === 'incoming') return { payload: record.body, topic: record.from, sms };
  const recipients = record.recipientsList.flatMap(({ to }) => to || []);
  return { payload: record.body, topic: recipients.join(' '), sms };
}

/** Creates the flow message that delivers a record. Adds `redelivered` if it is true, and `ackId` if there is one. */
export function createDeliveredMessage(delivery: FlowDelivery): SmsMessage {
  const { redelivered, ackId } = delivery;
  return createReceivedMessage(delivery, {
    ...(redelivered ? { redelivered } : undefined),
    ...(ackId === undefined ? undefined : { ackId }),
  });
}

/** Copies a record, so that the flow can change the copy while the inbox can still redeliver the original. */
export function copyRecord(record: InboxRecord): Parameters {
  return structuredClone<Parameters>({ ...record });
}

/** The position of a flow message among those created from one input or poll. */
interface Part {
  id: string;
  count: number;
  index: number;
}

/**
 * Creates the `msg.parts` for a `join` node. Nests the `msg.parts` of the flow message in it, so that a second `join`
 * node can use them.
 */
export function createParts({ parts }: SmsMessage, { id, count, index }: Part): object {
  return { ...(parts === undefined ? undefined : { parts }), id, type: 'array', count, index };
}
