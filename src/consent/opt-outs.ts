import { type Changes, digest, foreverMs, type ReadKey, type Remembered, unsweptPrefix } from '../store/store';
import type { ConsentChange } from './words';

/** A number that has opted out. */
export interface OptOut {
  msisdn: string;
  /** Time of the opt-out, in ms since 1970. */
  at: number;
  /** `message`: the handset wrote an opt-out word. `person`: a user added the number. */
  via: 'message' | 'person';
}

/** A change of the list of opted-out numbers. */
export interface OptOutChange {
  msisdns: readonly string[];
  change: ConsentChange;
  at: number;
  via: OptOut['via'];
}

/** Selects a page of the list of opted-out numbers. */
export interface OptOutQuery {
  /** Digits that the numbers contain; absent: all numbers. */
  search?: string;
  /** `next` of an earlier page; absent: the first page. */
  after?: string;
  /** Maximum number of entries; default 200. */
  limit?: number;
}

/** A page of the list of opted-out numbers, the latest opt-out first. */
export interface OptOutPage {
  optouts: OptOut[];
  /** Number of all entries that match the search. */
  total: number;
  /** Value of `after` for the query of the next page; absent: this is the last page. */
  next?: string;
}

/** Prefix of the store keys under which the opted-out numbers are stored. */
export const optOutPrefix = `${unsweptPrefix}optout:`;

/**
 * Number of last digits of a phone number that form the key under which it is stored. So a change rewrites only the
 * numbers with the same last digits, and the list can be read without a search for its keys.
 */
const digitsInKey = 3;
const allKeys = Array.from({ length: 10 ** digitsInKey }, (_, end) => keyOfOptOut(String(end)));

/**
 * Number of digits of a time. Each line of the list begins with its time, so that sorted lines are in the order of
 * time.
 */
const digitsOfTime = 15;

/**
 * Suffix of a line that records an opt-in. Such a line contains a digest of the number. If an older list is imported,
 * the line prevents the import from opting the number out again.
 */
const optInEnd = '-in';

/** Minimum time for which the line of an opt-in is stored, in ms. */
const optInMs = 30 * 24 * 3_600_000;

/** Returns the key under which the store lists a number. */
export function keyOfOptOut(msisdn: string): string {
  return optOutPrefix + msisdn.slice(-digitsInKey).padStart(digitsInKey, '0');
}

/** Returns whether a number is on the list. */
export function isOptedOut(msisdn: string, readKey: ReadKey): boolean {
  return isListed(readKey(keyOfOptOut(msisdn)), msisdn);
}

/** Adds numbers to the list, or removes them. Returns the number of changes. */
export function changeOptOuts({ msisdns, change, at, via }: OptOutChange, readKey: ReadKey, changes: Changes): number {
  let changeCount = 0;
  for (const [key, numbers] of byKeyOf(new Set(msisdns))) {
    const lines = linesByNumber(readKey(key));
    // Compares the value at the commit even if this step changes nothing, so that the step runs again if another
    // instance has changed the value.
    changes.compare.add(key);
    const concerned = numbers.filter((msisdn) => lines.has(msisdn) !== (change === 'out'));
    if (concerned.length === 0) continue;
    changeCount += concerned.length;
    for (const msisdn of concerned) {
      const name = digest(msisdn);
      const replacedLine = lines.get(msisdn) ?? lines.get(name) ?? '';
      // Makes the new line later than the old line, even if the clock was set back. Otherwise, {@link mergeOptOuts}
      // could keep the old line.
      const time = String(Math.ceil(Math.max(at, parse(replacedLine).at + 1))).padStart(digitsOfTime, '0');
      lines.delete(msisdn);
      lines.delete(name);
      if (change === 'out') lines.set(msisdn, `${time}-${msisdn}-${via}`);
      else if (via === 'message') lines.set(name, `${time}-${name}${optInEnd}`);
    }
    const value = [...lines.values()].filter((line) => isOptOut(line) || at - parse(line).at < optInMs).join('\n');
    changes.remember.set(key, value === '' ? undefined : { at, forMs: foreverMs, value });
    // Flushes the step, because a power cut must not undo an opt-out.
    changes.firm = true;
  }
  return changeCount;
}

function byKeyOf(msisdns: Iterable<string>): Map<string, string[]> {
  const numbers = new Map<string, string[]>();
  for (const msisdn of msisdns) {
    const key = keyOfOptOut(msisdn);
    const numbersOfKey = numbers.get(key);
    if (numbersOfKey) numbersOfKey.push(msisdn);
    else numbers.set(key, [msisdn]);
  }
  return numbers;
}

/** Counts the numbers on the list. */
export function countOptOuts(readKey: ReadKey): number {
  return readAll(readKey).length;
}

/** Returns a page of the list. */
export function listOptOuts(readKey: ReadKey, { search = '', after, limit = 200 }: OptOutQuery = {}): OptOutPage {
  const allLines = readAll(readKey);
  const matches = search === '' ? allLines : allLines.filter((line) => parse(line).msisdn.includes(search));
  const remainingLines = after === undefined ? matches : matches.filter((line) => line < after);
  const lines = remainingLines.sort().reverse().slice(0, limit);
  const next = remainingLines.length > limit ? lines.at(-1) : undefined;
  return { optouts: lines.map(parse), total: matches.length, ...(next && { next }) };
}

/** Merges two lists. If both have a line for a number, keeps the later line. */
export function mergeOptOuts(ownValue: Remembered, formerValue: Remembered): Remembered {
  const lines = new Map<string, string>();
  for (const line of [...linesOf(formerValue), ...linesOf(ownValue)]) {
    const name = isOptOut(line) ? digest(numberOf(line)) : numberOf(line);
    const otherAt = parse(lines.get(name) ?? '').at;
    const { at } = parse(line);
    if (at > otherAt || (at === otherAt && isOptOut(line))) lines.set(name, line);
  }
  return { ...ownValue, value: [...lines.values()].join('\n') };
}

function readAll(readKey: ReadKey): string[] {
  return allKeys.flatMap((key) => linesOf(readKey(key)).filter(isOptOut));
}

function isListed(remembered: Remembered | undefined, msisdn: string): boolean {
  return remembered?.value.includes(`-${msisdn}-`) === true;
}

/** Splits a value into one line per number. JSON would be slower to read for 100,000 numbers. */
function linesOf(remembered: Remembered | undefined): string[] {
  return remembered?.value.split('\n') ?? [];
}

function linesByNumber(remembered: Remembered | undefined): Map<string, string> {
  return new Map(linesOf(remembered).map((line) => [numberOf(line), line]));
}

function isOptOut(line: string): boolean {
  return !line.endsWith(optInEnd);
}

/** Returns the number of an opt-out, or the digest of the number of an opt-in. */
function numberOf(line: string): string {
  return line.slice(line.indexOf('-') + 1, line.lastIndexOf('-'));
}

function parse(line: string): OptOut {
  const [at, msisdn = '', via] = line.split('-');
  return { msisdn, at: Number(at) || 0, via: via === 'person' ? 'person' : 'message' };
}
