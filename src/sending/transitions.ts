import type { Step } from '../journal';
import { type Changes, createChanges, type Look } from '../store/store';
import {
  giveBack,
  judgeLimits,
  keysOfLimits,
  type Leaving,
  type Limited,
  type LimitSettings,
  takeWithinLimits,
} from './limits';
import { type Duration, guard, judgeOnce, noteOutcome, type OnceVerdict, onceKey } from './once';
import {
  formatOutcome,
  isAccepted,
  isRemembered,
  isTracked,
  isUnknown,
  type Outcome,
  parseOutcome,
  type Sent,
  submittedOf,
  type Text,
  uncountedBy,
} from './outgoing';
import { askedKey, type Question } from './question';
import type { QuestionBook } from './question-book';
import { nextRevision } from './revision';
import { closeQuestion, keysOfSent, referenceOf, rememberSent } from './sent';
import type { Moment } from './sliding-window';

/** What steps go by: the time, and for how long the ledger remembers what, in ms. */
export interface Memory {
  now: number;
  moment: Moment;
  limits: LimitSettings;
  dedupeMs: number;
  sentMs: number;
}

/** Where a text stands after a step, and its questions with it. */
export interface Moved {
  text: Text;
  asked: readonly Question[];
  /** Ids of questions that are asked no more. */
  unasked: readonly string[];
  /** Not while the store fails: then it is written later. */
  isWritten: boolean;
}

/** A question and what the flow sent with it stay for so long after its time, should nobody be there to take its end. */
export const questionGraceMs = 7 * 24 * 3_600_000;

/** A text comes: it is flushed before anything else happens to it, unless its key says that it was sent. */
export function takeIn(text: Text, { now, dedupeMs }: Memory): Step<OnceVerdict> {
  const key = onceKey(text);
  return {
    keys: key === undefined ? [] : [key],
    whileFailing: 'refuse',
    decide(look, changes) {
      const verdict = judgeOnce(text, look, now);
      if (verdict.type === 'new') {
        guard(text, changes, now, dedupeMs);
        changes.keep.set(text.id, text);
      }
      return () => verdict;
    },
  };
}

/** Says whom the limits keep back now. */
export function judge(text: Text, memory: Memory): Step<Limited[]> {
  return {
    keys: keysOfLimits(text.message.to, memory.limits),
    whileFailing: 'apply',
    decide(look, changes) {
      const limited = judgeLimits(leavingOf(text, text.message.to, memory), look, changes);
      return () => limited;
    },
  };
}

/**
 * waiting → leaving: the connection stands, and the first byte goes out when this is written. Results in `undefined`, and
 * changes nothing, when others have reached a limit since the text was judged.
 */
export function leave(text: Text, memory: Memory, known: Pick<QuestionBook, 'get'>): Step<Moved | undefined> {
  const { messageId } = text.message;
  const submitted = submittedOf(text);
  const limits = keysOfLimits(submitted, memory.limits);
  const isKnownByIt = isRemembered(text) && messageId !== undefined;
  const reference = referenceOf(messageId, text);
  return {
    keys: [...limits, ...(isKnownByIt ? keysOfSent(reference, submitted) : [])],
    whileFailing: isTracked(text) ? 'refuse' : 'apply',
    decide(look, changes) {
      const counted = createChanges();
      const { limited } = takeWithinLimits(leavingOf(text, submitted, memory), look, counted);
      if (limited.length > 0) return () => undefined;
      for (const [key, value] of counted.remember) changes.remember.set(key, value);
      const countedAt = limits.length > 0 ? { countedAt: memory.moment } : undefined;
      const left = change(text, { state: 'leaving', leftAt: memory.now, ...countedAt });
      if (isTracked(text)) changes.keep.set(text.id, left);
      const asked = isKnownByIt ? ask(left, submitted, known) : [];
      if (isKnownByIt) remember({ text: left, messageId, asked }, memory, look, changes);
      return (isWritten) => ({ text: left, asked, unasked: [], isWritten });
    },
  };
}

/** leaving → waiting: nothing of it was sent after all. */
export function putBack(text: Text, memory: Memory): Step<Moved> {
  const submitted = submittedOf(text);
  return {
    keys: text.countedAt ? keysOfLimits(submitted, memory.limits) : [],
    whileFailing: 'apply',
    decide(look, changes) {
      const { outcome: _, settledAt: __, limited: ___, countedAt, ...rest } = text;
      if (countedAt) giveBack(leavingOf(text, submitted, memory), countedAt, look, changes);
      const back = change(rest, { state: 'waiting' });
      if (isTracked(text)) changes.keep.set(text.id, back);
      return (isWritten) => ({ text: back, asked: [], unasked: [], isWritten });
    },
  };
}

