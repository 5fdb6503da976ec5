import type { ConsentSettings } from '../consent/words';
import type { SmsError } from '../errors';
import type { ClientOptions } from '../http/client';
import type { Connections, TlsOptions } from '../http/connections';
import type { ProxyOptions, ProxyRules } from '../http/proxy';
import type { QuietSettings } from '../message/times';
import type { Kind } from '../model';
import type { LimitSettings } from '../outbox/limits';
import type { Poller, PollSettings } from '../polling/endpoint';
import type { Store } from '../store/store';

/** A login at a service, and the settings for its use. */
export interface AccountSettings extends PollSettings, Omit<ClientOptions, 'connections'> {
  /** Id of the member. It stays the same after a redeploy. */
  id: string;
  tls?: TlsOptions;
  proxy?: ProxyOptions;
  /** How the proxy variables of the environment (such as `http_proxy`) are read. */
  proxyRules?: ProxyRules;
  /** Maximum number of sends in flight. */
  concurrency: number;
  /** Maximum number of waiting sends. */
  queueLimit: number;
  /**
   * Maximum number of sends per second, evenly spaced. If several account nodes (members) share the login, the lowest
   * of their values applies. Absent: this member sets no limit.
   */
  perSecond?: number | undefined;
  /** Limits of this member. The limits of all other members apply too. Absent: this member sets no limits. */
  limits?: LimitSettings;
  /** Quiet hours of this member. The quiet hours of all other members apply too. Absent: this member sets none. */
  quietHours?: QuietSettings | undefined;
  /** Opt-out words of this member. The words of all other members apply too. Absent: this member sets none. */
  optOut?: ConsentSettings | undefined;
  /** Allowed prefixes for nodes of this member. Empty or absent: all numbers. */
  prefixes?: readonly string[];
  /** Time after a send for which replies and statuses are matched to the message, in ms. Default: 168 hours. */
  sentMs?: number;
  /** Called if a stored message expired because its node is no longer deployed. */
  onAbandoned?(node: string): void;
  /** Called if a user discarded a stored or unhandled message of a node. */
  onDiscarded?(node: string): void;
  /** Called if a stored item is damaged. The item is quarantined or lost. All other items work. */
  onDamaged?(error: SmsError): void;
  /** Called if a node threw an unexpected error, or background work failed. */
  onFault?(error: unknown): void;
  /** Kind and place of the store. Stores with different names are different stores. */
  storeName: string;
  /** Creates the store. `key` identifies the login, but the login cannot be derived from it. */
  createStore(key: string): Store;
  /** Opens the shared connections, which close after the last member has left. Default: undici. */
  createConnections?(settings: ConnectionSettings): Connections;
  /** Called once if the list of unhandled messages is full and the oldest message is dropped. */
  onUnhandledFull?(): void;
  /** Called if no node receives polled records of a kind. These records become unhandled. */
  onUnreceived?(kind: Kind): void;
  /** Called if {@link Membership.state} might have changed. It runs at every step, so it must cost almost nothing. */
  onChanged?(): void;
}

/** A store by name, and how to create it. */
export type StoreChoice = Pick<AccountSettings, 'storeName' | 'createStore'>;

/** Settings of connections. */
export type ConnectionSettings = Pick<AccountSettings, 'baseUrl' | 'tls' | 'proxy' | 'proxyRules'>;

/** A member of an account: one deployed account node, with its settings. */
export interface Member extends Poller {
  readonly settings: AccountSettings;
}
