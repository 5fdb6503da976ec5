import type { IncomingRecord, StatusRecord } from '../model';
import type { Ledger } from '../outbox/ledger';
import type { PassingRecord, Reconciliations } from '../outbox/reconciliation';
import { type Changes, keepItem, type Look } from '../store/store';
import type { Answer, Question } from './question';
import { latest, withAnswer } from './question-steps';
import type { Questions } from './questions';
import { leaveReply } from './replies';
import { keysOfStatus, noteStatus } from './report';
import { furtherKeysOfRecord, isByHandset, keysOfRecord, match, type SentIndex } from './sent-index';

/** What the ledger knows of records that come in: which text they answer, and what follows from them. */
export interface CorrelationOptions {
  sentIndex: SentIndex;
  /** Where texts and questions are that are under way. */
  ledger: Ledger;
  questions: Questions;
  reconciliations: Reconciliations;
  now(): number;
}

type Answering = Extract<PassingRecord, { kind: 'incoming' | 'status' }>;

/** Says what records answer, within the step that takes them in. */
export class Correlation {
  readonly #options: CorrelationOptions;

  constructor(options: CorrelationOptions) {
    this.#options = options;
  }

  /** Whether anything is remembered that a record may answer. */
  get isExpected(): boolean {
    return this.#options.sentIndex.isExpected;
  }

  /** Resolves when it is known whether a text may be answered by it that is on its way to its handset; `undefined`: at once. */
  outcomeOf(passing: PassingRecord): Promise<void> | undefined {
    if (passing.kind !== 'incoming' || !isByHandset(passing.record)) return undefined;
    return this.#options.ledger.inTransit.outcomesTo(passing.record.from);
  }

  /** The keys that a record needs, beside those of its identity: none while nothing is remembered. */
  keys(passing: PassingRecord): readonly string[] {
    const { sentIndex } = this.#options;
    if (sentIndex.isExpected) return this.#keysOf(passing);
    return passing.kind === 'outbox' ? [] : sentIndex.keys;
  }

  /** The keys that follow from what those say. */
  furtherKeys(passing: PassingRecord, look: Look): readonly string[] {
    if (passing.kind === 'outbox' || !this.#options.sentIndex.isRemembered(look)) return [];
    return [...this.#keysOf(passing), ...furtherKeysOfRecord(passing.kind, passing.record, this.#unexpired(look))];
  }

  /**
   * What a new record becomes when it answers something, with the changes that follow. The effect is to be run when they
   * are written.
   */
  correlate<W extends PassingRecord>(
    passing: W,
    look: Look,
    changes: Changes,
  ): { record: W['record']; isTaken?: true; effect(): void } {
    const observe = () => this.#options.reconciliations.observe(passing);
    // What a record may answer is derived from digests, which most accounts never need.
    if (passing.kind === 'outbox' || !this.#options.sentIndex.isExpected) {
      return { record: passing.record, effect: observe };
    }
    const unexpired = this.#unexpired(look);
    const { record, answered } = this.#answer(passing, unexpired, changes);
    const reported = passing.kind === 'status' ? noteStatus(passing.record, unexpired, changes) : undefined;
    const effect = () => {
      observe();
      if (answered) this.#options.questions.answered(answered);
      if (reported !== undefined) this.#options.questions.onStatus(reported);
    };
    return reported === undefined ? { record, effect } : { record, isTaken: true, effect };
  }

  #keysOf(passing: PassingRecord): readonly string[] {
    if (passing.kind === 'outbox') return [];
    const keys = keysOfRecord(passing.kind, passing.record);
    return passing.kind === 'status' ? [...keys, ...keysOfStatus(passing.record)] : keys;
  }

  #answer(
    passing: Answering,
    look: Look,
    changes: Changes,
  ): { record: IncomingRecord | StatusRecord; answered?: Question | undefined } {
    const found = match(passing.kind, passing.record, look);
    if (!found) return passing;
    const open = found.question;
    // It is remembered longer than it is known, for the sake of its questions.
    if (!open && found.knownUntil <= this.#options.now()) return passing;
    const record = { ...passing.record, sent: found.sent };
    const isEnd = passing.kind === 'status' && isUndelivered(passing.record);
    const question = passing.kind === 'status' && !isEnd ? undefined : open;
    const known = question && this.#options.ledger.questions.get(question.id);
    const own = known?.kind === 'question' ? latest(known, changes) : undefined;
    // One that is asked nowhere any more.
    if (!question || (!own && !this.#options.ledger.isShared)) return { record };
    changes.remember.set(question.key, undefined);
    const answer: Answer = isEnd
      ? { reason: 'undelivered', statusCode: passing.record.statusCode }
      : { reply: { ...(record as IncomingRecord), awaited: true } };
    if (!own) leaveReply(question.id, answer, this.#options.now(), changes);
    const answered = own && withAnswer(own, answer);
    if (answered) keepItem(changes, answered);
    return { record: isEnd ? record : { ...record, awaited: true }, answered };
  }

  #unexpired(look: Look): Look {
    return (key) => {
      const remembered = look(key);
      return remembered && remembered.at + remembered.forMs > this.#options.now() ? remembered : undefined;
    };
  }
}

/** Says whether a status says that no reply will come. */
function isUndelivered({ final, statusCode }: StatusRecord): boolean {
  return final === true && statusCode.trim() !== 'RCV';
}
