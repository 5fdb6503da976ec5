import assert from 'node:assert/strict';
import type { BatchSlice, EntryDelivery, InboxSubscriber } from '../../../src/delivery/subscribers';
import type { Channel, Entry } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { InboxRecord } from '../../../src/model';

export interface SubscriberOptions {
  channel?: Channel;
  path?: string;
  onDemand?: boolean;
  wants?(record: InboxRecord): boolean;
}

/** A node that records the entries that it receives, without a flow. */
export class RecordingSubscriber implements InboxSubscriber {
  readonly received: (EntryDelivery & { context: unknown })[] = [];
  /** For each call of `receive`: the number of entries, and their part of the batch. */
  readonly calls: { count: number; slice: BatchSlice | undefined }[] = [];
  onReceive: (entries: readonly Entry[]) => void = () => {};
  readonly onDemand: boolean;
  readonly path: string | undefined;
  readonly wants: (record: InboxRecord) => boolean;
  readonly #channel: Channel;

  /** Attaches the node to a channel. */
  constructor(
    readonly inbox: Inbox,
    readonly id = 'node',
    { channel = 'incoming', path = '/sms', onDemand = false, wants = () => true }: SubscriberOptions = {},
  ) {
    this.#channel = channel;
    this.onDemand = onDemand;
    this.path = channel === 'callback' ? path : undefined;
    this.wants = wants;
    inbox.attach(channel, this);
  }

  receive(deliveries: readonly EntryDelivery[], context?: unknown, slice?: BatchSlice): void {
    for (const { entry, attempt } of deliveries) {
      if (attempt > entry.attempts) this.inbox.countAttempt(entry, attempt, this.id);
      this.received.push({ entry, attempt, context });
    }
    this.calls.push({ count: deliveries.length, slice });
    this.onReceive(deliveries.map(({ entry }) => entry));
  }

  get bodies(): unknown[] {
    return this.received.map(({ entry }) => entry.record.body);
  }

  get attempts(): number[] {
    return this.received.map(({ attempt }) => attempt);
  }

  /** The last entry that the node received. */
  get last(): Entry {
    return this.received.at(-1)?.entry ?? assert.fail(`${this.id} received nothing`);
  }

  /** Acknowledges entries, by default the last one. */
  acknowledge(entries: readonly Entry[] = [this.last]): void {
    for (const entry of entries) this.inbox.acknowledge(entry, this);
  }

  detach(): void {
    this.inbox.detach(this.#channel, this);
  }
}
