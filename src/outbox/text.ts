import type { Clock } from '../clock';
import { isSmsError, SmsError, type SmsErrorDetails, type SmsErrorReason } from '../errors';
import { leavesOpen } from '../http/failure';
import { ClockSkew } from '../journal/clock-skew';
import type { CheckedDraft } from '../message/draft';
import type { Delivery } from '../model';
import type { AnswerChoice } from '../replies/answers';
import type { Item } from '../store/store';
import { normaliseRecipient, present } from '../wire/fields';
import type { Moment } from './limits';
import { DueTimes, formatOrder, OrderedMap } from './queue';
import { explainWithheld, isWithheldError, type TimeOptions, type Withheld } from './rules';

/** Where a text stands: the steps of `transitions.ts` are the only ways from one to another. */
export type TextState =
  /** Nothing of it has been sent. */
  | 'waiting'
  /** The mark that it leaves is written: whether it was sent is not known before its outcome. */
  | 'leaving'
  /** Its outcome is written and on its way into the flow. */
  | 'settled'
  /** Its outcome is unknown, the flow knows that, and somebody may decide. */
  | 'uncertain';

/** Where the evidence came from that a text with an unknown outcome was taken. */
export type Evidence = 'status' | 'reply' | 'outbox' | 'feed';

/** How a text ended well, at least for one recipient or formally. */
export interface Sent extends Omit<Delivery, 'statusCode'> {
  /** HTTP status; absent when it is known by evidence alone. */
  statusCode?: number;
  /** `person`: somebody knows that it has arrived. */
  resolvedBy?: Evidence | 'person';
  /** Those of `failed` that a rule of one's own withheld. */
  withheld?: readonly Withheld[];
}

/** How a text ended. */
export type Outcome = Sent | SmsError;

/** What a node asks for, beside the message. */
export interface SendOptions extends TimeOptions {
  /** Further tries when the request never reached the service. Not for a kept text. */
  retries: number;
  /** Also when the outcome is unknown, which may send twice. */
  retryUncertain: boolean;
  /** How long to look for evidence when the outcome is unknown; 0: not at all. */
  resolveMs: number;
  /** Of the texts that wait the highest goes first. */
  priority: number;
  /** The account's own limits do not hold for it. */
  unlimited: boolean;
  /** Send it once under this key. */
  once?: string;
  /** What replies and statuses to it bring back. */
  remember?: { value: unknown };
  /** How long to wait for a reply of each recipient. */
  waitMs?: number;
  /** The answers that count; absent or empty: every reply is an answer. */
  answers?: readonly AnswerChoice[];
  /** The message that follows an unclear reply; its recipient and messageId are set for each handset. */
  again?: CheckedDraft;
  /** How long to wait for the final statuses of all of them. */
  reportMs?: number;
}

/** Says which reply request a message `again` belongs to. A reply to the message belongs to that request, too. */
export interface AgainLink {
  /** Id of the reply request. */
  request: string;
  recipient: string;
  reference: string;
  waitMs: number;
}

/** A text on its way out. Plain data. */
export interface Text extends Item, CheckedDraft {
  part: 'ledger';
  kind: 'text';
  state: TextState;
  /** Id of the sending node. */
  node: string;
  options: SendOptions;
  /** The message of the flow, as the node wrote it. */
  flowMessage?: string;
  /** That is too long to be written at every step, and stands under a key of its own. */
  isFlowMessageApart?: true;
  /** When it was taken in, in ms. */
  arrivedAt: number;
  /** When it left last, in ms. */
  leftAt?: number;
  /** Recipients that it does not go to, as it was judged last. */
  withheld?: readonly Withheld[] | undefined;
  /** When the others were counted, if they are. */
  countedAt?: Moment;
  outcome?: StoredOutcome;
  /** When its outcome was written, or since when it is uncertain, in ms. */
  settledAt?: number;
  /** How often its outcome has been unknown, and it was put back. */
  repeats?: number;
  /** Recipients that earlier tries went to whose outcome is unknown, and why it is, of the last of them. */
  previousAttempt?: { to: readonly string[]; outcome: StoredOutcome };
  /** Recipients whose replies are told, though nobody knew that they had got it: they are not asked again. */
  answered?: readonly string[];
  /** What was known, as it was put back, of until when the service wants to be left alone. */
  retryAfter?: StoredRetryAfter | undefined;
  /** When somebody had it sent before its time, in ms: it waits for nothing but its turn. */
  sendNowAt?: number;
  /** The message follows an unclear reply: its outcome does not enter the flow. */
  again?: AgainLink;
  /** Somebody had it sent again: what comes of it has entered the flow before in another form. */
  isManuallyResent?: true;
}

