import type { Clock } from '../clock';
import type { Notices } from '../errors';
import type { Client } from '../http/client';
import type { Journal } from '../journal/journal';
import type { AwaitedKind } from '../replies/follow-ups';
import type { Evidence } from './message-item';
import type { Outage } from './outage';
import type { SendQueue } from './queue';
import type { RuleSettings } from './rules';
import type { SendCounts } from './send-counts';

/** Dependencies of an outbox. */
export interface OutboxOptions {
  journal: Journal;
  clock: Clock;
  queue: SendQueue;
  counts: SendCounts;
  /** Tracks outages of the service, during which stored messages wait. */
  outage: Outage;
  /**
   * Ids of nodes that were notified of the current store failure. The set outlives the outbox, so that a redeploy does
   * not notify the nodes again.
   */
  storeNotices: Notices;
  settings: OutboxSettings;
  account: OutboxAccount;
}

/** Settings of an account for outgoing messages. The values change when nodes are deployed or removed. */
export interface OutboxSettings {
  rules: RuleSettings;
  /** Returns for how long a deduplication key is remembered, in ms. */
  dedupeMs(): number;
  /** Returns for how long replies and statuses are matched to a message, in ms. */
  sentMs(): number;
}

/** The account, as its outbox sees it. */
export interface OutboxAccount {
  /**
   * Returns the sources of evidence that the account polls now. Excludes the feed, because only a search for evidence
   * reads it.
   */
  sources(): readonly Evidence[];
  /** Returns the client of any account node, for use while no sending node is deployed. `undefined`: there is none. */
  client(): Client | undefined;
  /** Called when a message expired because its node is no longer deployed. */
  onAbandoned(node: string): void;
  /** Called when a user discarded a message of a node. */
  onDiscarded(node: string): void;
  /**
   * Called when the number of open reply requests (`incoming`) or reports (`status`) of a node changes. If `areOpen`,
   * the account must poll records of this kind.
   */
  onOpenRequests(node: string, kind: AwaitedKind, areOpen: boolean): void;
  /** Called when a node throws or background work fails. */
  onFault(error: unknown): void;
}
