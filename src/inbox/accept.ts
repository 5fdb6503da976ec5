import type { Step } from '../journal/journal';
import type { Hold } from '../store/store';
import { type Acceptance, type Arrival, acceptRecord, addTwin } from './acceptance';
import { keysOfAnswer } from './answered';
import { audienceOf, channelOf, holdKeysOf, type InboxContext } from './context';
import { separate } from './entry';
import { HeldRecord, parseNote } from './held-record';
import { identify, keysOf } from './identity';
import type { Undelivered } from './undelivered';

/** How an arrival reached the inbox. */
export interface Handling {
  /** An earlier process had it in hand, and may have committed it. */
  isLeftover: boolean;
  /** Where a crash does not reach it until it is committed; absent: there is no such place. */
  held: Hold | undefined;
  /** What that process has noted of its records. See {@link HeldRecord}. Absent: nobody has had them before. */
  notes?: string;
}

/** Keeps what came, and gives the new to the nodes it is for. */
export function createAccept(context: InboxContext, arrival: Arrival, handling: Handling): Step<Acceptance[]> {
  const { distribution, undelivered } = context;
  const items = separate(arrival).map((news, index) => ({
    news,
    identity: identify(news),
    past: parseNote(handling.notes?.[index]),
  }));
  const { correlator } = context;
  const keys: string[] = [];
  for (const { news, identity } of items) {
    keys.push(...keysOf(identity), ...holdKeysOf(context, arrival, identity), ...(correlator?.keys(news) ?? []));
    // One that is called back may have been released by another process.
    if (arrival.via === 'callback' || correlator?.isExpected) keys.push(...keysOfAnswer(identity));
  }
  return {
    keys,
    further(look) {
      const further: string[] = [];
      for (const { news, identity } of items) {
        const keysOfTexts = correlator?.furtherKeys(news, look) ?? [];
        if (keysOfTexts.length > 0) further.push(...keysOfTexts, ...keysOfAnswer(identity));
      }
      return further;
    },
    // The service has forgotten what it was polled for, but not what it called back.
    whileFailing: arrival.via === 'callback' ? 'refuse' : 'apply',
    // Where it is held it is found again, and may have been committed and delivered.
    needsLook: handling.isLeftover,
    decide(look, changes) {
      const audience = audienceOf(context, channelOf(arrival), arrival);
      const attempts = audience.length > 0 ? 1 : 0;
      const { isLeftover } = handling;
      const outcomes = items.map(({ news, identity, past }) =>
        acceptRecord(context, { news, identity, past, arrival, attempts, isLeftover }, look, changes),
      );
      return (isWritten) => {
        const { held } = handling;
        if (isWritten) held?.letGo();
        const fresh: Undelivered[] = [];
        for (const [index, outcome] of outcomes.entries()) {
          if (outcome.fresh && held && !isWritten) keepHeld(outcome.fresh, new HeldRecord(held, index));
          if (outcome.orphan) {
            undelivered.remove(outcome.orphan.entry.id);
            outcome.orphan.end(false);
          }
          if (outcome.twinned) addTwin(outcome.twinned.entry, outcome.twinned.twin);
          if (outcome.fresh) fresh.push(outcome.fresh);
          outcome.effect?.();
        }
        for (const one of fresh) undelivered.add(one);
        distribution.giveNew(fresh, audience, arrival);
        return outcomes.map(({ acceptance }) => acceptance);
      };
    },
  };
}

/** The store fails: what becomes of it is noted where it is held, so that whoever finds it there knows. */
function keepHeld(fresh: Undelivered, held: HeldRecord): void {
  fresh.held = held;
  held.given(fresh.entry.attempts);
}
