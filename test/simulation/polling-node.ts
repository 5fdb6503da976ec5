import type { Membership, Subscriber, Subscription } from '../../src';
import type { DeployedNode, Surrounding } from './flow';
import { Output } from './output';
import type { NodePlan } from './plan';
import type { Message } from './world';

/** A node that polls incoming messages or statuses. */
export class PollingNode implements DeployedNode {
  readonly #plan: NodePlan;
  readonly #kind: 'incoming' | 'status';
  readonly #process: Surrounding;
  readonly #output: Output;
  #subscription: Subscription | undefined;

  constructor(plan: NodePlan, kind: 'incoming' | 'status', process: Surrounding) {
    this.#plan = plan;
    this.#kind = kind;
    this.#process = process;
    this.#output = new Output(plan, process);
  }

  open(membership: Membership): void {
    const { id, acknowledge, ackTimeoutMs, maxAttempts } = this.#plan;
    const { world, flow } = this.#process;
    const subscriber: Subscriber = {
      id,
      wants: (record) => this.#wants(record),
      acknowledge,
      ackTimeoutMs,
      maxAttempts,
      send: (delivery) => {
        const answering = delivery.record.awaited === true ? world.find(delivery.kind, delivery.record) : undefined;
        if (answering) world.outgoing?.awaited(answering);
        if (!this.#wants(delivery.record)) world.violate('a node received a record that its filter leaves out', id);
        return this.#output.send([delivery]);
      },
      onUndelivered: ({ kind, record }) => {
        const message = world.find(kind, record);
        if (message) flow.gaveUp(message, this.#plan);
      },
      onState: () => {},
      onFailing: ({ code }) => flow.examineFailureCode(code),
      onRecovered: () => {},
    };
    this.#subscription = membership.subscribe(this.#kind, subscriber);
  }

  close(isFlowGone: boolean): void {
    this.#output.close(isFlowGone);
    this.#subscription?.close();
  }

  acknowledge(message: Message, ackId: string, failed: boolean): void {
    const { flow } = this.#process;
    const isOut = flow.tolerate(() => this.#subscription?.acknowledge(ackId, failed) === true);
    if (isOut && !failed) flow.acknowledged(message, this.#plan);
  }

  #wants(record: Readonly<Record<string, unknown>>): boolean {
    return !this.#plan.repliesOnly || record.isReply === true;
  }
}
