import type { Timer } from '../clock';
import { changeOptOuts, type OptOutChange } from '../consent/opt-outs';
import type { Destination } from '../delivery/subscribers';
import type { Step, WhileFailing } from '../journal/journal';
import type { InboxRecord, Kind, RecordOfKind, RecordsOfKind, Via } from '../model';
import { type Changes, dropItem, keepItem, latest, type PendingWrite, type ReadKey } from '../store/store';
import { removeFormatting } from '../wire/fields';
import type { CorrelatedRecord, Correlation, InboxParts } from './context';
import type { DeadLetters } from './dead-letters';
import { addressTo, type DeadLetter, type Entry, type EntryGroup, nameSubscribers, Pending } from './entries';
import {
  answerOf,
  type Identity,
  identify,
  judge,
  noteCallback,
  noteLeftOut,
  recallLeftOut,
  type Verdict,
} from './identity';

/** The parts of an inbox, including its unhandled records. */
export type InboxContext = InboxParts & { readonly deadLetters: DeadLetters };

/**
 * Maximum time for which records wait for a failed store, in ms. Afterwards, the records are delivered, although the
 * messages that they answer are not known.
 */
const maxMatchWaitMs = 60_000;

const digits = /^\d{1,20}$/;

/** The records of one poll or callback, with details about their reception. */
export type Arrival = Destination &
  RecordsOfKind & {
    via: Via;
    /** List to which the new entries are added, for the caller to deliver. Absent: the nodes receive them directly. */
    collectedEntries?: Pending[];
    /**
     * Copy of the service's answer. It is saved before the commit, so that a crash cannot lose the records. Removed
     * when the records are stored.
     */
    savedAnswer?: PendingWrite | undefined;
    /** Set if an earlier process received these records, and might already have stored or delivered the records. */
    isRecovered?: true;
  };

/** A record that is still to be matched with sent messages. */
interface UnmatchedRecord {
  readonly event: RecordOfKind;
  readonly identity: Identity;
  /** Finds the sent messages that the record answers. Absent: the record answers no message. */
  readonly correlation: Correlation | undefined;
}

/** A received record that is not stored yet. */
interface Candidate extends UnmatchedRecord {
  /**
   * Id of the entry. If the step runs again, it uses the same id. Otherwise, it could store the entry twice, because a
   * commit that was reported as failed might have been written.
   */
  id?: string;
  /** Absent: the record is neither an opt-out nor an opt-in. */
  readonly consent: OptOutChange | undefined;
  readonly arrival: Arrival;
}

/**
 * Stores new records, and then delivers them to the nodes. Resolves with one verdict per record: whether it was seen
 * before.
 *
 * @throws SmsError `SMS_STORE` for a callback, if the store cannot keep it or is closed
 */
export async function acceptRecords(context: InboxContext, arrival: Arrival): Promise<Verdict[]> {
  const { kind, records, via, isRecovered } = arrival;
  const candidates = records.map((record): Candidate => {
    const consent = readConsent(context, { kind, record } as RecordOfKind);
    const event = { kind, record: consent ? { ...record, optOut: consent.change } : record } as RecordOfKind;
    return { event, identity: identify(event), consent, correlation: context.correlator?.(event), arrival };
  });
  const mayAnswer = candidates.some(({ correlation }) => correlation?.mayAnswer);
  // While the store fails, a callback is refused, because the service repeats it. A recovered record is postponed,
  // because its saved copy still exists. A polled record is accepted, because the service does not return it again.
  const whileFailing: WhileFailing = via === 'callback' ? 'refuse' : isRecovered ? 'postpone' : 'apply';
  const step: Step<Verdict[]> = {
    keys: candidates.flatMap(({ identity, correlation }) => [...identity.keys, ...(correlation?.keys ?? [])]),
    whileFailing,
    decide(readKey, changes) {
      const effects = candidates.map((candidate) => acceptRecord(context, candidate, readKey, changes));
      return (isWritten) => {
        if (!isWritten && mayAnswer) context.run(createLateMatch(context, candidates));
        // After the commit, the saved copy of the answer is not needed. If the store fails, keeps the copy until the
        // store works again.
        if (isWritten) arrival.savedAnswer?.remove();
        else if (arrival.savedAnswer)
          context.run({ whileFailing: 'postpone', decide: () => () => arrival.savedAnswer?.remove() });
        const newEntries = arrival.collectedEntries ?? [];
        const verdicts = effects.map((runEffect) => runEffect(newEntries));
        if (!arrival.collectedEntries) distributeGroup(context, newEntries, arrival);
        return verdicts;
      };
    },
  };
  return mayAnswer && whileFailing === 'apply' ? runOnceReadable(context, step) : context.journal.run(step);
}

