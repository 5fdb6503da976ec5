import { type Account, isMsisdn } from './account';
import type { Callbacks } from './callbacks';
import type { Changes } from './changes';
import type { Clock } from './clock';
import type { Data } from './data';
import type { Faults } from './faults';
import { listHandsets, listTexts } from './handsets';
import type { History } from './history';
import type { Listener } from './listener';
import { type LogQuery, listLog } from './log';
import type { HandsetMessage, Messaging } from './messaging';
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
  ShownMessage,
  SimulatorState,
  StatusUpdate,
} from './model';
import type { RequestLog } from './request-log';
import type { UnreadQueue } from './unread';
import { isCallbackUrl } from './wire/callback-url';

/** The components of a simulator. */
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
  statuses: UnreadQueue<StatusUpdate>;
}

/** A running service. Its methods simulate the handsets, the network and the customer's web page. */
export class Simulator {
  readonly #parts: SimulatorParts;
  #outageEnd: NodeJS.Timeout | undefined;
  /** Resolves when the listener is open again after the last outage, or could not be opened. */
  #whenEnded: Promise<void> = Promise.resolve();

  constructor(parts: SimulatorParts) {
    this.#parts = parts;
  }

  /** Base URL of the service, without a trailing slash. */
  get baseUrl(): string {
    return `${this.#parts.listener.origin}${this.#parts.basePath}`;
  }

