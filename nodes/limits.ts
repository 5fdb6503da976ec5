import { SmsError } from '../src/errors';
import { measureText } from '../src/message/gsm';
import { isBlank } from '../src/wire/fields';

/** The range of a property. */
export interface Range {
  min: number;
  max: number;
  whole?: true;
}

/** A property whose blank value means a default. */
export interface Setting extends Range {
  byDefault: number;
}

/** A property that sets a limit. No limit applies if the value is blank, or if it is absent and there is no default. */
export interface Limit extends Range {
  byDefault?: number;
}

/** Upper bound of ranges without a useful maximum. */
const maxNumber = 1_000_000_000;

/** Minimum of properties that must be greater than 0, because 0 is invalid or has a special meaning. */
const minAboveZero = 0.000_001;

const maxReportHours = 168;
/** Maximum of durations in minutes: 30 days. */
const maxWaitMinutes = 43_200;
const daySeconds = 86_400;
/** Maximum of acknowledgement times, in seconds: 31 days, which is more than the longest wait of `sms-ask`. */
const maxAckSeconds = 2_678_400;
const yearHours = 8_760;
const yearMinutes = 525_600;

/** Maximum of intervals, in seconds: 23 days, which is longer than any useful interval. */
const maxIntervalSeconds = 2_000_000;

const acknowledgement = {
  ackTimeout: { byDefault: 60, min: minAboveZero, max: maxAckSeconds },
  maxAttempts: { byDefault: 5, min: 1, max: maxNumber, whole: true },
} as const;

const sending = {
  fragmentationLimit: { min: 1, max: maxNumber, whole: true },
  retries: { byDefault: 3, min: 0, max: maxNumber, whole: true },
  resolve: { byDefault: 0, min: 0, max: daySeconds },
  expire: { byDefault: 60, min: 0, max: yearMinutes },
  priority: { byDefault: 0, min: -10, max: 10, whole: true },
} as const;

/** Ranges and defaults of all numeric properties, by node type and property. Runtime and forms use them. */
export const limits = {
  'sms-account': {
    timeout: { byDefault: 30, min: minAboveZero, max: daySeconds },
    concurrency: { byDefault: 8, min: 1, max: maxNumber, whole: true },
    queueLimit: { byDefault: 10_000, min: 1, max: maxNumber, whole: true },
    pause: { byDefault: 30, min: 0, max: daySeconds },
    parallelPolls: { byDefault: 1, min: 1, max: 16, whole: true },
    maxLength: { byDefault: 480, min: 1, max: maxNumber, whole: true },
    dedupeHours: { byDefault: 72, min: minAboveZero, max: yearHours },
    rememberHours: { byDefault: 168, min: minAboveZero, max: yearHours },
    perSecond: { min: minAboveZero, max: maxNumber },
    perHandset: { min: 1, max: maxNumber, whole: true },
    perHandsetMinutes: { byDefault: 60, min: minAboveZero, max: yearMinutes },
    perDay: { min: 1, max: maxNumber, whole: true },
  },
  'sms-send': { ...sending, report: { min: minAboveZero, max: maxReportHours } },
  'sms-ask': { ...sending, wait: { byDefault: 60, min: minAboveZero, max: maxWaitMinutes } },
  'sms-in': acknowledgement,
  'sms-status': acknowledgement,
  'sms-outbox': { interval: { byDefault: 30, min: 0, max: maxIntervalSeconds } },
  'sms-feed': {
    size: { byDefault: 8, min: 1, max: 300, whole: true },
    interval: { byDefault: 0, min: 0, max: maxIntervalSeconds },
  },
  'sms-callback-in': acknowledgement,
} as const satisfies Record<string, Record<string, Setting | Limit>>;

/**
 * Says whether a value is a number in a range. Text of decimal digits counts as a number, because `${NAME}` becomes
 * text. Blank text does not.
 */
export function isInRange(value: unknown, { min, max, whole }: Range): boolean {
  if (typeof value !== 'number' && (typeof value !== 'string' || !isDecimal(value.trim()))) return false;
  const number = Number(value);
  return number >= min && number <= max && (!whole || Number.isInteger(number));
}

/** Says whether a range has no useful maximum. */
export function isOpenEnded({ max }: Range): boolean {
  return max === maxNumber;
}

function isDecimal(text: string): boolean {
  return /^-?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text);
}

/**
 * Says whether a value is `${NAME}`, which Node-RED replaces by an environment variable at run time. Text around
 * `${NAME}` prevents the replacement.
 */
export function isEnv(value: unknown): boolean {
  return /^\$\{[^\s}]+\}$/.test(String(value));
}

const maxKeyLength = 256;

/**
 * Reads the key of a message from the value of `once` or `replace`.
 *
 * @throws SmsError `SMS_INPUT` with the field
 */
export function parseKey(field: 'once' | 'replace', value: unknown): string {
  if (isBlank(value)) throw new SmsError('keyBlank', { field, params: { field } });
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    throw new SmsError('textType', { field, params: { field } });
  }
  const key = String(value);
  const { characters: length } = measureText(key, 'UCS-2');
  if (length > maxKeyLength) throw new SmsError('keyLength', { field, params: { field, length } });
  return key;
}
