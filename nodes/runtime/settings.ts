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
  const given = isBlank(value) ? String(byDefault) : String(value).toLowerCase();
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
  if (isEnv(text)) throw new SmsError('variableMissing', { params: { variable: text.slice(2, -1) } });
  return text;
}
