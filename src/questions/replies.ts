import type { Clock, Timer } from '../clock';
import type { Text } from '../outbox/text';
import { type Changes, type Look, type MovedValues, parseRememberedValue } from '../store/store';
import { normaliseRecipient } from '../wire/fields';
import { type Answer, type Question, questionGraceMs } from './question';

const longestWaitMs = 60_000;

const replyPrefix = 'reply:';

/** The key under which an instance leaves the reply that it has read to a question of another. */
export function replyKey(question: string): string {
  return replyPrefix + question;
}

/** What another instance has left. */
export function readReply(question: string, look: Look): Answer | undefined {
  return parseRememberedValue(look(replyKey(question)), isAnswer);
}

/** Leaves a reply. It closes the question in the same commit, so that no other comes. */
export function leaveReply(question: string, answer: Answer, at: number, changes: Changes): void {
  changes.remember.set(replyKey(question), { at, forMs: questionGraceMs, value: JSON.stringify(answer) });
}

/** It is where the question is. */
export function takeReply(question: string, changes: Changes): void {
  changes.remember.set(replyKey(question), undefined);
}

/** Those questions that nobody has answered, here or elsewhere. */
export function unanswered(questions: readonly Question[], look: Look): Question[] {
  return questions.filter(({ id, answer }) => answer === undefined && readReply(id, look) === undefined);
}

/** Each reply that lies there for either login. */
export const movedReplies: MovedValues = { prefix: replyPrefix };

function isAnswer(value: unknown): value is Answer {
  const { reply, reason } = Object(value) as { reply?: unknown; reason?: unknown };
  return typeof reason === 'string' || (typeof reply === 'object' && reply !== null);
}

/** A text that asks, from when it leaves until its outcome is known. */
interface TextInTransit {
  recipients: readonly string[];
  readonly outcome: Promise<void>;
  onOutcome(): void;
  timer: Timer;
}

/** Texts that ask and have left: what their handsets write meanwhile may answer them, which is known when they are accepted. */
export class TextsInTransit {
  readonly #clock: Clock;
  readonly #texts = new Map<string, TextInTransit>();
  /** Ids of the texts to each handset. */
  readonly #byHandset = new Map<string, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A text leaves. */
  add({ id, message, options }: Text): void {
    if (options.waitMs === undefined || this.#texts.has(id)) return;
    let onOutcome = () => {};
    const outcome = new Promise<void>((resolve) => {
      onOutcome = resolve;
    });
    const timer = this.#clock.after(longestWaitMs, () => this.delete(id), true);
    this.#texts.set(id, { recipients: message.to, outcome, onOutcome, timer });
    for (const to of message.to) this.#byHandset.set(to, (this.#byHandset.get(to) ?? new Set()).add(id));
  }

  /** It is written what has become of a text. */
  delete(id: string): void {
    const text = this.#texts.get(id);
    if (!text) return;
    this.#texts.delete(id);
    for (const to of text.recipients) {
      const others = this.#byHandset.get(to);
      others?.delete(id);
      if (others?.size === 0) this.#byHandset.delete(to);
    }
    text.timer.cancel();
    text.onOutcome();
  }

  /** Nobody finds out any more here. */
  clear(): void {
    for (const id of [...this.#texts.keys()]) this.delete(id);
  }

  /** Resolves when it is known of each text to a handset what has become of it, 60 s after it left at the latest; `undefined`: of all is. */
  outcomesTo(handset: unknown): Promise<void> | undefined {
    const ids = this.#texts.size === 0 ? undefined : this.#byHandset.get(normaliseRecipient(handset));
    if (!ids) return undefined;
    return Promise.all([...ids].map((id) => this.#texts.get(id)?.outcome)).then(() => {});
  }
}
