import type { CallbackSubscription, FlowDelivery, Membership } from '../../src';
import type { DeployedNode, Surrounding } from './flow';
import type { Library } from './library';
import { Output } from './output';
import type { NodePlan } from './plan';
import type { Message } from './world';

/** A node that is called back. */
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
    const { id, acknowledge, ackTimeoutMs } = this.#plan;
    const { clock } = this.#process;
    this.#subscription = membership.subscribe('callback', {
      id,
      path: '/sms',
      acknowledge,
      ackTimeoutMs,
      send: (delivery) => {
        if (acknowledge === 'flow') clock.after(ackTimeoutMs, () => this.#forgetIfOut(delivery), true);
        return this.#output.send([delivery]);
      },
    });
  }

  close(isFlowGone: boolean): void {
    this.#output.close(isFlowGone);
    this.#subscription?.close();
  }

  /** The flow's time is up: the service is to bring it again. */
  #forgetIfOut({ kind, record }: FlowDelivery): void {
    const { world, flow } = this.#process;
    const message = world.find(kind, record);
    if (message?.shares.get(this.#plan.id)?.isOut) flow.released(message, this.#plan);
  }

  /** Resolves with the status of the answer. */
  async callBack(message: Message, bytes: Buffer, contentType: string): Promise<number> {
    const event = this.#library.index.parseCallback({ bytes, contentType });
    const isTaken = (await this.#subscription?.accept(event).catch(() => false)) ?? false;
    if (!isTaken) this.#process.flow.released(message, this.#plan);
    return isTaken ? 200 : 503;
  }

  acknowledge(message: Message, ackId: string, failed: boolean): void {
    const { world, flow } = this.#process;
    const isOut = flow.tolerate(() => this.#subscription?.acknowledge(ackId, failed) === true);
    if (isOut && failed) flow.released(message, this.#plan);
    else if (isOut) flow.acknowledged(message, this.#plan);
    // The service brings it again, and is told then that it was taken.
    else if (!failed) world.settle(message, this.#plan.id);
  }
}
