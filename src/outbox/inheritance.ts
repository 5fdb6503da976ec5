import type { Step } from '../journal/journal';
import { type Asked, askedHeritage } from '../questions/question';
import { replyHeritage } from '../questions/replies';
import { statusesHeritage } from '../questions/report';
import { closeQuestion, keysOfQuestion, remembranceHeritage, sentHeritage } from '../questions/sent-index';
import { adoptedKey, dropItem, forgetAdopted, type Item, keepItem, noteAdopted, type Remembered } from '../store/store';
import { absenceHeritage } from './absences';
import { optOutHeritage } from './consent-rule';
import type { Heritage } from './heritage';
import { limitHeritage } from './limits';
import { onceHeritage } from './once';
import { carriedHeritage } from './transitions';

/** All that the ledger remembers, but what it has taken over. */
const heritages: readonly Heritage[] = [
  absenceHeritage,
  carriedHeritage,
  askedHeritage,
  limitHeritage,
  optOutHeritage,
  replyHeritage,
  onceHeritage,
  remembranceHeritage,
  ...sentHeritage,
  statusesHeritage,
];

/** The keys that the ledger remembers under begin so. */
export const ledgerPrefixes = heritages.map(({ prefix }) => prefix);

type Memories = readonly (readonly [key: string, remembered: Remembered])[];

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
        const { merge } = heritages.find(({ prefix }) => key.startsWith(prefix)) ?? {};
        const merged = own ? merge?.(own, remembered, key, changes) : remembered;
        if (merged) changes.remember.set(key, merged);
      }
      return () => fresh;
    },
  };
}

/** Takes over how questions and reports have ended meanwhile that were adopted open. */
export function adoptAnswers(asked: readonly Asked[]): Step<void> {
  const questions = asked.filter((one) => one.kind === 'question');
  return {
    keys: questions.flatMap(keysOfQuestion),
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