/** Runs a step when the store can be read. After 60 s, runs the step even if the store still fails. */
function runOnceReadable<Result>({ journal, clock }: InboxParts, step: Step<Result>): Promise<Result> {
  const waitingStep = { ...step, whileFailing: 'postpone' as WhileFailing };
  const stopWaiting = () => {
    waitingStep.whileFailing = 'apply';
    journal.requestPostponed();
  };
  const timer: Timer = clock.after(maxMatchWaitMs, stopWaiting, true);
  return journal.run(waitingStep).finally(() => timer.cancel());
}

/** Returns the opt-out or opt-in that a record asks for, or `undefined` if it asks for neither. */
function readConsent({ clock, readConsentChange }: InboxParts, event: RecordOfKind): OptOutChange | undefined {
  const change = event.kind === 'incoming' ? readConsentChange?.(event.record.body) : undefined;
  const msisdn = change && removeFormatting(String(event.record.from ?? ''));
  if (!change || !msisdn || !digits.test(msisdn)) return undefined;
  return { msisdns: [msisdn], change, at: clock.now(), via: 'message' };
}

/** Adds an opt-out or opt-in to the changes of a step. Returns a function to call after the commit. */
function changeConsent(
  { journal, run, onOptOut = () => {} }: InboxParts,
  consent: OptOutChange,
  readKey: ReadKey,
  changes: Changes,
): () => void {
  if (journal.isOpen) {
    changeOptOuts(consent, readKey, changes);
    return onOptOut;
  }
  // Waits until the store works, because changing the list of opted-out numbers before reading it would overwrite it.
  const decide: Step<void>['decide'] = (...later) => {
    changeOptOuts(consent, ...later);
    return onOptOut;
  };
  return () => run({ whileFailing: 'postpone', decide });
}

/**
 * Creates a step for records that nodes received while the store failed. When the store works again, the step finds the
 * messages that the records answer. It also ends the reply requests and reports that waited for these records.
 */
function createLateMatch(context: InboxParts, candidates: readonly UnmatchedRecord[]): Step<void> {
  const isUnmatched = ({ identity }: UnmatchedRecord, readKey: ReadKey) =>
    Object.keys(recallLeftOut(identity, readKey) ?? {}).length === 0;
  return {
    whileFailing: 'postpone',
    decide(readKey, changes) {
      if (context.isIncomplete)
        return () => void context.unmatchedRecords.push(...candidates.map(({ event }) => event));
      const matches = candidates
        .filter((candidate) => isUnmatched(candidate, readKey))
        .map(({ identity, correlation }) => {
          const correlated = correlation?.correlate(readKey, changes);
          const wasLeftOut = recallLeftOut(identity, readKey) !== undefined;
          if (correlated && wasLeftOut) noteLeftOut(identity, answerOf(correlated.record), readKey, changes);
          return correlated;
        });
      return () => {
        for (const correlated of matches) correlated?.effect();
      };
    },
  };
}

/**
 * Finds the messages that `events` answer. These records were delivered without a match while the store failed: by this
 * inbox or, before an import, by the inbox of the former login or store.
 */
export function matchLate(context: InboxParts, events: readonly RecordOfKind[]): void {
  if (events.length === 0) return;
  const candidates = events.map((event) => {
    return { event, identity: identify(event), correlation: context.correlator?.(event) };
  });
  context.run(createLateMatch(context, candidates));
}

/** Adds entries that were just stored to the inbox, as one group, and delivers them to the nodes. */
export function distributeGroup(
  { entries, subscribers }: InboxParts,
  newEntries: readonly Pending[],
  { asker, context }: Destination = {},
): void {
  const [firstEntry] = newEntries;
  if (!firstEntry) return;
  const together: EntryGroup = { group: firstEntry.entry.id, count: newEntries.length, asker, context };
  for (const [index, pending] of newEntries.entries()) {
    Object.assign(pending, { together, index, isNew: true });
    entries.set(pending.entry.id, pending);
  }
  subscribers.distribute(newEntries);
}

