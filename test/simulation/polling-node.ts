import type { FlowDelivery, Membership, Subscription } from '../../src';
import type { DeployedNode, Surrounding } from './flow';
import type { NodePlan } from './plan';
import type { Kind, Message } from './world';

/** A node that polls. */
export class PollingNode implements DeployedNode {
  readonly #plan: NodePlan;
  readonly #kind: 'incoming' | 'status';
  readonly #process: Surrounding;
  #subscription: Subscription | undefined;
  #isClosed = false;
  #isFlowGone = false;

  constructor(plan: NodePlan, kind: 'incoming' | 'status', process: Surrounding) {
    this.#plan = plan;
    this.#kind = kind;
    this.#process = process;
  }

  open(membership: Membership): void {
    const { id, acknowledge, ackTimeoutMs, maxAttempts } = this.#plan;
    this.#subscription = membership.subscribe(this.#kind, {
      id,
      wants: (record) => this.#wants(record),
      acknowledge,
      ackTimeoutMs,
      maxAttempts,
      send: (delivery) => this.#send(this.#kind, delivery),
      onUndelivered: (record) => {
        const message = this.#process.world.find(this.#kind, record);
        if (message) this.#process.flow.gaveUp(message, this.#plan);
      },
      onState: () => {},
      onFailing: () => {},
      onRecovered: () => {},
    });
  }

  /** @param isFlowGone the nodes behind it are closed, too */
  close(isFlowGone: boolean): void {
    this.#isClosed = true;
    this.#isFlowGone = isFlowGone;
    this.#subscription?.close();
  }

  acknowledge(message: Message, ackId: string, failed: boolean): void {
    if (this.#subscription?.acknowledge(ackId, failed) && !failed) this.#process.flow.acknowledged(message, this.#plan);
  }

  #wants(record: Readonly<Record<string, unknown>>): boolean {
    return !this.#plan.repliesOnly || record.isReply === true;
  }

  #send(kind: Kind, { record, redelivered, ackId }: FlowDelivery): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    const { world, clock, flow } = this.#process;
    const message = world.find(kind, record);
    if (!message) {
      world.violate('a record that the service never had', JSON.stringify(record));
      return Promise.resolve(true);
    }
    if (!this.#wants(record)) world.violate('given though it was not wanted', `${message.name} at ${this.#plan.id}`);
    flow.examineSend(message, this.#plan);
    return new Promise((resolve) => {
      // Node-RED hands on by `setImmediate`, and a node that was closed in between does not get it.
      clock.nextTurn(() => {
        const arrives = !this.#isFlowGone;
        if (arrives) flow.receive(message, this.#plan, { redelivered, ackId });
        resolve(arrives);
      });
    });
  }
}
