import type { Step } from '../journal';
import { dropItem, type Item, keepItem, type Remembered } from '../store/store';
import { isKeyOfLimits, limitPrefix, mergeCounts } from './limits';
import { mailboxKey, mergeLetters } from './mailbox';
import { mergeGuards, oncePrefix } from './once';
import type { Question } from './question';
import { mergeRemembrances, remembranceKey } from './remembrance';
import { closeQuestion, handsetPrefix, isKeyOfHandset, keysOfQuestion, mergeReferences, questionPrefix } from './sent';

/** The keys that the ledger remembers under begin so. */
export const ledgerPrefixes = [
  oncePrefix,
  'sent:',
  handsetPrefix,
  questionPrefix,
  'asked:',
  limitPrefix,
  mailboxKey,
  remembranceKey,
];

type Memories = readonly (readonly [key: string, remembered: Remembered])[];

/** That an item was taken over is known for longer than a login is changed in several attempts. */
const adoptedMs = 30 * 24 * 3_600_000;

const adoptedKey = ({ id }: Item) => `adopted:${id}`;

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
        changes.remember.set(adoptedKey(item), { at: now, forMs: adoptedMs, value: '' });
      }
      for (const [key, remembered] of memories) {
        const own = look(key);
        if (!own) changes.remember.set(key, remembered);
        else if (isKeyOfLimits(key)) changes.remember.set(key, mergeCounts(own, remembered));
        else if (key.startsWith(oncePrefix)) changes.remember.set(key, mergeGuards(own, remembered));
        else if (isKeyOfHandset(key)) mergeReferences(key, own, remembered, changes);
        else if (key === mailboxKey) changes.remember.set(key, mergeLetters(own, remembered));
        else if (key === remembranceKey) changes.remember.set(key, mergeRemembrances(own, remembered));
      }
      return () => fresh;
    },
  };
}

/** Takes over how questions have ended meanwhile that were adopted open. */
export function adoptAnswers(questions: readonly Question[]): Step<void> {
  return {
    keys: questions.flatMap(keysOfQuestion),
    whileFailing: 'apply',
    decide(look, changes) {
      for (const question of questions) {
        keepItem(changes, question);
        closeQuestion(question, look, changes);
      }
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
        // It may come back.
        changes.remember.set(adoptedKey(item), undefined);
      }
      for (const [key] of memories) changes.remember.set(key, undefined);
      if (items.length > 0) changes.firm = true;
      return () => {};
    },
  };
}
