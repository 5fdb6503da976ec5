import type { SmsError } from '../errors';
import type { Step } from '../journal/step';
import { recordAgain } from '../replies/again';
import type { MessageItem } from './message-item';
import { guard, judgeOnce, type OnceVerdict } from './once';
import { noteWithdrawn, readHolder, readSuperseding, replaceKeyOf, takeKey } from './replace';
import { keepText, type Moved, type StepContext, startFrom, supersede } from './transitions';

/** The result of accepting a new message into the outbox. */
export interface Acceptance {
  verdict: OnceVerdict;
  /** The message as stored, if the store has it. */
  text: MessageItem;
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
export function accept(text: MessageItem, memory: StepContext, { busy, firstId }: Arrival): Step<Acceptance>['decide'] {
  return (look, changes) => {
    const verdict = judgeOnce(text, { look, now: memory.now, firstId });
    const isNew = verdict.type === 'new';
    // A replacement uses the queue place of the older message.
    const mayReplace = isNew && text.options.replaceKey !== undefined;
    const older = mayReplace ? takeKey(text, look, changes, (id) => memory.books.messages.has(id)) : undefined;
    if (busy && older?.why !== 'replaced' && (isNew ? text.options.keep : verdict.type === 'underway')) {
      // The step is rejected as a whole, so that nothing changes.
      throw busy;
    }
    const waiting = older && startFrom('replace', older.id, memory, changes);
    const replaced = waiting && supersede(waiting, older.why, memory, { look, changes });
    if (isNew) guard(text, changes, memory);
    const kept = isNew ? keepText(text, memory.now, changes) : text;
    const onTaken = recordAgain(text, memory.books.followUps, changes);
    return () => {
      onTaken();
      return { verdict, text: kept, ...(replaced && { replaced }) };
    };
  };
}

/**
 * waiting → settled: a reset withdraws the node's message that has this `replace` key. Results in the ended message, if
 * this process has it and it has not started to leave.
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

/** Ends those messages of the list that another instance has replaced or withdrawn. */
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
