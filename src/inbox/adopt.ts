import type { Step } from '../journal/journal';
import { adoptedKey, forgetAdopted, noteAdopted } from '../store/adopted';
import { dropEntry, forgetSeen, holdKeysOf, type InboxContext, judgeAndRemember, keepEntry } from './context';
import { Pending } from './entries';
import { identify, keysOf } from './identity';

/**
 * Takes charge of entries of another inbox. Whether they were seen here does not matter: they are entries. But each is taken once:
 * where a process ended before the other had forgotten it, it may be delivered here already.
 */
export function createAdopt(context: InboxContext, given: readonly Pending[]): Step<void> {
  const { entries, subscribers } = context;
  const items = given.map(({ entry }) => ({ entry, identity: identify(entry) }));
  return {
    keys: items.flatMap(({ entry, identity }) => [
      adoptedKey(entry),
      ...keysOf(identity),
      ...holdKeysOf(context, entry, identity),
    ]),
    whileFailing: 'apply',
    decide(look, changes) {
      const adopted = items
        .filter(({ entry }) => !entries.has(entry.id) && look(adoptedKey(entry)) === undefined)
        .map(({ entry, identity }) => new Pending(entry, identity));
      for (const one of adopted) {
        const { entry, identity } = one;
        const isCalled = entry.channel === 'callback';
        noteAdopted(entry, context.clock.now(), changes);
        judgeAndRemember(context, { identity, via: isCalled ? 'callback' : 'poll' }, look, changes);
        keepEntry(context, entry, identity, changes);
        if (isCalled) entries.expect(one, changes);
      }
      return () => {
        for (const one of adopted) entries.add(one);
        subscribers.giveAll();
      };
    },
  };
}

/**
 * Forgets entries that another inbox has taken charge of, flushed: what a power cut brought back would be delivered here, too, should this
 * login come back. What was called back is new here from now on: should the other let go
 * of it, and this login come back, the service brings it here.
 */
export function createAbandon(context: InboxContext, handed: readonly Pending[]): Step<void> {
  const called = handed.filter(({ entry: { channel, twin } }) => channel === 'callback' && !twin);
  return {
    keys: called.flatMap(({ identity }) => keysOf(identity)),
    whileFailing: 'apply',
    drops: handed.map(({ entry }) => entry.id),
    decide(look, changes) {
      for (const { entry, identity } of handed) {
        dropEntry(context, entry, identity, changes);
        forgetAdopted(entry, changes);
      }
      for (const { identity } of called) forgetSeen(identity, look, changes);
      changes.firm = true;
      return () => {};
    },
  };
}
