import type { Destination } from '../delivery/subscribers';
import type { Step } from '../journal/journal';
import type { InboxRecord, Kind, RecordOfKind, RecordsOfKind, Via } from '../model';
import { type Changes, dropItem, keepItem, type Look } from '../store/store';
import { currentEntry, dropEntry, holdKeysOf, type InboxContext, judgeAndRemember, keepEntry } from './context';
import type { Correlated, Correlating } from './correlator';
import { type DeadLetter, type Entry, isEntry, nameSubscribers, newsOf, Pending, type Together } from './entries';
import {
  answerOf,
  forget,
  type Identity,
  identify,
  isSameMessage,
  keysOf,
  keysOfAnswer,
  recallAnswer,
  recallAttempts,
  rememberAnswer,
  type Verdict,
} from './identity';

/** Records that came in one answer or one callback. */
export type Arrival = Destination &
  RecordsOfKind & {
    via: Via;
    /** Gets what is new in the place of the nodes, to be given to them with more. */
    gathered?: Pending[];
  };

/** What became of one record of an {@link Arrival}. */
export interface Acceptance {
  outcome: Verdict;
  /** The entry, when it is new or not delivered yet. */
  entry?: Entry;
  /** Another process, or nodes that are being redeployed, have not delivered it yet: the service is to ask again. */
  heldElsewhere?: boolean;
}

/** What accepting a record adds and takes away. */
interface Outcome {
  acceptance: Acceptance;
  fresh?: Pending;
  /** What was for nodes that are gone, and goes to those who are brought the same. */
  orphan?: Pending | undefined;
  /** What no node took, and goes to who is called. */
  deadLetter?: DeadLetter | undefined;
  /** What follows on the sending side. */
  effect?: (() => void) | undefined;
  /** A called-back entry, and its polled copy. */
  copied?: { entry: Entry; copy: InboxRecord };
}

/** One record on its way in. */
interface Candidate {
  /** As an entry. */
  id: string;
  news: RecordOfKind;
  identity: Identity;
  /** Absent: nobody knows what it answers. */
  known: Correlating | undefined;
  arrival: Arrival;
  /** How often it is about to be sent into a flow. */
  attempts: number;
  /** See {@link createAccept}. */
  wasHeld: boolean;
}

/**
 * Keeps what came, and gives the new to the nodes it is for.
 *
 * @param wasHeld an earlier process had it in hand, and may have committed it, or given it to nodes while the store failed
 */
export function createAccept(
  context: InboxContext,
  arrival: Arrival,
  wasHeld = false,
): Step<Acceptance[]> & { mayAnswer: boolean } {
  const { subscribers, entries, correlator } = context;
  const items = separate(arrival).map((news) => ({ news, identity: identify(news), known: correlator?.(news) }));
  /** Decided again, it is the same entry: a commit that seems to fail may have written it. */
  const ids: string[] = [];
  const mayAnswer = items.some(({ known }) => known?.mayAnswer());
  const keys: string[] = [];
  for (const { identity, known } of items) {
    keys.push(...keysOf(identity), ...(known?.keys ?? []));
    // One that is called back may have been released by another process.
    if (arrival.via === 'callback' || mayAnswer) keys.push(...keysOfAnswer(identity));
    keys.push(...holdKeysOf(context, arrival, identity));
  }
  const outcomes = items.flatMap(({ known }) => known?.outcome ?? []);
  return {
    mayAnswer,
    keys,
    after: outcomes.length > 0 ? Promise.all(outcomes).then(() => {}) : undefined,
    // The service has forgotten what it was polled for, but not what it called back.
    whileFailing: arrival.via === 'callback' ? 'refuse' : 'apply',
    // Where it is held it is found again, and may have been committed and delivered.
    needsLook: wasHeld,
    decide(look, changes) {
      const attempts = subscribers.audience(arrival).length > 0 ? 1 : 0;
      const accepted = items.map((item, index) => {
        ids[index] ??= context.journal.nextId();
        return acceptRecord(context, { ...item, id: ids[index], arrival, attempts, wasHeld }, look, changes);
      });
      return (isWritten) => {
        if (!isWritten && arrival.via === 'poll' && mayAnswer) context.run(createMatch(items));
        const fresh: Pending[] = [];
        for (const outcome of accepted) {
          if (outcome.orphan) entries.letGo(outcome.orphan.entry.id);
          if (outcome.deadLetter) context.deadLetters.forget(outcome.deadLetter.id);
          const copied = outcome.copied && entries.get(outcome.copied.entry.id);
          if (copied && outcome.copied) copied.entry.polledCopy = outcome.copied.copy;
          // Whoever is called back with it may have taken it in the same commit.
          if (outcome.fresh && changes.drop.has(outcome.fresh.entry.id)) outcome.fresh.end(false);
          else if (outcome.fresh) fresh.push(outcome.fresh);
          outcome.effect?.();
        }
        if (arrival.gathered) arrival.gathered.push(...fresh);
        else giveTogether(context, fresh, arrival);
        return accepted.map(({ acceptance }) => acceptance);
      };
    },
  };
}

