import { type Account, isMsisdn } from './account';
import type { Callbacks } from './callbacks';
import type { Changes } from './changes';
import type { Clock } from './clock';
import type { Data } from './data';
import type { Faults } from './faults';
import { type HandsetQuery, listHandsets } from './handsets';
import type { History } from './history';
import type { Listener } from './listener';
import { type LogQuery, listLog } from './log';
import type { HandsetText, Messaging } from './messaging';
import type {
  CallbackAttempt,
  CallbackFormat,
  Change,
  Credentials,
  Endpoint,
  Fault,
  HandsetSummary,
  IncomingMessage,
  LogEntry,
  LoggedRequest,
  Mail,
  OutboundMessage,
  StatusUpdate,
  Text,
  UndeliveredCallback,
} from './model';
import type { RequestLog } from './request-log';
import { describeText } from './texts';
import type { UnreadQueue } from './unread';
import { isCallbackUrl } from './wire/callback-url';

/** The parts a simulator is made of. */
export interface SimulatorParts {
  account: Account;
  basePath: string;
  callbacks: Callbacks;
  changes: Changes;
  clock: Clock;
  data: Data | undefined;
  exchange: { reset(): void };
  faults: Faults;
  history: History;
  incoming: UnreadQueue<IncomingMessage>;
  listener: Listener;
  log: RequestLog;
  messaging: Messaging;
  /** Where page and control are while the service refuses connections. */
  standby: Listener;
  statuses: UnreadQueue<StatusUpdate>;
}

/** A running service, and the hands that play the handsets, the network and the customer's web page. */
export class Simulator {
  readonly #parts: SimulatorParts;

  constructor(parts: SimulatorParts) {
    this.#parts = parts;
  }

  /** The service's base address, without a slash at the end. */
  get baseUrl(): string {
    return `${this.#parts.listener.origin}${this.#parts.basePath}`;
  }

  /** Address of the simulator's web page. */
  get pageUrl(): string {
    return `${this.#controlOrigin}/`;
  }

  /** Address of the control API. */
  get controlUrl(): string {
    return `${this.#controlOrigin}/control`;
  }