/** An outcome as plain data. */
export type StoredOutcome = { sent: Sent } | { error: StoredError };

interface StoredError extends Omit<SmsErrorDetails<SmsErrorReason>, 'cause'> {
  reason: SmsErrorReason;
}

/** Until when the service wants to be left alone, and why, as plain data; times in ms. */
export interface StoredRetryAfter {
  at: number;
  forMs: number;
  error: StoredOutcome;
}

/** Says whether a text is in the store: because it is kept, or because its key guards it. */
export function isTracked({ options }: Pick<Text, 'options'>): boolean {
  return options.keep !== undefined || options.once !== undefined;
}

/** Says whether a text waits until it is sent, beyond its node and its process: because it is to be kept, or is sent once more by hand. */
export function isKept({ options, isManuallyResent }: Pick<Text, 'options' | 'isManuallyResent'>): boolean {
  return options.keep !== undefined || isManuallyResent === true;
}

/** Says whether a text is known to replies and statuses. */
export function isRemembered({ options }: Pick<Text, 'options'>): boolean {
  return options.remember !== undefined || options.waitMs !== undefined;
}

/** Says whether something is to come of a text after its outcome: replies, or a report. */
export function asks({ options }: Pick<Text, 'options'>): boolean {
  return options.waitMs !== undefined || options.reportMs !== undefined;
}

/** Says whether what comes in may concern a text. */
export function isFollowed(text: Pick<Text, 'options'>): boolean {
  return isRemembered(text) || asks(text);
}

/** Says whether evidence can be looked for when the outcome of a text is unknown. */
export function isReconciled({ message, options }: Pick<Text, 'message' | 'options'>): boolean {
  return options.resolveMs > 0 && message.messageId !== undefined;
}

/** Whom a text goes to, or went to: its recipients but for those that a rule withholds. */
export function submittedOf({ message, withheld }: Pick<Text, 'message' | 'withheld'>): string[] {
  const gone = new Set(withheld?.map(({ msisdn }) => msisdn));
  return message.to.filter((item) => !gone.has(item));
}

/** A text whose last try may have been accepted, and that may be sent again. */
export function afterUnknown(text: Text, outcome: StoredOutcome): Text {
  return { ...text, previousAttempt: { to: concernedBy(text), outcome } };
}

/** Whom a text goes to, went to, or may have gone to by an earlier try. */
export function concernedBy(text: Text): string[] {
  const concerned = new Set([...submittedOf(text), ...(text.previousAttempt?.to ?? [])]);
  return text.message.to.filter((item) => concerned.has(item));
}

/** Recipients that were counted for the limits, and that an outcome says were not sent to. */
export function uncountedBy(text: Text, outcome: Outcome): string[] {
  if (!text.countedAt || isUnknown(outcome)) return [];
  const submitted = submittedOf(text);
  if (outcome instanceof SmsError) return submitted;
  const failed = new Set(outcome.failed.map(({ msisdn }) => normaliseRecipient(msisdn)));
  return submitted.filter((item) => failed.has(item));
}

/**
 * An outcome with the recipients that a rule withheld among those that failed. It is unknown when only an earlier try may have
 * reached anybody.
 */
