import { type Changes, foreverMs, type Look, type Remembered, unsweptPrefix } from '../store/store';
import type { ConsentChange } from './words';

/** Somebody who wants no more texts. */
export interface OptOut {
  msisdn: string;
  /** Since when, in ms since 1970. */
  at: number;
  /** Who said so: the handset, or somebody for it. */
  via: 'message' | 'person';
}

/** How to change who wants texts. */
export interface OptOutChange {
  msisdns: readonly string[];
  wish: ConsentChange;
  at: number;
  via: OptOut['via'];
}

/** Part of the list, and what to look for in it. */
export interface OptOutQuery {
  /** A part of the numbers, of digits; absent: all. */
  search?: string;
  /** What an earlier page gave as its `next`; absent: from the latest. */
  after?: string;
  /** So many at most; 200 when absent. */
  most?: number;
}

/** The latest first. */
export interface OptOutPage {
  optouts: OptOut[];
  /** Of all, or of those that were searched for. */
  total: number;
  /** What to ask for more with; absent: these were the last. */
  next?: string;
}

/** Everything that the list consists of stands under keys that begin so. */
export const optOutPrefix = `${unsweptPrefix}optout:`;

/** Numbers that end in the same digits stand under one key, so that a change writes few of them, and all are read by the names of their keys. */
const digitsInKey = 3;
const allKeys = Array.from({ length: 10 ** digitsInKey }, (_, end) => keyOfOptOut(String(end)));

/** Digits of a time, so that lines that begin with it are in its order. */
const digitsOfTime = 15;

/** The key under which a number stands while it is on the list. */
export function keyOfOptOut(msisdn: string): string {
  return optOutPrefix + msisdn.slice(-digitsInKey).padStart(digitsInKey, '0');
}

/** Whether a number is on the list. */
export function isOptedOut(msisdn: string, look: Look): boolean {
  return has(look(keyOfOptOut(msisdn)), msisdn);
}

/** Puts numbers on the list, or takes them off it. Returns for how many that is a change. */
export function changeOptOuts({ msisdns, wish, at, via }: OptOutChange, look: Look, changes: Changes): number {
  let changed = 0;
  for (const [key, numbers] of byKeyOf(new Set(msisdns))) {
    const lines = linesByNumber(look(key));
    // Where there is nothing to change another instance may be about to change it.
    changes.compare.add(key);
    const concerned = numbers.filter((msisdn) => lines.has(msisdn) !== (wish === 'out'));
    if (concerned.length === 0) continue;
    changed += concerned.length;
    for (const msisdn of concerned) {
      if (wish === 'in') lines.delete(msisdn);
      else lines.set(msisdn, `${String(at).padStart(digitsOfTime, '0')}-${msisdn}-${via}`);
    }
    const value = [...lines.values()].join('\n');
    changes.remember.set(key, value === '' ? undefined : { at, forMs: foreverMs, value });
    // What a power cut takes back would be sent to.
    changes.firm = true;
  }
  return changed;
}

function byKeyOf(msisdns: Iterable<string>): Map<string, string[]> {
  const numbers = new Map<string, string[]>();
  for (const msisdn of msisdns) {
    const key = keyOfOptOut(msisdn);
    const same = numbers.get(key);
    if (same) same.push(msisdn);
    else numbers.set(key, [msisdn]);
  }
  return numbers;
}

/** How many are on the list. */
export function countOptOuts(look: Look): number {
  return readAll(look).length;
}

/** Lists who is on the list. */
export function listOptOuts(look: Look, { search = '', after, most = 200 }: OptOutQuery = {}): OptOutPage {
  const all = readAll(look);
  const found = search === '' ? all : all.filter((line) => parse(line).msisdn.includes(search));
  const rest = after === undefined ? found : found.filter((line) => line < after);
  const lines = rest.sort().reverse().slice(0, most);
  const next = rest.length > most ? lines.at(-1) : undefined;
  return { optouts: lines.map(parse), total: found.length, ...(next && { next }) };
}

/** Joins two lists: a number that is on either is on the joined one. */
export function mergeOptOuts(own: Remembered, former: Remembered): Remembered {
  const lines = new Map([...linesByNumber(former), ...linesByNumber(own)]);
  return { ...own, value: [...lines.values()].join('\n') };
}

function readAll(look: Look): string[] {
  return allKeys.flatMap((key) => linesOf(look(key)));
}

function has(remembered: Remembered | undefined, msisdn: string): boolean {
  return remembered?.value.includes(`-${msisdn}-`) === true;
}

/** One for each number: 100,000 of them JSON takes longer to read. */
function linesOf(remembered: Remembered | undefined): string[] {
  return remembered?.value.split('\n') ?? [];
}

function linesByNumber(remembered: Remembered | undefined): Map<string, string> {
  return new Map(linesOf(remembered).map((line) => [parse(line).msisdn, line]));
}

function parse(line: string): OptOut {
  const [at, msisdn = '', via] = line.split('-');
  return { msisdn, at: Number(at) || 0, via: via === 'person' ? 'person' : 'message' };
}
