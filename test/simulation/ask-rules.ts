import type { AnswerEvent } from '../../src';
import { answerOf } from './ask-plan';
import { AgainMessage, type Input, type OutgoingMessage } from './outgoing';
import type { Message, World } from './world';

/** A reply of a handset to an outgoing message. */
export interface Reply {
  outgoing: OutgoingMessage;
  from: string;
  message: Message;
}

/** Rules of `sms-ask` (contract §4b): which replies are answers, and the second message after an unclear reply. */
export class AskRules {
  readonly #again = new Map<string, AgainMessage>();

  constructor(
    private readonly world: World,
    private readonly replies: readonly Reply[],
    private readonly reachedMs: ReadonlyMap<Message, number>,
  ) {}

  /** Notes that a node asks a question. Returns the body of the second message that the question can have. */
  noteQuestion({ outgoing, order }: Input): string | undefined {
    if (!order.ask?.again) return undefined;
    const again = new AgainMessage(outgoing);
    if (!this.#again.has(again.name)) this.#again.set(again.name, again);
    return again.name;
  }

  find(name: string): AgainMessage | undefined {
    return this.#again.get(name);
  }

  /** Whether a reply is not an answer to its question, so that the reply request stays open. */
  isUnclear({ outgoing, message }: Pick<Reply, 'outgoing' | 'message'>): boolean {
    return outgoing.order.ask !== undefined && answerOf(message.fields.body ?? '') === undefined;
  }

  /** Notes that the service accepted a second message. Checks that it is the only one and follows an unclear reply. */
  againAccepted(again: AgainMessage, handset: string): void {
    const { name, question, acceptancesOf } = again;
    const count = (acceptancesOf.get(handset) ?? 0) + 1;
    acceptancesOf.set(handset, count);
    const which = `${name} to ${handset}`;
    if (count > 1 && !this.#mayRepeat) this.world.violate('a question was asked again more than once', which);
    if (this.#unclearReplies(question, handset).length === 0) {
      this.world.violate('a question was asked again although no unclear reply came', which);
    }
  }

  /** Checks the end of the reply request of a question. */
  ended({ outgoing }: Input, { recipient, result }: AnswerEvent, name: string): void {
    if (!('reason' in result)) {
      const expected = answerOf(result.reply.body);
      if (expected === undefined)
        this.world.violate('an unclear reply counted as an answer', `${name}: ${result.reply.body}`);
      else if (result.answer !== expected)
        this.world.violate(
          'a reply counted as an answer that its words do not give',
          `${name}: ${result.reply.body} is ${result.answer}`,
        );
      return;
    }
    if (result.reason === 'failed' || result.reason === 'undelivered') return;
    const unclear = this.#unclearReplies(outgoing, recipient);
    if (result.reason === 'unclear' && !unclear.some(({ message }) => message.fields.body === result.reply)) {
      this.world.violate('a question ended as unclear although no such reply came', `${name}: ${result.reply}`);
    }
  }

  /** Returns the unclear replies from a handset that a process has received. */
  #unclearReplies(outgoing: OutgoingMessage, from: string): Reply[] {
    return this.replies.filter(
      (reply) =>
        reply.outgoing === outgoing &&
        reply.from === from &&
        this.isUnclear(reply) &&
        this.reachedMs.has(reply.message),
    );
  }

  /**
   * Describes a second message that was not sent although its question ended as unclear, if there is one. Skips plans
   * with faults, limits or a full queue, because these can prevent the second message.
   */
  get missingAgain(): string | undefined {
    const { plan } = this.world;
    const isCalm = plan.plannedEvents.every(({ type }) => ['order', 'message', 'status', 'outgoing'].includes(type));
    if (!isCalm || plan.outgoing?.limits || plan.queueLimit === 1) return undefined;
    for (const { name, question, acceptancesOf } of this.#again.values()) {
      const [input, ...others] = question.inputs;
      if (!input || others.length > 0) continue;
      for (const [recipient, [event]] of input.answers) {
        const isEnded = event && 'reason' in event.result && event.result.reason === 'unclear';
        if (isEnded && !acceptancesOf.has(recipient)) return `${name} was not sent to ${recipient}`;
      }
    }
    return undefined;
  }

  /** Whether a fault may have made the library forget a second message, so that it sends the message again. */
  get #mayRepeat(): boolean {
    return this.world.hasEvent('store', 'power failure', 'emptied', 'clock');
  }
}
