import type { FlowDelivery } from '../../src';
import type { Surrounding } from './flow';
import type { NodePlan } from './plan';

/** The outputs of a node. A sent message enters the flow on the next turn, as in Node-RED. */
export class Output {
  readonly #plan: NodePlan;
  readonly #process: Surrounding;
  #isClosed = false;
  #isFlowGone = false;

  constructor(plan: NodePlan, process: Surrounding) {
    this.#plan = plan;
    this.#process = process;
  }

  /** @param isFlowGone whether the next nodes are closed as well */
  close(isFlowGone: boolean): void {
    this.#isClosed = true;
    this.#isFlowGone = isFlowGone;
  }

  /** Sends deliveries. Resolves with whether they entered the flow. */
  send(deliveries: readonly FlowDelivery[]): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    const { world, clock, flow } = this.#process;
    const plan = this.#plan;
    const found = deliveries.map((delivery) => ({ ...delivery, message: world.find(delivery.kind, delivery.record) }));
    for (const { message, record } of found) {
      if (!message) world.violate('a node received a record that the service never had', JSON.stringify(record));
      else flow.examineSend(message, plan);
    }
    flow.throwNowAndThen(
      found.map(({ message }) => message).filter((message) => message !== undefined),
      plan,
    );
    return new Promise((resolve) => {
      clock.nextTurn(() => {
        // If the flow was removed in the meantime, its next nodes do not receive the message.
        const arrives = !this.#isFlowGone;
        for (const { message, redelivered, ackId } of arrives ? found : []) {
          if (message) flow.receive(message, plan, { redelivered, ackId });
        }
        resolve(arrives);
      });
    });
  }
}
