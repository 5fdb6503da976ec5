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

/** A login at a service, and how to use it. */
export interface AccountSettings extends PollSettings, Omit<ClientOptions, 'connections'> {
  /** Id of the member, the same after a redeploy. */
  id: string;
  tls?: TlsOptions;
  proxy?: ProxyOptions;
  /** Rules for proxies of the environment. */
  proxyRules?: ProxyRules;
  /** Maximum number of sends in flight. */
  concurrency: number;
  /** Maximum number of waiting sends. */
  queueLimit: number;
  /** Maximum number of sends per second, evenly spaced. The lowest of all members applies. Absent: no limit. */
  perSecond?: number | undefined;
  /** Limits of this member, which apply besides those of all others. Absent: none. */
  limits?: LimitSettings;
  /** Quiet hours, which apply besides those of all other members. Absent: none. */
  quietHours?: QuietSettings | undefined;
  /** Opt-out words, which apply besides those of all other members. Absent: no opt-outs. */
  optOut?: ConsentSettings | undefined;
  /** Allowed prefixes for nodes of this member. Empty or absent: all numbers. */
  prefixes?: readonly string[];
  /** Time for which a remembered message is known, in ms. Default: 168 hours. */
  sentMs?: number;
  /** A stored message was given up, because its node is no longer deployed. */
  onAbandoned?(node: string): void;
  /** A user discarded a stored or unhandled message of a node. */
  onDiscarded?(node: string): void;
  /** A stored item is damaged. It is quarantined or lost, and everything else continues. */
  onDamaged?(error: SmsError): void;
  /** A node threw an error while it received an outcome without an input. */
  onFault?(error: unknown): void;
  /** Name of the kind and the place of the store. Another name means another store. */
  storeName: string;
  /** Creates the store. `key` distinguishes logins and reveals nothing. */
  createStore(key: string): Store;
  /** Opens the shared connections, which close after the last member has left. Default: undici. */
  createConnections?(settings: ConnectionSettings): Connections;
  /** The list of unhandled messages is full, and the oldest is dropped. Called once. */
  onUnhandledFull?(): void;
  /** No node receives polled records of a kind, so they become unhandled. */
  onUntaken?(kind: Kind): void;
  /** {@link Membership.state} might have changed. Called at every step, so it must cost almost nothing. */
  onChanged?(): void;
}

/** A store by name, and how to create it. */
export type StoreChoice = Pick<AccountSettings, 'storeName' | 'createStore'>;

/** Settings of connections. */
export type ConnectionSettings = Pick<AccountSettings, 'baseUrl' | 'tls' | 'proxy' | 'proxyRules'>;

/** A member of an account, with its settings. */
export interface Member extends Poller {
  readonly settings: AccountSettings;
  /** Resolves when the member leaves. */
  readonly left: Promise<void>;
}
