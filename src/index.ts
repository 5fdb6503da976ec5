/**
 * The SMS messaging service's HTTP interface as a library. It knows nothing of Node-RED, never logs, and rejects with
 * {@link SmsError} only.
 */
export { type Accounts, createAccounts, joinAccount, keyOfLogin } from './account/accounts';
export type { OptOutQuery } from './account/consent';
export type {
  CallbackSubscription,
  FormerPlace,
  Membership,
  OutboxSubscriber,
  OutboxSubscription,
  Subscriber,
  Subscription,
} from './account/membership';
export type { AccountSettings, ConnectionSettings, StoreChoice } from './account/settings';
export type { AccountEntry, AccountState, Counts, EntryAction, EntryState } from './account/stats';
export { type Clock, systemClock, type Timer, wait } from './clock';
export type { OptOut, OptOutPage } from './consent/opt-outs';
export { isAllowed, parsePrefixes } from './consent/prefixes';
export { type ConsentSettings, parseConsentWords, type Wish } from './consent/words';
export type { OutboxBatch } from './delivery/outbox-subscription';
export type { FlowDelivery } from './delivery/poll-subscription';
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
export { type CallOptions, Client, type ClientOptions } from './http/client';
export { createConnections, type ProxyOptions, type TlsOptions } from './http/connections';
export { Pieces } from './http/exchange';
export { type Authentication, parseAuthentication, parseBaseUrl } from './login';
export { type CheckedDraft, checkDraft, type Draft } from './message/draft';
export { type Encoding, measureText, type TextMeasure } from './message/gsm';
export { parseMsisdn, parseRecipients } from './message/recipients';
export { parseAt, parseQuietHours, parseTimeZone, type QuietSettings } from './message/times';
export type * from './model';
export { explainWithheld } from './outbox/gate';
export type { Outcome, SendOptions, Sent } from './outbox/outgoing';
export type { LimitSettings, RuleSettings, Withheld } from './outbox/rule';
export type {
  AnswerNews,
  OutcomeNews,
  SendHandler,
  SendHandlerState,
  SendingNode,
  SendRequest,
} from './outbox/send-handler';
export type { Watcher } from './polling/endpoint';
export { PollLoop, type PollState } from './polling/poll-loop';
export type { NoReply } from './questions/question';
export { reasons } from './reasons';
export { DiskStore } from './store/disk';
export { MemoryStore } from './store/memory';
export { RedisStore } from './store/redis';
export { parseRedisUrl } from './store/redis-url';
export type { Store } from './store/store';
export { type CallbackEvent, type CallbackRequest, parseCallback } from './wire/callback';
export { formatCallbackUrl } from './wire/callback-url';
export { isBlank, isUnsafeKey } from './wire/fields';
export { flattenForm, formatForm } from './wire/form';
