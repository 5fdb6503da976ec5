import { EventEmitter } from 'node:events';
import { type Clock, maxDeploymentMs, type Timer } from '../clock';
import { ClockSkew } from '../journal/clock-skew';
import { createReading, type Step, withEffect } from '../journal/step';
import type { IncomingRecord, Kind, RecordOfKind, StatusRecord } from '../model';
import { storeEvidence } from '../outbox/evidence';
import type { MessageRepository } from '../outbox/message-repository';
import type { Reconciliations } from '../outbox/reconciliation';
import { Redelivery } from '../outbox/redelivery';
import type { SenderRegistrations } from '../outbox/sender-registrations';
import { type Changes, dropItem, keepItem, latest, type ReadKey } from '../store/store';
import { normaliseRecipient, present } from '../wire/fields';
import { findAnswer } from './answers';
import {
  awaitedKindOf,
  type FollowUp,
  type FollowUpBook,
  flowMessageKey,
  followUpGraceMs,
  type ReplyRequest,
  type ReplyResult,
} from './follow-ups';
import {
  type AgainTemplate,
  answerRulesKey,
  collectForwardedReply,
  forwardResult,
  forwardUnclear,
  messageOfRequest,
  readAgainTemplate,
  readAnswerRules,
  withoutDue,
  withUnclear,
} from './reply-steps';
import { describeReport, keysOfStatus, noteStatus, statusesOf } from './report';
import {
  changeRequest,
  closeRequest,
  type FoundRequest,
  isHandset,
  keysOfMatch,
  match,
  type RecordKeys,
  recordKeysOf,
} from './sent-index';

export interface RepliesOptions {
  clock: Clock;
  repository: MessageRepository;
  registrations: Pick<SenderRegistrations, 'handlerOf'>;
  /** Receives every record, as possible evidence for messages with an unknown outcome. */
  reconciliations: Pick<Reconciliations, 'observe' | 'wants'>;
  /** Called if a reply request or report is dropped because its node is no longer deployed. */
  onAbandoned(node: string): void;
  /** Called if a node threw an error. */
  onFault(error: unknown): void;
}

/**
 * Maximum time for which an overdue reply request or report still waits after the process has started, in ms. In this
 * time, the service might still return the awaited reply or status.
 */
const maxUnreadMs = 60_000;
const collectIntervalMs = 500;

/** Maximum number of reply requests and reports that one run of `#collect` handles. */
const maxCollected = 1_000;

/**
 * Matches received records with sent messages, in the step that accepts the records. Also waits for replies and
 * statuses. Each follow-up (reply request or report) enters the flow at least once, after the outcome of its message.
 */
export class Replies {
  /** `againDue`: the account must send the second message (option `again`) to handsets of a reply request. */
  readonly events = new EventEmitter<{ againDue: [request: ReplyRequest] }>();
  readonly #options: RepliesOptions;
  /** Delivers ended follow-ups to the flow. */
  readonly redelivery: Redelivery<FollowUp>;
  /** Ids of follow-ups that still wait after their deadline, because the service might still have a reply or status. */
  readonly #overdueIds = new Set<string>();
  /**
   * Kinds of records that the service might still have from before this process started. A kind is removed when the
   * account has read all its records.
   */
  readonly #unreadKinds = new Map<Kind, { timer: Timer; since: number }>();
  #collectTimer: Timer | undefined;
  /** Index of the open follow-up with which the next run of `#collect` starts. */
  #collectedCount = 0;

  constructor(options: RepliesOptions) {
    const { clock, repository, registrations, onAbandoned, onFault } = options;
    this.#options = options;
    this.redelivery = new Redelivery({
      clock,
      repository,
      onFault,
      items: repository.followUps,
      handlerOf: ({ messageItemId, node }) =>
        repository.messages.isOutcomeComing(messageItemId) ? undefined : registrations.handlerOf(node),
      // The node might be deployed soon, so its follow-ups wait at least until the deployment has ended.
      patienceMs: (followUp) => Math.max(maxDeploymentMs, remainingMs(followUp, clock, followUpGraceMs)),
      report: async (handler, followUp, mayBeKnown) => {
        const { messageItemId, messageId } = followUp;
        const origin = repository.inputs.get(messageItemId);
        const flowMessage = origin === undefined ? await repository.flowMessageOf(followUp) : undefined;
        const event = { redelivered: mayBeKnown, ...present({ messageId, origin, flowMessage }) };
        if (followUp.kind === 'report') return handler.onReport({ ...event, report: describeReport(followUp) });
        const { recipient, result } = followUp;
        return result ? handler.onAnswer({ ...event, recipient, result }) : false;
      },
      ended: async (followUp, isMissed) => {
        await this.#drop(followUp);
        if (!repository.followUps.hasOf(followUp.messageItemId)) repository.inputs.delete(followUp.messageItemId);
        if (isMissed) onAbandoned(followUp.node);
      },
    });
  }

