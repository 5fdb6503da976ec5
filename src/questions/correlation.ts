import type { IncomingRecord, StatusRecord } from '../model';
import type { Ledger } from '../outbox/ledger';
import type { PassingRecord, Reconciliations } from '../outbox/reconciliation';
import { type Changes, keepItem, type Look } from '../store/store';
import type { Answer, Question } from './question';
import { latest, leaveReply, withAnswer } from './question-steps';
import type { Questions } from './questions';
import { keysOfStatus, noteStatus } from './report';
import { answeredReference, furtherKeysOfRecord, keysOfRecord, match, type SentIndex } from './sent-index';

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

  /** What is known of a record that has come. */
  of(passing: PassingRecord) {
    const { sentIndex, reconciliations, ledger, questions } = this.#options;
    const { kind, record } = passing;
    const observe = () => reconciliations.observe(passing);
    if (kind === 'outbox') {
      const correlate = () => ({ record, effect: observe });
      return { mayAnswer: false, keys: [], further: () => [], correlate };
    }
    const keysOf = () => [...keysOfRecord(kind, record), ...(kind === 'status' ? keysOfStatus(record) : [])];
    const mayAnswer = sentIndex.isExpected;
    // It names no text that it answers.
    const isByHandset = kind === 'incoming' && answeredReference(record) === undefined;
    return {
      mayAnswer,
      // What a record may answer is derived from digests, which most accounts never need.
      keys: mayAnswer ? keysOf() : sentIndex.keys,
      // Whether it may answer a text that is on its way to its handset.
      outcome: isByHandset ? ledger.inTransit.outcomesTo(record.from) : undefined,
      further: (look: Look) =>
        sentIndex.isRemembered(look) ? [...keysOf(), ...furtherKeysOfRecord(kind, record, this.#unexpired(look))] : [],
      /** The effect is to be run when the changes are written. */
      correlate: (look: Look, changes: Changes) => {
        if (!sentIndex.isExpected) return { record, effect: observe };
        const unexpired = this.#unexpired(look);
        const { record: answering, answered } = this.#answer(passing, unexpired, changes);
        const reported = kind === 'status' ? noteStatus(record, unexpired, changes) : undefined;
        const effect = () => {
          observe();
          if (answered) questions.answered(answered);
          if (reported !== undefined) questions.onStatus(reported);
        };
        return { record: answering, ...(reported !== undefined && { isTaken: true as const }), effect };
      },
    };
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
