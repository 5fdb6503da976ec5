import { isBlank, SmsError } from '../../src';

/** More than anybody means. */
const largest = 1_000_000_000;

/**
 * Reads a number from a node's configuration: blank means the default; text is read, since `${NAME}` gives text.
 *
 * @throws SmsError `SMS_CONFIG` when it is not a number within the bounds
 */
export function parseNumber(
  setting: string,
  value: unknown,
  { byDefault, min, max = largest, whole }: { byDefault: number; min: number; max?: number; whole?: boolean },
): number {
  if (isBlank(value)) return byDefault;
  const number = Number(value);
  const isInBounds = number >= min && number <= max;
  if (!isInBounds || (whole && !Number.isInteger(number))) {
    throw new SmsError(whole ? 'settingWhole' : 'settingNumber', { params: { setting, min, max } });
  }
  return number;
}

/** Reads a choice; anything unknown or blank means the first. */
export function parseChoice<T extends string>(value: unknown, choices: readonly [T, ...T[]]): T {
  return choices.find((choice) => choice === value) ?? choices[0];
}

/** Reads a flag; text is read, since `${NAME}` gives text. */
export function parseFlag(value: unknown, byDefault: boolean): boolean {
  if (isBlank(value)) return byDefault;
  return value === true || value === 'true';
}
