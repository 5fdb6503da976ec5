import type { IncomingRecord, StatusRecord } from '../model';
import type { Ledger } from '../outbox/ledger';
import type { EvidenceCollector, PassingRecord } from '../outbox/reconciliation';
import { type Changes, keepItem, type Look } from '../store/store';
import type { Answer, Question } from './question';
import { latest, withAnswer } from './question-steps';
import type { Questions } from './questions';
import { leaveReply } from './replies';
import { keysOfStatus, noteStatus } from './report';
import { furtherKeysOfRecord, isByHandset, keysOfRecord, match, questionOf, type Remembrance } from './sent-index';

/** What the ledger knows of records that come in: which text they answer, and what follows from them. */
export interface CorrelationOptions {
  remembrance: Remembrance;
  /** Where texts and questions are that are under way. */
  ledger: Ledger;
  questions: Questions;
  evidence: EvidenceCollector;
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
    return this.#options.remembrance.isExpected;
  }

  /** Resolves when it is known whether a text may be answered by it that is on its way to its handset; `undefined`: at once. */
  outcomeOf(witness: PassingRecord): Promise<void> | undefined {
    if (witness.kind !== 'incoming' || !isByHandset(witness.record)) return undefined;
    return this.#options.ledger.inTransit.outcomesTo(witness.record.from);
  }

  /** The keys that a record needs, beside those of its identity: none while nothing is remembered. */
  keys(witness: PassingRecord): readonly string[] {
    const { remembrance } = this.#options;
    if (remembrance.isExpected) return this.#keysOf(witness);
    return witness.kind === 'outbox' ? [] : remembrance.keys;
  }

  /** The keys that follow from what those say. */
  furtherKeys(witness: PassingRecord, look: Look): readonly string[] {
    if (witness.kind === 'outbox' || !this.#options.remembrance.isRemembered(look)) return [];
    return [...this.#keysOf(witness), ...furtherKeysOfRecord(witness.kind, witness.record, this.#unexpired(look))];
  }

  /**
   * What a new record becomes when it answers something, with the changes that follow. The effect is to be run when they
   * are written.
   */
  correlate<W extends PassingRecord>(
    witness: W,
    look: Look,
    changes: Changes,
  ): { record: W['record']; isTaken?: true; effect(): void } {
    const observe = () => this.#options.evidence.observe(witness);
    // What a record may answer is derived from digests, which most accounts never need.
    if (witness.kind === 'outbox' || !this.#options.remembrance.isExpected) {
      return { record: witness.record, effect: observe };
    }
    const unexpired = this.#unexpired(look);
    const { record, answered } = this.#answer(witness, unexpired, changes);
    const reported = witness.kind === 'status' ? noteStatus(witness.record, unexpired, changes) : undefined;
    const effect = () => {
      observe();
      if (answered) this.#options.questions.answered(answered);
      if (reported !== undefined) this.#options.questions.onStatus(reported);
    };
    return reported === undefined ? { record, effect } : { record, isTaken: true, effect };
  }

  #keysOf(witness: PassingRecord): readonly string[] {
    if (witness.kind === 'outbox') return [];
    const keys = keysOfRecord(witness.kind, witness.record);
    return witness.kind === 'status' ? [...keys, ...keysOfStatus(witness.record)] : keys;
  }

  #answer(
    witness: Answering,
    look: Look,
    changes: Changes,
  ): { record: IncomingRecord | StatusRecord; answered?: Question | undefined } {
    const found = match(witness.kind, witness.record, look);
    if (!found) return witness;
    const open = witness.kind === 'status' ? questionOf(witness.record, look) : found.question;
    // It is remembered longer than it is known, for the sake of its questions.
    if (!open && found.knownUntil <= this.#options.now()) return witness;
    const record = { ...witness.record, sent: found.sent };
    const isEnd = witness.kind === 'status' && isUndelivered(witness.record);
    const question = witness.kind === 'status' && !isEnd ? undefined : open;
    const known = question && this.#options.ledger.questions.get(question.id);
    const own = known?.kind === 'question' ? latest(known, changes) : undefined;
    // One that is asked nowhere any more.
    if (!question || (!own && !this.#options.ledger.isShared)) return { record };
    question.close(changes);
    const answer: Answer = isEnd
      ? { reason: 'undelivered', statusCode: witness.record.statusCode }
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
