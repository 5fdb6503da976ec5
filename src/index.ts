/**
 * The HTTP interface of the SMS messaging service as a library. It is independent of Node-RED, never logs, and rejects
 * only with {@link SmsError}.
 *
 * @module @messaging-service/node-red-sms
 */

export { joinAccount, keyOfLogin } from './account/accounts';
export type { WaitingEntry, WaitingListName } from './account/entry-lists';
export type { FormerPlace, WaitingImport } from './account/import';
export type {
  CallbackSubscriber,
  CallbackSubscription,
  Membership,
  OutboxSubscriber,
  OutboxSubscription,
  Subscriber,
  Subscribers,
  Subscription,
  Subscriptions,
} from './account/membership';
export type { AccountSettings, ConnectionSettings, StoreChoice } from './account/settings';
export type {
  AccountEntry,
  AccountState,
  Counts,
  Decided,
  Decision,
  EntryAction,
  EntryList,
  EntryState,
  StoreState,
  UnhandledEntry,
} from './account/stats';
export { type Clock, systemClock, type Timer, wait } from './clock';
export type { OptOut, OptOutPage, OptOutQuery } from './consent/opt-outs';
export { parsePrefixes } from './consent/prefixes';
export { type ConsentChange, type ConsentSettings, parseConsentWords } from './consent/words';
export type { OutboxBatch, OutboxSubscriptionOptions } from './delivery/outbox-subscription';
export type { FlowDelivery, PollSubscriptionOptions } from './delivery/poll-subscription';
export type { BatchSlice } from './delivery/subscribers';
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
export { Client, type ClientOptions } from './http/client';
export { type Connections, type ConnectionsOptions, createConnections, type TlsOptions } from './http/connections';
export type { CallOptions } from './http/exchange';
export type { ProxyOptions, ProxyRules } from './http/proxy';
export type { Channel } from './inbox/entries';
export type { InboxState, ReceiveCounts } from './inbox/inbox';
export { type Authentication, parseAuthentication, parseBaseUrl } from './login';
export { type CheckedDraft, checkDraft, type Draft } from './message/draft';
export { type Encoding, measureText, type TextMeasure } from './message/gsm';
export { parseMsisdn, parseRecipients, refuseSenderName } from './message/recipients';
export { parseAt, parseQuietHours, parseTimeZone, type QuietSettings } from './message/times';
export type * from './model';
export type { MessageAction, MessageEntry, SendState } from './outbox/admin';
export type { LimitSettings } from './outbox/limits';
export type { Evidence, Outcome, SendOptions, Sent } from './outbox/message-item';
export type { MessageEntryState } from './outbox/messages';
export type { SendFailure } from './outbox/outage';
export type { TimeOptions, Withheld } from './outbox/rules';
export type { SendCounts } from './outbox/send-counts';
export type {
  AnswerEvent,
  OutcomeEvent,
  ReportEvent,
  SendHandler,
  SendHandlerState,
  SendingNode,
  SendRequest,
} from './outbox/sender-registrations';
export type { EntryQuery, Page } from './page';
export type { PollSummary, Watcher } from './polling/endpoint';
export { type PollEvents, PollLoop, type PollOutcome, type PollSource, type PollState } from './polling/poll-loop';
export { reasons } from './reasons';
export type { AnswerChoice } from './replies/answers';
export type { NoReply, ReplyResult } from './replies/follow-ups';
export type { DeliveryReport } from './replies/report';
export type { Count, Counted } from './store/counts';
export { DiskStore } from './store/disk';
export { MemoryStore } from './store/memory';
export { RedisStore, type RedisStoreOptions, type RedisTiming } from './store/redis';
export type {
  Changes,
  Item,
  ItemKind,
  PendingWrite,
  RecoveredState,
  RecoveredWrite,
  Remembered,
  Store,
  StoreEvents,
  StorePage,
} from './store/store';
export { type CallbackEvent, type CallbackRequest, parseCallback } from './wire/callback';
export { formatCallbackUrl } from './wire/callback-url';

// Only for the nodes and the tests of this package. The published types omit these exports.

/** @internal */
export { type Accounts, createAccounts } from './account/accounts';
/** @internal */
export { waitingLists } from './account/entry-lists';
/** @internal */
export { parseRedisUrl } from './login';
/** @internal */
export { explainWithheld } from './outbox/rules';
/** @internal */
export { parseAnswers } from './replies/answers';
/** @internal */
export { isBlank, isUnsafeKey } from './wire/fields';
/** @internal */
export { flattenForm, formatForm } from './wire/form';