/** Takes apart what came together. */
function separate<K extends Kind>({ kind, records }: RecordsOfKind<K>): RecordOfKind<K>[] {
  return records.map((record) => ({ kind, record }));
}

/** What was delivered without the store is matched when that is back: whoever has asked is told. */
function createMatch(items: readonly Pick<Candidate, 'known' | 'identity'>[]): Step<void> {
  const unanswered = (look: Look) => items.filter(({ identity }) => recallAnswer(identity, look) === undefined);
  return {
    whileFailing: 'postpone',
    decide(look, changes) {
      const matched = unanswered(look).map(({ known }) => known?.correlate(look, changes, false));
      return () => {
        for (const one of matched) one?.effect();
      };
    },
  };
}

/** Adds what has just been saved to the entries, and gives it to the nodes it is for. */
export function giveTogether(
  { entries, subscribers }: InboxContext,
  fresh: readonly Pending[],
  { asker, context }: Destination = {},
): void {
  const [first] = fresh;
  if (!first) return;
  const together: Together = { group: first.entry.id, count: fresh.length, asker, context };
  for (const [index, pending] of fresh.entries()) {
    Object.assign(pending, { together, index, isNew: true });
    entries.add(pending);
  }
  subscribers.give(fresh);
}

/** Judges one record, with the changes that follow. */
function acceptRecord(context: InboxContext, candidate: Candidate, look: Look, changes: Changes): Outcome {
  const { entries, subscribers } = context;
  const { news, identity, arrival, wasHeld } = candidate;
  const { kind, via } = arrival;
  const outcome = judgeAndRemember(context, { identity, via, isLeft: wasHeld }, look, changes);
  let orphan: Pending | undefined;
  let deadLetter: DeadLetter | undefined;
  // Another inbox has it yet, and may have the service bring it again. What is polled comes twice rather than never.
  const isArriving = outcome !== 'new' && isBeingMoved(context, via, identity);
  if (isArriving && via === 'callback') return { acceptance: { outcome, heldElsewhere: true } };
  if (outcome !== 'new' && !isArriving && (wasHeld || context.dedupe() || kind === 'outbox')) {
    const pending = kind === 'outbox' ? undefined : entries.findOn('callback', identity, changes);
    if (pending && !isOrphanFor(context, arrival, pending)) {
      const acceptance = { outcome, entry: pending.entry };
      if (via !== 'poll') return { acceptance };
      const copied = { ...currentEntry(pending.entry, changes) };
      const copy = { ...news.record, ...answerOf(copied.record) };
      copied.polledCopy = copy;
      keepItem(changes, copied);
      return { acceptance, copied: { entry: pending.entry, copy } };
    }
    orphan = pending;
    if (!orphan && via === 'callback' && !subscribers.hasAny(kind)) {
      orphan = entries.findOn(kind, identity, changes);
      // Its nodes are being redeployed, and get it when they are back.
      if (orphan && subscribers.expects(kind)) return { acceptance: { outcome, heldElsewhere: true } };
      deadLetter = orphan ? undefined : context.deadLetters.find(kind, identity, changes);
    }
    if (!orphan && !deadLetter) {
      const heldElsewhere = holdKeysOf(context, arrival, identity).some((key) => look(key) !== undefined);
      return { acceptance: heldElsewhere ? { outcome, heldElsewhere } : { outcome } };
    }
  }
  const former = orphan ? currentEntry(orphan.entry, changes) : deadLetter;
  const correlated = correlate(candidate, { former, isNew: outcome === 'new' }, look, changes);
  if (isForNobody(context, arrival, correlated)) {
    // Should the service also call back with it, that is new to the node that is called.
    if (outcome === 'new') forget(identity, look, changes);
    rememberAnswer(context, { identity, ...correlated }, look, changes);
    return { acceptance: { outcome: correlated.isRepeated ? 'repeated' : outcome }, effect: correlated.effect };
  }
  const fresh = createPending(context, {
    id: candidate.id,
    news: newsOf(news, correlated.record),
    identity,
    address: arrival.address,
    attempts: candidate.attempts,
    attemptsBefore: Math.max(former?.attempts ?? 0, arrival.address ? recallAttempts(identity, look) : 0),
    copy: former && 'channel' in former && former.channel === 'callback' ? former.polledCopy : former?.record,
  });
  if (wasHeld) fresh.entry.unsure = true;
  if (orphan) dropEntry(context, orphan.entry, orphan.identity, changes);
  if (deadLetter) dropItem(changes, deadLetter.id, deadLetter.part);
  keepEntry(context, fresh.entry, identity, changes);
  const acceptance = { outcome, entry: fresh.entry };
  return { acceptance, fresh, orphan, deadLetter, effect: correlated.effect };
}

