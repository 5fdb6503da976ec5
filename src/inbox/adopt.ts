import type { Step } from '../journal/journal';
import { adoptedKey, forgetAdopted, noteAdopted } from '../store/adopted';
import { dropEntry, forgetSeen, holdKeysOf, type InboxContext, judgeAndRemember, keepEntry } from './context';
import { identify, keysOf } from './identity';
import { Undelivered } from './undelivered';

/**
 * Takes charge of entries of another inbox. Whether they were seen here does not matter: they are undelivered. But each is taken once:
 * where a process ended before the other had forgotten it, it may be delivered here already.
 */
export function createAdopt(context: InboxContext, given: readonly Undelivered[]): Step<void> {
  const { undelivered, unread, distribution } = context;
  const items = given.map(({ entry, held }) => ({ entry, held, identity: identify(entry) }));
  return {
    keys: items.flatMap(({ entry, identity }) => [
      adoptedKey(entry),
      ...keysOf(identity),
      ...holdKeysOf(context, entry, identity),
    ]),
    whileFailing: 'apply',
    decide(look, changes) {
      const adopted = items
        .filter(({ entry }) => !undelivered.has(entry.id) && look(adoptedKey(entry)) === undefined)
        .map(({ entry, identity, held }) => {
          const one = new Undelivered(entry, identity);
          one.held = held;
          return one;
        });
      for (const one of adopted) {
        const { entry, identity } = one;
        const isCalled = entry.channel === 'callback';
        noteAdopted(entry, context.clock.now(), changes);
        judgeAndRemember(context, { identity, via: isCalled ? 'callback' : 'poll' }, look, changes);
        keepEntry(context, entry, identity, changes);
        if (isCalled) undelivered.expect(one, changes);
      }
      return (isWritten) => {
        for (const one of adopted) {
          if (!isWritten || !unread.putOff(one.entry)) undelivered.addRead(one);
          // The store of the other fails, and has it for longer.
          else one.held?.done();
        }
        distribution.handOutSoon();
      };
    },
  };
}

/**
 * Forgets entries that another inbox has taken charge of, flushed: what a power cut brought back would be delivered here, too, should this
 * login come back. What was called back is new here from now on: should the other let go
 * of it, and this login come back, the service brings it here.
 */
export function createAbandon(context: InboxContext, handed: readonly Undelivered[]): Step<void> {
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
