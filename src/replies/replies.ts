import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import { ClockSkew } from '../journal/clock-skew';
import type { IncomingRecord, Kind, RecordOfKind, StatusRecord } from '../model';
import type { Ledger } from '../outbox/ledger';
import { DueTimes } from '../outbox/queue';
import type { Reconciliations } from '../outbox/reconciliation';
import { Redelivery } from '../outbox/redelivery';
import type { SendHandler } from '../outbox/sender-registrations';
import { type Changes, keepItem, type Look } from '../store/store';
import { present } from '../wire/fields';
import { type Answer, awaited, type FollowUp, type ReplyRequest, requestGraceMs } from './reply-request';
import { endAsked, forgetFollowUp, latest, leaveReply } from './reply-steps';
import { describeReport, keysOfStatus, noteStatus } from './report';
import { keysOfMatch, match, type RecordKeys, recordKeysOf } from './sent-index';

/** What open reply requests need. */
export interface RepliesOptions {
  clock: Clock;
  ledger: Ledger;
  handlerOf(node: string): SendHandler | undefined;
  /** Are told of what comes in. */
  reconciliations: Pick<Reconciliations, 'observe'>;
  /** What nodes gave with texts. */
  origins: Map<string, unknown>;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

/** From the start on none runs out before the replies or statuses that the service still has were read, or so long has passed. */
const readFirstMs = 60_000;
const collectIntervalMs = 500;

/** So many reply requests are looked for elsewhere at a time: of more the next ones follow. */
const mostCollected = 1_000;

/**
 * Says what records answer, within the step that takes them in. Waits for the replies to reply requests, and for the statuses of reports: for each
 * recipient exactly one of reply and no reply enters the flow, and for each text that is reported its report, at least once, and after the
 * outcome of the text.
 */
export class Replies {
  readonly #options: RepliesOptions;
  /** Tells the flow of those that have ended. */
  readonly redelivery: Redelivery<FollowUp>;
  /** The deadlines of those that are open. */
  readonly #deadlines: DueTimes;
  /** They have run out, before or after the start, and there may be replies or statuses yet that the service has had since before. */
  readonly #overdue = new Set<string>();
  /** There as long as such are waited for, for what was asked before. */
  readonly #patience = new Map<Kind, { timer: Timer; since: number }>();
  #collecting: Timer | undefined;
  /** How many of the open ones have had their turn. */
  #collected = 0;

  constructor(options: RepliesOptions) {
    const { clock, ledger, handlerOf, origins } = options;
    this.#options = options;
    this.#deadlines = new DueTimes(clock, 'elapsed', (id) => this.#onDeadline(id));
    this.redelivery = new Redelivery({
      ...options,
      items: ledger.followUps,
      // Its answer follows the outcome of its text.
      handlerOf: ({ text, node }) => (ledger.texts.isOutcomeComing(text) ? undefined : handlerOf(node)),
      // Its node may be about to be deployed.
      patienceMs: (followUp) => Math.max(longestDeploymentMs, remainingMs(followUp, clock, requestGraceMs)),
      tell: async (handler, asked, mayBeKnown) => {
        const { text, messageId } = asked;
        const origin = origins.get(text);
        const flowMessage = origin === undefined ? await ledger.flowMessageOf(asked) : undefined;
        const news = { redelivered: mayBeKnown, ...present({ messageId, origin, flowMessage }) };
        if (asked.kind === 'report') return handler.onReport({ ...news, report: describeReport(asked) });
        const { recipient, answer } = asked;
        return answer ? handler.onAnswer({ ...news, recipient, answer }) : false;
      },
      ended: async (asked) => {
        await this.#drop(asked);
        if (!ledger.followUps.hasOf(asked.text)) origins.delete(asked.text);
      },
    });
  }

  /** The outcome of a text has entered the flow: the wait for what it asks goes on. */
  begin(text: string): void {
    const { followUps } = this.#options.ledger;
    if (followUps.size === 0) return;
    const asked = followUps.of(text);
    for (const followUp of asked) {
      // Its text was not accepted: a store that had seemed to fail had it, and it was found after that was settled.
      if (followUp.askedAt === undefined) void this.#drop(followUp);
      else if (followUp.answer) void this.redelivery.deliver(followUp, false);
      else this.#await(followUp);
    }
    void this.#end(asked.filter(({ kind }) => kind === 'report'));
    this.#collect();
  }

