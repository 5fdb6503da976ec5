import { isDeepStrictEqual } from 'node:util';
import {
  type Changes,
  dropItem,
  heldPrefix,
  type Item,
  type ItemKind,
  keepItem,
  type MovedValues,
  type Remembered,
} from '../store/store';
import type { Journal } from './journal';
import { createChange, type Participant, type Step } from './step';

type Participants = ReadonlyMap<ItemKind, Participant>;

/** By key, what is remembered; `undefined`: nothing any more. */
type Values = readonly (readonly [key: string, remembered: Remembered | undefined])[];

/** How everything is moved to another journal. */
export interface Move {
  /** Only the items of these parts are moved, also while the store fails; absent: everything, as long as it does not. */
  parts?: readonly ItemKind[];
  /** Nobody is to take what a shared store has any more; otherwise that stays there. */
  isLast?: boolean;
  /** What is remembered stays there as well as it is moved: others may go on with it. */
  keepsMemory?: boolean;
  /** What the other has of it since it was moved before: what stays is moved no more as it was, since the other may have forgotten it. */
  copies?: Copies;
  /** Whether nobody is here who goes on with it; nobody ever when absent. */
  isWanted?(): boolean;
  /** All of it is the other's from now on. */
  onMoved?(): void;
}

/** Items moved in one commit. */
const sliceSize = 500;

/** That an item was taken over is known for longer than a login is changed in several attempts. */
const adoptedMs = 30 * 24 * 3_600_000;

/** What was remembered by the one, and what the other had under that key before, and has since. */
type Copy = Record<'theirs' | 'before' | 'since', Remembered | undefined>;

/** What another journal has of one that has not let go of it. */
export class Copies {
  /** Items as they were when they were copied, by id. */
  readonly items = new Map<string, Item>();
  /** Those of them that the other had not adopted before. */
  readonly adopted = new Map<string, Item>();
  /** By key. */
  readonly values = new Map<string, Copy>();
}

/**
 * Moves everything to another journal, and forgets it once that one has it in its store: copied until nothing changes any more, and then let go
 * of at once, so that at any time one of them knows everything. Where it is not wanted any more by then, it stays here.
 *
 * @throws SmsError `SMS_STORE` when one of the stores cannot be used: it is safe where it is
 */
export async function moveAll(from: Journal, to: Journal, how: Move = {}): Promise<void> {
  const { parts, isLast = false, copies = new Copies(), isWanted = () => true, onMoved = () => {} } = how;
  const keepsOwn = from.isShared && !isLast;
  if (keepsOwn && !parts) return;
  const ready = from.ready();
  await (parts ? ready.catch(() => {}) : ready);
  // What is being taken in may be refused yet.
  await from.flush();
  // It may have been closed since it was used last.
  await to.ready();
  const items = () => {
    const moving = [...from.participants].filter(([part]) => parts?.includes(part) ?? true);
    const kept = moving.flatMap(([, participant]) => [...(participant.kept?.() ?? [])]);
    return kept.filter(({ id }) => !keepsOwn || !from.isStored(id));
  };
  const moved = new Map<string, Item>();
  const before = new Set(copies.values.keys());
  let isMoved = false;
  try {
    let changed = items();
    // What is found meanwhile, of a dead instance, is no step.
    for (let taken = -1; isWanted() && (from.taken !== taken || changed.length > 0); ) {
      ({ taken } = from);
      // What an item needs is there before it: whoever is killed in between goes on with both.
      if (!parts) await copyValues(from, to, copies);
      await copyItems(from, to, changed, copies);
      await from.flush();
      changed = items().filter((item) => !isDeepStrictEqual(item, copies.items.get(item.id)));
    }
    isMoved = isWanted();
    if (isMoved) {
      for (const item of items()) {
        moved.set(item.id, item);
        from.participants.get(item.part)?.forget?.(item.id);
      }
      onMoved();
      const arrived = [...copies.adopted.values()].filter(({ id }) => moved.has(id));
      await to.take(arrived, letGo(from, [...moved.values()]));
      await forget(from, copies, how.keepsMemory);
    }
  } finally {
    // What was done with meanwhile, and all where it stays.
    const rest = [...copies.adopted.values()].filter(({ id }) => !moved.has(id));
    await to.run(abandon(to.participants, rest, []));
    for (const known of [copies.items, copies.adopted, to.arriving]) known.clear();
  }
  if (!isMoved) await uncopy(to, copies, before);
}

async function copyItems(from: Journal, to: Journal, items: readonly Item[], copies: Copies): Promise<void> {
  for (const item of items) to.arriving.set(item.id, item);
  // They may be changed where they are.
  for (const slice of slicesOf(items.map((item) => ({ ...item })))) {
    // Whoever comes back here after a kill has them, and is not to take them over from the other.
    const note = (changes: Changes) => {
      for (const item of slice) noteAdopted(item, from.clock.now(), changes);
      changes.firm = true;
    };
    await from.run(createChange(note));
    await to.run(adopt(to, slice, [], copies));
  }
}

