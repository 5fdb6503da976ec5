import { randomUUID } from 'node:crypto';
import type { Account } from './account';
import type { Callbacks } from './callbacks';
import type { Changes } from './changes';
import type { Clock } from './clock';
import type { History } from './history';
import { keyOf } from './keys';
import type { IncomingMessage, OutboundMessage, OutboundRecipient, StatusUpdate } from './model';
import { countParts, isGsm, toGsm } from './parts';
import type { UnreadQueue } from './unread';

/** A submitted message that is valid (§2.1). */
export type Submission = Pick<
  OutboundMessage,
  'apiVersion' | 'to' | 'body' | 'from' | 'contentType' | 'fragmentationLimit' | 'callbackUrl' | 'callbackStatusUrl'
> & { messageId?: string };

/** Thrown if the service refuses the message with a 403, for a reason of §7.1. The error message is for the client. */
export class RefusedError extends Error {}

/** A message that a handset writes. */
export interface HandsetMessage {
  /** The handset. */
  from: string;
  body: string;
}

const unknownContact = { errorCode: 403, errorMessage: 'Contact is not in the address book' };
const blockedNumber = { errorCode: 403, errorMessage: 'Number is in the blocked list' };
const insufficientFunds = { errorCode: 402, errorMessage: 'Insufficient funds' };

/** Outcome of messages that the service refuses because their number is blocked. */
export const blockedOutcome = 'BLOCKED';

const statusTexts: Readonly<Record<string, string>> = {
  NRCV: 'Message was not received',
  NRC: 'Message was not received',
  NUR: 'Number is unreachable',
  EXP: 'Message expired before it could be delivered',
  INF: 'Insufficient funds',
  ERR: 'Internal error',
};

/** Final status codes of an accepted message. */
export const outcomes: readonly string[] = ['RCV', ...Object.keys(statusTexts)];

export interface MessagingSurroundings {
  account: Account;
  clock: Clock;
  changes: Changes;
  callbacks: Callbacks;
  history: History;
  incoming: UnreadQueue<IncomingMessage>;
  statuses: UnreadQueue<StatusUpdate>;
  /**
   * Delay before the status SNT (sent), and the same delay again before the final status, in ms of the simulator's
   * clock.
   */
  statusDelayMs: number;
}

/** Sends and receives messages, and changes their statuses over time (§3). */
export class Messaging {
  readonly #timers = new Set<() => void>();
  readonly #surroundings: MessagingSurroundings;
  /** Key of the last message that the outbox poll has listed (§4.3). */
  polledUpTo = 0;
  #isClosed = false;

  constructor(surroundings: MessagingSurroundings) {
    this.#surroundings = surroundings;
  }

