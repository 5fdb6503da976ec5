/**
 * The SMS messaging service's HTTP interface as a library. It knows nothing of Node-RED, never logs, and rejects with
 * {@link SmsError} only.
 */
export { type Accounts, createAccounts, joinAccount } from './account/accounts';
export type {
  CallbackSubscription,
  FormerPlace,
  Membership,
  OutboxSubscriber,
  OutboxSubscription,
  Subscriber,
  Subscription,
  Watcher,
} from './account/membership';
export type { AccountSettings, ConnectionSettings, StoreChoice } from './account/settings';
export type { AccountEntry, AccountState, Counts, EntryAction, EntryState } from './account/state';
export { type Clock, systemClock, type Timer, wait } from './clock';
export type { OutboxBatch } from './delivery/outbox-receiver';
export type { FlowDelivery } from './delivery/receiver';
export {
  asSmsError,
  isSmsError,
  type PlainSmsError,
  SmsError,
  type SmsErrorCode,
  type SmsErrorDetails,
  type SmsErrorFacts,
  type SmsErrorReason,
} from './errors';
export type { CallOptions, ClientOptions } from './http/client';
export type { TlsOptions } from './http/connections';
export { Pieces } from './http/pieces';
export type { ProxyOptions } from './http/proxy';
export { type Authentication, parseAuthentication, parseBaseUrl } from './login';
export { type CheckedDraft, checkDraft, type Draft } from './message/draft';
export { type Encoding, measureText, type TextMeasure } from './message/gsm';
export { parseRecipients } from './message/recipients';
export type * from './model';
export { explainLimited, type Limited, type LimitSettings } from './outbox/limits';
export type { Outcome, SendOptions, Sent } from './outbox/outgoing';
export type { AnswerNews, OutcomeNews, Outlet, OutletState, SendingNode, SendRequest } from './outbox/outlet';
export { PollLoop, type PollState } from './polling/poll-loop';
export type { NoReply } from './questions/question';
export { reasons } from './reasons';
export { MemoryStore } from './store/memory';
export { parseRedisUrl } from './store/redis-url';
export type { Store } from './store/store';
export { type CallbackEvent, type CallbackRequest, parseCallback } from './wire/callback';
export { formatCallbackUrl } from './wire/callback-url';
export { isBlank, isUnsafeKey } from './wire/fields';
export { flattenForm, formatForm } from './wire/form';

/** Each is loaded when it is first read: a palette without an account needs none of them, and an account one of the stores. */
const late = {
  get Client() {
    return (require('./http/client') as typeof import('./http/client')).Client;
  },
  get createConnections() {
    return (require('./http/connections') as typeof import('./http/connections')).createConnections;
  },
  get DiskStore() {
    return (require('./store/disk') as typeof import('./store/disk')).DiskStore;
  },
  get RedisStore() {
    return (require('./store/redis') as typeof import('./store/redis')).RedisStore;
  },
};

export declare const Client: typeof late.Client;
export type Client = InstanceType<typeof Client>;
export declare const createConnections: typeof late.createConnections;
export declare const DiskStore: typeof late.DiskStore;
export type DiskStore = InstanceType<typeof DiskStore>;
export declare const RedisStore: typeof late.RedisStore;
export type RedisStore = InstanceType<typeof RedisStore>;

// Spelled out, since Node reads from the text which names a program can import.
Object.defineProperty(module.exports, 'Client', {
  enumerable: true,
  get() {
    return late.Client;
  },
});
Object.defineProperty(module.exports, 'createConnections', {
  enumerable: true,
  get() {
    return late.createConnections;
  },
});
Object.defineProperty(module.exports, 'DiskStore', {
  enumerable: true,
  get() {
    return late.DiskStore;
  },
});
Object.defineProperty(module.exports, 'RedisStore', {
  enumerable: true,
  get() {
    return late.RedisStore;
  },
});