/**
 * Handles one record in a step: checks whether it was seen before, and adds the resulting changes. Returns a function
 * to call after the commit. This function adds the entry of a new record to `newEntries`.
 */
function acceptRecord(
  context: InboxContext,
  candidate: Candidate,
  readKey: ReadKey,
  changes: Changes,
): (newEntries: Pending[]) => Verdict {
  const { deadLetters } = context;
  const { event, identity, consent, correlation, arrival } = candidate;
  const { kind, via, isRecovered } = arrival;
  const verdict = judge(context, { identity, via, isRecovered }, readKey, changes);
  const isNew = verdict === 'new';
  const notedAnswer = isNew ? undefined : recallLeftOut(identity, readKey);
  const isCopyOfLeftOut = notedAnswer !== undefined && via === 'callback';
  /**
   * The unhandled record that a poll returned earlier, if this callback brings the same record. The record of the
   * callback replaces the unhandled record.
   */
  let unhandledCopy: DeadLetter | undefined;
  if (!isNew && !isCopyOfLeftOut && (isRecovered || context.dedupe() || kind === 'outbox')) {
    const { address } = arrival;
    unhandledCopy = address && deadLetters.findPolled(kind, identity, changes);
    if (!unhandledCopy) {
      if (address) noteCallback(identity, { ...address, query: event.record.query }, readKey, changes);
      return () => verdict;
    }
  }
  const answer = notedAnswer ?? (unhandledCopy && answerOf(unhandledCopy.record));
  const onAccepted = isNew && consent ? changeConsent(context, consent, readKey, changes) : undefined;
  const isHeldBack =
    !answer && (correlation?.outcome !== undefined || (context.isIncomplete && context.journal.isOpen));
  const correlated: Partial<CorrelatedRecord> & { record: InboxRecord } = isHeldBack
    ? { record: event.record, effect: correlation?.noteEvidence?.(readKey, changes) ?? (() => {}) }
    : answer
      ? { record: { ...event.record, ...answer }, isTaken: notedAnswer && true }
      : (correlation?.correlate(readKey, changes) ?? event);
  if (via === 'poll' && !isHeldBack && isLeftOut(context, kind, correlated)) {
    noteLeftOut(identity, answerOf(correlated.record), readKey, changes);
    return () => {
      onAccepted?.();
      correlated.effect?.();
      return notedAnswer ? 'repeated' : verdict;
    };
  }
  if (isCopyOfLeftOut) noteLeftOut(identity, undefined, readKey, changes);
  if (unhandledCopy) dropItem(changes, unhandledCopy.id, unhandledCopy.part);
  candidate.id ??= context.journal.nextId();
  const entry = createEntry(context, candidate.id, { kind, record: correlated.record } as RecordOfKind, arrival);
  if (isRecovered) entry.unsure = true;
  if (isHeldBack) Object.assign(entry, { isHeldBack, attempts: 0 } satisfies Partial<Entry>);
  keepItem(changes, entry);
  return (newEntries) => {
    if (unhandledCopy) deadLetters.forget(unhandledCopy.id);
    onAccepted?.();
    correlated.effect?.();
    const pending = new Pending(entry, identity);
    pending.firstAttempt = 1;
    if (isHeldBack) holdBack(context, pending, correlation);
    else newEntries.push(pending);
    return verdict;
  };
}

/**
 * Withholds an entry from the nodes until the outcome of the message that the entry might answer is known. Then finds
 * the answered message, and delivers the entry.
 *
 * @param knownCorrelation the search for the answered message, if the caller has already created it
 */
export function holdBack(context: InboxContext, pending: Pending, knownCorrelation?: Correlation): void {
  const { entry } = pending;
  context.entries.set(entry.id, pending);
  const correlation = knownCorrelation ?? context.correlator?.(entry);
  const match = () => runOnceReadable(context, createMatch(context, pending, correlation)).catch(context.onFault);
  void (correlation?.outcome ?? Promise.resolve()).then(match);
}

