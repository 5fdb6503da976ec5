import { createHash } from 'node:crypto';
import type { Changes, Look, MovedValues, Remembered } from '../store/store';
import { parseRememberedValue, unsweptPrefix } from '../store/store';
import type { Wish } from './words';

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
  wish: Wish;
  at: number;
  via: OptOut['via'];
  /** Names a new page: unique in every store that the list is ever in. */
  createId(): string;
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
/** The key under which it stands how many there are, and on which pages. */
export const keyOfTotal = `${optOutPrefix}head`;

/** As good as for ever. It has fewer digits than Redis takes for a fraction. */
const forMs = 100 * 365 * 24 * 3_600_000;

/** Numbers on a page of the store, which is written whole, and at most in an answer. */
const pageSize = 200;

/** Pages in which numbers are looked for at once: 400,000 numbers. */
const mostSearched = 2_000;

/** What a store remembers, by key. */
type Memory = ReadonlyMap<string, Remembered>;

/** In which pages the numbers are, in the order in which they came. */
interface Head {
  total: number;
  pages: string[];
}

/** The key that is there while a number is on the list. Numbers stand in keys only as digests. */
export function keyOfOptOut(msisdn: string): string {
  return `${optOutPrefix}number:${createHash('sha256').update(msisdn).digest('base64url')}`;
}

/** Puts numbers on the list, or takes them off it. Returns for how many that is a change. */
export function changeOptOuts(
  { msisdns, wish, at, via, createId }: OptOutChange,
  look: Look,
  changes: Changes,
): number {
  const head = readHead(look);
  const pages = new Map<string, OptOut[]>();
  const pageOf = (id: string): OptOut[] => {
    const page = pages.get(id) ?? parsePage(look(pageKey(id)));
    pages.set(id, page);
    return page;
  };
  let changed = 0;
  for (const msisdn of new Set(msisdns)) {
    const key = keyOfOptOut(msisdn);
    const id = look(key)?.value;
    // Where there is nothing to change another instance may be about to change it.
    changes.compare.add(key);
    if ((wish === 'out') === (id !== undefined)) continue;
    changed++;
    if (id === undefined) {
      let last = head.pages.at(-1);
      if (last === undefined || pageOf(last).length >= pageSize) {
        last = createId();
        head.pages.push(last);
        pages.set(last, []);
      }
      pageOf(last).push({ msisdn, at, via });
      changes.remember.set(key, { at, forMs, value: last });
    } else {
      const page = pageOf(id);
      const index = page.findIndex((one) => one.msisdn === msisdn);
      if (index >= 0) page.splice(index, 1);
      changes.remember.set(key, undefined);
    }
  }
  if (changed === 0) return 0;
  for (const [id, page] of pages) {
    changes.remember.set(pageKey(id), page.length > 0 ? { at, forMs, value: formatPage(page) } : undefined);
  }
  head.pages = head.pages.filter((id) => pages.get(id)?.length !== 0);
  head.total = Math.max(0, head.total + (wish === 'out' ? changed : -changed));
  changes.remember.set(keyOfTotal, head.pages.length > 0 ? { at, forMs, value: JSON.stringify(head) } : undefined);
  // What a power cut takes back would be sent to.
  changes.firm = true;
  return changed;
}

/** How many are on the list. */
export function countOptOuts(look: Look): number {
  return readHead(look).total;
}

/**
 * Lists who is on the list.
 *
 * @param after where an earlier page ended, though all may have come back since who stood there; absent: at the latest
 * @param search a part of the number, of digits; absent: all
 */
export function listOptOuts(look: Look, { after, search }: { after?: string; search?: string } = {}): OptOutPage {
  const { pages, total } = readHead(look);
  const latest = [...pages].reverse();
  const begin = findPlace(latest, after);
  // Of those who are looked for so many are counted, wherever the page begins that is asked for. Few are left on most of the pages of those who came back.
  const [from, most] = search ? [0, mostSearched] : [begin.page, mostSearched / 100];
  const read = latest.slice(from, from + most);
  const optouts: OptOut[] = [];
  let found = 0;
  let next: string | undefined;
  for (const [offset, id] of read.entries()) {
    const page = from + offset;
    const older = latest.length - 1 - page;
    const lines = linesOf(look(pageKey(id)));
    for (let index = lines.length - 1; index >= 0; index--) {
      const line = lines[index] ?? '';
      if (search && !line.slice(0, line.indexOf(' ')).includes(search)) continue;
      found++;
      const isBefore = page < begin.page || (page === begin.page && index >= begin.index);
      if (isBefore || next !== undefined) continue;
      if (optouts.length < pageSize) optouts.push(...parseLine(line));
      else next = formatPlace(id, index + 1, older);
    }
    const isCutOff = offset === read.length - 1 && older > 0;
    if (!search && isCutOff) next ??= formatPlace(id, 0, older);
    if (!search && next !== undefined) break;
  }
  return { optouts, total: search ? found : total, ...(next === undefined ? undefined : { next }) };
}

