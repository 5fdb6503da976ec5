import type { SmsError } from '../errors';
import type { Step } from '../journal/step';
import { takeAgain } from '../replies/again';
import { guard, judgeOnce, type OnceVerdict } from './once';
import { noteWithdrawn, readHolder, readSuperseding, replaceKeyOf, takeKey } from './replace';
import type { Text } from './text';
import { keepText, type Moved, type StepContext, startFrom, supersede } from './transitions';

/** The result of taking a message in. */
export interface TakenIn {
  verdict: OnceVerdict;
  /** As it is in the store, if it is. */
  text: Text;
  /** The end of the message that it replaced here. */
  replaced?: Moved;
}

/** How a message is taken in. */
export interface Arrival {
  /** Why it may not wait, if so. */
  busy?: SmsError | undefined;
  /** Id of the message with the same deduplication key, if it waited for its outcome. */
  firstId?: string | undefined;
}

/**
 * Takes a message in: flushes it before anything else happens to it, unless another message has its deduplication key. The message that it
 * replaces ends in the same commit. If that is at another instance, it ends there: see {@link collectSuperseded}.
 */
export function takeIn(text: Text, memory: StepContext, { busy, firstId }: Arrival): Step<TakenIn>['decide'] {
  return (look, changes) => {
    const verdict = judgeOnce(text, { look, now: memory.now, firstId });
    const isNew = verdict.type === 'new';
    // A replacement takes the room of the older message.
    const mayReplace = isNew && text.options.replaceKey !== undefined;
    const olderId = mayReplace ? takeKey(text, look, changes) : undefined;
    if (busy && olderId === undefined && (isNew ? text.options.keep : verdict.type === 'underway')) {
      // A step that throws changes nothing.
      throw busy;
    }
    const older = olderId === undefined ? undefined : startFrom('replace', olderId, memory, changes);
    const replaced = older && supersede(older, 'replaced', memory, { look, changes });
    if (isNew) guard(text, changes, memory);
    const kept = isNew ? keepText(text, memory.now, changes) : text;
    const onTaken = takeAgain(text, memory.books.followUps, changes);
    return () => {
      onTaken();
      return { verdict, text: kept, ...(replaced && { replaced }) };
    };
  };
}

/**
 * waiting → settled: a reset withdraws the message of a node that has a key of `replace`. Results in its end, if it is here and has not started
 * to leave.
 */
export function withdraw(node: string, replaceKey: string, memory: StepContext): Step<Moved | undefined> {
  const key = replaceKeyOf(node, replaceKey);
  return {
    whileFailing: 'refuse',
    decide(look, changes) {
      const holder = readHolder(key, look);
      if (!holder || holder.isWithdrawn) return () => undefined;
      const text = holder.isLeaving ? undefined : startFrom('withdraw', holder.id, memory, changes);
      if (!text) {
        noteWithdrawn(key, memory.now, look, changes);
        return () => undefined;
      }
      const moved = supersede(text, 'withdrawn', memory, { look, changes });
      return () => moved;
    },
  };
}

/** Ends those of these messages that another instance has replaced or withdrawn. */
export function collectSuperseded(ids: readonly string[], memory: StepContext): Step<Moved[]> {
  return {
    whileFailing: 'refuse',
    decide(look, changes) {
      const ended = ids.flatMap((id) => {
        const text = startFrom('replace', id, memory, changes);
        const why = text && readSuperseding(text, look);
        return why ? [supersede(text, why, memory, { look, changes })] : [];
      });
      return () => ended;
    },
  };
}
