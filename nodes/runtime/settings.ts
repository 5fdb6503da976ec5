import { promisify } from 'node:util';
import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { isBlank, SmsError } from '../../src';
import { isEnv, isInRange, type Limit, type Range, type Setting } from '../limits';

/**
 * Reads a number of a node's configuration. Blank: the default. Text is accepted, because `${NAME}` becomes text.
 *
 * @throws SmsError `SMS_CONFIG` if the value is not a number within the range
 */
export function parseNumber(setting: string, value: unknown, range: Setting): number {
  return isBlank(value) ? range.byDefault : parseInRange(setting, value, range);
}

/**
 * Reads a limit of a node's configuration. A blank value means no limit (`undefined`). An absent value, as in a flow
 * that was written manually, means the default.
 *
 * @throws SmsError `SMS_CONFIG` if the value is not a number within the range
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
 * Reads a choice. Blank: the first choice. A misspelt choice, e.g. in `${NAME}`, is refused.
 *
 * @throws SmsError `SMS_CONFIG` for any other value
 */
export function parseChoice<T extends string>(setting: string, value: unknown, choices: readonly [T, ...T[]]): T {
  const choice = isBlank(value) ? choices[0] : choices.find((choice) => choice === value);
  if (choice === undefined) throw new SmsError('settingChoice', { params: { setting, choices: choices.join(', ') } });
  return choice;
}

/**
 * Reads a flag. Blank: the default. Text in upper or lower case is accepted, because `${NAME}` becomes text.
 *
 * @throws SmsError `SMS_CONFIG` if the value is neither true nor false
 */
export function parseFlag(setting: string, value: unknown, byDefault: boolean): boolean {
  const text = parseText(setting, value)?.toLowerCase() ?? String(byDefault);
  return parseChoice(setting, text, ['true', 'false']) === 'true';
}

/**
 * Reads text of a node's configuration or credentials. Blank: `undefined`.
 * - Numbers and flags are accepted, because the value of a variable can be a number or a flag.
 * - `${NAME}` is refused: Node-RED leaves it if the variable is not set, and it would be an easily guessed secret.
 *
 * @throws SmsError `SMS_CONFIG` that names the setting or the variable, without its value
 */
export function parseText(setting: string, value: unknown): string | undefined {
  if (isBlank(value)) return undefined;
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    throw new SmsError('settingText', { params: { setting } });
  }
  const text = String(value);
  if (isEnv(text)) throw new SmsError('variableMissing', { params: { variable: text.slice(2, -1) } });
  return text;
}

/** Maximum length of the reason in an error. */
const maxReasonLength = 200;

/** A field of a form as saved: its value and the type of the value. */
export interface TypedInput<Field extends string = string> {
  field: Field;
  value: unknown;
  type: string;
}

/**
 * Evaluates a field for a flow message.
 *
 * @throws SmsError `SMS_INPUT` if the expression or the context store fails
 */
export async function evaluate(RED: NodeAPI, node: Node, input: TypedInput, message: NodeMessage): Promise<unknown> {
  const { field, value, type } = input;
  if (type === 'str' || type === 'num' || value === undefined) return value;
  // Evaluates a blank value only for a timestamp, whose saved value can be blank.
  if (value === '' && type !== 'date') return value;
  if (type === 'msg') return getMessageProperty(RED, message, String(value));
  try {
    return await promisify<unknown>((callback) =>
      RED.util.evaluateNodeProperty(String(value), type, node, message, callback),
    )();
  } catch (error) {
    const params = { field, detail: describeFailure(error) ?? type };
    throw new SmsError(reasonOf(error, type), { field, params });
  }
}

/** Returns what failed: `contextStore` for flow or global context with a valid key, otherwise `expression`. */
function reasonOf(error: unknown, type: string): 'expression' | 'contextStore' {
  const isStored = type === 'flow' || type === 'global';
  return isStored && (Object(error) as { code?: unknown }).code !== 'INVALID_EXPR' ? 'contextStore' : 'expression';
}

/** Properties of a JSONata error whose values come from the flow message. The text of the error quotes these values. */
const quotedProperties = ['value', 'value2', 'exp'];

/** Returns the reason in one line. Omits quoted values, because the reason is logged. */
function describeFailure(error: unknown): string | undefined {
  // Some context stores report an error as a string instead of an Error.
  const { message, code, ...details }: Record<string, unknown> =
    typeof error === 'string' ? { message: error } : Object(error);
  if (typeof message !== 'string') return undefined;
  // JSONata syntax errors have codes that begin with S. The text of such an error quotes only the expression, never a
  // value of the flow message, so nothing is omitted.
  const values = /^S/.test(String(code)) ? [] : quotedProperties.map((name) => quote(details[name]));
  const text = values.reduce<string>((result, value) => (value ? result.replaceAll(value, '…') : result), message);
  const line = text.replace(/\s+/g, ' ').trim().slice(0, maxReasonLength).replace(/\.$/, '');
  return line || undefined;
}

/**
 * Formats a value as JSONata quotes it. Returns undefined for values that JSON cannot represent, because JSONata does
 * not quote them.
 */
function quote(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Returns a property of a message, or `undefined` if a parent property is absent. */
function getMessageProperty(RED: NodeAPI, message: NodeMessage, path: string): unknown {
  try {
    return RED.util.getMessageProperty(message, path);
  } catch {
    return undefined;
  }
}
