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

/** Says whether a message that comes back tells of a failure of its flow. One whose error was cleared does not. */
export function hasError({ error }: SmsMessage): boolean {
  return !isBlank(error);
}