  /** An earlier process has asked. */
  resume(followUps: readonly FollowUp[]): void {
    const { clock, ledger, origins } = this.#options;
    // Whoever goes on with the ledger, or takes over from it, finds them there.
    if (ledger.isClosed) return;
    // One that is in no store is known by its origin alone. The outcome of an uncertain one has been told.
    const isUnderWay = ({ text: id }: FollowUp) => {
      const text = ledger.texts.get(id);
      return text ? text.state !== 'uncertain' : origins.get(id) !== undefined;
    };
    for (const followUp of followUps) {
      if (followUp.answer) {
        this.#stopWaiting(followUp.id);
        if (followUp.askedAt !== undefined || !isUnderWay(followUp)) void this.redelivery.deliver(followUp, true);
      } else if (followUp.askedAt === undefined) {
        // Whether its text was accepted is known to nobody, or will be when the text is settled.
        if (!isUnderWay(followUp)) void this.#drop(followUp);
      } else {
        const kind = awaited[followUp.kind];
        if (!this.#patience.has(kind)) {
          const timer = clock.after(readFirstMs, () => this.onDrained(kind), true);
          this.#patience.set(kind, { timer, since: clock.now() });
        }
        this.#await(followUp);
      }
    }
    void this.#end(followUps);
    this.#collect();
  }

  /** What is known of a record that has come. */
  correlationOf(passing: RecordOfKind) {
    const { clock, reconciliations, ledger } = this.#options;
    const { kind, record } = passing;
    const observe = () => reconciliations.observe(passing);
    if (kind === 'outbox') return { mayAnswer: false, keys: [], correlate: () => ({ record, effect: observe }) };
    const keys = recordKeysOf(record);
    // It may answer a text that is on its way to its handset, and names none.
    const isByHandset = kind === 'incoming' && keys.reference === undefined;
    return {
      mayAnswer: ledger.journal.isShared || ledger.remembers !== false,
      keys: [...keysOfMatch(kind, keys), ...(kind === 'status' ? keysOfStatus(keys) : [])],
      outcome: isByHandset ? ledger.inTransit.outcomesTo(record.from) : undefined,
      /** The effect is to be run when the changes are written. */
      correlate: (look: Look, changes: Changes) => {
        const unexpired: Look = (key) => {
          const remembered = look(key);
          return remembered && remembered.at + remembered.forMs > clock.now() ? remembered : undefined;
        };
        const { record: answering, answered } = this.#answer(passing, keys, unexpired, changes);
        const reported = kind === 'status' ? noteStatus(record, keys, unexpired, changes) : undefined;
        const effect = () => {
          observe();
          if (answered) this.#ended(answered);
          if (reported !== undefined) void this.#end(ledger.followUps.of(reported));
        };
        return { record: answering, ...(reported !== undefined && { isTaken: true as const }), effect };
      },
    };
  }