  /** Called when the flow has received the outcome of a message. Begins to wait for its replies and statuses. */
  begin(messageItemId: string): void {
    const { followUps } = this.#options.repository;
    if (followUps.size === 0) return;
    const messageFollowUps = followUps.of(messageItemId);
    for (const followUp of messageFollowUps) {
      // If the message was not accepted, drops its follow-up. Such a follow-up can exist after a commit that only
      // seemed to fail.
      if (followUp.askedAt === undefined) void this.#drop(followUp);
      else if (followUp.result) void this.redelivery.deliver(followUp, false);
      else this.#await(followUp);
    }
    void this.#end(messageFollowUps.filter(({ kind }) => kind === 'report'));
    this.#collect();
  }

  /** Resumes the follow-ups of an earlier process. */
  resume(followUps: readonly FollowUp[]): void {
    const { clock, repository } = this.#options;
    if (repository.isClosed) return;
    // If the message is not stored, it is in progress as long as the repository has its input.
    const isUnderWay = ({ messageItemId: id }: FollowUp) => {
      const item = repository.messages.get(id);
      return item ? item.state !== 'uncertain' : repository.inputs.get(id) !== undefined;
    };
    for (const followUp of followUps) {
      if (followUp.result) {
        this.#stopWaiting(followUp.id);
        if (followUp.askedAt !== undefined || !isUnderWay(followUp)) void this.redelivery.deliver(followUp, true);
      } else if (followUp.askedAt === undefined) {
        // If the message is still in progress, its outcome decides about the follow-up. Otherwise, drops the follow-up.
        if (!isUnderWay(followUp)) void this.#drop(followUp);
      } else {
        const kind = awaitedKindOf[followUp.kind];
        if (!this.#unreadKinds.has(kind)) {
          const timer = clock.after(maxUnreadMs, () => this.onDrained(kind), true);
          this.#unreadKinds.set(kind, { timer, since: clock.now() });
        }
        this.#await(followUp);
      }
    }
    void this.#end(followUps);
    this.#collect();
  }

  /** Prepares to match a record with a sent message. The match itself is a part of the step that accepts the record. */
  correlationOf(event: RecordOfKind) {
    const { clock, reconciliations, repository } = this.#options;
    const { kind, record } = event;
    const noteEvidence = (readKey: ReadKey, changes: Changes) => {
      if (reconciliations.wants(event)) storeEvidence(event, clock.now(), readKey, changes);
      return () => reconciliations.observe(event);
    };
    if (kind === 'outbox') {
      const correlate = (readKey: ReadKey, changes: Changes) => ({ record, effect: noteEvidence(readKey, changes) });
      return { mayAnswer: false, keys: [], correlate };
    }
    const keys = recordKeysOf(record);
    return {
      mayAnswer: repository.journal.isShared || repository.remembers !== false,
      keys: [...keysOfMatch(kind, keys), ...(kind === 'status' ? keysOfStatus(keys) : [])],
      outcome: kind === 'incoming' ? repository.inTransit.outcomesFor(keys, record.from) : undefined,
      noteEvidence,
      correlate: (readKey: ReadKey, changes: Changes) => {
        const unexpired: ReadKey = (key) => {
          const remembered = readKey(key);
          return remembered && remembered.at + remembered.forMs > clock.now() ? remembered : undefined;
        };
        const observe = noteEvidence(readKey, changes);
        const { record: matchedRecord, changed } = this.#match(event, keys, unexpired, changes);
        const reportReference = kind === 'status' ? noteStatus(record, keys, unexpired, changes) : undefined;
        const effect = () => {
          observe();
          if (changed) this.#onChanged(changed);
          if (reportReference !== undefined) void this.#end(repository.followUps.of(reportReference));
        };
        return { record: matchedRecord, ...(reportReference !== undefined && { isTaken: true as const }), effect };
      },
    };
  }

