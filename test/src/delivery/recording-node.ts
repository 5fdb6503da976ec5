import assert from 'node:assert/strict';
import {
  type FlowDelivery,
  PollSubscription,
  type PollSubscriptionOptions,
} from '../../../src/delivery/poll-subscription';
import type { Channel } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';

export type NodeOptions = Partial<PollSubscriptionOptions> & { channel?: Channel; onRoom?: () => void };

/** A node that records the deliveries to its flow. */
export class RecordingNode {
  readonly sent: FlowDelivery[] = [];
  readonly undelivered: { body: unknown; attempts: number }[] = [];
  /** False: the flow is stopped, so that deliveries do not enter it. */
  isFlowRunning = true;
  readonly subscription: PollSubscription;

  constructor(inbox: Inbox, { channel = 'incoming', onRoom, ...options }: NodeOptions = {}) {
    const all: PollSubscriptionOptions = {
      id: 'node',
      acknowledge: 'flow',
      ackTimeoutMs: 60_000,
      maxAttempts: 5,
      send: async (delivery) => this.sent.push(delivery) > 0 && this.isFlowRunning,
      onUndelivered: ({ record: { body } }, attempts) => this.undelivered.push({ body, attempts }),
      ...options,
    };
    this.subscription = new PollSubscription(inbox, channel, all, onRoom);
  }

  get bodies(): unknown[] {
    return this.sent.map(({ record }) => record.body);
  }

  /** For each delivery: the body, and whether the delivery was marked as redelivered. */
  get marks(): [body: unknown, redelivered: boolean][] {
    return this.sent.map(({ record, redelivered }) => [record.body, redelivered]);
  }

  /** Id with which the flow acknowledges the last delivery. */
  get lastAckId(): string {
    return this.sent.at(-1)?.ackId ?? assert.fail('nothing was sent');
  }

  /** Acknowledges a delivery, by default the last one. Returns whether it was unacknowledged. */
  acknowledge(ackId: string = this.lastAckId): boolean {
    return this.subscription.acknowledge(ackId, false);
  }

  /** Acknowledges a delivery (by default the last one) with an error. */
  fail(ackId: string = this.lastAckId): boolean {
    return this.subscription.acknowledge(ackId, true);
  }

  detach(): void {
    this.subscription.detach();
  }
}
