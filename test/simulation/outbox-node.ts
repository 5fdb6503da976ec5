import type { Membership, OutboxSubscription } from '../../src';
import type { DeployedNode, Surrounding } from './flow';
import { Output } from './output';
import type { NodePlan } from './plan';

/** A node that reads the outbox, at intervals or on request. */
export class OutboxNode implements DeployedNode {
  readonly #plan: NodePlan;
  readonly #output: Output;
  #subscription: OutboxSubscription | undefined;

  constructor(plan: NodePlan, process: Surrounding) {
    this.#plan = { ...plan, acknowledge: 'auto' };
    this.#output = new Output(this.#plan, process);
  }

  open(membership: Membership): void {
    this.#subscription = membership.subscribe('outbox', {
      id: this.#plan.id,
      intervalMs: 30_000,
      send: ({ records }) =>
        this.#output.send(records.map((record) => ({ kind: 'outbox' as const, record, redelivered: false }))),
      onState: () => {},
      onFailing: () => {},
      onRecovered: () => {},
    });
  }

  close(isFlowGone: boolean): void {
    this.#output.close(isFlowGone);
    this.#subscription?.close();
  }

  poll(): void {
    void this.#subscription?.poll(undefined).catch(() => {});
  }

  acknowledge(): void {}
}
