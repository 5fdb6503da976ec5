import { addedTo, keyOfTotal, mergeOptOuts, optOutPrefix } from '../consent/opt-outs';
import { createChange, type Step } from '../journal/step';
import { type Asked, movedCarried } from '../questions/question';
import { movedReplies } from '../questions/question-steps';
import { movedStatuses } from '../questions/report';
import { movedSent, movedSentIndex } from '../questions/sent-index';
import {
  adoptedKey,
  dropItem,
  forgetAdopted,
  heldPrefix,
  type Item,
  keepItem,
  type MovedValues,
  noteAdopted,
  type Remembered,
} from '../store/store';
import { movedAbsences } from './expiry';
import type { Ledger } from './ledger';
import { movedLimits } from './limits';
import { movedKeys } from './once';
import type { Text } from './text';

/** All that the ledger remembers, but what it has taken over. */
const moved: readonly MovedValues[] = [
  movedAbsences,
  movedCarried,
  movedLimits,
  { prefix: optOutPrefix, merge: (own, other, key) => mergeOptOuts(key, own, other) },
  movedReplies,
  movedKeys,
  movedSentIndex,
  ...movedSent,
  movedStatuses,
];

/** The keys that the ledger remembers under begin so. */
export const ledgerPrefixes = moved.map(({ prefix }) => prefix);

type Memories = readonly (readonly [key: string, remembered: Remembered | undefined])[];

/** How everything is given to another ledger. */
export interface Move {
  /** Nobody is to take what a shared store has any more. */
  isLast: boolean;
  /** What is remembered stays there as well as it is given: others may go on with it. */
  keepsMemory?: boolean;
  /** What else is remembered in the store, which is given with it, and stays in one that is shared. */
  more?: readonly MovedValues[];
  /** What has been given before of what stays, by key, and is given no more as it was: the other may have forgotten it since. */
  given?: Map<string, Remembered>;
  /** Whether nobody is here who sends it. */
  isWanted(): boolean;
  /** The other knows all of it from now on. The texts of these ids, or their questions, are its own. */
  onGiven(texts: ReadonlySet<string>): void;
}

/** Items moved in one commit. */
const sliceSize = 500;

/** What was remembered by the one, and what the other had under that key before, and has since. */
type Copy = Record<'theirs' | 'before' | 'since', Remembered | undefined>;

/** What another ledger has of one that has not let go of it. */
class Copies {
  /** Items as they were when they were copied, by id. */
  readonly items = new Map<string, Text | Asked>();
  /** Those of them that the other had not adopted before. */
  readonly adopted = new Map<string, Item>();
  /** By key. */
  readonly memories = new Map<string, Copy>();
  /** The list of those who opted out, as the other had it before. */
  optOuts: ReadonlyMap<string, Remembered> | undefined;

  /** What is remembered otherwise than as it was copied, or not any more. */
  changed(remembered: ReadonlyMap<string, Remembered>): Memories {
    const isNew = (key: string, one: Remembered) => !isSame(this.memories.get(key)?.theirs, one);
    const gone = [...this.memories].filter(([key, { theirs }]) => theirs && !remembered.has(key));
    return [
      ...[...remembered].filter(([key, one]) => isNew(key, one)),
      ...gone.map(([key]) => [key, undefined] as const),
    ];
  }
}

/**
 * Gives everything to another ledger, and forgets it once that one has it in its store: copied until nothing changes any more, and then let go
 * of at once, so that at any time one of them knows everything. Where it is not wanted any more by then, it stays here.
 *
 * @throws SmsError `SMS_STORE` when one of the stores cannot be used: it is safe where it is
 */
export async function moveAll(from: Ledger, to: Ledger, how: Move): Promise<void> {
  const { isLast, keepsMemory = false, more = [], given = new Map<string, Remembered>(), isWanted, onGiven } = how;
  const { journal } = from;
  if (from.isShared && !isLast) return;
  await journal.ready();
  // What is being taken in may be refused yet.
  await journal.flush();
  // It may have been closed since it was used last.
  await to.journal.ready();
  const copies = new Copies();
  const { adopted, memories } = copies;
  try {
    let { taken } = journal;
    do {
      ({ taken } = journal);
      await copy(from, to, { copies, more, given, isWanted });
      await journal.flush();
      // What is found meanwhile, of a dead instance, is no step.
    } while (isWanted() && (journal.taken !== taken || from.items.some((item) => copies.items.get(item.id) !== item)));
    if (!isWanted()) {
      await to.journal.run(abandon([...adopted.values()], []));
      return;
    }
    const { items } = from;
    for (const { id } of items) from.forget(id);
    onGiven(new Set(items.map((item) => (item.kind === 'text' ? item.id : item.text))));
    for (const id of adopted.keys()) to.arriving.delete(id);
    // What comes from now on may answer it, also while it is forgotten here.
    const finding = to.found([...adopted.values()], false);
    const stays = from.isShared ? more : [];
    const isLeft = (key: string) => keepsMemory || stays.some(({ prefix }) => key.startsWith(prefix));
    const keys = [...memories.keys()].filter((key) => !isLeft(key));
    for (const [key, { theirs }] of memories) if (theirs && isLeft(key)) given.set(key, theirs);
    for (let start = 0; start < Math.max(items.length, keys.length); start += sliceSize) {
      const end = start + sliceSize;
      await journal.run(abandon(items.slice(start, end), keys.slice(start, end)));
    }
    await finding;
  } finally {
    for (const id of adopted.keys()) to.arriving.delete(id);
  }
}

