import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { isBlank, type PlainSmsError, type SmsError } from '../../src';
import { Flows } from './flows';
import { badges, translate, translateError } from './texts';

/** A message that passes through, with whatever `msg.sms` it has. */
export interface SmsMessage extends NodeMessage {
  sms?: unknown;
  parts?: unknown;
  error?: unknown;
}

/** What nodes write to a message itself, in the place of what it has. */
const written = ['payload', 'sms'] as const;

/** A message at the input of a node as one that can be written to: some other node may have frozen it, or a part of it. */
export function thaw(message: SmsMessage): SmsMessage {
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

/** A message at the input of a node, as one that can be written to, and how to say that it is done with. */
export interface Input {
  node: Node;
  message: SmsMessage;
  done(error?: Error): void;
}

/** Ends an input whose outcome is in the flow. */
export function complete({ done }: Pick<Input, 'done'>): void {
  try {
    done();
  } catch {
    // Node-RED gives a copy to a Complete node, and of this one none can be made. It is no failure of what was done.
  }
}

/**
 * Raises an error with a message that has it, and ends the input that it came by, if it did. By itself Node-RED would raise it with
 * the message as it came, which could not be written to, perhaps, and at the node that took it, which may be stopped.
 */
export function raise(node: Node, error: Error, message: SmsMessage, input?: Pick<Input, 'node' | 'done'>): void {
  const raiseWith = node.error;
  let isRaised = false;
  const tell = () => {
    isRaised = true;
    try {
      raiseWith.call(node, error, message);
    } catch {
      // A Catch node gets a copy, and of this one none can be made.
      const { _msgid, sms } = message;
      raiseWith.call(node, error, { _msgid, sms } as SmsMessage);
    }
  };
  if (input) {
    const own = Object.getOwnPropertyDescriptor(input.node, 'error');
    input.node.error = tell;
    try {
      // It counts as failed there, and not as complete.
      input.done(error);
    } finally {
      if (own) Object.defineProperty(input.node, 'error', own);
      else Reflect.deleteProperty(input.node, 'error');
    }
  }
  if (!isRaised) tell();
}

/** Reports that an input message failed as a whole: badge, `msg.sms.error`, Catch node. */
export function failMessage(RED: NodeAPI, input: Input, error: unknown): void {
  const { node, message } = input;
  node.status(badges.error(RED, error));
  const raised = putError(RED, node, message, { error });
  Flows.of(RED).onceHeard(node, () => raise(node, raised, message, input));
}

/** Puts a failure into the message that it is of, as `msg.sms.error`. Returns it as it is to be raised. */
export function putError(
  RED: NodeAPI,
  node: Node,
  message: SmsMessage,
  { error, redelivered = false }: { error: unknown; redelivered?: boolean },
): SmsError {
  const translated = translateError(RED, error);
  logCause(RED, node, translated);
  const record = { error: translated.toJSON() satisfies PlainSmsError, ...(redelivered ? { redelivered } : undefined) };
  message.sms = withAckId(message, record);
  return translated;
}

/** The record that takes the place of what a message has: whoever gets it can still acknowledge what the message came from. */
export function withAckId<Sms extends object>(message: SmsMessage, record: Sms): Sms & { ackId?: string } {
  const ackId = ackIdOf(message);
  return ackId === undefined ? record : { ...record, ackId };
}

/** Reports a failure that no input message caused, such as that of a poll; a Catch node sees it. */
export function raiseToCatch(RED: NodeAPI, node: Node, error: unknown): void {
  const translated = translateError(RED, error);
  logCause(RED, node, translated);
  const message: SmsMessage = { sms: { error: translated.toJSON() } };
  Flows.of(RED).onceHeard(node, () => node.error(translated, message));
}

/** Reports why a node cannot do its work: badge and Catch node. */
export function showAndRaise(RED: NodeAPI, node: Node, error: unknown): void {
  const translated = translateError(RED, error);
  node.status(badges.error(RED, translated));
  raiseToCatch(RED, node, translated);
}

/** An error that nobody has foreseen says that the log is to be sent along: then its cause stands there. */
function logCause(RED: NodeAPI, node: Node, { reason, cause }: SmsError): void {
  if (reason === 'unexpected') node.warn(translate(RED, 'log.cause', { cause: describeCause(cause) }));
}

/** Name and place of what was thrown. Its message stays out: a credential or a text may stand in it. */
function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const { name, message, stack = '' } = cause;
  const frames = stack.replace(message, '').match(/^ +at .+:\d+:\d+\)?$/gm) ?? [];
  return [name, ...frames.slice(0, 3).map((frame) => frame.trim())].join(' ');
}

/** What a message that comes back to the input of a node acknowledges. */
export interface Acknowledgement {
  ackId: string;
  /** Its flow has failed. One whose error was cleared has not. */
  failed: boolean;
}

/** Reads the acknowledgement in a message, if it is one. */
function readAcknowledgement(message: SmsMessage): Acknowledgement | undefined {
  const ackId = ackIdOf(message);
  return ackId === undefined ? undefined : { ackId, failed: !isBlank(message.error) };
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

/** Takes what comes to the input of a node for acknowledgements of what it sent; everything else goes no further. */
export function takeAcknowledgements(
  node: Node,
  subscription: () => { acknowledge(ackId: string, failed: boolean): boolean } | undefined,
): void {
  node.on('input', (message: SmsMessage, _send, done) => {
    const acknowledgement = readAcknowledgement(message);
    if (acknowledgement) subscription()?.acknowledge(acknowledgement.ackId, acknowledgement.failed);
    complete({ done });
  });
}
