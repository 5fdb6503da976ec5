import type { Clock } from '../clock';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import { createChange } from '../journal/step';
import { type Changes, dropItem, heldPrefix, keepItem } from '../store/store';
import type { Correlator } from './correlator';
import { type Entries, type Entry, isEntry, type Pending } from './entries';
import { forget, type Identity, rememberAnswer } from './identity';

/** What an inbox consists of, but for what it has set aside. Deciding, steps only look at it. */
export interface InboxParts {
  /** Where it keeps. It joins it as the part `inbox`. */
  readonly journal: Journal;
  readonly clock: Clock;
  readonly entries: Entries;
  readonly subscribers: Subscribers;
  /** See {@link InboxOptions.replacedBy}. */
  replacedBy(): InboxParts | undefined;
  /** Says what records answer. Absent: nobody knows anything of them. */
  readonly correlator?: Correlator | undefined;
  /** Whether duplicates are left out. The outbox always leaves them out. */
  dedupe(): boolean;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
  /** Takes a step that nobody waits for: by the journal, unless something else is to take it. */
  run(step: Step<unknown>, take?: (step: Step<unknown>) => Promise<unknown>): void;
}

/**
 * Keys that stand in a shared store as long as a called-back entry is undelivered, so that no other process tells the
 * service that it has arrived: its holder may still refuse it, and the service is to bring it again then.
 */
export function holdKeysOf({ journal }: InboxParts, { address }: Pick<Entry, 'address'>, identity: Identity): string[] {
  if (!journal.isShared || !address) return [];
  const { id, text } = identity;
  // Two of one sender, text and second are two: when one is delivered, the other is still held.
  return [id, text && `${text.key}:${text.instant.ms}`]
    .filter((key) => key !== undefined)
    .map((key) => heldPrefix + key);
}

/** Keeps an entry that is new in this store. */
export function keepEntry(context: InboxParts, entry: Entry, identity: Identity, changes: Changes): void {
  keepItem(changes, entry);
  for (const key of holdKeysOf(context, entry, identity)) {
    changes.remember.set(key, { at: context.clock.now(), forMs: context.dedupeMs(), value: entry.id });
  }
}

/** Drops an entry that is done with. */
export function dropEntry(context: InboxParts, entry: Entry, identity: Identity, changes: Changes): void {
  dropItem(changes, entry.id, 'inbox');
  for (const key of holdKeysOf(context, entry, identity)) changes.remember.set(key, undefined);
}

/** An entry as steps before this one, that share its commit, have changed it. */
export function currentEntry(entry: Entry, changes: Changes): Entry {
  const changed = changes.keep.get(entry.id);
  return changed && isEntry(changed) ? changed : entry;
}

/** Every node that an entry is for has taken it. Losing that merely delivers again, so it waits for the next commit. */
export function settle(context: InboxParts, pending: Pending): void {
  const { entry, identity } = pending;
  context.entries.delete(entry.id);
  context.run({ ...createChange((changes) => dropEntry(context, entry, identity, changes)), drops: [entry.id] });
  pending.end(true);
}

/**
 * No node here wants an entry: polled again it is known, and to the node that is called back with it it is new. Until that is written whoever is
 * called finds it, and a node that wants it may come.
 */
export function passOver(context: InboxParts, pending: Pending): void {
  const { entries, journal } = context;
  const { entry, identity } = pending;
  context.run({
    whileFailing: 'apply',
    decide(look, changes) {
      const isLeft = entries.get(entry.id) === pending && pending.pendingFor.size === 0;
      if (!isLeft || changes.drop.has(entry.id)) return () => {};
      const { record } = currentEntry(entry, changes);
      dropEntry(context, entry, identity, changes);
      forget(identity, look, changes);
      rememberAnswer(context, { identity, record, isTaken: journal.mode === 'open' || undefined }, look, changes);
      return () => {
        entries.delete(entry.id);
        pending.end(true);
      };
    },
  });
}
