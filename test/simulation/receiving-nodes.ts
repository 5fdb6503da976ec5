import type {
  CallbackSubscription,
  FlowDelivery,
  Membership,
  OutboxSubscription,
  Subscriber,
  Subscription,
} from '../../src';
import type { NodePlan } from './plan';
import type { Process } from './process';
import type { Kind, Message } from './world';

/** A node that receives messages, statuses or outbox records and sends them into its flow. */
export abstract class ReceivingNode {
  /** The subscription of the library. Its `acknowledge` returns whether it accepted the acknowledgement. */
  protected abstract readonly subscription:
    | { close(): void; acknowledge?(ackId: string, failed: boolean): boolean }
    | undefined;
  #isClosed = false;
  #isFlowGone = false;

  constructor(
    protected readonly plan: NodePlan,
    protected readonly process: Process,
  ) {}

  abstract open(membership: Membership): void;

  /** @param isFlowGone whether the nodes behind this node are closed as well */
  close(isFlowGone: boolean): void {
    this.#isClosed = true;
    this.#isFlowGone = isFlowGone;
    this.subscription?.close();
  }

  /** Acknowledges a message, as the flow does. */
  acknowledge(message: Message, ackId: string, failed: boolean): void {
    const { flow } = this.process;
    const isAccepted = flow.tolerate(() => this.subscription?.acknowledge?.(ackId, failed) === true);
    if (isAccepted && !failed) flow.acknowledged(message, this.plan);
  }

  /** Notes that the library gave up a message, which no attempt could deliver. */
  protected readonly onUndelivered = ({ kind, record }: { kind: Kind; record: object }) => {
    const message = this.process.world.find(kind, { ...record });
    if (message) this.process.flow.gaveUp(message, this.plan);
  };

  /**
   * Sends deliveries into the flow, which receives them on the next turn of the event loop, as in Node-RED. Resolves
   * with `true` if they entered the flow.
   */
  protected send(deliveries: readonly FlowDelivery[]): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    const { world, clock, flow } = this.process;
    const received = deliveries.flatMap(({ kind, record, ...delivery }) => {
      const message = world.find(kind, record);
      if (message) return { message, delivery };
      world.violate('a node received a record that the service never had', JSON.stringify(record));
      return [];
    });
    for (const { message } of received) flow.examineSend(message, this.plan);
    flow.throwNowAndThen(
      received.map(({ message }) => message),
      this.plan,
    );
    return new Promise((resolve) => {
      clock.nextTurn(() => {
        // If the flow was removed in the meantime, its nodes do not receive the messages.
        const arrives = !this.#isFlowGone;
        for (const { message, delivery } of arrives ? received : []) flow.receive(message, this.plan, delivery);
        resolve(arrives);
      });
    });
  }
}

/** A node that polls incoming messages or statuses. */
export class PollingNode extends ReceivingNode {
  protected subscription: Subscription | undefined;

  open(membership: Membership): void {
    const { id, kind, acknowledge, ackTimeoutMs, maxAttempts } = this.plan;
    const { world, flow } = this.process;
    const wants = (record: Readonly<Record<string, unknown>>) => !this.plan.repliesOnly || record.isReply === true;
    const subscriber: Subscriber = {
      id,
      wants,
      acknowledge,
      ackTimeoutMs,
      maxAttempts,
      send: (delivery) => {
        const answer = delivery.record.awaited === true ? world.find(delivery.kind, delivery.record) : undefined;
        if (answer) world.outgoing?.awaited(answer);
        if (!wants(delivery.record)) world.violate('a node received a record that its filter leaves out', id);
        return this.send([delivery]);
      },
      onUndelivered: this.onUndelivered,
      onState: () => {},
      onFailing: ({ code }) => flow.examineFailureCode(code),
      onRecovered: () => {},
    };
    this.subscription = membership.subscribe(kind === 'status' ? 'status' : 'incoming', subscriber);
  }
}

/** A node that receives callbacks. */
export class CallbackNode extends ReceivingNode {
  protected subscription: CallbackSubscription | undefined;

  open(membership: Membership): void {
    const { id, acknowledge, ackTimeoutMs, maxAttempts } = this.plan;
    this.subscription = membership.subscribe('callback', {
      id,
      path: '/sms',
      acknowledge,
      ackTimeoutMs,
      maxAttempts,
      send: (delivery) => this.send([delivery]),
      onUndelivered: this.onUndelivered,
    });
  }

  /** Passes a callback to the node. Resolves with the HTTP status of the answer. */
  async callBack(bytes: Buffer, contentType: string): Promise<number> {
    const event = this.process.machine.library.index.parseCallback({ bytes, contentType });
    if (!this.subscription) return 503;
    return this.subscription.accept(event).then(
      () => 200,
      () => 503,
    );
  }
}

/** A node that reads the outbox, at intervals or on request. */
export class OutboxNode extends ReceivingNode {
  protected subscription: OutboxSubscription | undefined;

  open(membership: Membership): void {
    this.subscription = membership.subscribe('outbox', {
      id: this.plan.id,
      intervalMs: 30_000,
      send: ({ records }) =>
        this.send(records.map((record) => ({ kind: 'outbox' as const, record, redelivered: false }))),
      onState: () => {},
      onFailing: () => {},
      onRecovered: () => {},
    });
  }

  poll(): void {
    void this.subscription?.poll(undefined).catch(() => {});
  }
}
