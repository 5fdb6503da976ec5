import type { CallbackSubscription, FlowDelivery, Membership } from '../../src';
import type { Timer } from '../../src/clock';
import type { DeployedNode, Surrounding } from './flow';
import type { Library } from './library';
import type { NodePlan } from './plan';
import type { Message } from './world';

/** A message that the flow has. The library measures its time as well, and lets it go when it is up. */
interface Out {
  ackId: string;
  timer: Timer;
}

/** A node that is called back, and the flow behind it. */
export class CallbackNode implements DeployedNode {
  readonly id: string;
  readonly path = '/sms';
  readonly plan: NodePlan;
  readonly #process: Surrounding;
  readonly #library: Library;
  /** By the entry that an ackId names. */
  readonly #out = new Map<string, Out>();
  #subscription: CallbackSubscription | undefined;
  #isClosed = false;
  #isFlowGone = false;

  constructor(plan: NodePlan, process: Surrounding, library: Library) {
    this.id = plan.id;
    this.plan = plan;
    this.#process = process;
    this.#library = library;
  }

  open(membership: Membership): void {
    const { id, path } = this;
    const { acknowledge, ackTimeoutMs } = this.plan;
    const send = (delivery: FlowDelivery) => this.#send(delivery);
    this.#subscription = membership.subscribe('callback', { id, path, acknowledge, ackTimeoutMs, send });
  }

  close(isFlowGone: boolean): void {
    this.#isClosed = true;
    this.#isFlowGone = isFlowGone;
    this.#subscription?.close();
    for (const { timer } of this.#out.values()) timer.cancel();
  }

  async callBack(bytes: Buffer, contentType: string): Promise<number> {
    const event = this.#library.index.parseCallback({ bytes, contentType });
    try {
      return (await this.#subscription?.accept(event)) ? 200 : 503;
    } catch {
      return 503;
    }
  }

  /** The flow brings a message back. */
  acknowledge(message: Message, ackId: string, failed: boolean): void {
    const { world, name, flow } = this.#process;
    const isOut = this.#subscription?.acknowledge(ackId, failed) === true;
    if (failed || !isOut) this.#release(message, ackId);
    if (failed) return;
    if (isOut) {
      this.#out.get(entryOf(ackId))?.timer.cancel();
      this.#out.delete(entryOf(ackId));
      flow.acknowledged(message, this.plan);
    } else {
      world.say(() => `${name}: ${this.id} has acknowledged ${message.name} late`);
      world.settle(message, this.id);
    }
  }

  #send({ kind, record, redelivered, ackId }: FlowDelivery): Promise<boolean> {
    const { world, clock, flow } = this.#process;
    const message = world.find(kind, record);
    if (!message) {
      world.violate('a record that the service never had', JSON.stringify(record));
      return Promise.resolve(true);
    }
    if (ackId !== undefined) {
      const timer = clock.after(this.plan.ackTimeoutMs, () => this.#release(message, ackId));
      this.#out.set(entryOf(ackId), { ackId, timer });
    }
    if (this.#isClosed) return Promise.resolve(false);
    flow.examineSend(message, this.plan);
    return new Promise((resolve) => {
      clock.nextTurn(() => {
        const arrives = !this.#isFlowGone;
        if (arrives) flow.receive(message, this.plan, { redelivered, ackId });
        resolve(arrives);
      });
    });
  }

  /** What is out no more, or under another ackId, was let go before. */
  #release(message: Message, ackId: string): void {
    const out = this.#out.get(entryOf(ackId));
    if (out?.ackId !== ackId) return;
    out.timer.cancel();
    this.#out.delete(entryOf(ackId));
    this.#process.flow.released(message, this.plan);
  }
}

function entryOf(ackId: string): string {
  const [id = ''] = ackId.split('.');
  return id;
}