export function withWithheld(outcome: Sent, text: Text): Outcome {
  const { withheld = [], previousAttempt } = text;
  const accepted = new Set(outcome.accepted);
  const reached = new Set(previousAttempt?.to);
  const unsent = withheld
    .filter(({ msisdn }) => !accepted.has(msisdn))
    .map((one): Withheld => (reached.has(one.msisdn) ? { ...one, mayBeSent: true } : one));
  if (unsent.length === 0) return outcome;
  const isUnknown = accepted.size === 0 && unsent.some(({ mayBeSent }) => mayBeSent);
  if (previousAttempt && isUnknown) return parseOutcome(previousAttempt.outcome);
  const failed = unsent.map((one) => {
    const { code, message } = explainWithheld(one);
    return { msisdn: one.msisdn, errorCode: code, errorMessage: message };
  });
  return {
    ...outcome,
    recipients: [...outcome.recipients, ...failed.map((one) => ({ ...one, isError: true }))],
    failed: [...outcome.failed, ...failed],
    withheld: unsent,
  };
}

/**
 * An outcome, in whose error stands the message ID that the text had of its own: a status that comes later can be matched by it. Of an
 * input that was refused no request has told it to anybody.
 */
export function withMessageId<End extends Outcome>(outcome: End, { message }: Pick<Text, 'message'>): End | SmsError {
  const { messageId } = message;
  if (!(outcome instanceof SmsError) || outcome.code === 'SMS_INPUT' || messageId === undefined) return outcome;
  return outcome.with({ messageId });
}

/** An outcome as it is stored: without the cause of an error, which is no plain data. */
export function formatOutcome(outcome: Outcome): StoredOutcome {
  return outcome instanceof SmsError ? { error: { ...outcome } } : { sent: outcome };
}

/** Reads what {@link formatOutcome} wrote. */
export function parseOutcome(stored: StoredOutcome): Outcome {
  if ('sent' in stored) return stored.sent;
  const { reason, ...details } = stored.error;
  return new SmsError(reason, details as SmsErrorDetails<SmsErrorReason>);
}

/** Says whether the service may have taken a text all the same. */
export function isUnknown(outcome: Outcome): boolean {
  if (!(outcome instanceof SmsError)) return false;
  const { code, statusCode = 0 } = outcome;
  if (code === 'SMS_SERVICE') return leavesOpen(statusCode);
  return code === 'SMS_UNCERTAIN' || code === 'SMS_RESPONSE';
}

/** Says whether nothing was sent by a try, or for want of one: what earlier ones have sent is another matter. */
export function isUnsent(outcome: unknown): outcome is SmsError {
  const isOurs = isSmsError(outcome, 'SMS_UNREACHABLE', 'SMS_CLOSED', 'SMS_STORE', 'SMS_BUSY', 'SMS_EXPIRED');
  return isOurs || isSmsError(outcome, 'SMS_REPLACED', 'SMS_WITHDRAWN') || isWithheldError(outcome);
}

/** Says whether a message was replaced or withdrawn. */
export function isSuperseded(outcome: StoredOutcome): boolean {
  return 'error' in outcome && (outcome.error.reason === 'replaced' || outcome.error.reason === 'withdrawn');
}

/** Says whether the service cannot be reached or used now: a kept text goes on waiting, since nothing was sent. */
export function isOutage(error: unknown): error is SmsError {
  if (!(error instanceof SmsError)) return false;
  const { code, statusCode } = error;
  if (code === 'SMS_SERVICE') return statusCode === 429 || statusCode === 503;
  return code === 'SMS_UNREACHABLE' || code === 'SMS_UNAUTHORIZED' || code === 'SMS_STORE';
}

/** The end of a text that was taken, as is known by evidence alone. */
export function createResolved(
  messageId: string | undefined,
  accepted: string[],
  resolvedBy: NonNullable<Sent['resolvedBy']>,
): Sent {
  const recipients = accepted.map((msisdn) => ({ msisdn, isError: false }));
  return { ...(messageId === undefined ? undefined : { messageId }), recipients, accepted, failed: [], resolvedBy };
}

