import type { Node, NodeAPI } from 'node-red';
import type { PlainSmsError, SmsError } from '../../src';
import { badges } from './badges';
import { Flows, startedTimeoutMs } from './flows';
import { type Input, type SmsMessage, withAckId } from './messages';
import { translate, translateError } from './texts';

/**
 * Starts a node when every node of the flows is there to receive, and reports what that throws. Returns how to call it
 * off.
 *
 * A message may come at once, and a node that is not there yet would not get it. Nor is there a Catch node before.
 */
export function startWithFlows(RED: NodeAPI, node: Node, start: () => void): () => void {
  const run = () => {
    cancel();
    try {
      start();
    } catch (error) {
      showAndRaise(RED, node, error);
    }
  };
  const cancelStart = Flows.of(RED).onceStarted(run);
  const timer = setTimeout(run, startedTimeoutMs);
  const cancel = () => {
    clearTimeout(timer);
    cancelStart();
  };
  return cancel;
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
  node.status(badges.error(error));
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

/** Reports a failure that no input message caused, such as that of a poll; a Catch node sees it. */
export function raiseToCatch(RED: NodeAPI, node: Node, error: unknown): void {
  const message: SmsMessage = {};
  const translated = putError(RED, node, message, { error });
  Flows.of(RED).onceHeard(node, () => node.error(translated, message));
}

/** Reports why a node cannot do its work: badge and Catch node. */
export function showAndRaise(RED: NodeAPI, node: Node, error: unknown): void {
  node.status(badges.error(error));
  raiseToCatch(RED, node, error);
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
