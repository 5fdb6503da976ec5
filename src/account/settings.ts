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
  /** Names who joins among the members, also when it is back after it has left. */
  id: string;
  tls?: TlsOptions;
  proxy?: ProxyOptions;
  /** Rules for proxies of the environment. */
  proxyRules?: ProxyRules;
  /** Sends in flight at once. */
  concurrency: number;
  /** Sends that may wait. */
  queueLimit: number;
  /** Sends per second at most, evenly spaced, where no other member has less; absent: no limit. */
  perSecond?: number | undefined;
  /** Limits of one's own, which hold beside those of all other members; absent: none. */
  limits?: LimitSettings;
  /** When no text leaves, beside the quiet hours of all other members; absent: none. */
  quietHours?: QuietSettings | undefined;
  /** The words by which people opt out, beside those of all other members; absent: nobody is listened to. */
  optOut?: ConsentSettings | undefined;
  /** Beginnings of the numbers that nodes may write to that send by this member; none or absent: all. */
  prefixes?: readonly string[];
  /** How long a remembered text is known to replies and statuses; 168 hours when absent. */
  sentMs?: number;
  /** A kept text has been given up, since its node is not deployed any more. */
  onAbandoned?(node: string): void;
  /** Somebody has discarded a text of a node, or a message that its flow did not take. */
  onDiscarded?(node: string): void;
  /** Something that was kept was damaged, and is set aside or gone; everything else goes on. */
  onDamaged?(error: SmsError): void;
  /** A node threw as it was given what nobody waits for. */
  onFault?(error: unknown): void;
  /** Names the kind of store and its place; another name means another store. */
  storeName: string;
  /** Makes the store. `key` tells logins apart and gives nothing away. */
  createStore(key: string): Store;
  /** Opens the connections that all members share, and that close with the last of them; undici's when absent. */
  createConnections?(settings: ConnectionSettings): Connections;
  /** More was given up than is kept, and the oldest goes; told once. */
  onUnhandledFull?(): void;
  /** No node takes what is polled of a kind: it is set aside from now on. */
  onUntaken?(kind: Kind): void;
  /** What {@link Membership.state} tells may have changed. It is called at every step, and must cost next to nothing. */
  onChanged?(): void;
}

/** A kind of store and its place, and how it is made. */
export type StoreChoice = Pick<AccountSettings, 'storeName' | 'createStore'>;

/** What connections are opened by. */
export type ConnectionSettings = Pick<AccountSettings, 'baseUrl' | 'tls' | 'proxy' | 'proxyRules'>;

/** Who uses an account, and how. */
export interface Member extends Poller {
  readonly settings: AccountSettings;
  /** Resolves as it leaves. */
  readonly left: Promise<void>;
}
