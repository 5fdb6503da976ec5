import type { Clock } from '../clock';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import { createChange } from '../journal/step';
import type { Kind, Via } from '../model';
import { type Changes, dropItem, heldPrefix, keepItem, type Look } from '../store/store';
import type { Correlator } from './correlator';
import { type DeadLetter, type Entries, type Entry, isEntry, type Pending } from './entries';
import { type Identity, judge, type Verdict } from './identity';

/** What no node takes, as {@link DeadLetters} keep it. */
export interface Untaken {
  find(kind: Kind, identity: Identity, changes?: Changes): DeadLetter | undefined;
  forget(id: string): void;
  discard(id: string): boolean;
}

/** What the steps of an inbox work with. Deciding, they only look at it. */
export interface InboxContext {
  /** Where it keeps. It joins it as the part `inbox`. */
  readonly journal: Journal;
  readonly clock: Clock;
  readonly entries: Entries;
  readonly subscribers: Subscribers;
  /** See {@link InboxOptions.replacedBy}. */
  replacedBy(): InboxContext | undefined;
  /** Says what records answer. Absent: nobody knows anything of them. */
  readonly correlator?: Correlator | undefined;
  readonly deadLetters: Untaken;
  /** Whether duplicates are left out. The outbox always leaves them out. */
  dedupe(): boolean;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
  /** Takes a step that nobody waits for: by the journal, unless something else is to take it. */
  run(step: Step<unknown>, take?: (step: Step<unknown>) => Promise<unknown>): void;
}

/** Says whether a record was seen before, and remembers it; what an earlier process had in hand (`isLeft`) may have been so however long ago. */
export function judgeAndRemember(
  { clock, dedupeMs, journal }: InboxContext,
  { identity, via, isLeft = false }: { identity: Identity; via: Via; isLeft?: boolean },
  look: Look,
  changes: Changes,
): Verdict {
  const forgets = journal.isShared || isLeft;
  return judge(identity, via, { look, now: clock.now(), forMs: dedupeMs(), forgets }, changes);
}

/**
 * Keys that stand in a shared store as long as a called-back entry is undelivered, so that no other process tells the
 * service that it has arrived: its holder may still refuse it, and the service is to bring it again then.
 */
export function holdKeysOf(
  { journal }: InboxContext,
  { address }: Pick<Entry, 'address'>,
  identity: Identity,
): string[] {
  if (!journal.isShared || !address) return [];
  const { id, text } = identity;
  // Two of one sender, text and second are two: when one is delivered, the other is still held.
  return [id, text && `${text.key}:${text.instant.ms}`]
    .filter((key) => key !== undefined)
    .map((key) => heldPrefix + key);
}

/** Keeps an entry that is new in this store. */
export function keepEntry(context: InboxContext, entry: Entry, identity: Identity, changes: Changes): void {
  keepItem(changes, entry);
  for (const key of holdKeysOf(context, entry, identity)) {
    changes.remember.set(key, { at: context.clock.now(), forMs: context.dedupeMs(), value: entry.id });
  }
}

/** Drops an entry that is done with. */
export function dropEntry(context: InboxContext, entry: Entry, identity: Identity, changes: Changes): void {
  dropItem(changes, entry.id, 'inbox');
  for (const key of holdKeysOf(context, entry, identity)) changes.remember.set(key, undefined);
}

/** An entry as steps before this one, that share its commit, have changed it. */
export function currentEntry(entry: Entry, changes: Changes): Entry {
  const changed = changes.keep.get(entry.id);
  return changed && isEntry(changed) ? changed : entry;
}

/** Every node that an entry is for has taken it. Losing that merely delivers again, so it waits for the next commit. */
export function settle(context: InboxContext, pending: Pending): void {
  const { entry, identity } = pending;
  context.entries.delete(entry.id);
  const drop = createChange((changes) => dropEntry(context, entry, identity, changes));
  context.run({ ...drop, drops: [entry.id] });
  pending.end(true);
}