  get #controlOrigin(): string {
    const { listener, standby } = this.#parts;
    return (standby.isOpen ? standby : listener).origin;
  }

  get credentials(): Credentials {
    return this.#parts.account.credentials;
  }

  get clock(): Clock {
    return this.#parts.clock;
  }

  get balance(): number {
    return this.#parts.account.balance;
  }

  /** Every request to the service, in the order they were complete; bounded by `keepRequests`. */
  get requests(): LoggedRequest[] {
    return this.#parts.log.entries;
  }

  /** Every accepted outbound message, oldest first; bounded by `keepTexts`, as the next two are. */
  get messages(): OutboundMessage[] {
    return this.#parts.history.messages;
  }

  /** Every incoming message, oldest first, with its read mark. */
  get incoming(): IncomingMessage[] {
    return this.#parts.history.incoming;
  }

  /** Every status update, oldest first, with its read mark. */
  get statuses(): StatusUpdate[] {
    return this.#parts.history.statuses;
  }

  /** Every attempt at an http callback that has ended; bounded by `keepRequests`. */
  get callbackLog(): CallbackAttempt[] {
    return this.#parts.callbacks.log;
  }

  /** Callbacks given up after the retry window (§6.1). */
  get undelivered(): UndeliveredCallback[] {
    return this.#parts.callbacks.undelivered;
  }

  /** E-mails of mailto callbacks (§6.3). */
  get mailbox(): Mail[] {
    return this.#parts.callbacks.mailbox;
  }

  /** Requests of an endpoint in flight now. */
  polling(endpoint: Endpoint): number {
    return this.#parts.log.inFlight(endpoint);
  }

  /** Adds a contact to the address book, or changes its number. */
  addContact(name: string, msisdn: string): void {
    requireMsisdn(msisdn);
    this.#parts.account.addContact(name, msisdn);
    this.#parts.changes.emit('settings');
  }

  /** Adds a group of contacts and numbers, or replaces it. */
  addGroup(name: string, contacts: readonly string[]): void {
    this.#parts.account.addGroup(name, contacts);
    this.#parts.changes.emit('settings');
  }

  /** Takes a name out of the address book. */
  removeContact(name: string): void {
    this.#parts.account.removeContact(name);
    this.#parts.changes.emit('settings');
  }

  removeGroup(name: string): void {
    this.#parts.account.removeGroup(name);
    this.#parts.changes.emit('settings');
  }

  /** Adds a handset to the list; with a name, also to the address book instead of the names it has. Null takes them out. */
  addHandset(msisdn: string, name?: string | null): void {
    requireMsisdn(msisdn);
    this.#parts.account.handsets.add(msisdn);
    if (name !== undefined) this.#parts.account.renameHandset(msisdn, name ?? undefined);
    this.#parts.changes.emit('settings');
  }

  /** Takes a handset out of list and address book, and its texts out of the view. The next text brings it back. */
  removeHandset(msisdn: string): void {
    this.#parts.account.removeHandset(msisdn);
    this.#parts.history.removeHandset(msisdn);
    this.#parts.changes.emit('settings');
  }

  /** Puts a number into the blocked list, or takes it out. */
  block(msisdn: string, blocked = true): void {
    this.#parts.account.block(msisdn, blocked);
    this.#parts.changes.emit('settings');
  }

  setBalance(balance: number): void {
    this.#parts.account.balance = balance;
    this.#parts.changes.emit('settings');
  }

  /** Recipients per UTC day of the clock; Infinity for none. */
  setDailyLimit(recipients: number): void {
    this.#parts.account.dailyLimit = recipients;
    this.#parts.changes.emit('settings');
  }

  /** Changes the settings that are named; a URL that is undefined, null or empty switches its callback off. */
  setOrganisation(settings: {
    callbackUrl?: string | null | undefined;
    callbackStatusUrl?: string | null | undefined;
    callbackFormat?: CallbackFormat;
  }): void {
    const { organisation } = this.#parts.account;
    for (const [name, protocols] of organisationUrls) {
      if (!Object.hasOwn(settings, name)) continue;
      const url = settings[name];
      if (!url) delete organisation[name];
      else if (isCallbackUrl(url, protocols)) organisation[name] = url;
      else throw new RangeError(`${name} must be a URL with one of these protocols: ${protocols.join(' ')}`);
    }
    if (settings.callbackFormat !== undefined) organisation.callbackFormat = settings.callbackFormat;
    this.#parts.changes.emit('settings');
  }

  /** Sets the result of the next message for all its recipients, instead of RCV. `BLOCKED` refuses it like a message to a blocked number. */
  setNextOutcome(statusCode: string | undefined): void {
    this.#parts.account.setNextOutcome(statusCode);
    this.#parts.changes.emit('settings');
  }

  /** Sets the result of every message to a handset, instead of RCV. `undefined` restores the default. */
  setOutcome(msisdn: string, statusCode: string | undefined): void {
    this.#parts.account.setOutcome(msisdn, statusCode);
    this.#parts.changes.emit('settings');
  }

  /** The accepted message with that messageId; of several the last. */
  find(messageId: string): OutboundMessage | undefined {
    return this.#parts.history.find(messageId);
  }

  /** Marks an outbound message as deleted (§2.4); false when there is none. */
  deleteMessage(messageId: string): boolean {
    const message = this.find(messageId);
    if (message === undefined) return false;
    message.deleted = true;
    this.#parts.changes.emit('message', message);
    return true;
  }

  /** A handset answers; by default the last message it was sent. Without one, inReplyToId is `default`. */
  reply(text: HandsetText & { inReplyTo?: string }): IncomingMessage {
    return this.#parts.messaging.reply(text);
  }

  /** A handset starts a conversation with one of the account's numbers. */
  receive(text: HandsetText & { to: string }): IncomingMessage {
    return this.#parts.messaging.receive(text);
  }

  /** A status of a message at a handset changes. */
  status(change: { messageId: string; msisdn: string; statusCode: string; error?: string }): StatusUpdate {
    return this.#parts.messaging.status(change);
  }

  /** Switches a fault on for the next `times` requests of an endpoint; null switches it off. */
  fault(endpoint: Endpoint, fault: Fault | null, times = Number.POSITIVE_INFINITY): void {
    this.#parts.faults.set(endpoint, fault, times);
    this.#parts.changes.emit('settings');
  }

  /** Closes the listening socket and every connection, or opens it again on the same port. Everything else is kept. */
  async setOnline(online: boolean): Promise<void> {
    await (online ? this.#parts.listener.open() : this.#parts.listener.close());
    this.#parts.changes.emit('settings');
  }

  /**
   * Starts or ends an outage: the service refuses every connection, and page and control interface move to another port.
   * @param answered keeps the connection of the caller open until it resolves
   * @returns where the page is from then on
   */
  async setOutage(on: boolean, answered?: Promise<void>): Promise<string> {
    const { listener, standby } = this.#parts;
    const [opening, closing] = on ? [standby, listener] : [listener, standby];
    await opening.open();
    const closed = Promise.resolve(answered).then(async () => {
      await closing.close();
      this.#parts.changes.emit('settings');
    });
    if (answered === undefined) await closed;
    return `${opening.origin}/`;
  }

  /** Moves the clock forward by `ms` and runs everything that becomes due. */
  async advanceClock(ms: number): Promise<void> {
    await this.clock.advance(ms);
    this.#parts.changes.emit('settings');
  }

  /** Calls `listener` at once after every change of state; the result stops that. */
  on(_event: 'change', listener: (change: Change) => void): () => void {
    return this.#parts.changes.listen(listener);
  }

  /** Resolves as soon as `isTrue` holds, now or after a change; rejects after `timeoutMs` of real time. */
  until(isTrue: () => boolean, timeoutMs = 10_000): Promise<void> {
    return this.#parts.changes.until(isTrue, timeoutMs);
  }

  /** Resolves when the callbacks due now were delivered or have failed. */
  whenIdle(): Promise<void> {
    return this.#parts.callbacks.whenIdle();
  }

  /** The handsets with their last texts, the latest first. */
  handsets(query: HandsetQuery): { handsets: HandsetSummary[]; total: number } {
    return listHandsets(this.#parts.account, this.#parts.history, query);
  }

  /** The last messages of a handset as it shows them, oldest first. */
  texts(msisdn: string, limit: number): { texts: Text[] } {
    const messages = last(this.#parts.history.textsOf(msisdn), limit);
    return { texts: messages.map((message) => describeText(message, msisdn)) };
  }

  /** The newest requests, callbacks and e-mails, newest first, with secrets masked. */
  log(query: LogQuery): { entries: LogEntry[] } {
    return { entries: listLog({ requests: this.requests, callbacks: this.callbackLog, mails: this.mailbox }, query) };
  }

  /** Empties the log. */
  clearLog(): void {
    this.#parts.log.clear();
    this.#parts.callbacks.clearLog();
    this.#parts.changes.emit('cleared');
  }

  /** Empties all, and goes back to the settings of the start; polls that wait go on waiting. */
  reset(): void {
    const { account, callbacks, changes, exchange, faults, history, incoming, log, messaging, statuses } = this.#parts;
    for (const part of [account, callbacks, exchange, messaging, this.clock]) part.reset();
    for (const part of [faults, history, incoming, log, statuses]) part.clear();
    changes.emit('reset');
  }

  /** Money, limits and faults, without the address book. */
  describeSettings(): { account: Record<string, unknown> } & Record<string, unknown> {
    const { contacts: _, groups: __, ...account } = this.#parts.account.describe();
    return {
      account,
      faults: this.#parts.faults.describe(),
      online: this.#parts.listener.isOpen,
      now: new Date(this.clock.now()).toISOString(),
      dataProblem: this.#dataProblem,
    };
  }

  describeAddressBook(): { contacts: unknown; groups: unknown } {
    const { contacts, groups } = this.#parts.account.describe();
    return { contacts, groups };
  }

  /** The whole state as plain data, for the control API: the last `limit` of each list. */
  describe(limit: number): Record<string, unknown> {
    const { account, faults, listener } = this.#parts;
    return {
      baseUrl: this.baseUrl,
      online: listener.isOpen,
      dataProblem: this.#dataProblem,
      now: new Date(this.clock.now()).toISOString(),
      account: account.describe(),
      faults: faults.describe(),
      messages: last(this.messages, limit),
      incoming: last(this.incoming, limit),
      statuses: last(this.statuses, limit),
      requests: last(this.requests, limit),
      callbacks: last(this.callbackLog, limit),
      undelivered: last(this.undelivered, limit),
      mailbox: last(this.mailbox, limit),
    };
  }

  get #dataProblem(): string | null {
    return this.#parts.data?.problem ?? null;
  }

  /** Ends waits, timers, callbacks and connections at once. */
  async close(): Promise<void> {
    const { callbacks, data, incoming, listener, messaging, standby, statuses } = this.#parts;
    messaging.close();
    const closed = Promise.all([listener.close(), standby.close()]);
    incoming.release();
    statuses.release();
    await Promise.all([closed, callbacks.close()]);
    await data?.close();
  }
}

const organisationUrls = [
  ['callbackUrl', ['http:', 'https:', 'mailto:']],
  ['callbackStatusUrl', ['http:', 'https:']],
] as const;

function requireMsisdn(text: string): void {
  if (!isMsisdn(text)) throw new RangeError(`${text} is not a number in international format`);
}

function last<T>(records: readonly T[], limit: number): T[] {
  return limit === 0 ? [] : records.slice(-limit);
}