/**
 * What two stores have under one of these keys. The pages of both are there then, and a number is on the list
 * that is on either.
 */
export function mergeOptOuts(key: string, own: Remembered, former: Remembered): Remembered {
  if (key !== keyOfTotal) return own;
  const [a, b] = [parseHead(own), parseHead(former)];
  const pages = [...new Set([...b.pages, ...a.pages])];
  const isSame = pages.length === a.pages.length;
  return isSame ? own : { ...own, value: JSON.stringify({ total: a.total + b.total, pages } satisfies Head) };
}

/** What a former list adds to one's own: on its pages are not those who stand on one's own. */
function addedTo(own: Memory, former: Memory): Memory {
  const added = new Map(former);
  const head = former.get(keyOfTotal);
  if (!head || own.size === 0) return former;
  let { total, pages } = parseHead(head);
  for (const id of pages) {
    const page = parsePage(former.get(pageKey(id)));
    const others = page.filter(({ msisdn }) => (own.get(keyOfOptOut(msisdn))?.value ?? id) === id);
    total -= page.length - others.length;
    added.set(pageKey(id), { ...head, value: formatPage(others) });
  }
  return added.set(keyOfTotal, { ...head, value: JSON.stringify({ total, pages } satisfies Head) });
}

/** The lists of both become one. */
export const movedOptOuts: MovedValues = {
  prefix: optOutPrefix,
  merge: (own, other, key) => mergeOptOuts(key, own, other),
  add: addedTo,
};

function pageKey(id: string): string {
  return `${optOutPrefix}page:${id}`;
}

function readHead(look: Look): Head {
  return parseHead(look(keyOfTotal));
}

function parseHead(remembered: Pick<Remembered, 'value'> | undefined): Head {
  const { total, pages } = parseRememberedValue(remembered, isHead) ?? { total: 0, pages: [] };
  return { total, pages: [...pages] };
}

function isHead(value: unknown): value is Head {
  const { total, pages } = (value ?? {}) as Partial<Record<keyof Head, unknown>>;
  return Number.isInteger(total) && Array.isArray(pages) && pages.every((id) => typeof id === 'string');
}

/** A line for each: of 100,000 numbers JSON takes longer to read. */
function formatPage(page: readonly OptOut[]): string {
  return page.map(({ msisdn, at, via }) => `${msisdn} ${at} ${via}`).join('\n');
}

function parsePage(remembered: Remembered | undefined): OptOut[] {
  return linesOf(remembered).flatMap(parseLine);
}

function linesOf(remembered: Remembered | undefined): string[] {
  return remembered ? remembered.value.split('\n') : [];
}

function parseLine(line: string): OptOut[] {
  const [msisdn, at, via] = line.split(' ');
  return msisdn ? [{ msisdn, at: Number(at) || 0, via: via === 'person' ? 'person' : 'message' }] : [];
}

/** Names a place in the list: before the one that stands there in a page, than which so many are older. */
function formatPlace(id: string, index: number, older: number): string {
  return `${id}.${index}.${older}`;
}

/** Where that is by now: where its page has gone, before the next older one. */
function findPlace(latest: readonly string[], place: string | undefined): { page: number; index: number } {
  const [, id, index, older] = /^(.+)\.(\d+)\.(\d+)$/.exec(place ?? '') ?? [];
  const page = id === undefined ? 0 : latest.indexOf(id);
  if (page >= 0) return { page, index: Number(index ?? Number.POSITIVE_INFINITY) };
  return { page: Math.max(0, latest.length - Number(older)), index: Number.POSITIVE_INFINITY };
}