  #answer(
    passing: Extract<RecordOfKind, { kind: 'incoming' | 'status' }>,
    keys: RecordKeys,
    look: Look,
    changes: Changes,
  ): { record: IncomingRecord | StatusRecord; answered?: ReplyRequest | undefined } {
    const found = match(passing.kind, passing.record, keys, look);
    if (!found) return passing;
    const open = found.request;
    // It is remembered longer than it is known, for the sake of its reply requests.
    if (!open && found.knownUntil <= this.#options.clock.now()) return passing;
    const record = { ...passing.record, sent: found.sent };
    const isStatus = passing.kind === 'status';
    // Such a status says that no reply will come.
    const isEnd = isStatus && passing.record.final === true && passing.record.statusCode !== 'RCV';
    if (!open || (isStatus && !isEnd)) return { record };
    const known = this.#options.ledger.followUps.get(open.id) as ReplyRequest | undefined;
    const own = known && !open.isUndecided ? latest(known, changes) : undefined;
    changes.remember.set(open.key, undefined);
    const answer: Answer = isEnd
      ? { reason: 'undelivered', statusCode: passing.record.statusCode }
      : { reply: { ...(record as IncomingRecord), awaited: true } };
    if (!own) leaveReply(open.id, answer, this.#options.clock.now(), changes);
    const answered = own && { ...own, answer };
    if (answered) keepItem(changes, answered);
    // In a store of one's own it may be asked nowhere any more, or by what is to be taken over yet.
    const isAsked = own !== undefined || (this.#options.ledger.journal.isShared && !open.isUndecided);
    return { record: isAsked && !isEnd ? { ...record, awaited: true } : record, answered };
  }

  /** The service has no more replies, or statuses, for now: what is overdue ends without. */
  onDrained(kind: Kind): void {
    const { clock, ledger } = this.#options;
    const { followUps } = ledger;
    this.#patience.get(kind)?.timer.cancel();
    this.#patience.delete(kind);
    for (const id of this.#overdue) {
      const asked = followUps.get(id);
      if (asked && awaited[asked.kind] !== kind) continue;
      this.#overdue.delete(id);
      this.#deadlines.set(id, clock.elapsed());
    }
  }

  /** The end of a reply request or report is written down. */
  #ended(asked: FollowUp): void {
    const { followUps } = this.#options.ledger;
    const former = followUps.get(asked.id);
    if (!former) return;
    followUps.put(asked);
    this.#stopWaiting(asked.id);
    // Before its text is known to be accepted, which it is not yet where that is in the same commit, the outcome comes first.
    if (former.askedAt !== undefined) void this.redelivery.deliver(asked, false);
  }

  /** Nothing is told any more; the store has it. */
  close(): void {
    this.redelivery.close();
    for (const { timer } of this.#patience.values()) timer.cancel();
    this.#collecting?.cancel();
    this.#deadlines.clear();
    this.#overdue.clear();
    this.#patience.clear();
    this.#collecting = undefined;
  }

  #await(followUp: FollowUp): void {
    const { clock } = this.#options;
    this.#deadlines.set(followUp.id, clock.elapsed() + remainingMs(followUp, clock));
  }

  #onDeadline(id: string): void {
    const asked = this.#options.ledger.followUps.get(id);
    const { since = 0 } = (asked && this.#patience.get(awaited[asked.kind])) ?? {};
    if (asked && (asked.askedAt ?? 0) < since) this.#overdue.add(id);
    else if (asked) void this.#end([asked], true);
  }

  #stopWaiting(id: string): void {
    this.#deadlines.delete(id);
    this.#overdue.delete(id);
  }

  /**
   * Ends those of which all is known, here or to others who have read it, or, since their time is up, all of them; and tells of it. What the
   * store does not tell now is asked of it when it is back.
   */
  async #end(asked: readonly FollowUp[], isOver = false): Promise<void> {
    const { journal, followUps } = this.#options.ledger;
    const open = asked.filter(({ answer }) => !answer);
    if (open.length === 0) return;
    // When the store fails it tells that by itself.
    const ended = await journal.run(endAsked(open, followUps, isOver)).catch(() => []);
    for (const one of ended) this.#ended(one);
  }

  #drop(asked: FollowUp): Promise<void> {
    const { journal, followUps, texts } = this.#options.ledger;
    const { id, text } = asked;
    followUps.delete(id);
    return journal.run(forgetFollowUp(asked, () => !followUps.hasOf(text) && !texts.has(text)));
  }

  /** Replies and statuses may have been read elsewhere, as long as something is asked. */
  #collect(): void {
    const { clock, ledger } = this.#options;
    if (!ledger.journal.isShared || this.#collecting || ledger.isClosed) return;
    if (Object.values(ledger.followUps.open).every(({ total }) => total === 0)) return;
    this.#collecting = clock.after(
      collectIntervalMs,
      () => {
        this.#collecting = undefined;
        const open = [...ledger.followUps.values()].filter(({ answer }) => !answer);
        // Others each time, until all have had their turn.
        const start = this.#collected < open.length ? this.#collected : 0;
        this.#collected = start + mostCollected;
        void this.#end(open.slice(start, this.#collected)).then(() => this.#collect());
      },
      true,
    );
  }
}

/**
 * How much of a wait is left, in ms. The clock may have been set before this process began: it is never more than the whole.
 *
 * @param graceMs how long it stays after its time
 */
function remainingMs({ askedAt, waitMs }: FollowUp, clock: Clock, graceMs = 0): number {
  const wholeMs = waitMs + graceMs;
  if (askedAt === undefined) return wholeMs;
  const endsAt = ClockSkew.of(clock).timeOf(askedAt) + wholeMs;
  return Math.min(wholeMs, Math.max(0, endsAt - clock.now()));
}