/** → settled: its outcome is known, or is known to be unknown. */
export function settle(text: Text, outcome: Outcome, memory: Memory, known: Pick<QuestionBook, 'get'>): Step<Moved> {
  const { to, messageId: ownId } = text.message;
  const sent = isAccepted(outcome) ? outcome : undefined;
  const messageId = ownId ?? sent?.messageId;
  const reference = referenceOf(messageId, text);
  const once = onceKey(text);
  const uncounted = uncountedBy(text, outcome);
  return {
    keys: [
      ...(once === undefined ? [] : [once]),
      ...(isRemembered(text) ? keysOfSent(reference, to) : []),
      ...keysOfLimits(uncounted, memory.limits),
    ],
    whileFailing: 'apply',
    decide(look, changes) {
      const questions = questionsOf(text, known, changes);
      if (text.countedAt) giveBack(leavingOf(text, uncounted, memory), text.countedAt, look, changes);
      const settled = change(text, { state: 'settled', outcome: formatOutcome(outcome), settledAt: memory.now });
      if (isTracked(text)) changes.keep.set(text.id, settled);
      // Should a power cut undo it, the text has left, and its outcome is unknown.
      if (isTracked(text) && text.state === 'leaving') changes.loose.add(text.id);
      noteOutcome(text, outcome, changes, { at: memory.now, forMs: memory.dedupeMs });
      const asked = sent ? begin(settled, sent, questions, memory) : [];
      for (const question of asked) changes.keep.set(question.id, question);
      if (sent && isRemembered(text) && ownId === undefined) {
        remember({ text: settled, messageId, asked }, memory, look, changes);
      }
      const ids = new Set(asked.map(({ id }) => id));
      const unasked = questions.filter(({ id }) => !ids.has(id));
      for (const question of unasked) {
        changes.keep.delete(question.id);
        changes.drop.set(question.id, 'ledger');
        closeQuestion(question, look, changes);
      }
      return (isWritten) => ({ text: settled, asked, unasked: unasked.map(({ id }) => id), isWritten });
    },
  };
}

/** settled → gone, or → uncertain: its outcome has entered the flow. */
export function delivered(text: Text): Step<Text | undefined> {
  const outcome = text.outcome && parseOutcome(text.outcome);
  return {
    keys: [],
    whileFailing: 'apply',
    drops: [text.id],
    lazy: true,
    decide(_look, changes) {
      if (outcome && isUnknown(outcome) && isTracked(text)) {
        const uncertain = change(text, { state: 'uncertain' });
        changes.keep.set(text.id, uncertain);
        return () => uncertain;
      }
      drop(text, changes);
      return () => undefined;
    },
  };
}

/**
 * → gone, flushed: nobody wants it any more, or nobody is there for it. Its key is free, unless it may have been sent. A power
 * cut must not bring it back, which would send it.
 */
export function discard(text: Text, whileFailing: 'refuse' | 'apply' = 'apply'): Step<void> {
  const once = onceKey(text);
  return {
    keys: once === undefined ? [] : [once],
    whileFailing,
    drops: [text.id],
    decide(_look, changes) {
      drop(text, changes);
      changes.firm = true;
      if (once !== undefined && text.state === 'waiting') changes.remember.set(once, undefined);
      return () => {};
    },
  };
}

function leavingOf({ options }: Text, recipients: readonly string[], { limits, moment }: Memory): Leaving {
  return { recipients, settings: limits, moment, isUnlimited: options.unlimited };
}

function change(text: Text, changed: Partial<Text>): Text {
  return { ...text, ...changed, revision: nextRevision(text) };
}

function drop({ id }: Text, changes: Changes): void {
  changes.keep.delete(id);
  changes.drop.set(id, 'ledger');
}

/** Questions to be, of a text that may be answered before it is known to be accepted. */
function ask(text: Text, recipients: readonly string[], known: Pick<QuestionBook, 'get'>): Question[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  return recipients.map((recipient) => {
    const id = `${text.id}-${text.message.to.indexOf(recipient)}`;
    return known.get(id) ?? createQuestion(text, { id, recipient, messageId: text.message.messageId, waitMs });
  });
}

function createQuestion(
  text: Text,
  asked: { id: string; recipient: string; messageId: string | undefined; waitMs: number },
): Question {
  const { messageId, ...rest } = asked;
  return {
    part: 'ledger',
    kind: 'question',
    takers: text.takers,
    attempts: 0,
    node: text.node,
    text: text.id,
    reference: referenceOf(messageId, text),
    ...(messageId === undefined ? undefined : { messageId }),
    ...rest,
  };
}

/** A question as the steps before it in the same commit leave it. */
export function latest(question: Question, changes: Changes): Question {
  return (changes.keep.get(question.id) as Question | undefined) ?? question;
}

/** What a text asks, as it stands now: its mark may be written, or a reply come, in the same commit. */
function questionsOf(text: Text, known: Pick<QuestionBook, 'get'>, changes: Changes): Question[] {
  if (text.options.waitMs === undefined) return [];
  return text.message.to
    .map((_, index) => `${text.id}-${index}`)
    .map((id) => (changes.keep.get(id) as Question | undefined) ?? known.get(id))
    .filter((question) => question !== undefined);
}

/** The wait for those who were accepted begins. */
function begin(text: Text, sent: Sent, questions: readonly Question[], { now }: Memory): Question[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  const messageId = text.message.messageId ?? sent.messageId;
  const known = new Map(questions.map((question) => [question.recipient, question]));
  return sent.accepted.map((recipient) => {
    const id = `${text.id}-${text.message.to.indexOf(recipient)}`;
    const question = known.get(recipient) ?? createQuestion(text, { id, recipient, messageId, waitMs });
    return { ...question, askedAt: now, revision: nextRevision(question) };
  });
}

function remember(
  { text, messageId, asked }: { text: Text; messageId: string | undefined; asked: readonly Question[] },
  { now, sentMs }: Memory,
  look: Look,
  changes: Changes,
): void {
  const { waitMs } = text.options;
  const duration: Duration = { at: now, forMs: Math.max(sentMs, waitMs === undefined ? 0 : waitMs + questionGraceMs) };
  const questions = new Map(asked.map(({ recipient, id }) => [recipient, id]));
  rememberSent({ text, messageId, questions }, duration, look, changes);
  for (const question of asked) changes.keep.set(question.id, question);
  if (asked.length > 0 && text.carried !== undefined) {
    changes.remember.set(askedKey(text.id), { ...duration, value: text.carried });
  }
}