  #match(
    event: Extract<RecordOfKind, { kind: 'incoming' | 'status' }>,
    keys: RecordKeys,
    readKey: ReadKey,
    changes: Changes,
  ): { record: IncomingRecord | StatusRecord; changed?: ReplyRequest | undefined } {
    const { clock } = this.#options;
    const foundMatch = match(event.kind, event.record, keys, readKey);
    if (!foundMatch) return event;
    const { request, sent, rememberedUntil } = foundMatch;
    // If the record answers no open request, matches it only while the sent message is remembered.
    if (!request && rememberedUntil <= clock.now()) return event;
    const record = { ...event.record, sent };
    if (!request) return { record };
    if (event.kind === 'incoming') return this.#reply({ ...event.record, sent }, request, readKey, changes);
    const { final, statusCode } = event.record;
    if (final !== true || request.isReceived) return { record };
    if (statusCode !== 'RCV') {
      return { record, changed: this.#endWith({ reason: 'undelivered', statusCode }, request, readKey, changes) };
    }
    changeRequest(request, { isReceived: true }, readKey, changes);
    return { record };
  }

  #reply(
    record: IncomingRecord,
    request: FoundRequest,
    readKey: ReadKey,
    changes: Changes,
  ): { record: IncomingRecord; changed?: ReplyRequest | undefined } {
    const { clock, repository } = this.#options;
    const ownRequest = this.#ownRequest(request, changes);
    // If this process does not have the request, a process with the same shared store might have it.
    const isAwaited = ownRequest !== undefined || (repository.journal.isShared && !request.isUndecided);
    const awaited: IncomingRecord = isAwaited ? { ...record, awaited: true } : record;
    const rules = request.hasAnswers && readAnswerRules(messageOfRequest(request.id), readKey);
    // The store failed before the answer rules were read. The record will be matched when the store works again.
    if (request.hasAnswers && !rules) return { record };
    const answer = rules ? findAnswer(rules.answers, record.body) : undefined;
    if (!request.hasAnswers || answer !== undefined) {
      const reply: IncomingRecord = { ...record, awaited: true };
      const result = answer === undefined ? { reply } : { reply, answer };
      return { record: awaited, changed: this.#endWith(result, request, readKey, changes) };
    }
    const msisdn = normaliseRecipient(record.from);
    const handset = isHandset(msisdn) ? msisdn : undefined;
    if (!ownRequest) {
      forwardUnclear(request.id, { body: record.body, handset, at: clock.now() }, readKey, changes);
      return { record: awaited };
    }
    const changed = withUnclear(ownRequest, record.body, handset === undefined ? [] : [handset]);
    keepItem(changes, changed);
    return { record: awaited, changed };
  }

  /** Ends a request within the step that accepts a record. Returns the request if it belongs to this process. */
  #endWith(result: ReplyResult, request: FoundRequest, readKey: ReadKey, changes: Changes): ReplyRequest | undefined {
    const ownRequest = this.#ownRequest(request, changes);
    changeRequest(request, undefined, readKey, changes);
    const endedRequest = ownRequest && { ...ownRequest, result };
    if (endedRequest) keepItem(changes, endedRequest);
    else forwardResult(request.id, result, this.#options.clock.now(), changes);
    return endedRequest;
  }

  #ownRequest({ id, isUndecided }: FoundRequest, changes: Changes): ReplyRequest | undefined {
    const request = this.#options.repository.followUps.get(id);
    return request?.kind === 'replyRequest' && !isUndecided ? latest(request, changes) : undefined;
  }

  /**
   * Called when the service has no more records of a kind for now. Ends overdue follow-ups that waited for this kind.
   */
  onDrained(kind: Kind): void {
    const { clock, repository } = this.#options;
    this.#unreadKinds.get(kind)?.timer.cancel();
    this.#unreadKinds.delete(kind);
    for (const id of this.#overdueIds) {
      const followUp = repository.followUps.get(id);
      if (followUp && awaitedKindOf[followUp.kind] !== kind) continue;
      this.#overdueIds.delete(id);
      repository.dueTimes.set(id, clock.elapsed(), this.#onDeadline);
    }
  }

  /** Reads the second message (option `again`), to send after an unclear reply to a request. */
  againOf({ messageItemId }: ReplyRequest): Promise<AgainTemplate | undefined> {
    const { journal } = this.#options.repository;
    return journal.run(createReading('postpone', (readKey) => readAgainTemplate(messageItemId, readKey)));
  }

  /** Returns the handsets that must receive the second message (option `again`) of an open request. */
  dueOf(id: string): readonly string[] {
    const request = this.#options.repository.followUps.get(id);
    return (request?.kind === 'replyRequest' && !request.result && request.againDue) || [];
  }

  /** Notes that the second message (option `again`) to a handset was sent or refused, and needs no further try. */
  async againEnded(id: string, handset: string): Promise<void> {
    const { journal, followUps } = this.#options.repository;
    const followUp = followUps.get(id);
    if (followUp?.kind !== 'replyRequest' || !followUp.againDue?.includes(handset)) return;
    followUps.set(withoutDue(followUp, handset));
    await journal.run({
      whileFailing: 'apply',
      decide: (_, changes) => {
        const currentRequest = followUps.get(id);
        if (currentRequest?.kind === 'replyRequest' && !changes.drop.has(id)) {
          keepItem(changes, withoutDue(latest(currentRequest, changes), handset));
        }
        return () => {};
      },
    });
  }

  /** Called after a changed reply request or an ended follow-up is written. */
  #onChanged(changed: FollowUp): void {
    const { followUps } = this.#options.repository;
    const earlier = followUps.get(changed.id);
    if (!earlier) return;
    followUps.set(changed);
    // Until the outcome of its message is known, a follow-up waits for the call of `begin`.
    const hasBegun = earlier.askedAt !== undefined;
    if (changed.result) {
      this.#stopWaiting(changed.id);
      if (hasBegun) void this.redelivery.deliver(changed, false);
    } else if (hasBegun) this.#sendAgain(changed);
  }

  /** Called when a node starts to send. Sends its second messages (option `again`) that waited for the node. */
  nodeAttached(node: string): void {
    const { followUps } = this.#options.repository;
    if (!followUps.openCounts.replyRequest.has(node)) return;
    for (const followUp of followUps.values()) {
      if (followUp.node === node && !followUp.result && followUp.askedAt !== undefined) this.#sendAgain(followUp);
    }
  }

  #sendAgain(followUp: FollowUp): void {
    const isDue = followUp.kind === 'replyRequest' && (followUp.againDue?.length ?? 0) > 0;
    if (isDue) this.events.emit('againDue', followUp);
  }

  close(): void {
    this.redelivery.close();
    for (const { timer } of this.#unreadKinds.values()) timer.cancel();
    this.#collectTimer?.cancel();
    this.#overdueIds.clear();
    this.#unreadKinds.clear();
    this.#collectTimer = undefined;
  }

  #await(followUp: FollowUp): void {
    const { clock, repository } = this.#options;
    repository.dueTimes.set(followUp.id, clock.elapsed() + remainingMs(followUp, clock), this.#onDeadline);
    this.#sendAgain(followUp);
  }

  readonly #onDeadline = (id: string): void => {
    const followUp = this.#options.repository.followUps.get(id);
    const { since = 0 } = (followUp && this.#unreadKinds.get(awaitedKindOf[followUp.kind])) ?? {};
    if (followUp && (followUp.askedAt ?? 0) < since) this.#overdueIds.add(id);
    else if (followUp) void this.#end([followUp], true);
  };

  #stopWaiting(id: string): void {
    this.#options.repository.dueTimes.delete(id);
    this.#overdueIds.delete(id);
  }

  /**
   * Ends the follow-ups whose replies or statuses are complete, here or on other instances. If `isOver`, ends all of
   * them. While the store fails, waits for the store.
   */
  async #end(followUps: readonly FollowUp[], isOver = false): Promise<void> {
    const { journal, followUps: book } = this.#options.repository;
    const openFollowUps = followUps.filter(({ result }) => !result);
    if (openFollowUps.length === 0) return;
    // Updates memory before later steps of the same commit run, because they might store the outcome of the message.
    const step = withEffect(endFollowUps(openFollowUps, book, isOver), (changed) => {
      for (const followUp of changed) this.#onChanged(followUp);
    });
    // Ignores a failure of the store, because the journal itself reports it.
    await journal.run(step).catch(() => {});
  }

  #drop(followUp: FollowUp): Promise<void> {
    const { journal, followUps, messages } = this.#options.repository;
    const { id, messageItemId } = followUp;
    followUps.delete(id);
    return journal.run(forgetFollowUp(followUp, () => !followUps.hasOf(messageItemId) && !messages.has(messageItemId)));
  }

  /** While follow-ups are open, regularly collects the replies and statuses that other instances received. */
  #collect(): void {
    const { clock, repository } = this.#options;
    if (!repository.journal.isShared || this.#collectTimer || repository.isClosed) return;
    if (Object.values(repository.followUps.openCounts).every(({ size }) => size === 0)) return;
    this.#collectTimer = clock.after(
      collectIntervalMs,
      () => {
        this.#collectTimer = undefined;
        const openFollowUps = [...repository.followUps.values()].filter(({ result }) => !result);
        const start = this.#collectedCount < openFollowUps.length ? this.#collectedCount : 0;
        this.#collectedCount = start + maxCollected;
        void this.#end(openFollowUps.slice(start, this.#collectedCount)).then(() => this.#collect());
      },
      true,
    );
  }
}