  /**
   * Sends a message to every recipient that can receive it (§4.1).
   *
   * @throws RefusedError if no item of `to` is a number, a contact or a group, or if the message exceeds the daily
   * limit. For /api/1 and /api/2, also if every recipient fails, because the answers of these versions cannot list
   * failed recipients.
   */
  send(submission: Submission): OutboundMessage {
    const { account, clock, changes, history } = this.#surroundings;
    const isUtf16 = submission.contentType === 'text/plain; charset=UTF-16';
    const parts = countParts(submission.body, isUtf16);
    const deliveredBody = isUtf16 ? submission.body : toGsm(submission.body);
    const to = [...new Set(submission.to)];
    const recipients = onePerHandset(to.flatMap((item) => this.#recipientsOf(item)));
    const handsets = recipients.filter((recipient) => !recipient.isError);
    if (recipients.every(({ errorMessage }) => errorMessage === unknownContact.errorMessage)) {
      throw new RefusedError(`${unknownContact.errorMessage}: ${submission.to.join(' ')}`);
    }
    if (!account.fitsDailyLimit(handsets.length, clock.now())) {
      throw new RefusedError('Daily message limit of the company is exceeded');
    }
    for (const handset of handsets) {
      if (!account.charge(parts)) Object.assign(handset, insufficientFunds, { isError: true, statusCode: 'INF' });
    }
    const acceptedRecipients = recipients.filter((recipient) => !recipient.isError);
    const { nextOutcome } = account;
    account.nextOutcome = undefined;
    if (acceptedRecipients.length === 0 && submission.apiVersion < 3) {
      throw new RefusedError(recipients.find(({ errorMessage }) => errorMessage !== undefined)?.errorMessage);
    }
    account.countSent(acceptedRecipients.length, clock.now());
    const message: OutboundMessage = {
      ...submission,
      to,
      ...(deliveredBody !== submission.body && { deliveredBody }),
      messageId: submission.messageId ?? randomUUID(),
      recordId: randomUUID(),
      messageIdGiven: submission.messageId !== undefined,
      parts,
      messageDate: this.#now(),
      deleted: false,
      recipients,
    };
    history.addMessage(message);
    for (const recipient of acceptedRecipients) {
      this.#scheduleStatuses(message, recipient, account.outcomeOf(recipient.msisdn) ?? nextOutcome ?? 'RCV');
    }
    changes.emit('message');
    return message;
  }

  /** Returns the messages sent since the last call (§4.3), and advances the poll date. */
  takeSinceLastPoll(): OutboundMessage[] {
    const { changes, history } = this.#surroundings;
    const newMessages = history.sentAfter(this.polledUpTo);
    const lastMessage = newMessages.at(-1);
    if (lastMessage !== undefined) {
      this.polledUpTo = keyOf(lastMessage);
      changes.emit('settings');
    }
    return newMessages;
  }

  /** Continues after a restart: schedules the next status of each recipient whose status is not final. */
  resume(): void {
    const { account, history } = this.#surroundings;
    for (const message of history.messages) {
      for (const recipient of message.recipients) {
        const chosenOutcome = account.outcomeOf(recipient.msisdn) ?? 'RCV';
        // Ignores a block, because it affects only messages that are sent after it was chosen.
        const outcome = chosenOutcome === blockedOutcome ? 'RCV' : chosenOutcome;
        if (recipient.statusCode === 'PND') this.#scheduleStatuses(message, recipient, outcome);
        if (recipient.statusCode === 'SNT') this.#scheduleOutcome(message, recipient, outcome);
      }
    }
  }

  /**
   * Creates a reply from a handset (§2.3). `inReplyTo` is the messageId of the answered message. Default: the last
   * message to the handset.
   */
  reply(message: HandsetMessage & { inReplyTo?: string }): IncomingMessage {
    const { history } = this.#surroundings;
    const original =
      message.inReplyTo === undefined ? history.lastSentTo(message.from) : history.find(message.inReplyTo);
    const correlation = original?.messageIdGiven ? original.messageId : 'default';
    return this.#accept(message, original, {
      inReplyToId: original === undefined ? (message.inReplyTo ?? 'default') : correlation,
      receivedOn: original?.from ?? this.#surroundings.account.defaultSender,
    });
  }

  /** Creates a new message from a handset (§1). */
  receive(message: HandsetMessage & { to: string }): IncomingMessage {
    return this.#accept(message, undefined, { to: message.to, receivedOn: message.to });
  }

  /**
   * Changes the status of a message (§2.5). If the messageId is unknown, the message counts as sent by another program.
   */
  status(change: { messageId: string; msisdn: string; statusCode: string; error?: string }): StatusUpdate {
    const { account, statuses, callbacks, changes, history } = this.#surroundings;
    const message = history.find(change.messageId);
    const recipient = message?.recipients.find(({ msisdn }) => msisdn === change.msisdn);
    const error = change.error ?? statusTexts[change.statusCode];
    const displayName = account.nameOf(change.msisdn);
    const update: StatusUpdate = {
      messageId: randomUUID(),
      to: message?.from ?? account.defaultSender,
      from: change.msisdn,
      statusCode: change.statusCode,
      inReplyToId: change.messageId,
      ...(error !== undefined && { error }),
      statusDate: this.#now(),
      ...(displayName !== undefined && { displayName }),
      read: false,
    };
    if (recipient !== undefined) {
      recipient.statusCode = update.statusCode;
      recipient.history.push({ statusCode: update.statusCode, date: update.statusDate });
    }
    history.addStatus(update);
    statuses.add(update);
    callbacks.status(update, message);
    changes.emit('status');
    return update;
  }

