import { mergeOptOuts, optOutPrefix } from '../consent/opt-outs';
import type { Step } from '../journal/journal';
import { type Asked, movedCarried } from '../questions/question';
import { movedReplies } from '../questions/replies';
import { movedStatuses } from '../questions/report';
import { closeQuestion, movedSent, movedSentIndex, questionKey } from '../questions/sent-index';
import {
  adoptedKey,
  dropItem,
  forgetAdopted,
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

type Memories = readonly (readonly [key: string, remembered: Remembered])[];

/** How everything is given to another ledger. */
export interface Move {
  /** Nobody is to take what a shared store has any more. */
  isLast: boolean;
  /** What is remembered stays there as well as it is given: others may go on with it. */
  keepsMemory?: boolean;
  /** Whether nobody is here who sends it. */
  isWanted(): boolean;
  /** The texts of these ids, or their questions, are the other's now. */
  onGiven(texts: ReadonlySet<string>): void;
}

/** Items moved in one commit. */
const sliceSize = 500;

/**
 * Gives everything to another ledger, and forgets it once that one has it in its store. What it has not got when that is not
 * wanted any more stays here.
 *
 * @throws SmsError `SMS_STORE` when one of the stores cannot be used: what is left stays where it is safe
 */
export async function moveAll(from: Ledger, to: Ledger, how: Move): Promise<void> {
  const { isLast, keepsMemory = false, isWanted, onGiven } = how;
  const { journal } = from;
  if (from.isShared && !isLast) return;
  await journal.ready();
  // What is being taken in may be refused yet.
  await journal.flush();
  // It may have been closed since it was used last.
  await to.journal.ready();
  const remembered = await journal.remembered(ledgerPrefixes);
  const items = from.items.map(forAnyService);
  for (let start = 0; start < Math.max(items.length, remembered.length); start += sliceSize) {
    if (!isWanted()) return;
    const part = items.slice(start, start + sliceSize);
    const memory = remembered.slice(start, start + sliceSize);
    const adopted = await to.journal.run(adopt(part, memory, to.now));
    for (const { id } of adopted) to.arriving.add(id);
    try {
      await to.findOut();
      await followAnswers(adopted, from, to);
      if (!isWanted()) {
        await to.journal.run(abandon(part, []));
        return;
      }
      for (const item of part) from.forget(item);
      onGiven(new Set(part.map((item) => (item.kind === 'text' ? item.id : item.text))));
      await journal.run(abandon(part, keepsMemory ? [] : memory));
    } finally {
      for (const { id } of adopted) to.arriving.delete(id);
    }
    await to.found(adopted, { isOpening: false, isReset: false });
  }
}

/** Brings answers along that came while items were being adopted. When it resolves nothing is being written here. */
async function followAnswers(adopted: (Text | Asked)[], from: Ledger, to: Ledger): Promise<void> {
  for (;;) {
    await from.journal.flush();
    const answered: Asked[] = [];
    for (const [index, { id }] of adopted.entries()) {
      const current = from.questions.get(id);
      if (!current?.answer || current === adopted[index]) continue;
      adopted[index] = current;
      answered.push(current);
    }
    if (answered.length === 0) return;
    await to.journal.run(adoptAnswers(answered));
  }
}

/** What the service wanted, it may not want of another login, which may be at another service. */
function forAnyService<Kept extends Text | Asked>(item: Kept): Kept {
  return item.kind === 'text' && item.retryAfter ? { ...item, retryAfter: undefined } : item;
}

/**
 * Takes over what another ledger has. Where both remember something, what is here is newer and stays; their counts are added up, and
 * a text that has a key and is under way here may have ended there.
 * Results in the items that are new here: after a crash the other may still have what was taken over before, and has been sent since.
 */
export function adopt<Kept extends Item>(items: readonly Kept[], memories: Memories, now: number): Step<Kept[]> {
  return {
    keys: [...items.map(adoptedKey), ...memories.map(([key]) => key)],
    // Kept in two stores, a text may be sent by either.
    whileFailing: 'refuse',
    decide(look, changes) {
      const fresh = items.filter((item) => !look(adoptedKey(item)));
      for (const item of fresh) {
        keepItem(changes, item);
        noteAdopted(item, now, changes);
      }
      for (const [key, remembered] of memories) {
        const own = look(key);
        const { merge } = moved.find(({ prefix }) => key.startsWith(prefix)) ?? {};
        const merged = own ? merge?.(own, remembered, key, changes) : remembered;
        if (merged) changes.remember.set(key, merged);
      }
      return () => fresh;
    },
  };
}

/** Takes over how questions and reports have ended meanwhile that were adopted open. */
function adoptAnswers(asked: readonly Asked[]): Step<void> {
  const questions = asked.filter((one) => one.kind === 'question');
  return {
    keys: questions.map(({ reference, recipient }) => questionKey(reference, recipient)),
    whileFailing: 'apply',
    decide(look, changes) {
      for (const one of asked) keepItem(changes, one);
      for (const question of questions) closeQuestion(question, look, changes);
      return () => {};
    },
  };
}

/** Forgets what another ledger has taken over, flushed: what a power cut brought back would be sent here, too, should this login come back. */
export function abandon(items: readonly Item[], memories: Memories): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    decide(_look, changes) {
      for (const item of items) {
        dropItem(changes, item.id, 'ledger');
        forgetAdopted(item, changes);
      }
      for (const [key] of memories) changes.remember.set(key, undefined);
      if (items.length > 0) changes.firm = true;
      return () => {};
    },
  };
}
