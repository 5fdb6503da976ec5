import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { isBlank, SmsError } from '../../src';
import { isEnv, isInRange, type Limit, type Range, type Setting } from '../limits';

/**
 * Reads a number from a node's configuration: blank means the default; text is read, since `${NAME}` gives text.
 *
 * @throws SmsError `SMS_CONFIG` when it is not a number within the range
 */
export function parseNumber(setting: string, value: unknown, range: Setting): number {
  return isBlank(value) ? range.byDefault : parseInRange(setting, value, range);
}

/**
 * Reads a limit from a node's configuration, as {@link parseNumber} does: blank means no limit, `undefined`. A flow
 * written by hand may lack it, which is not the same as a field that somebody has emptied: it gets the default.
 *
 * @throws SmsError `SMS_CONFIG` when it is not a number within the range
 */
export function parseLimit(setting: string, value: unknown, range: Limit): number | undefined {
  if (value === undefined) return range.byDefault;
  return isBlank(value) ? undefined : parseInRange(setting, value, range);
}

function parseInRange(setting: string, value: unknown, range: Range): number {
  if (isInRange(value, range)) return Number(value);
  const { min, max, whole } = range;
  throw new SmsError(whole ? 'settingWhole' : 'settingNumber', { params: { setting, min, max } });
}

/**
 * Reads a choice: blank means the first. One that is misspelt, as `${NAME}` may be, must not pass for that.
 *
 * @throws SmsError `SMS_CONFIG` when it is none of the choices
 */
export function parseChoice<T extends string>(setting: string, value: unknown, choices: readonly [T, ...T[]]): T {
  const chosen = isBlank(value) ? choices[0] : choices.find((choice) => choice === value);
  if (chosen === undefined) throw new SmsError('settingChoice', { params: { setting, choices: choices.join(', ') } });
  return chosen;
}

/**
 * Reads a flag; blank means the default. Text is read in whatever case, since `${NAME}` gives text, and `True` is at home elsewhere.
 *
 * @throws SmsError `SMS_CONFIG` when it is neither true nor false
 */
export function parseFlag(setting: string, value: unknown, byDefault: boolean): boolean {
  const given = parseText(setting, value)?.toLowerCase() ?? String(byDefault);
  return parseChoice(setting, given, ['true', 'false']) === 'true';
}

/**
 * Reads text from a node's configuration or credentials; blank: `undefined`. A variable of a flow may be a number, a flag or JSON, and
 * Node-RED puts it in place as such. It leaves `${NAME}` where it knows no such variable, which must not pass for a text of its own:
 * everybody could guess such a secret.
 *
 * @throws SmsError `SMS_CONFIG` that names the setting or the variable, without its value
 */
export function parseText(setting: string, value: unknown): string | undefined {
  if (isBlank(value)) return undefined;
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    throw new SmsError('settingText', { params: { setting } });
  }
  const text = String(value);
  if (text.length > longestText) throw new SmsError('settingTooLong', { params: { setting } });
  if (isEnv(text)) throw new SmsError('variableMissing', { params: { variable: text.slice(2, -1) } });
  return text;
}

/** Longest text of a setting. A longer list of words would hold up Node-RED while it is read. */
const longestText = 100_000;

/** Longest reason that an error gives. */
const mostCharacters = 200;

/** No field takes it, and each says so in its own words. */
const unusable = Symbol('unusable');

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
