/**
 * The SMS messaging service's HTTP interface as a library. It knows nothing of Node-RED, never logs, and rejects with
 * {@link SmsError} only.
 */
export {
  type AccountSettings,
  createStopSignal,
  joinAccount,
  type Membership,
  type Subscriber,
  type Subscription,
  type Watcher,
} from './account';
export { type CallOptions, Client, type ClientOptions } from './client';
export { createConnections, type ProxyOptions, type TlsOptions } from './connections';
export type { Taker } from './distribution';
export { type CheckedDraft, checkDraft, type Draft } from './draft';
export { isSmsError, type PlainSmsError, reasons, SmsError, type SmsErrorCode, type SmsErrorReason } from './errors';
export { type Encoding, measureText, type TextMeasure } from './gsm';
export { type Authentication, parseAuthentication, parseBaseUrl } from './http';
export type { Kind } from './identity';
export type { Inbox } from './inbox';
export type * from './model';
export { PollLoop, type PollState } from './poll';
export type { FlowDelivery } from './receiver';
export { parseRecipients } from './recipients';
export type { RetryPolicy } from './send';
export { DiskStore } from './store/disk';
export { MemoryStore } from './store/memory';
export { RedisStore } from './store/redis';
export type { Entry, InboxRecord, Store } from './store/store';
export { type CallbackEvent, parseCallback } from './wire/callback';
export { formatCallbackUrl } from './wire/callback-url';
export { isBlank, isUnsafeKey } from './wire/fields';
export { formatForm } from './wire/form';