/**
 * Returns the remaining time of a wait, in ms. The result is at most the whole wait, even if the clock was set back
 * before this process started.
 *
 * @param graceMs how long a follow-up stays after the end of its wait
 */
function remainingMs({ askedAt, waitMs }: FollowUp, clock: Clock, graceMs = 0): number {
  const wholeMs = waitMs + graceMs;
  if (askedAt === undefined) return wholeMs;
  const endsAt = ClockSkew.of(clock).timeOf(askedAt) + wholeMs;
  return Math.min(wholeMs, Math.max(0, endsAt - clock.now()));
}

/**
 * Creates the step that ends reply requests whose replies other instances stored, and reports whose statuses are
 * complete. Its result lists the changed follow-ups. The step waits while the store fails, because otherwise a crash
 * would open the follow-ups again, and a reply could end them a second time.
 *
 * @param isOver true if the time of the follow-ups is up; then all of them end
 */
export function endFollowUps(
  followUps: readonly FollowUp[],
  book: Pick<FollowUpBook, 'get'>,
  isOver = false,
): Step<FollowUp[]> {
  return {
    whileFailing: 'postpone',
    decide(readKey, changes) {
      const changed: FollowUp[] = [];
      for (const { id } of followUps) {
        const followUp = changes.drop.has(id) ? undefined : book.get(id);
        const currentRequest = followUp && latest(followUp, changes);
        if (!currentRequest) continue;
        if (currentRequest.kind === 'report') {
          if (currentRequest.result) continue;
          const statuses = statusesOf(currentRequest, isOver, readKey);
          if (statuses) changed.push({ ...currentRequest, result: { statuses } });
          continue;
        }
        // Collects a reply that another instance stored for the request. This also removes the stored reply, even if
        // the request has already ended.
        const collectedRequest = collectForwardedReply(currentRequest, readKey, changes);
        const ended =
          collectedRequest.result || !isOver
            ? collectedRequest
            : { ...collectedRequest, result: createTimeout(collectedRequest) };
        if (ended === currentRequest) continue;
        // Closes the request in the store. It might be open again there if the message was sent again after another
        // instance had received the reply.
        if (ended.result) closeRequest(currentRequest, readKey, changes);
        changed.push(ended);
      }
      for (const followUp of changed) keepItem(changes, followUp);
      return () => changed;
    },
  };
}

function createTimeout({ unclear }: ReplyRequest): ReplyResult {
  return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: unclear };
}

/**
 * Creates the step that removes a follow-up from the store.
 *
 * @param isLast returns whether neither another follow-up nor the message itself still needs the flow message
 */
function forgetFollowUp(followUp: FollowUp, isLast: () => boolean): Step<void> {
  const unopenedRequest = followUp.kind === 'replyRequest' && followUp.askedAt === undefined ? followUp : undefined;
  // Checks `isLast` both now and in the step, because another follow-up that ends in between might stay in the store
  // until a later commit. After a crash before that commit, the other follow-up still needs the flow message.
  const wasLast = isLast();
  return {
    whileFailing: 'apply',
    decide(readKey, changes) {
      dropItem(changes, followUp.id, 'outgoing');
      if (unopenedRequest) closeRequest(unopenedRequest, readKey, changes);
      if (wasLast && isLast()) {
        changes.remember.set(flowMessageKey(followUp.messageItemId), undefined);
        if (followUp.kind === 'replyRequest' && followUp.hasAnswers) {
          changes.remember.set(answerRulesKey(followUp.messageItemId), undefined);
        }
      }
      return () => {};
    },
  };
}