/** Says whether anybody was accepted, as far as is known. */
export function isAccepted(outcome: Outcome): outcome is Sent {
  return !(outcome instanceof SmsError) && outcome.accepted.length > 0;
}

const uncertainMs = 7 * 24 * 3_600_000;

/** The texts of this process that are on their way or may be decided about, by id, in the order of their arrival or of their being found. */
export class TextBook extends Map<string, Text> {
  /** Ids of texts that ask and are in no store, and whose outcome is on its way into the flow. */
  readonly outcomesComing = new Set<string>();
  /** Ids of texts of which it is decided what becomes of them, though they may be found as they were: the store may be opened again meanwhile. */
  readonly written = new Set<string>();
  /** Ids of messages that wait and have a key of `replace`. */
  readonly replaceable = new Set<string>();
  /** Ids of messages that a user can decide about, in the order of {@link orderOf}. They are counted as they change. */
  readonly #listed: Readonly<Record<TextEntryState, OrderedMap<string>>> = {
    kept: new OrderedMap(),
    uncertain: new OrderedMap(),
  };
  readonly #clock: Clock;
  /** An uncertain text can be decided about for so long. */
  readonly #decisions: DueTimes;

  /** @param onExpired nobody has decided about a text in time */
  constructor(clock: Clock, onExpired: (text: Text) => void) {
    super();
    this.#clock = clock;
    this.#decisions = new DueTimes(clock, 'elapsed', (id) => {
      const text = this.get(id);
      if (text) onExpired(text);
    });
  }

  /** Whether a text waits, so that it can still be stopped: not while it is being written that it leaves, or has ended. */
  isWaiting(id: string): boolean {
    return this.get(id)?.state === 'waiting' && !this.written.has(id);
  }

  /** Whether a message has no outcome yet. */
  isUnderWay(id: string): boolean {
    const { state } = this.get(id) ?? {};
    return state === 'waiting' || state === 'leaving';
  }

  /** Whether the outcome of a text is known and has not entered the flow yet. */
  isOutcomeComing(id: string): boolean {
    return this.outcomesComing.has(id) || this.get(id)?.state === 'settled';
  }

  /** It is being written what becomes of a text, until `write` has settled. */
  whileWritten<T>(id: string, write: () => Promise<T>): Promise<T> {
    this.written.add(id);
    return write().finally(() => this.written.delete(id));
  }

  /** Adds a text, or puts it in the place of an earlier state of it. About one that is uncertain somebody may decide for 7 days from its outcome. */
  put(text: Text): void {
    const { id, state, settledAt = 0 } = text;
    this.#withdraw(id);
    this.set(id, text);
    const place = entryOf(text);
    if (place) this.#listed[place.state].set(orderOf(place, id), id);
    if (state === 'waiting' && text.options.replaceKey !== undefined) this.replaceable.add(id);
    if (state !== 'uncertain') return;
    const since = ClockSkew.of(this.#clock).timeOf(settledAt);
    const leftMs = Math.min(uncertainMs, Math.max(0, since + uncertainMs - this.#clock.now()));
    this.#decisions.set(id, this.#clock.elapsed() + leftMs);
  }

  /** A user cannot decide about a message until it is put again. */
  hide(id: string): void {
    const text = this.get(id);
    if (text) this.#unlist(text);
  }

  /** As what a user can decide about a message, if so. */
  entry(id: string): TextEntryPlace | undefined {
    const text = this.get(id);
    const place = text && entryOf(text);
    return place && this.#listed[place.state].has(orderOf(place, id)) ? place : undefined;
  }

  /** Number of messages that a user can decide about. */
  count(state: TextEntryState): number {
    return this.#listed[state].size;
  }

  /** Time of the oldest stored message, in ms. */
  get oldestKeptAt(): number | undefined {
    const { first = '' } = this.#listed.kept;
    return this.get(this.#listed.kept.get(first) ?? '')?.arrivedAt;
  }

  /**
   * A page of the messages that a user can decide about, the oldest first, and what to ask for the next page with, if there is one.
   *
   * @param after `next` of the page before, whether that message is still here or not; absent: from the first
   */
  page(state: TextEntryState, limit: number, after = '') {
    const listed = [...this.#listed[state].keys()].filter((order) => order > after).sort();
    const orders = listed.slice(0, limit);
    const page = orders.flatMap((order) => {
      const text = this.get(this.#listed[state].get(order) ?? '');
      const place = text && entryOf(text);
      return place ? [{ text, place }] : [];
    });
    const next = listed.length > limit ? orders.at(-1) : undefined;
    return { page, total: this.count(state), ...present({ next }) };
  }

  override delete(id: string): boolean {
    this.#withdraw(id);
    return super.delete(id);
  }

  override clear(): void {
    for (const id of [...this.keys()]) this.delete(id);
  }

  #withdraw(id: string): void {
    const text = this.get(id);
    if (!text) return;
    this.#unlist(text);
    this.replaceable.delete(id);
    if (text.state === 'uncertain') this.#decisions.delete(id);
  }

  #unlist(text: Text): void {
    const place = entryOf(text);
    if (place) this.#listed[place.state].delete(orderOf(place, text.id));
  }
}

/** Sorts entries by their times, and those of one time by their ids. */
function orderOf({ at }: TextEntryPlace, id: string): string {
  return formatOrder(at) + id;
}

function entryOf(text: Text): TextEntryPlace | undefined {
  const { state, arrivedAt, settledAt } = text;
  if (state === 'waiting' || state === 'leaving') return isKept(text) ? { state: 'kept', at: arrivedAt } : undefined;
  return state === 'uncertain' ? { state, at: settledAt ?? arrivedAt } : undefined;
}

/** What somebody may decide about: a text that waits, or one whose outcome is unknown. */
export type TextEntryState = 'kept' | 'uncertain';

/** As what a text is listed, and since when: when it came, or when its outcome became unknown; in ms. */
export interface TextEntryPlace {
  state: TextEntryState;
  at: number;
}

/** What became of texts since the process started: `sent`, `failed`, `limited`, `optedOut` and `notAllowed` in recipients, the others in messages. */
export class SendCounts {
  sent = 0;
  failed = 0;
  limited = 0;
  optedOut = 0;
  notAllowed = 0;
  refused = 0;
  uncertain = 0;
  resolved = 0;
  expired = 0;
  /** Messages that were not stored, and came in quiet hours. */
  quiet = 0;
  replaced = 0;
  withdrawn = 0;

  /** Counts the outcome of a text that went to so many recipients, or, where nobody is left, by why each is withheld. */
  add(outcome: Outcome, recipients: number, withheld?: readonly Withheld[]): void {
    if (!(outcome instanceof SmsError)) {
      this.sent += outcome.accepted.length;
      for (const { errorCode } of outcome.failed) this[countOf(errorCode) ?? 'failed']++;
      if (outcome.resolvedBy) this.resolved++;
    } else if (isUnknown(outcome)) this.uncertain++;
    else if (outcome.code === 'SMS_EXPIRED') this.expired++;
    else if (outcome.code === 'SMS_QUIET') this.quiet++;
    else if (outcome.code === 'SMS_REPLACED') this.replaced++;
    else if (outcome.code === 'SMS_WITHDRAWN') this.withdrawn++;
    else if (!isWithheldError(outcome)) this.refused++;
    else {
      const errors = withheld?.map(explainWithheld) ?? Array<SmsError>(recipients).fill(outcome);
      for (const { code } of errors) this[countOf(code) ?? 'refused']++;
    }
  }
}

/** Where recipients count that a rule withholds. */
function countOf(code: unknown): 'limited' | 'optedOut' | 'notAllowed' | undefined {
  if (code === 'SMS_LIMIT') return 'limited';
  if (code === 'SMS_OPTED_OUT') return 'optedOut';
  return code === 'SMS_NOT_ALLOWED' ? 'notAllowed' : undefined;
}
