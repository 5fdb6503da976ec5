import type { SmsError } from '../errors';
import type { Step } from '../journal/step';
import { recordAgain } from '../replies/reply-steps';
import type { MessageItem } from './message-item';
import { guard, judgeOnce, type OnceVerdict } from './once';
import { noteWithdrawn, readHolder, readSuperseding, replaceKeyOf, takeKey } from './replace';
import { keepMessage, type Moved, type StepContext, startFrom, supersede } from './transitions';

/** The result of accepting a new message into the outbox. */
export interface Acceptance {
  verdict: OnceVerdict;
  /** The message as stored, if the store has it. */
  item: MessageItem;
  /** The outcome of the replaced message, if that message belongs to this process. */
  replaced?: Moved;
}

/** The circumstances in which a message arrives. */
export interface Arrival {
  /** The error that refuses the message if it would have to wait. */
  busy?: SmsError | undefined;
  /** Id of the first message with the same deduplication key, if this message waited for that outcome. */
  firstId?: string | undefined;
}

/**
 * Accepts a new message. Flushes the message to the store before anything else happens to it, unless another message
 * has its deduplication key. The same commit ends the message that it replaces. If another instance has the replaced
 * message, that instance ends it: see {@link collectSuperseded}.
 */
export function accept(
  item: MessageItem,
  context: StepContext,
  { busy, firstId }: Arrival,
): Step<Acceptance>['decide'] {
  return (readKey, changes) => {
    const verdict = judgeOnce(item, { readKey, now: context.now, firstId });
    const isNew = verdict.type === 'new';
    // A replacement uses the queue place of the older message.
    const mayReplace = isNew && item.options.replaceKey !== undefined;
    const older = mayReplace ? takeKey(item, readKey, changes, (id) => context.current.messages.has(id)) : undefined;
    if (busy && older?.why !== 'replaced' && (isNew ? item.options.keep : verdict.type === 'underway')) {
      // The step is rejected as a whole, so that nothing changes.
      throw busy;
    }
    const waiting = older && startFrom('replace', older.id, context, changes);
    const replaced = waiting && supersede(waiting, older.why, context, { readKey, changes });
    if (isNew) guard(item, changes, context);
    const kept = isNew ? keepMessage(item, context.now, changes) : item;
    const onTaken = recordAgain(item, context.current.followUps, changes);
    return () => {
      onTaken();
      return { verdict, item: kept, ...(replaced && { replaced }) };
    };
  };
}

/**
 * waiting → settled: a reset withdraws the node's message that has this `replace` key. Results in the ended message, if
 * this process has it and it has not started to leave.
 */
export function withdraw(node: string, replaceKey: string, context: StepContext): Step<Moved | undefined> {
  const key = replaceKeyOf(node, replaceKey);
  return {
    whileFailing: 'refuse',
    decide(readKey, changes) {
      const holder = readHolder(key, readKey);
      if (!holder || holder.isWithdrawn) return () => undefined;
      const item = holder.isLeaving ? undefined : startFrom('withdraw', holder.id, context, changes);
      if (!item) {
        noteWithdrawn(key, context.now, readKey, changes);
        return () => undefined;
      }
      const moved = supersede(item, 'withdrawn', context, { readKey, changes });
      return () => moved;
    },
  };
}

/** Ends those messages of the list that another instance has replaced or withdrawn. */
export function collectSuperseded(ids: readonly string[], context: StepContext): Step<Moved[]> {
  return {
    whileFailing: 'refuse',
    decide(readKey, changes) {
      const ended = ids.flatMap((id) => {
        const item = startFrom('replace', id, context, changes);
        const why = item && readSuperseding(item, readKey);
        return why ? [supersede(item, why, context, { readKey, changes })] : [];
      });
      return () => ended;
    },
  };
}
