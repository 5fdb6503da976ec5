import type { Node, NodeAPI } from 'node-red';
import type { PlainSmsError, SmsError } from '../../src';
import { badges } from './badges';
import { Flows, startedTimeoutMs } from './flows';
import { type Input, type SmsMessage, withAckId } from './messages';
import { translate, translateError } from './texts';

/**
 * Starts a node when the flows have started, so that all other nodes, e.g. Catch nodes, can receive its flow messages.
 * Reports an error that `start` throws. Returns a function that cancels the start.
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

/** Raises an error with a flow message. If an input caused the error, calls its `done`. */
export function raise(node: Node, error: Error, message: SmsMessage, input?: Pick<Input, 'node' | 'done'>): void {
  if (input?.node !== node) {
    // Raises the error here if there is no input, or if a redeploy has replaced the node that received the input. In
    // the second case, `done` must not raise the error again at the stopped node.
    if (input) input.node.error = () => {};
    node.error(error, message);
  }
  input?.done(error);
}

/** Reports that an input failed as a whole: with the badge, `msg.sms.error` and the Catch node. */
export function failMessage(RED: NodeAPI, input: Input, error: unknown): void {
  const { node, message } = input;
  node.status(badges.error(error));
  const translatedError = setError(RED, node, message, { error });
  Flows.of(RED).onceCatchable(node, () => raise(node, translatedError, message, input));
}

/** Sets `msg.sms.error`. Returns the error to raise. */
export function setError(
  RED: NodeAPI,
  node: Node,
  message: SmsMessage,
  { error, redelivered = false }: { error: unknown; redelivered?: boolean },
): SmsError {
  const translatedError = translateError(RED, error);
  logCause(RED, node, translatedError);
  const record = {
    error: translatedError.toJSON() satisfies PlainSmsError,
    ...(redelivered ? { redelivered } : undefined),
  };
  message.sms = withAckId(message, record);
  return translatedError;
}

/** Reports a failure that no input caused, such as a failed poll, to the Catch node. */
export function raiseToCatch(RED: NodeAPI, node: Node, error: unknown): void {
  const message: SmsMessage = {};
  const translatedError = setError(RED, node, message, { error });
  Flows.of(RED).onceCatchable(node, () => node.error(translatedError, message));
}

/** Reports why a node cannot work, with the badge and the Catch node. */
export function showAndRaise(RED: NodeAPI, node: Node, error: unknown): void {
  node.status(badges.error(error));
  raiseToCatch(RED, node, error);
}

/** Logs the cause of an unexpected error, because the message of the error asks the user to send the log. */
function logCause(RED: NodeAPI, node: Node, { reason, cause }: SmsError): void {
  if (reason === 'unexpected') node.warn(translate(RED, 'log.cause', { cause: describeCause(cause) }));
}

/**
 * Describes an error by its name and the first lines of its stack. Omits its message, which can contain a credential or
 * a body.
 */
function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const { name, message, stack = '' } = cause;
  const frames = stack.replace(message, '').match(/^ +at .+:\d+:\d+\)?$/gm) ?? [];
  return [name, ...frames.slice(0, 3).map((frame) => frame.trim())].join(' ');
}
