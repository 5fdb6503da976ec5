import type { Clock } from '../clock';
import type { Destination } from '../delivery/attendance';
import type { Distribution } from '../delivery/distribution';
import type { Taker } from '../delivery/taker';
import type { Journal, Step } from '../journal/journal';
import type { Kind, Via } from '../model';
import { type Changes, dropItem, keepItem, type Look } from '../store/store';
import type { Correlator } from './correlator';
import type { Delivered, Gone } from './delivered';
import { type Channel, type Entry, isEntry } from './entry';
import { forget, type Identity, judge, type Verdict } from './identity';
import type { Reading } from './reading';
import type { UndeliveredEntries } from './undelivered';
import type { Unread } from './unread';

/** What the steps of an inbox work with. Deciding, they only look at it. */
export interface InboxContext {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly undelivered: UndeliveredEntries;
  readonly unread: Unread;
  readonly reading: Reading;
  readonly delivered: Delivered;
  readonly distribution: Distribution;
  /** For whom it takes over what other processes leave, when it has been handed over for good. */
  heir?: InboxContext | undefined;
  /** Absent: nobody knows anything of them. */
  readonly correlator?: Correlator | undefined;
  /** Whether duplicates are left out. The outbox always leaves them out. */
  dedupe(): boolean;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
  /** Takes a step that nobody waits for. */
  run(step: Step<unknown>): void;
}

/**
 * Names of those whom an inbox can give more to that others leave, as in `Item.takers`. What is for another inbox is handed over to that, and
 * fills no memory here.
 */
export function wantedBy({ heir, distribution, unread }: InboxContext, isHeir = false): string[] {
  if (heir) return wantedBy(heir, true);
  const { takenKinds, calledNames } = distribution.attendance;
  return [...takenKinds.filter((kind) => isHeir || unread.isLow(kind)), ...calledNames];
}

/** An entry, or who was called with what is to be one. */
type Origin = Pick<Entry, 'kind' | 'address'>;

/** Where a record that came so is delivered. */
export function channelOf({ kind, address }: { kind: Kind; address?: object | undefined }): Channel {
  return address ? 'callback' : kind;
}

/** The nodes that what comes now is for: where older entries are not read yet, whoever is here when they are. */
export function audienceOf(
  { distribution, unread }: InboxContext,
  channel: Channel,
  destination: Destination,
): Taker[] {
  return unread.has(channel) ? [] : distribution.attendance.audience(channel, destination);
}

/** Says whether a record was seen before, and remembers it. */
export function judgeAndRemember(
  { clock, dedupeMs, journal }: InboxContext,
  { identity, via }: { identity: Identity; via: Via },
  look: Look,
  changes: Changes,
): Verdict['outcome'] {
  const memory = { look, now: clock.now(), forMs: dedupeMs(), forgets: journal.isShared };
  const { outcome, remember } = judge(identity, via, memory);
  for (const [key, value] of remember) changes.remember.set(key, value);
  return outcome;
}

/** Undoes {@link judgeAndRemember}: a record that comes again is new. */
export function forgetSeen(identity: Identity, look: Look, changes: Changes): void {
  for (const [key, value] of forget(identity, look)) changes.remember.set(key, value);
}

/**
 * Keys that stand in a shared store as long as a called-back entry is undelivered, so that no other process tells the
 * service that it has arrived: its holder may still refuse it, and the service is to bring it again then.
 */
export function holdKeysOf({ journal }: InboxContext, origin: Origin, identity: Identity): string[] {
  if (!journal.isShared || channelOf(origin) !== 'callback') return [];
  const { id, text } = identity;
  // Two of one sender, text and second are two: when one is delivered, the other is still held.
  return [id, text && `${text.key}:${text.instant.ms}`].filter((key) => key !== undefined).map((key) => `held:${key}`);
}

/** Keeps an entry that is new in this store. */
export function keepEntry(context: InboxContext, entry: Entry, identity: Identity, changes: Changes): void {
  keepItem(changes, entry);
  const held = { at: context.clock.now(), forMs: context.dedupeMs(), value: entry.id };
  for (const key of holdKeysOf(context, entry, identity)) changes.remember.set(key, held);
}

/** Drops an entry that is done with. */
export function dropEntry(context: InboxContext, entry: Entry, identity: Identity, changes: Changes): void {
  dropGone(goneOf(context, [{ entry, identity }]), changes);
}

/** What is to be dropped of entries. */
export function goneOf(context: InboxContext, entries: readonly { entry: Entry; identity: Identity }[]): Gone {
  return {
    ids: entries.map(({ entry }) => entry.id),
    holds: entries.flatMap(({ entry, identity }) => holdKeysOf(context, entry, identity)),
  };
}

/** Drops what {@link goneOf} has found. */
export function dropGone({ ids, holds }: Gone, changes: Changes): void {
  for (const id of ids) dropItem(changes, id, 'inbox');
  for (const key of holds) changes.remember.set(key, undefined);
}

/** An entry as steps before this one, that share its commit, have changed it. */
export function currentEntry(entry: Entry, changes: Changes): Entry {
  const changed = changes.keep.get(entry.id);
  return changed && isEntry(changed) ? changed : entry;
}
