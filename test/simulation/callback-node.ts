import type { CallbackSubscription, Membership } from '../../src';
import type { DeployedNode, Surrounding } from './flow';
import type { Library } from './library';
import { Output } from './output';
import type { NodePlan } from './plan';
import type { Message } from './world';

/** A node that receives callbacks. */
export class CallbackNode implements DeployedNode {
  readonly #plan: NodePlan;
  readonly #process: Surrounding;
  readonly #library: Library;
  readonly #output: Output;
  #subscription: CallbackSubscription | undefined;

  constructor(plan: NodePlan, process: Surrounding, library: Library) {
    this.#plan = plan;
    this.#process = process;
    this.#library = library;
    this.#output = new Output(plan, process);
  }

  open(membership: Membership): void {
    const { id, acknowledge, ackTimeoutMs, maxAttempts } = this.#plan;
    const { world, flow } = this.#process;
    this.#subscription = membership.subscribe('callback', {
      id,
      path: '/sms',
      acknowledge,
      ackTimeoutMs,
      maxAttempts,
      send: (delivery) => this.#output.send([delivery]),
      onUndelivered: ({ kind, record }) => {
        const message = world.find(kind, record);
        if (message) flow.gaveUp(message, this.#plan);
      },
    });
  }

  close(isFlowGone: boolean): void {
    this.#output.close(isFlowGone);
    this.#subscription?.close();
  }

  /** Passes a callback to the node. Resolves with the HTTP status of the answer. */
  async callBack(bytes: Buffer, contentType: string): Promise<number> {
    const event = this.#library.index.parseCallback({ bytes, contentType });
    if (!this.#subscription) return 503;
    return this.#subscription.accept(event).then(
      () => 200,
      () => 503,
    );
  }

  acknowledge(message: Message, ackId: string, failed: boolean): void {
    const { flow } = this.#process;
    const isOut = flow.tolerate(() => this.#subscription?.acknowledge(ackId, failed) === true);
    if (isOut && !failed) flow.acknowledged(message, this.#plan);
  }
}