/** Copies what is remembered otherwise than as it was copied, or not any more. */
async function copyValues(from: Journal, to: Journal, copies: Copies): Promise<void> {
  const values = valuesOf(from.participants);
  const remembered = await from.remembered(values.map(({ prefix }) => prefix));
  // What another instance has in hand it may let go of, to be called back again: it is not seen then.
  const held = from.isShared ? await from.remembered([heldPrefix]) : [];
  const isHeld = (key: string) => held.some(([hold]) => `${hold}:`.startsWith(`${heldPrefix}${key}:`));
  const theirs = new Map(remembered.filter(([key]) => !isHeld(key)));
  const keys = new Set([...theirs.keys(), ...copies.values.keys()]);
  const memory = [...keys].map((key) => [key, theirs.get(key)] as const);
  const changed = memory.filter(([key, one]) => !isDeepStrictEqual(copies.values.get(key)?.theirs, one));
  for (const slice of slicesOf(changed)) await to.run(adopt(to, [], slice, copies));
  if (changed.length > 0) await to.take([]);
}

/** Has the other remember what it did, but for what was copied before, and for who opted out: one too many harms nobody. */
async function uncopy(to: Journal, copies: Copies, before: ReadonlySet<string>): Promise<void> {
  const values = valuesOf(to.participants);
  const copied = [...copies.values.keys()].filter((key) => !before.has(key) && !findOf(values, key)?.staysCopied);
  for (const keys of slicesOf(copied)) {
    const nothing = keys.map((key) => [key, undefined] as const);
    await to.run(adopt(to, [], nothing, copies));
  }
}

/** Whoever comes back here after a kill is not to have what the other has done. */
async function letGo(from: Journal, items: readonly Item[]): Promise<void> {
  for (const slice of slicesOf(items)) await from.run(abandon(from.participants, slice, []));
}

/** Forgets what is remembered, but for what stays. */
async function forget(from: Journal, copies: Copies, keepsMemory = false): Promise<void> {
  const values = valuesOf(from.participants);
  const stays = (key: string) => keepsMemory || (from.isShared && findOf(values, key)?.isCommon);
  const keys = [...copies.values.keys()].filter((key) => !stays(key));
  for (const key of keys) copies.values.delete(key);
  for (const slice of slicesOf(keys)) await from.run(abandon(from.participants, [], slice));
}

function* slicesOf<T>(list: readonly T[]): Iterable<T[]> {
  for (let start = 0; start < list.length; start += sliceSize) yield list.slice(start, start + sliceSize);
}

function valuesOf(participants: Participants): readonly MovedValues[] {
  return [...participants.values()].flatMap(({ values = [] }) => values);
}

function findOf(values: readonly MovedValues[], key: string): MovedValues | undefined {
  return values.find(({ prefix }) => key.startsWith(prefix));
}

/** Under this key stands that an item was taken over from another store. */
function adoptedKey({ id }: Pick<Item, 'id'>): string {
  return `adopted:${id}`;
}

function noteAdopted(item: Item, at: number, { remember }: Changes): void {
  remember.set(adoptedKey(item), { at, forMs: adoptedMs, value: '' });
}

/**
 * Takes over what another journal has. Where both remember something, what is here is newer and stays, unless it is put together; and
 * a text that has a key and is under way here may have ended there. What was copied a moment ago, and has changed there since, is
 * taken in the place of the copy. An item is taken once: after a crash the other may still have what was taken over before, and has been
 * done with since; and what had ended with it.
 */
export function adopt(
  { participants, clock }: Pick<Journal, 'participants' | 'clock'>,
  items: readonly Item[],
  memory: Values,
  copies = new Copies(),
): Step<void> {
  const values = valuesOf(participants);
  return {
    // Kept in two stores, a text may be sent by either.
    whileFailing: 'refuse',
    decide(look, changes) {
      const fresh = items.filter((item) => copies.adopted.has(item.id) || !look(adoptedKey(item)));
      for (const item of fresh) {
        keepItem(changes, item);
        noteAdopted(item, clock.now(), changes);
        participants.get(item.part)?.moves?.(item, true, look, changes);
      }
      const copied = new Map<string, Copy>();
      // What it is copied from is forgotten then.
      if (memory.length > 0) changes.firm = true;
      for (const [key, theirs] of memory) {
        const own = look(key);
        const copy = copies.values.get(key);
        const before = copy && copy.since?.value === own?.value ? copy.before : own;
        const { merge, textOf } = findOf(values, key) ?? {};
        const text = theirs && textOf?.(theirs);
        const wasTaken =
          text !== undefined && !copies.adopted.has(text) && look(adoptedKey({ id: text })) !== undefined;
        const left = wasTaken && !own ? undefined : theirs;
        if (before !== own) changes.remember.set(key, before);
        const merged = before && left ? merge?.(before, left, key, changes) : left;
        if (merged) changes.remember.set(key, merged);
        copied.set(key, { theirs, before, since: changes.remember.has(key) ? changes.remember.get(key) : own });
      }
      return () => {
        for (const item of items) copies.items.set(item.id, item);
        for (const item of fresh) copies.adopted.set(item.id, item);
        for (const [key, copy] of copied) copies.values.set(key, copy);
      };
    },
  };
}

/** Forgets what another journal has, flushed: what a power cut brought back would be done here, too, should this login come back. */
export function abandon(participants: Participants, items: readonly Item[], keys: readonly string[]): Step<void> {
  return {
    whileFailing: 'apply',
    drops: items.map(({ id }) => id),
    decide(look, changes) {
      for (const item of items) {
        dropItem(changes, item.id, item.part);
        changes.remember.set(adoptedKey(item), undefined);
        participants.get(item.part)?.moves?.(item, false, look, changes);
      }
      for (const key of keys) changes.remember.set(key, undefined);
      if (items.length > 0) changes.firm = true;
      return () => {};
    },
  };
}
