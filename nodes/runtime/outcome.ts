import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { isBlank, type PlainSmsError, type SmsError } from '../../src';
import { badges, translateError } from './texts';

/** A message that passes through, with whatever `msg.sms` it has. */
export interface SmsMessage extends NodeMessage {
  sms?: unknown;
  parts?: unknown;
  error?: unknown;
}

/** Reports that an input message failed as a whole: badge, `msg.sms.error`, Catch node. */
export function fail(
  RED: NodeAPI,
  node: Node,
  message: SmsMessage,
  error: unknown,
  done: (error: Error) => void,
): void {
  const translated = translateError(RED, error);
  node.status(badges.error(RED, translated));
  message.sms = { error: translated.toJSON() satisfies PlainSmsError };
  done(translated);
}

/** Reports a failure that no input message caused, such as that of a poll; a Catch node sees it. */
export function raise(RED: NodeAPI, node: Node, error: SmsError): void {
  const translated = translateError(RED, error);
  const message: SmsMessage = { sms: { error: translated.toJSON() } };
  node.error(translated, message);
}

/** Reports why a node cannot do its work: badge and Catch node. */
export function report(RED: NodeAPI, node: Node, error: unknown): void {
  const translated = translateError(RED, error);
  node.status(badges.error(RED, translated));
  raise(RED, node, translated);
}

/** What a message that comes back to the input of a node acknowledges. */
export interface Acknowledgement {
  ackId: string;
  /** Its flow has failed. One whose error was cleared has not. */
  failed: boolean;
}

/** Reads the acknowledgement in a message, if it is one. */
export function readAcknowledgement({ sms, error }: SmsMessage): Acknowledgement | undefined {
  const ackId = (sms as { ackId?: unknown } | undefined)?.ackId;
  return typeof ackId === 'string' ? { ackId, failed: !isBlank(error) } : undefined;
}
