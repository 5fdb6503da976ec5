import type { Step } from '../journal';
import type { InboxRecord, Kind, RecordOfKind, RecordsOfKind, Via } from '../model';
import { type Changes, type Hold, keepItem, type Look } from '../store/store';
import { answerOf, keysOfAnswer, recallAnswer, recallAttempts, rememberAnswer } from './answered';
import type { Destination } from './attendance';
import {
  audienceOf,
  channelOf,
  currentEntry,
  dropEntry,
  forgetSeen,
  holdKeysOf,
  type InboxContext,
  judgeAndRemember,
  keepEntry,
} from './context';
import { type Entry, nameTakers, newsOf, separate } from './entry';
import { HeldRecord, type Past, parseNote } from './held-record';
import { type Identity, identify, keysOf, type Verdict } from './identity';
import { Undelivered } from './undelivered';

/** Records that came in one answer or one callback. */
export type Arrival = Destination & RecordsOfKind & { via: Via };

/** What became of one record of an {@link Arrival}. */
export interface Acceptance {
  outcome: Verdict['outcome'];
  /** The entry, when it is new or not delivered yet. */
  entry?: Entry;
  /** Another process, or nodes that are being redeployed, have not delivered it yet: the service is to ask again. */
  heldElsewhere?: boolean;
}

/** How an arrival reached the inbox. */
export interface Handling {
  /** An earlier process had it in hand, and may have committed it. */
  isLeftover: boolean;
  /** Where a crash does not reach it until it is committed; absent: there is no such place. */
  held: Hold | undefined;
  /** See {@link Step.company}. */
  company?: number | undefined;
  /** What that process has noted of its records. See {@link HeldRecord}. Absent: nobody has had them before. */
  notes?: string;
}

