import type { Destination } from '../delivery/subscribers';
import type { Step } from '../journal/journal';
import type { InboxRecord, Kind, RecordOfKind, RecordsOfKind, Via } from '../model';
import { type Changes, dropItem, keepItem, type Look } from '../store/store';
import { currentEntry, dropEntry, holdKeysOf, type InboxParts, keepEntry } from './context';
import type { Correlated, Correlating } from './correlator';
import type { DeadLetters } from './dead-letters';
import { type DeadLetter, type Entry, isEntry, nameSubscribers, newsOf, Pending, type Together } from './entries';
import {
  answerOf,
  forget,
  type Identity,
  identify,
  isSameMessage,
  judge,
  keysOf,
  keysOfAnswer,
  recallAnswer,
  recallAttempts,
  rememberAnswer,
  type Verdict,
} from './identity';

/** What the steps of an inbox work with. */
export type InboxContext = InboxParts & { readonly deadLetters: DeadLetters };

/** Records that came in one answer or one callback. */
export type Arrival = Destination &
  RecordsOfKind & {
    via: Via;
    /** Gets what is new in the place of the nodes, to be given to them with more. */
    gathered?: Pending[];
    /** An earlier process had it in hand, and may have committed it, or given it to nodes while the store failed. */
    wasHeld?: true;
  };

/** What became of one record of an {@link Arrival}. */
export interface Acceptance {
  outcome: Verdict;
  /** The entry, when it is new or not delivered yet. */
  entry?: Entry;
  /** Another process, or nodes that are being redeployed, have not delivered it yet: the service is to ask again. */
  heldElsewhere?: boolean;
}

/** One record on its way in. */
interface Candidate {
  /** Once it is to be an entry. Decided again, it is the same one: a commit that seems to fail may have written it. */
  id?: string;
  news: RecordOfKind;
  identity: Identity;
  /** Absent: nobody knows what it answers. */
  known: Correlating | undefined;
  arrival: Arrival;
}

/** Keeps what came, and gives the new to the nodes it is for. */
export function createAccept(context: InboxContext, arrival: Arrival): Step<Acceptance[]> & { mayAnswer: boolean } {
  const { kind, records, via, wasHeld = false } = arrival;
  const candidates = records.map((record): Candidate => {
    const news = { kind, record } as RecordOfKind;
    return { news, identity: identify(news), known: context.correlator?.(news), arrival };
  });
  const mayAnswer = candidates.some(({ known }) => known?.mayAnswer);
  const keys: string[] = [];
  for (const { identity, known } of candidates) {
    keys.push(...keysOf(identity), ...keysOfAnswer(identity), ...(known?.keys ?? []));
    keys.push(...holdKeysOf(context, arrival, identity));
  }
  const outcomes = candidates.flatMap(({ known }) => known?.outcome ?? []);
  return {
    mayAnswer,
    keys,
    after: outcomes.length > 0 ? Promise.all(outcomes).then(() => {}) : undefined,
    // The service has forgotten what it was polled for, but not what it called back.
    whileFailing: arrival.via === 'callback' ? 'refuse' : 'apply',
    // Where it is held it is found again, and may have been committed and delivered.
    needsLook: wasHeld,
    decide(look, changes) {
      const accepted = candidates.map((candidate) => acceptRecord(context, candidate, look, changes));
      return (isWritten) => {
        if (!isWritten && via === 'poll' && mayAnswer) context.run(createMatch(candidates));
        const fresh = arrival.gathered ?? [];
        const acceptances = accepted.map((follow) => follow(fresh));
        if (!arrival.gathered) giveTogether(context, fresh, arrival);
        return acceptances;
      };
    },
  };
}

