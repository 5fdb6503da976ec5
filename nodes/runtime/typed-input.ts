import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { SmsError } from '../../src';

/** A field of a form as it is saved: its value and the type of that value. */
export interface TypedInput<Field extends string = string> {
  field: Field;
  value: unknown;
  type: string;
}

/**
 * Evaluates a field for one message.
 *
 * @throws SmsError `SMS_INPUT` when its expression or context store fails
 */
export function evaluate(
  RED: NodeAPI,
  node: Node,
  input: TypedInput,
  message: NodeMessage,
): unknown | Promise<unknown> {
  const { field, value, type } = input;
  // Literal text and numbers, and properties of the message, are by far the most; everything else goes Node-RED's way.
  if (type === 'str' || type === 'num' || value === undefined || value === '') return value;
  if (type === 'msg') return getMessageProperty(RED, message, String(value));
  return new Promise((resolve, reject) => {
    const callback = (error: Error | null, result?: unknown) => {
      if (error) reject(new SmsError('expression', { field, params: { field, detail: type } }));
      else resolve(result);
    };
    try {
      RED.util.evaluateNodeProperty(String(value), type, node, message, callback);
    } catch (error) {
      callback(error as Error);
    }
  });
}

/** A path that leads through something absent leads to nothing. */
function getMessageProperty(RED: NodeAPI, message: NodeMessage, path: string): unknown {
  try {
    return RED.util.getMessageProperty(message, path);
  } catch {
    return undefined;
  }
}