/** Whether another inbox is about to give it to this one, as something that was called back. */
function isBeingMoved({ journal }: InboxContext, via: Via, identity: Identity): boolean {
  return [...journal.arriving.values()].some(
    (item) =>
      isEntry(item) && (via === 'callback' || item.channel === 'callback') && isSameMessage(identify(item), identity),
  );
}

/** Whether those who are brought a called-back message again get it, since whoever has not taken it is gone. */
function isOrphanFor({ journal, subscribers }: InboxContext, arrival: Arrival, pending: Pending): boolean {
  // While the store fails, what is dropped may be found again.
  if (journal.mode !== 'open' || !subscribers.isStranded(pending)) return false;
  return subscribers.audience(arrival).length > 0;
}

/** A record, and what follows from what it answers; `isRepeated`: it has answered that before. */
type Answering = Partial<Correlated> & { record: InboxRecord; isRepeated?: true };

/** What a record answers: the same as when it came before. */
function correlate(
  { news, identity, known, arrival }: Candidate,
  { former, isNew }: { former: Entry | DeadLetter | undefined; isNew: boolean },
  look: Look,
  changes: Changes,
): Answering {
  const mayHaveAnswered = arrival.via === 'callback' || known?.mayAnswer(look);
  const { answer, isTaken } = (mayHaveAnswered && recallAnswer(identity, look)) || {
    answer: former && answerOf(former.record),
  };
  if (answer) return { record: { ...news.record, ...answer }, isRepeated: true, isTaken };
  const correlated: Answering = known?.correlate(look, changes, isNew) ?? news;
  // Whoever takes in the same message elsewhere at this moment may have it answer, and leave nothing else of it.
  if (correlated.record.awaited) for (const key of keysOfAnswer(identity)) changes.compare.add(key);
  return correlated;
}

/**
 * The answer to a question, and a status that is reported, go to whoever waits for them; where no other node takes what is polled, here or
 * where it is handed over to, to nobody else.
 */
function isForNobody({ subscribers, replacedBy }: InboxContext, arrival: Arrival, correlated: Answering): boolean {
  const isTaken = correlated.record.awaited === true || correlated.isTaken === true;
  if (!isTaken || arrival.via !== 'poll' || subscribers.expects(arrival.kind)) return false;
  const other = replacedBy();
  return !other || isForNobody(other, arrival, correlated);
}

/** What is to be an entry. */
interface Draft {
  id: string;
  news: RecordOfKind;
  identity: Identity;
  /** How often it will have been sent into a flow. */
  attempts: number;
  /** How often it had been as an entry that is gone: in whose place it is, or which a process that may be gone has released. */
  attemptsBefore?: number;
  address?: Destination['address'];
  /** The polled copy of what was called back. */
  copy?: InboxRecord | undefined;
}

/** Makes an entry of a record, to be kept. */
export function createPending({ journal }: InboxContext, draft: Draft): Pending {
  const { id, news, identity, address, attempts, attemptsBefore = 0, copy } = draft;
  const { kind } = news;
  const item = {
    id,
    part: 'inbox' as const,
    subscribers: address ? nameSubscribers(address) : [kind],
    channel: address ? ('callback' as const) : kind,
    attempts: attempts + attemptsBefore,
  };
  const entry: Entry = Object.assign(item, news);
  if (address) entry.address = address;
  // Nobody can say whether another process has delivered it already.
  if (journal.isShared && journal.mode !== 'open') entry.unsure = true;
  if (copy) entry.polledCopy = copy;
  const pending = new Pending(entry, identity);
  pending.firstAttempt = attemptsBefore + 1;
  return pending;
}
