import type { Entry, Membership, Taker } from '../../src';
import type { DeployedNode, Surrounding } from './flow';
import type { NodePlan } from './plan';

const intervalMs = 30_000;

/** A node that polls the outbox. */
export class OutboxNode implements Taker, DeployedNode {
  readonly id: string;
  readonly #plan: NodePlan;
  readonly #process: Surrounding;
  #membership: Membership | undefined;
  #unwatch = () => {};
  #isFlowGone = false;

  constructor(plan: NodePlan, process: Surrounding) {
    this.id = plan.id;
    this.#plan = { ...plan, acknowledge: 'auto' };
    this.#process = process;
  }

  open(membership: Membership): void {
    this.#membership = membership;
    membership.inbox.attach('outbox', this);
    this.#unwatch = membership.watch('outbox', {
      intervalMs,
      onState: () => {},
      onFailing: () => {},
      onRecovered: () => {},
    });
  }

  close(isFlowGone: boolean): void {
    this.#isFlowGone = isFlowGone;
    this.#membership?.inbox.detach('outbox', this);
    this.#unwatch();
  }

  acknowledge(): void {}

  take(entries: readonly Entry[]): void {
    const { world, clock, flow } = this.#process;
    for (const entry of entries) {
      const message = world.find('outbox', entry.record);
      if (!message) continue;
      flow.examineSend(message, this.#plan);
      clock.nextTurn(() => {
        if (this.#isFlowGone) return;
        flow.receive(message, this.#plan, { redelivered: false });
        this.#membership?.inbox.done(entry, this);
      });
    }
  }
}
