import type { Step } from '../journal';
import { holdKeysOf, type InboxContext, judgeAndRemember, keepEntry } from './context';
import type { Entry } from './entry';
import { identify, keysOf } from './identity';
import { createUndelivered } from './undelivered';

/** Takes charge of entries of another inbox. Whether they were seen here does not matter: they are undelivered. */
export function createAdopt(context: InboxContext, entries: readonly Entry[]): Step<void> {
  const { undelivered, distribution } = context;
  const items = entries.map((entry) => ({ entry, identity: identify(entry) }));
  return {
    keys: items.flatMap(({ entry, identity }) => [...keysOf(identity), ...holdKeysOf(context, entry, identity)]),
    whileFailing: 'apply',
    decide(look, changes) {
      const adopted = items.filter(({ entry: { id } }) => !undelivered.has(id) && !changes.keep.has(id));
      for (const { entry, identity } of adopted) {
        const via = entry.channel === 'callback' ? 'callback' : 'poll';
        judgeAndRemember(context, { identity, via }, look, changes);
        keepEntry(context, entry, identity, changes);
      }
      return () => {
        for (const { entry, identity } of adopted) undelivered.add(createUndelivered(entry, identity));
        distribution.handOutSoon();
      };
    },
  };
}