/** Creates the step that finds the message that a withheld entry answers, and then delivers the entry to the nodes. */
function createMatch(context: InboxContext, pending: Pending, correlation: Correlation | undefined): Step<void> {
  const { entries } = context;
  const { id, kind } = pending.entry;
  return {
    keys: [...pending.identity.keys, ...(correlation?.keys ?? [])],
    whileFailing: 'apply',
    decide(readKey, changes) {
      const { isHeldBack, ...entry } = latest(pending.entry, changes);
      const isWaiting = isHeldBack && entries.get(id) === pending && !changes.drop.has(id);
      // Does nothing before an import, because the imported data might contain the answered message. After the import,
      // the entry is matched.
      if (!isWaiting || (context.isIncomplete && context.journal.isOpen)) return () => {};
      const correlated: Partial<CorrelatedRecord> & { record: InboxRecord } =
        correlation?.correlate(readKey, changes) ?? entry;
      const isUnwanted = entry.channel !== 'callback' && isLeftOut(context, kind, correlated);
      const matchedEntry = { ...entry, record: correlated.record } as Entry;
      const endEntry = isUnwanted ? createLeaveOut(context, pending, matchedEntry)(readKey, changes) : undefined;
      if (!endEntry) keepItem(changes, matchedEntry);
      return () => {
        correlated.effect?.();
        if (endEntry) return endEntry();
        entries.delete(id);
        pending.entry = matchedEntry;
        distributeGroup(context, [pending]);
      };
    },
  };
}

/**
 * Handles a polled entry that no node wants. As soon as the store works, drops the entry or redirects it to a callback
 * node, see {@link createLeaveOut}. Does nothing if a node receives the entry before then.
 */
export function leaveOut(parts: InboxParts, pending: Pending): void {
  const { id } = pending.entry;
  parts.run({
    keys: pending.identity.keys,
    whileFailing: 'postpone',
    decide(readKey, changes) {
      const isStillLeftOut = parts.entries.get(id) === pending && pending.pendingFor.size === 0;
      return isStillLeftOut
        ? createLeaveOut(parts, pending, latest(pending.entry, changes))(readKey, changes)
        : () => {};
    },
  });
}

/**
 * Creates the `decide` function of a step ({@link Step.decide}) for a polled entry that no node wants:
 *
 * - If a callback has already brought the same record, the called node receives the entry.
 * - Otherwise, the entry is dropped. If a callback brings the same record later, that record is delivered.
 */
function createLeaveOut({ entries, subscribers }: InboxParts, pending: Pending, entry: Entry) {
  const { id, record } = entry;
  return (readKey: ReadKey, changes: Changes): (() => void) => {
    const callback = noteLeftOut(pending.identity, answerOf(record), readKey, changes);
    if (!callback) {
      dropItem(changes, id, 'inbox');
      return () => void entries.delete(id);
    }
    const calledEntry = addressTo(callback, entry);
    keepItem(changes, calledEntry);
    return () => {
      if (entries.get(id) !== pending) return;
      const redirectedPending = new Pending(calledEntry, pending.identity);
      entries.set(id, redirectedPending);
      subscribers.distribute([redirectedPending]);
    };
  };
}

/**
 * Returns whether a polled record can be dropped. No node wants such a record: either the filters of all nodes exclude
 * it, or a reply request or report has already used it.
 */
function isLeftOut(
  { subscribers }: InboxParts,
  kind: Kind,
  { record, isTaken }: Pick<CorrelatedRecord, 'record' | 'isTaken'>,
): boolean {
  const wasUsed = isTaken === true || record.awaited === true;
  return (wasUsed || subscribers.expects(kind)) && !subscribers.expects(kind, record);
}

function createEntry(
  { journal, subscribers }: InboxParts,
  id: string,
  event: RecordOfKind,
  destination: Destination,
): Entry {
  const { kind } = event;
  const { address } = destination;
  const entry: Entry = {
    id,
    part: 'inbox',
    subscribers: address ? nameSubscribers(address) : [kind],
    channel: address ? 'callback' : kind,
    attempts: subscribers.audience({ ...destination, kind }).length > 0 ? 1 : 0,
    ...event,
    ...(address && { address }),
  };
  // While the shared store failed, another process might already have delivered the record. Marks it as redelivered.
  if (journal.isShared && !journal.isOpen) entry.unsure = true;
  return entry;
}
