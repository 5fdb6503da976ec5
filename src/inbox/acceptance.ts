import type { Destination } from '../delivery/attendance';
import type { InboxRecord, Kind, RecordOfKind, RecordsOfKind, Via } from '../model';
import { type Changes, keepItem, type Look } from '../store/store';
import { answerOf, recallAnswer, recallAttempts, rememberAnswer } from './answered';
import {
  channelOf,
  currentEntry,
  dropEntry,
  forgetSeen,
  holdKeysOf,
  type InboxContext,
  judgeAndRemember,
  keepEntry,
} from './context';
import { type Entry, newsOf } from './entry';
import { createFresh } from './fresh';
import type { Past } from './held-record';
import type { Identity, Verdict } from './identity';
import type { Undelivered } from './undelivered';

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

/** What accepting a record adds and takes away. */
interface Outcome {
  acceptance: Acceptance;
  fresh?: Undelivered;
  /** What was for nodes that are gone, and goes to those who are brought the same. */
  orphan?: Undelivered | undefined;
  /** What follows on the sending side. */
  effect?: (() => void) | undefined;
  /** A called-back entry, and its polled copy. */
  twinned?: { entry: Entry; twin: InboxRecord };
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

/** Judges one record, with the changes that follow. */
export function acceptRecord(context: InboxContext, candidate: Candidate, look: Look, changes: Changes): Outcome {
  const { undelivered, distribution } = context;
  const { news, identity, arrival, past, isLeftover } = candidate;
  const { kind, via } = arrival;
  const outcome = judgeAndRemember(context, { identity, via }, look, changes);
  let orphan: Undelivered | undefined;
  if (outcome !== 'new' && (isLeftover || context.dedupe() || kind === 'outbox')) {
    const pending = undelivered.findCalledBack(identity, changes);
    if (pending && !isOrphanFor(context, arrival, pending)) {
      const acceptance = { outcome, entry: pending.entry };
      if (via !== 'poll') return { acceptance };
      const twinned = { ...currentEntry(pending.entry, changes) };
      const twin = { ...news.record, ...answerOf(twinned.record) };
      addTwin(twinned, twin);
      keepItem(changes, twinned);
      return { acceptance, twinned: { entry: pending.entry, twin } };
    }
    orphan = pending;
    if (!orphan && via === 'callback' && !distribution.attendance.hasTakers(kind)) {
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
  const former = orphan && currentEntry(orphan.entry, changes);
  const correlated = correlate(context, { news, identity, former }, look, changes);
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
    attemptsBefore: Math.max(former?.attempts ?? 0, arrival.address ? recallAttempts(identity, look) : 0),
    twin: former?.channel === 'callback' ? former.twin : former?.record,
  });
  if (orphan) dropEntry(context, orphan.entry, orphan.identity, changes);
  keepEntry(context, fresh.entry, identity, changes);
  if (fresh.entry.channel === 'callback') undelivered.expect(fresh, changes);
  const acceptance = { outcome, entry: fresh.entry };
  return { acceptance, fresh, orphan, effect: correlated.effect };
}

/** Whether those who are brought a called-back message again get it, since whoever has not taken it is gone. */
function isOrphanFor(
  { journal, distribution: { attendance } }: InboxContext,
  arrival: Arrival,
  pending: Undelivered,
): boolean {
  // While the store fails, what is dropped may be found again.
  if (journal.mode !== 'open' || !attendance.isStranded(pending)) return false;
  return attendance.audience(channelOf(arrival), arrival).length > 0;
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
  { news, identity, former }: Pick<Candidate, 'news' | 'identity'> & { former: Entry | undefined },
  look: Look,
  changes: Changes,
): Correlated {
  const answered = recallAnswer(identity, look) ?? (former && answerOf(former.record));
  if (answered) return { record: { ...news.record, ...answered }, isRepeated: true };
  return correlator?.correlate(news, look, changes) ?? news;
}

/** The answer to a question goes to whoever asked; where no other node takes what is polled, here or where it is handed over to, to nobody else. */
function isForNobody({ distribution, heir }: InboxContext, arrival: Arrival, record: InboxRecord): boolean {
  if (record.awaited !== true || arrival.via !== 'poll' || distribution.attendance.expects(arrival.kind)) return false;
  return !heir || isForNobody(heir, arrival, record);
}

export function addTwin(entry: Entry, twin: InboxRecord): void {
  entry.twin = twin;
  entry.revision = (entry.revision ?? 0) + 1;
}