/** What was delivered without the store is matched when that is back: whoever has asked is told. */
function createMatch(candidates: readonly Candidate[]): Step<void> {
  const unanswered = (look: Look) => candidates.filter(({ identity }) => recallAnswer(identity, look) === undefined);
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
  { entries, subscribers }: InboxParts,
  fresh: readonly Pending[],
  { asker, context }: Destination = {},
): void {
  const [first] = fresh;
  if (!first) return;
  const together: Together = { group: first.entry.id, count: fresh.length, asker, context };
  for (const [index, pending] of fresh.entries()) {
    Object.assign(pending, { together, index, isNew: true });
    entries.set(pending.entry.id, pending);
  }
  subscribers.give(fresh);
}

/**
 * Judges one record, with the changes that follow. Returns what is to be done once those are written, which says what became of it, and adds
 * to `fresh` what is to be given to nodes.
 */
function acceptRecord(
  context: InboxContext,
  candidate: Candidate,
  look: Look,
  changes: Changes,
): (fresh: Pending[]) => Acceptance {
  const { entries, subscribers } = context;
  const { news, identity, arrival } = candidate;
  const { kind, via, wasHeld = false } = arrival;
  const outcome = judge(context, { identity, via, isLeft: wasHeld }, look, changes);
  /** What was for nodes that are gone, and goes to those who are brought the same. */
  let orphan: Pending | undefined;
  /** What no node took, and goes to who is called. */
  let deadLetter: DeadLetter | undefined;
  // Another inbox has it yet, and may have the service bring it again. What is polled comes twice rather than never.
  const isArriving = outcome !== 'new' && isBeingMoved(context, via, identity);
  if (isArriving && via === 'callback') return () => ({ outcome, heldElsewhere: true });
  if (outcome !== 'new' && !isArriving && (wasHeld || context.dedupe() || kind === 'outbox')) {
    const pending = kind === 'outbox' ? undefined : entries.findOn('callback', identity, changes);
    if (pending && !isOrphanFor(context, arrival, pending)) {
      const { entry } = pending;
      if (via !== 'poll') return () => ({ outcome, entry });
      const copied = { ...currentEntry(entry, changes) };
      const polledCopy = { ...news.record, ...answerOf(copied.record) };
      copied.polledCopy = polledCopy;
      keepItem(changes, copied);
      return () => {
        const known = entries.get(entry.id);
        if (known) known.entry.polledCopy = polledCopy;
        return { outcome, entry };
      };
    }
    orphan = pending;
    if (!orphan && via === 'callback' && !subscribers.hasAny(kind, news.record)) {
      orphan = entries.findOn(kind, identity, changes);
      // Its nodes are being redeployed, and get it when they are back.
      if (orphan && subscribers.expects(kind, news.record)) return () => ({ outcome, heldElsewhere: true });
      deadLetter = orphan ? undefined : context.deadLetters.find(kind, identity, changes);
    }
    if (!orphan && !deadLetter) {
      const heldElsewhere = holdKeysOf(context, arrival, identity).some((key) => look(key) !== undefined);
      return () => ({ outcome, ...(heldElsewhere && { heldElsewhere }) });
    }
  }
  const former = orphan ? currentEntry(orphan.entry, changes) : deadLetter;
  const correlated = correlate(candidate, { former, isNew: outcome === 'new' }, look, changes);
  if (via === 'poll' && isForNobody(context, kind, correlated)) {
    if (outcome === 'new') forget(identity, look, changes);
    // Polled again it is known. What comes while the store fails has not been matched yet.
    const isTaken = correlated.isTaken ?? (context.journal.mode === 'open' || undefined);
    rememberAnswer(context, { identity, ...correlated, isTaken }, look, changes);
    return () => {
      correlated.effect?.();
      return { outcome: correlated.isRepeated ? 'repeated' : outcome };
    };
  }
  candidate.id ??= context.journal.nextId();
  const { id } = candidate;
  const pending = createPending(context, {
    id,
    news: newsOf(news, correlated.record),
    identity,
    destination: arrival,
    attemptsBefore: Math.max(former?.attempts ?? 0, arrival.address ? recallAttempts(identity, look) : 0),
    copy: former && 'channel' in former && former.channel === 'callback' ? former.polledCopy : former?.record,
  });
  const { entry } = pending;
  if (wasHeld) entry.unsure = true;
  if (orphan) dropEntry(context, orphan.entry, orphan.identity, changes);
  if (deadLetter) dropItem(changes, deadLetter.id, deadLetter.part);
  keepEntry(context, entry, identity, changes);
  return (fresh) => {
    if (orphan) entries.letGo(orphan.entry.id);
    if (deadLetter) context.deadLetters.forget(deadLetter.id);
    // Whoever is called back with it may have taken it in the same commit.
    if (changes.drop.has(id)) pending.end(false);
    else fresh.push(pending);
    correlated.effect?.();
    return { outcome, entry };
  };
}

