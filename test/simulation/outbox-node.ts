import type { Membership, OutboxRecord, OutboxSubscription } from '../../src';
import type { DeployedNode, Surrounding } from './flow';
import type { NodePlan } from './plan';

const intervalMs = 30_000;

/** A node that polls the outbox. */
export class OutboxNode implements DeployedNode {
  readonly id: string;
  readonly #plan: NodePlan;
  readonly #process: Surrounding;
  #subscription: OutboxSubscription | undefined;
  #isFlowGone = false;

  constructor(plan: NodePlan, process: Surrounding) {
    this.id = plan.id;
    this.#plan = { ...plan, acknowledge: 'auto' };
    this.#process = process;
  }

  open(membership: Membership): void {
    this.#subscription = membership.subscribe('outbox', {
      id: this.id,
      intervalMs,
      send: (records) => this.#send(records),
      onState: () => {},
      onFailing: () => {},
      onRecovered: () => {},
    });
  }

  close(isFlowGone: boolean): void {
    this.#isFlowGone = isFlowGone;
    this.#subscription?.close();
  }

  acknowledge(): void {}

  #send(records: readonly OutboxRecord[]): Promise<boolean> {
    const { world, clock, flow } = this.#process;
    const messages = records.map((record) => world.find('outbox', record)).filter((message) => message !== undefined);
    for (const message of messages) flow.examineSend(message, this.#plan);
    return new Promise((resolve) => {
      clock.nextTurn(() => {
        const arrives = !this.#isFlowGone;
        if (arrives) for (const message of messages) flow.receive(message, this.#plan, { redelivered: false });
        resolve(arrives);
      });
    });
  }
}