  /** Address of the simulator's web page. */
  get pageUrl(): string {
    return `${this.#parts.listener.origin}/`;
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

  /** All requests to the service, in the order in which they were completely received. Limited by `keepRequests`. */
  get requests(): LoggedRequest[] {
    return this.#parts.log.entries;
  }

  /** All accepted outbound messages, oldest first. `messages`, `incoming` and `statuses` are limited by `keepMessages`. */
  get messages(): OutboundMessage[] {
    return this.#parts.history.messages;
  }

  /** All incoming messages, oldest first. `read` says whether they were polled. */
  get incoming(): IncomingMessage[] {
    return this.#parts.history.incoming;
  }

  /** All status updates, oldest first. `read` says whether they were polled. */
  get statuses(): StatusUpdate[] {
    return this.#parts.history.statuses;
  }

  /** All completed attempts at http callbacks. Limited by `keepRequests`. */
  get callbackLog(): CallbackAttempt[] {
    return this.#parts.callbacks.log;
  }

  /** E-mails of mailto callbacks (§6.3). */
  get mailbox(): Mail[] {
    return this.#parts.callbacks.mailbox;
  }

  /** Returns the number of requests of an endpoint that are in flight. */
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

  /** Removes a name from the address book. */
  removeContact(name: string): void {
    this.#parts.account.removeContact(name);
    this.#parts.changes.emit('settings');
  }

  removeGroup(name: string): void {
    this.#parts.account.removeGroup(name);
    this.#parts.changes.emit('settings');
  }

  setBalance(balance: number): void {
    this.#parts.account.balance = balance;
    this.#parts.changes.emit('settings');
  }

  /** Sets the maximum number of recipients per UTC day of the clock. Infinity means no limit. */
  setDailyLimit(recipients: number): void {
    this.#parts.account.dailyLimit = recipients;
    this.#parts.changes.emit('settings');
  }

  /** Changes the settings that are present. A URL that is undefined, null or empty turns its callback off. */
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

  /**
   * Sets the result of the next message, instead of RCV (received). A result that was set by `setOutcome` takes
   * precedence. `BLOCKED` refuses the message as if the number were blocked.
   */
  setNextOutcome(statusCode: string | undefined): void {
    this.#parts.account.nextOutcome = statusCode;
    this.#parts.changes.emit('settings');
  }

  /**
   * Sets the result of every message to a handset, instead of RCV (received). `BLOCKED` refuses the messages because
   * the number is blocked. `undefined` restores the default.
   */
  setOutcome(msisdn: string, statusCode: string | undefined): void {
    this.#parts.account.setOutcome(msisdn, statusCode);
    this.#parts.changes.emit('settings');
  }

  /** Returns the accepted message with this messageId. If there are several, returns the last one. */
  find(messageId: string): OutboundMessage | undefined {
    return this.#parts.history.find(messageId);
  }

  /** Marks an outbound message as deleted (§2.4). */
  deleteMessage(messageId: string): void {
    const message = this.find(messageId);
    if (message === undefined) return;
    message.deleted = true;
    this.#parts.changes.emit('message');
  }

  /**
   * Sends a reply from a handset. By default, it answers the last message to the handset. Without such a message,
   * inReplyToId is `default`.
   */
  reply(message: HandsetMessage & { inReplyTo?: string }): IncomingMessage {
    return this.#parts.messaging.reply(message);
  }

  /** Sends a new message from a handset to one of the account's numbers. */
  receive(message: HandsetMessage & { to: string }): IncomingMessage {
    return this.#parts.messaging.receive(message);
  }

  /** Changes the status of a message at a handset. */
  status(change: { messageId: string; msisdn: string; statusCode: string; error?: string }): StatusUpdate {
    return this.#parts.messaging.status(change);
  }

  /** Activates a fault for the next `times` requests of an endpoint. `null` removes the fault. */
  fault(endpoint: Endpoint, fault: Fault | null, times = Number.POSITIVE_INFINITY): void {
    this.#parts.faults.set(endpoint, fault, times);
    this.#parts.changes.emit('settings');
  }

  /**
   * Closes the listening socket and every connection, or opens the socket again on the same port. Keeps everything
   * else.
   */
  async setOnline(online: boolean): Promise<void> {
    await (online ? this.#parts.listener.open() : this.#parts.listener.close());
    this.#parts.changes.emit('settings');
  }

  /**
   * Refuses every connection for some time. First sends the answers that are being written, because one of them might
   * be the answer to the control request that started the outage.
   *
   * @param seconds real time, at least 1
   */
  startOutage(seconds: number): void {
    clearTimeout(this.#outageEnd);
    const end = (): void => {
      // If the port cannot be opened, e.g. because another program uses it, tries again after 1 s.
      this.#whenEnded = this.setOnline(true).catch(() => this.startOutage(1));
    };
    this.#outageEnd = setTimeout(end, seconds * 1000);
    setImmediate(() => void this.setOnline(false));
  }

  /** Moves the clock forward by `ms` and runs everything that becomes due. */
  async advanceClock(ms: number): Promise<void> {
    await this.clock.advance(ms);
    this.#parts.changes.emit('settings');
  }

  /** Calls `listener` immediately after every state change. Returns a function that removes the listener. */
  on(_event: 'change', listener: (change: Change) => void): () => void {
    return this.#parts.changes.listen(listener);
  }

  /** Resolves as soon as `isTrue` returns true, now or after a change. Rejects after `timeoutMs` of real time. */
  until(isTrue: () => boolean, timeoutMs = 10_000): Promise<void> {
    return this.#parts.changes.until(isTrue, timeoutMs);
  }

  /** Resolves when all callbacks that are due were delivered or have failed. */
  whenIdle(): Promise<void> {
    return this.#parts.callbacks.whenIdle();
  }

  /** Returns the last `limit` handsets: those of the address book come first, then all others with messages. */
  handsets(limit: number): { handsets: HandsetSummary[] } {
    return { handsets: listHandsets(this.#parts.account, this.#parts.history, limit) };
  }

  /** Returns the last messages of a handset as the handset shows them, oldest first. */
  texts(msisdn: string, limit: number): { texts: ShownMessage[] } {
    return { texts: listTexts(this.#parts.history, msisdn, limit) };
  }

  /** Returns the newest requests, callbacks and e-mails, newest first, with secrets masked. */
  log(query: LogQuery): { entries: LogEntry[] } {
    return { entries: listLog({ requests: this.requests, callbacks: this.callbackLog, mails: this.mailbox }, query) };
  }

  clearLog(): void {
    this.#parts.log.clear();
    this.#parts.callbacks.clearLog();
    this.#parts.changes.emit('cleared');
  }

  /** Clears everything and restores the initial settings. Waiting polls continue to wait. */
  reset(): void {
    const { account, callbacks, changes, exchange, faults, history, incoming, log, messaging, statuses } = this.#parts;
    for (const part of [account, callbacks, exchange, messaging, this.clock]) part.reset();
    for (const part of [faults, history, incoming, log, statuses]) part.clear();
    changes.emit('reset');
  }

  /** Describes the whole state as plain data, with the last `limit` entries of each list. */
  describe(limit: number): SimulatorState {
    return {
      baseUrl: this.baseUrl,
      credentials: this.credentials,
      account: this.#parts.account.describe(),
      faults: this.#parts.faults.describe(),
      now: new Date(this.clock.now()).toISOString(),
      dataProblem: this.#parts.data?.problem ?? null,
      messages: this.messages.slice(-limit),
      incoming: this.incoming.slice(-limit),
      statuses: this.statuses.slice(-limit),
      requests: this.requests.slice(-limit),
      callbacks: this.callbackLog.slice(-limit),
      mailbox: this.mailbox.slice(-limit),
    };
  }

  /** Ends all waits, timers, callbacks and connections immediately. */
  async close(): Promise<void> {
    const { callbacks, data, incoming, listener, messaging, statuses } = this.#parts;
    // Waits for the end of an outage, which would otherwise open the listener again after the close.
    await this.#whenEnded;
    clearTimeout(this.#outageEnd);
    messaging.close();
    const whenClosed = listener.close();
    incoming.release();
    statuses.release();
    await Promise.all([whenClosed, callbacks.close()]);
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
