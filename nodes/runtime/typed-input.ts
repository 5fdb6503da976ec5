import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { SmsError } from '../../src';

/** Longest reason that an error gives. */
const mostCharacters = 200;

/** No field takes it, and each says so in its own words. */
export const unusable = Symbol('unusable');

/** A field of a form as it is saved: its value and the type of that value. */
export interface TypedInput<Field extends string = string> {
  field: Field;
  value: unknown;
  type: string;
}

/**
 * Evaluates a field for one message. A promise is what an evaluation takes its time with, and never a value.
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
  if (type === 'msg') return usable(getMessageProperty(RED, message, String(value)));
  return new Promise((resolve, reject) => {
    const callback = (error: unknown, result?: unknown) => {
      if (!error) return resolve(usable(result));
      // What is thrown in here ends the process.
      try {
        reject(new SmsError(reasonOf(error, type), { field, params: { field, detail: describe(error) ?? type } }));
      } catch {
        reject(new SmsError('expression', { field, params: { field, detail: type } }));
      }
    };
    try {
      RED.util.evaluateNodeProperty(String(value), type, node, message, callback);
    } catch (error) {
      callback(error);
    }
  });
}

/** Whoever gets a value that can be awaited would do so, for ever perhaps, and send what comes of it. */
function usable(value: unknown): unknown {
  try {
    return typeof (Object(value) as { then?: unknown }).then === 'function' ? unusable : value;
  } catch {
    return unusable;
  }
}

/** What is to be mended: the store that was asked, unless the key is none. */
function reasonOf(error: unknown, type: string): 'expression' | 'contextStore' {
  const isStored = type === 'flow' || type === 'global';
  return isStored && (Object(error) as { code?: unknown }).code !== 'INVALID_EXPR' ? 'contextStore' : 'expression';
}

/** Properties of an error of JSONata that hold a value of the message, which its text quotes. */
const quoted = ['value', 'value2', 'exp'];

/** The reason in one line and without the values that it speaks of, since it gets into the log. */
function describe(error: unknown): string | undefined {
  // A context store may give a text for it.
  const { message, code, ...rest }: Record<string, unknown> =
    typeof error === 'string' ? { message: error } : Object(error);
  if (typeof message !== 'string') return undefined;
  // What a syntax error speaks of is the expression.
  const values = /^S/.test(String(code)) ? [] : quoted.map((name) => quote(rest[name]));
  const text = values.reduce<string>((left, value) => (value ? left.replaceAll(value, '…') : left), message);
  const line = text.replace(/\s+/g, ' ').trim().slice(0, mostCharacters).replace(/\.$/, '');
  return line || undefined;
}

/** A value as JSONata quotes it, which is not at all when JSON cannot write it. */
function quote(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** A path that leads through something absent leads to nothing. */
function getMessageProperty(RED: NodeAPI, message: NodeMessage, path: string): unknown {
  try {
    return RED.util.getMessageProperty(message, path);
  } catch {
    return undefined;
  }
}