/** Copies what has changed since it was copied last, as long as that `isWanted`. */
async function copy(
  from: Ledger,
  to: Ledger,
  { copies, more, given, isWanted }: Required<Pick<Move, 'more' | 'given' | 'isWanted'>> & { copies: Copies },
): Promise<void> {
  const values = [...moved, ...more];
  const remembered = await from.journal.remembered(values.map(({ prefix }) => prefix));
  // What another instance has in hand it may let go of, to be called back again: it is not seen then.
  const held = from.isShared ? await from.journal.remembered([heldPrefix]) : [];
  const isHeld = (key: string) => held.some(([hold]) => `${hold}:`.startsWith(`${heldPrefix}${key}:`));
  const theirs = new Map(remembered.filter(([key]) => !isHeld(key)));
  if (theirs.has(keyOfTotal)) copies.optOuts ??= new Map(await to.journal.remembered([optOutPrefix]));
  const changed = copies.changed(addedTo(copies.optOuts ?? new Map(), theirs));
  const memories = changed.filter(([key, one]) => !(given.has(key) && isSame(given.get(key), one)));
  const items = from.items.filter((item) => copies.items.get(item.id) !== item);
  for (let start = 0; start < Math.max(items.length, memories.length); start += sliceSize) {
    if (!isWanted()) return;
    const part = items.slice(start, start + sliceSize);
    const step = adopt(part.map(forAnyService), memories.slice(start, start + sliceSize), to.now, { copies, values });
    const adopted = await to.journal.run(step);
    for (const item of part) copies.items.set(item.id, item);
    for (const { id } of adopted) to.arriving.add(id);
  }
  if (memories.length > 0) await to.findOut();
}

function isSame(one: Remembered | undefined, other: Remembered | undefined): boolean {
  return one?.at === other?.at && one?.value === other?.value;
}

/** What the service wanted, it may not want of another login, which may be at another service. */
function forAnyService<Kept extends Text | Asked>(item: Kept): Kept {
  return item.kind === 'text' && item.retryAfter ? { ...item, retryAfter: undefined } : item;
}

/**
 * Takes over what another ledger has. Where both remember something, what is here is newer and stays; their counts are added up, and
 * a text that has a key and is under way here may have ended there. What was copied a moment ago, and has changed there since, is
 * taken in the place of the copy.
 * Results in the items that are new here: after a crash the other may still have what was taken over before, and has been sent since.
 */
export function adopt<Kept extends Item>(
  items: readonly Kept[],
  memories: Memories,
  now: number,
  { copies = new Copies(), values = moved } = {},
): Step<Kept[]> {
  return {
    // Kept in two stores, a text may be sent by either.
    whileFailing: 'refuse',
    decide(look, changes) {
      const fresh = items.filter((item) => copies.adopted.has(item.id) || !look(adoptedKey(item)));
      for (const item of fresh) {
        keepItem(changes, item);
        noteAdopted(item, now, changes);
      }
      const copied = new Map<string, Copy>();
      // What it is copied from is forgotten then.
      if (memories.length > 0) changes.firm = true;
      for (const [key, theirs] of memories) {
        const own = look(key);
        const copy = copies.memories.get(key);
        const before = copy && copy.since?.value === own?.value ? copy.before : own;
        const { merge } = values.find(({ prefix }) => key.startsWith(prefix)) ?? {};
        if (before !== own) changes.remember.set(key, before);
        const merged = before && theirs ? merge?.(before, theirs, key, changes) : theirs;
        if (merged) changes.remember.set(key, merged);
        copied.set(key, { theirs, before, since: changes.remember.has(key) ? changes.remember.get(key) : own });
      }
      return () => {
        for (const item of fresh) copies.adopted.set(item.id, item);
        for (const [key, copy] of copied) copies.memories.set(key, copy);
        return fresh;
      };
    },
  };
}

/** Forgets what another ledger has taken over, flushed: what a power cut brought back would be sent here, too, should this login come back. */
export function abandon(items: readonly Item[], keys: readonly string[]): Step<void> {
  return createChange((changes) => {
    for (const item of items) {
      dropItem(changes, item.id, 'ledger');
      forgetAdopted(item, changes);
    }
    for (const key of keys) changes.remember.set(key, undefined);
    if (items.length > 0) changes.firm = true;
  });
}