/** Whether another inbox is about to give it to this one, as something that was called back. */
function isBeingMoved({ journal }: InboxParts, via: Via, identity: Identity): boolean {
  return [...journal.arriving.values()].some(
    (item) =>
      isEntry(item) && (via === 'callback' || item.channel === 'callback') && isSameMessage(identify(item), identity),
  );
}

/** Whether those who are brought a called-back message again get it, since whoever has not taken it is gone. */
function isOrphanFor({ journal, subscribers }: InboxParts, arrival: Arrival, pending: Pending): boolean {
  // While the store fails, what is dropped may be found again.
  return journal.mode === 'open' && subscribers.isStranded(pending) && subscribers.audience(arrival).length > 0;
}

/** A record, and what follows from what it answers; `isRepeated`: it has answered that before. */
type Answering = Partial<Correlated> & { record: InboxRecord; isRepeated?: true };

/** What a record answers: the same as when it came before. */
function correlate(
  { news, identity, known }: Candidate,
  { former, isNew }: { former: Entry | DeadLetter | undefined; isNew: boolean },
  look: Look,
  changes: Changes,
): Answering {
  const { answer, isTaken } = recallAnswer(identity, look) ?? { answer: former && answerOf(former.record) };
  if (answer) return { record: { ...news.record, ...answer }, isRepeated: true, isTaken };
  const correlated: Answering = known?.correlate(look, changes, isNew) ?? news;
  // Whoever takes in the same message elsewhere at this moment may have it answer, and leave nothing else of it.
  if (correlated.record.awaited) for (const key of keysOfAnswer(identity)) changes.compare.add(key);
  return correlated;
}

/**
 * Whether none of the nodes that take what is polled wants it, here or where it is handed over to. Where there are none, it is so of the answer to
 * a reply request, and of a status that is reported: they go to whoever waits for them.
 */
export function isForNobody({ subscribers, replacedBy }: InboxParts, kind: Kind, known: Answering): boolean {
  const isTaken = known.record.awaited === true || known.isTaken === true || subscribers.expects(kind);
  if (!isTaken || subscribers.expects(kind, known.record)) return false;
  const other = replacedBy();
  return !other || isForNobody(other, kind, known);
}

/** What is to be an entry. */
interface Draft extends Pick<Candidate, 'news' | 'identity'> {
  id: string;
  /** Absent: everybody on its channel. */
  destination?: Destination;
  /** How often it had been sent into a flow as an entry that is gone: in whose place it is, or which a process that may be gone has released. */
  attemptsBefore?: number;
  /** The polled copy of what was called back. */
  copy?: InboxRecord | undefined;
}

/** Makes an entry of a record, to be kept and sent into a flow. */
export function createPending({ journal, subscribers }: InboxParts, draft: Draft): Pending {
  const { id, news, identity, destination = {}, attemptsBefore = 0, copy } = draft;
  const { kind } = news;
  const { address } = destination;
  const item = {
    id,
    part: 'inbox' as const,
    subscribers: address ? nameSubscribers(address) : [kind],
    channel: address ? ('callback' as const) : kind,
    attempts: attemptsBefore + (subscribers.audience({ ...destination, kind }).length > 0 ? 1 : 0),
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
