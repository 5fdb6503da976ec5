import { SmsError } from '../src/errors';
import { measureText } from '../src/message/gsm';
import { isBlank } from '../src/wire/fields';

/** Which numbers a property takes. */
export interface Range {
  min: number;
  max: number;
  whole?: true;
}

/** A property whose default holds where it is blank. */
export interface Setting extends Range {
  byDefault: number;
}

/** A property that sets a limit: blank is no limit, and so is its absence where there is no default. */
export interface Limit extends Range {
  byDefault?: number;
}

/** More than anybody means. */
const largest = 1_000_000_000;

/** The shortest time that counts as one: 0 has a meaning of its own, or is refused. */
const shortest = 0.001;

/** 36 ms. */
const shortestReportHours = 0.000_01;
const longestReportHours = 168;
/** 30 days. */
const longestWaitMinutes = 43_200;
const daySeconds = 86_400;
const yearHours = 8_760;
const yearMinutes = 525_600;

/** 23 days: nobody means to read less often. */
const longestInterval = 2_000_000;

const acknowledgement = {
  ackTimeout: { byDefault: 60, min: shortest, max: daySeconds },
  maxAttempts: { byDefault: 5, min: 1, max: largest, whole: true },
} as const;

const sending = {
  fragmentationLimit: { min: 1, max: largest, whole: true },
  retries: { byDefault: 3, min: 0, max: largest, whole: true },
  resolve: { byDefault: 0, min: 0, max: daySeconds },
  expire: { byDefault: 60, min: 0, max: yearMinutes },
  priority: { byDefault: 0, min: -10, max: 10, whole: true },
} as const;

/** Every number among the nodes' properties, by type and name: the ranges and defaults of runtime and form alike. */
export const limits = {
  'sms-account': {
    timeout: { byDefault: 30, min: shortest, max: daySeconds },
    concurrency: { byDefault: 8, min: 1, max: largest, whole: true },
    queueLimit: { byDefault: 10_000, min: 0, max: largest, whole: true },
    pause: { byDefault: 30, min: 0, max: daySeconds },
    parallelPolls: { byDefault: 1, min: 1, max: 16, whole: true },
    maxLength: { byDefault: 480, min: 1, max: largest, whole: true },
    dedupeHours: { byDefault: 72, min: 0, max: yearHours },
    rememberHours: { byDefault: 168, min: 0, max: yearHours },
    perSecond: { min: shortest, max: largest },
    perHandset: { min: 1, max: largest, whole: true },
    perHandsetMinutes: { byDefault: 60, min: shortest, max: yearMinutes },
    perDay: { min: 1, max: largest, whole: true },
  },
  'sms-send': { ...sending, report: { min: shortestReportHours, max: longestReportHours } },
  'sms-ask': { ...sending, wait: { byDefault: 60, min: shortest, max: longestWaitMinutes } },
  'sms-in': acknowledgement,
  'sms-status': acknowledgement,
  'sms-outbox': { interval: { byDefault: 30, min: 0, max: longestInterval } },
  'sms-feed': {
    size: { byDefault: 8, min: 1, max: 300, whole: true },
    interval: { byDefault: 0, min: 0, max: longestInterval },
  },
  'sms-callback-in': acknowledgement,
} as const satisfies Record<string, Record<string, Setting | Limit>>;

/** Says whether a value is a number of a range. Text in decimal digits counts, since `${NAME}` gives text; blank is none. */
export function isInRange(value: unknown, { min, max, whole }: Range): boolean {
  if (typeof value !== 'number' && (typeof value !== 'string' || !isDecimal(value.trim()))) return false;
  const number = Number(value);
  return number >= min && number <= max && (!whole || Number.isInteger(number));
}

/** Says whether a range has no upper end that a person would want to know. */
export function isOpenEnded({ max }: Range): boolean {
  return max === largest;
}

function isDecimal(text: string): boolean {
  return /^-?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text);
}

/**
 * Whether Node-RED puts an environment variable in the place of a value, which is then known only at run time. It does so with
 * nothing else around.
 */
export function isEnv(value: unknown): boolean {
  return /^\$\{[^\s}]+\}$/.test(String(value));
}

const maxKeyLength = 256;

/**
 * Reads a key that a message has for its node.
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
