import type { Membership, OutcomeEvent } from '../../src';
import { answers } from './ask-plan';
import type { Input } from './outgoing';
import type { ResetPlan } from './outgoing-plan';
import type { Process } from './process';

/** A sending node that uses all options of the library. */
export class OrderNode {
  #node: ReturnType<Membership['attachSender']> | undefined;
  #isClosed = false;

  constructor(
    private readonly id: string,
    private readonly process: Process,
  ) {}

  open(membership: Membership): void {
    const { world } = this.process;
    const { outgoing } = world;
    this.#node = membership.attachSender({
      id: this.id,
      usesStore: true,
      onOutcome: (news) => {
        const wasSent = outgoing?.isSent(news.message.body) ?? false;
        return this.#report(news, (input) => {
          this.#say(() => `reports ${input?.outgoing.name} ${describe(news)}`);
          outgoing?.outcomeArrived(input, news, wasSent);
        });
      },
      onAnswer: (news) =>
        this.#report(news, (input) => {
          const result = 'reason' in news.result ? news.result.reason : 'a reply';
          this.#say(() => `has ${result} of ${news.recipient} to ${input?.outgoing.name}`);
          outgoing?.replyRequestEnded(input, news);
        }),
      onReport: (news) =>
        this.#report(news, (input) => {
          this.#say(() => `has a report of ${input?.outgoing.name}: ${news.report.result}`);
          outgoing?.reported(input, news);
        }),
      onDiscarded: () => world.violate('a message was discarded although no user asked for that', this.id),
      onOutage: () => {},
      onRecovered: () => {},
      onState: () => {},
    });
  }

  /** Closes the node. While it closes, outcomes still enter the flow. */
  async close(): Promise<void> {
    await this.#node?.close();
    this.#isClosed = true;
  }

  send(input: Input): void {
    const { outgoing, order } = input;
    const { retries, retryUncertain, resolveMs, priority, unlimited, keep, expireMs, remember, waitMs, reportMs } =
      order;
    input.receivedBy = this.process;
    const again = this.process.world.outgoing?.asking.noteQuestion(input);
    const encoding = { encoding: 'GSM-7', parts: 1 } as const;
    const keepTime = { expireMs: expireMs === 0 ? undefined : expireMs };
    const keepOptions = keep ? { keep: keepTime } : undefined;
    this.#say(() => `receives ${outgoing.name} (input ${input.number})`);
    this.#node?.send({
      message: {
        to: [...outgoing.to],
        body: outgoing.name,
        ...(outgoing.messageId === undefined ? undefined : { messageId: outgoing.messageId }),
      },
      ...encoding,
      options: {
        retries,
        retryUncertain,
        resolveMs,
        priority,
        unlimited,
        ...(order.essential && { essential: true }),
        ...(order.inMs === undefined
          ? undefined
          : { at: { time: this.process.clock.now() + order.inMs, keep: keepTime } }),
        ...keepOptions,
        ...(order.replaceKey === undefined ? undefined : { replaceKey: `replace ${order.replaceKey}` }),
        ...(order.key === undefined ? undefined : { once: `key ${order.key}` }),
        ...(remember ? { remember: { value: input.number } } : undefined),
        ...(waitMs === 0 ? undefined : { waitMs }),
        ...(order.ask && { answers }),
        ...(again !== undefined && { again: { message: { to: [], body: again }, ...encoding, ...keepOptions } }),
        ...(reportMs === undefined ? undefined : { reportMs }),
      },
      origin: input,
      flowMessage: () => String(input.number),
    });
  }

  /** Withdraws the stored message that has the same key as the reset. */
  withdraw(reset: ResetPlan): void {
    const rules = this.process.world.outgoing?.replacing;
    this.#say(() => `receives a reset of key ${reset.replaceKey}`);
    const onDone = rules?.noteReset(this.id, reset);
    this.#node?.withdraw(`replace ${reset.replaceKey}`).then(onDone, (error) => rules?.noteFailedReset(error.code));
  }

  #say(text: () => string): void {
    this.process.world.say(() => `${this.process.name}: ${this.id} ${text()}`);
  }

  /**
   * Lets an event enter the flow on the next turn of the event loop. Resolves with `false` if the node closes first. In
   * the process that received the input, `origin` is this input. A later process finds the input by the stored flow
   * message.
   */
  #report(
    { origin, flowMessage }: { origin?: unknown; flowMessage?: string | undefined },
    run: (input: Input | undefined) => void,
  ): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    const { world, clock } = this.process;
    return new Promise((resolve) => {
      clock.nextTurn(() => {
        const arrives = !this.#isClosed;
        if (arrives) {
          const input = (origin as Input | undefined) ?? world.outgoing?.find(flowMessage);
          if (origin === undefined && input?.receivedBy === this.process)
            world.violate('a running process lost the input of a message', input.outgoing.name);
          run(input);
        }
        resolve(arrives);
      });
    });
  }
}

function describe({ outcome, redelivered, duplicate }: OutcomeEvent): string {
  const result = 'code' in outcome ? outcome.code : `sent to ${outcome.accepted.join(' ')}`;
  return `${result}${redelivered ? ', marked as redelivered' : ''}${duplicate ? ', a duplicate' : ''}`;
}