/** What accepting a record adds and takes away. */
interface Outcome {
  acceptance: Acceptance;
  fresh?: Undelivered;
  /** What was polled for nodes that are gone, and goes to the node that was called with the same. */
  orphan?: Undelivered | undefined;
  /** What follows on the sending side. */
  effect?: (() => void) | undefined;
  /** A called-back entry, and its polled copy. */
  twinned?: { entry: Entry; twin: InboxRecord };
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
    company: handling.company,
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
          if (outcome.orphan) undelivered.remove(outcome.orphan.entry.id);
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

/** One record on its way in. */
interface Candidate {
  news: RecordOfKind;
  identity: Identity;
  arrival: Arrival;
  /** What became of it in an earlier process. */
  past: Past;
  /** How often it is about to be sent into a flow. */
  attempts: number;
  isLeftover: boolean;
}

function acceptRecord(context: InboxContext, candidate: Candidate, look: Look, changes: Changes): Outcome {
  const { undelivered, distribution } = context;
  const { news, identity, arrival, past, isLeftover } = candidate;
  const { kind, via } = arrival;
  const outcome = judgeAndRemember(context, { identity, via }, look, changes);
  let orphan: Undelivered | undefined;
  if (outcome !== 'new' && (isLeftover || context.dedupe() || kind === 'outbox')) {
    const pending = undelivered.findCalledBack(identity, changes);
    if (pending) {
      const acceptance = { outcome, entry: pending.entry };
      if (via !== 'poll') return { acceptance };
      const twinned = { ...currentEntry(pending.entry, changes) };
      const twin = { ...news.record, ...answerOf(twinned.record) };
      addTwin(twinned, twin);
      keepItem(changes, twinned);
      return { acceptance, twinned: { entry: pending.entry, twin } };
    }
    if (via === 'callback' && !distribution.attendance.hasTakers(kind)) {
      orphan = undelivered.findOn(kind, identity, changes);
      // Its nodes are being redeployed, and get it when they are back.
      if (orphan && distribution.attendance.expects(kind)) return { acceptance: { outcome, heldElsewhere: true } };
      // Nobody knows yet whether it is among those.
      if (!orphan && context.unread.has(kind)) {
        const acceptance = { outcome, heldElsewhere: true };
        return distribution.attendance.expects(kind)
          ? { acceptance }
          : { acceptance, effect: () => lookFor(context, kind) };
      }
    }
    if (!orphan) {
      const heldElsewhere = holdKeysOf(context, arrival, identity).some((key) => look(key) !== undefined);
      return { acceptance: heldElsewhere ? { outcome, heldElsewhere } : { outcome } };
    }
  }
  const correlated = correlate(context, { news, identity }, look, changes);
  if (past.isDone) return { acceptance: { outcome }, effect: correlated.effect };
  if (isForNobody(context, arrival, correlated.record)) {
    // Should the service also call back with it, that is new to the node that is called.
    if (outcome === 'new') forgetSeen(identity, look, changes);
    rememberAnswer(context, { identity, record: correlated.record }, look, changes);
    return { acceptance: { outcome: correlated.isRepeated ? 'repeated' : outcome }, effect: correlated.effect };
  }
  const fresh = createFresh(context, {
    news: newsOf(news, correlated.record),
    identity,
    address: arrival.address,
    attempts: past.attempts + candidate.attempts,
    attemptsBefore: arrival.address && recallAttempts(identity, look),
    twin: orphan?.entry.record,
  });
  if (orphan) dropEntry(context, orphan.entry, orphan.identity, changes);
  keepEntry(context, fresh.entry, identity, changes);
  if (fresh.entry.channel === 'callback') undelivered.expect(fresh, changes);
  const acceptance = { outcome, entry: fresh.entry };
  return { acceptance, fresh, orphan, effect: correlated.effect };
}

/** The store fails: what becomes of it is noted where it is held, so that whoever finds it there knows. */
function keepHeld(fresh: Undelivered, held: HeldRecord): void {
  fresh.held = held;
  held.given(fresh.entry.attempts);
}

/** What is in the store is found when the service asks again. */
function lookFor({ unread, reading }: InboxContext, kind: Kind): void {
  unread.want(kind);
  reading.goOn();
}

/** A record, and what follows from what it answers. */
interface Correlated {
  record: InboxRecord;
  /** It has answered that before. */
  isRepeated?: true;
  effect?: () => void;
}

/** What a record answers: the same as when it came before. */
function correlate(
  { correlator }: InboxContext,
  { news, identity }: Pick<Candidate, 'news' | 'identity'>,
  look: Look,
  changes: Changes,
): Correlated {
  const answered = recallAnswer(identity, look);
  if (answered) return { record: { ...news.record, ...answered }, isRepeated: true };
  return correlator?.correlate(news, look, changes) ?? news;
}

/** The answer to a question goes to whoever asked; where no other node takes what is polled, here or where it is handed over to, to nobody else. */
function isForNobody({ distribution, heir }: InboxContext, arrival: Arrival, record: InboxRecord): boolean {
  if (record.awaited !== true || arrival.via !== 'poll' || distribution.attendance.expects(arrival.kind)) return false;
  return !heir || isForNobody(heir, arrival, record);
}

/** What is to be an entry. */
interface Fresh extends Pick<Candidate, 'news' | 'identity'> {
  /** How often it will have been sent into a flow. */
  attempts: number;
  /** How often it had been when a process that may be gone has released it. */
  attemptsBefore?: number | undefined;
  address?: Arrival['address'];
  twin?: InboxRecord | undefined;
}

/** Makes an entry of a record, to be kept. */
export function createFresh(
  { journal, undelivered }: InboxContext,
  { news, identity, address, attempts, attemptsBefore = 0, twin }: Fresh,
): Undelivered {
  const { kind } = news;
  const item = {
    id: journal.nextId(),
    part: 'inbox' as const,
    takers: address ? nameTakers(address) : [kind],
    channel: channelOf({ kind, address }),
    attempts,
  };
  const entry: Entry = Object.assign(item, news);
  if (address) {
    entry.address = address;
    entry.attempts += Math.max(attemptsBefore, undelivered.attemptsBefore(identity));
  }
  // Nobody can say whether another process has delivered it already.
  if (journal.isShared && journal.mode !== 'open') entry.unsure = true;
  if (twin) entry.twin = twin;
  return new Undelivered(entry, identity);
}

function addTwin(entry: Entry, twin: InboxRecord): void {
  entry.twin = twin;
  entry.revision = (entry.revision ?? 0) + 1;
}
