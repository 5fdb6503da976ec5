import type { Clock } from '../clock';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import { createChange } from '../journal/step';
import type { Kind, Via } from '../model';
import { type Changes, dropItem, keepItem, type Look } from '../store/store';
import type { Correlator } from './correlator';
import type { Entries, Pending } from './entries';
import { type Channel, type DeadLetter, type Entry, isEntry } from './entry';
import { forget, type Identity, judge, type Verdict } from './identity';

/** What no node takes. */
export interface Untaken {
  /** The message among it, unless these changes drop that. */
  find(kind: Kind, identity: Identity, changes?: Changes): DeadLetter | undefined;
  /** It is in the store no more, or is not to be. */
  end(letter: DeadLetter, isDropped: boolean): void;
}

/** What the steps of an inbox work with. Deciding, they only look at it. */
export interface InboxContext {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly entries: Entries;
  readonly subscribers: Subscribers;
  /** For whom it takes over what other processes leave, when it has been handed over for good. */
  replacedBy?: InboxContext | undefined;
  /** Absent: nobody knows anything of them. */
  readonly correlator?: Correlator | undefined;
  readonly untaken: Untaken;
  /** Whether duplicates are left out. The outbox always leaves them out. */
  dedupe(): boolean;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
  /** Takes a step that nobody waits for: by the journal, unless something else is to take it. */
  run(step: Step<unknown>, take?: (step: Step<unknown>) => Promise<unknown>): void;
}

/** An entry, or who was called with what is to be one. */
type Origin = Pick<Entry, 'kind' | 'address'>;

/** Entries that are done with, and the keys that stood for them in a shared store. */
export interface Gone {
  readonly ids: readonly string[];
  readonly holds: readonly string[];
}

/** Where a record that came so is delivered. */
export function channelOf({ kind, address }: { kind: Kind; address?: object | undefined }): Channel {
  return address ? 'callback' : kind;
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

/** With more in hand nothing is taken over of what dead processes have left for those who poll: others may be faster. */
export const enough = 500;

/** Every node that an entry is for has taken it. */
export function settle(context: InboxContext, pending: Pending): void {
  context.entries.remove(pending.entry.id);
  context.run(createDrop(goneOf(context, [pending])));
  pending.end(true);
  const { entries, subscribers, journal } = context;
  if (entries.size <= enough && subscribers.hasPoller) journal.takeMore?.();
}

/** Forgets entries that are delivered, or somebody else's to deliver. Losing it merely delivers again, so it waits for the next commit. */
export function createDrop(gone: Gone): Step<void> {
  return { ...createChange((changes) => dropGone(gone, changes)), drops: gone.ids };
}

/** Writes down what has changed of entries, or what a store has lost of them, unless they are done with by then. */
export function createKeep({ entries }: InboxContext, changed: readonly Entry[]): Step<void> {
  return createChange((changes) => {
    for (const entry of changed) {
      if (!entries.has(entry.id) || changes.drop.has(entry.id)) continue;
      keepItem(changes, { ...currentEntry(entry, changes), attempts: entry.attempts });
    }
  });
}