  /** Stops all status changes permanently. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTimers();
  }

  /** Stops all status changes, and resets the poll date. */
  reset(): void {
    this.polledUpTo = 0;
    this.#cancelTimers();
  }

  #cancelTimers(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #now(): string {
    return new Date(this.#surroundings.clock.now()).toISOString();
  }

  #recipientsOf(item: string): OutboundRecipient[] {
    const { account } = this.#surroundings;
    const handsets = account.resolve(item);
    if (handsets.length === 0) {
      return [{ item, msisdn: item, isError: true, ...unknownContact, statusCode: 'ERR', history: [] }];
    }
    return handsets.map((handset) =>
      [account.outcomeOf(handset.msisdn), account.nextOutcome].includes(blockedOutcome)
        ? { item, ...handset, isError: true, ...blockedNumber, statusCode: 'ERR', history: [] }
        : { item, ...handset, isError: false, statusCode: 'PND', history: [] },
    );
  }

  #scheduleStatuses(message: OutboundMessage, recipient: OutboundRecipient, outcome: string): void {
    this.#schedule(() => {
      this.status({ messageId: message.messageId, msisdn: recipient.msisdn, statusCode: 'SNT' });
      this.#scheduleOutcome(message, recipient, outcome);
    });
  }

  #scheduleOutcome({ messageId }: OutboundMessage, { msisdn }: OutboundRecipient, outcome: string): void {
    this.#schedule(() => this.status({ messageId, msisdn, statusCode: outcome }));
  }

  #schedule(run: () => void): void {
    const { clock, statusDelayMs } = this.#surroundings;
    if (this.#isClosed || !Number.isFinite(statusDelayMs)) return;
    const cancel = clock.schedule(statusDelayMs, () => {
      this.#timers.delete(cancel);
      run();
    });
    this.#timers.add(cancel);
  }

  #accept(
    handsetMessage: HandsetMessage,
    original: OutboundMessage | undefined,
    context: Pick<IncomingMessage, 'receivedOn'> & { to?: string; inReplyToId?: string },
  ): IncomingMessage {
    const { account, incoming, callbacks, changes, history } = this.#surroundings;
    const displayName = account.nameOf(handsetMessage.from);
    const message: IncomingMessage = {
      messageId: randomUUID(),
      from: handsetMessage.from,
      ...context,
      body: handsetMessage.body,
      messageDate: this.#now(),
      contentType: isGsm(handsetMessage.body) ? 'text/plain' : 'text/plain; charset=UTF-16',
      ...(displayName !== undefined && { displayName }),
      read: false,
    };
    history.addIncoming(message);
    incoming.add(message);
    callbacks.reply(message, original);
    changes.emit('incoming');
    return message;
  }
}

/**
 * Keeps one recipient for each handset, so that a handset receives the message only once even if several items of `to`
 * mean it.
 */
function onePerHandset(recipients: readonly OutboundRecipient[]): OutboundRecipient[] {
  const byHandset = new Map<string, OutboundRecipient>();
  for (const recipient of recipients) {
    const knownRecipient = byHandset.get(recipient.msisdn);
    if (knownRecipient === undefined) byHandset.set(recipient.msisdn, recipient);
    else if (knownRecipient.item !== recipient.item)
      knownRecipient.otherItems = [...(knownRecipient.otherItems ?? []), recipient.item];
  }
  return [...byHandset.values()];
}
