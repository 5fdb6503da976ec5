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

/** The surroundings of an outbox. */
export interface OutboxOptions {
  journal: Journal;
  clock: Clock;
  queue: SendQueue;
  /** Counts outcomes. */
  counts: SendCounts;
  /** The outage that stored messages wait for. */
  outage: Outage;
  /**
   * Ids of nodes that know about the store failure. The set outlives the outbox, because a redeploy does not repair the
   * store.
   */
  storeNotices: Notices;
  settings: OutboxSettings;
  account: OutboxAccount;
}

/** Settings of an account for its outgoing messages. They change when nodes are deployed or removed. */
export interface OutboxSettings {
  rules: RuleSettings;
  /** Returns for how long a deduplication key is remembered, in ms. */
  dedupeMs(): number;
  /** Returns for how long replies and statuses are matched to a message, in ms. */
  sentMs(): number;
}

/** The account, as its outbox sees it. */
export interface OutboxAccount {
  /** Returns the kinds of records, apart from the feed, that the account receives now and can use as evidence. */
  sources(): readonly Evidence[];
  /** Returns the client to use while no sending node is deployed, or `undefined` if there is no such client. */
  client(): Client | undefined;
  /** Called when a message expired because its node is no longer deployed. */
  onAbandoned(node: string): void;
  /** Called when a user discarded a message of a node. */
  onDiscarded(node: string): void;
  /**
   * Called when a node begins or stops having open reply requests or reports. While it has some, the account must poll
   * replies (`incoming`) or statuses (`status`).
   */
  onOpenRequests(node: string, kind: AwaitedKind, areOpen: boolean): void;
  /** Called when a node throws or background work fails. */
  onFault(error: unknown): void;
}
