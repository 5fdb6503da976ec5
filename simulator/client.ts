import type { HandsetQuery } from './handsets';
import type { LogQuery } from './log';
import type { HandsetMessage } from './messaging';
import type {
  CallbackFormat,
  Endpoint,
  Fault,
  HandsetSummary,
  IncomingMessage,
  LogEntry,
  OutboundMessage,
  ShownMessage,
  StatusUpdate,
} from './model';

const retryMs = 25;

/** The state of the simulator: its settings, and the last entries of its lists of messages and requests. */
export interface SimulatorState {
  baseUrl: string;
  /** Whether the service accepts connections. */
  online: boolean;
  /**
   * Why the last changes could not be written to the data folder. `null` if they were written, or there is no data
   * folder.
   */
  dataProblem: string | null;
  /** ISO 8601 UTC, by the simulator's clock. */
  now: string;
  account: Record<string, unknown>;
  faults: Partial<Record<Endpoint, { fault: Fault; left: number | null }>>;
  messages: OutboundMessage[];
  incoming: IncomingMessage[];
  statuses: StatusUpdate[];
}

/** The control interface of a simulator in another process, as methods. */
export class SimulatorClient {
  #control: string;

  /** @param pageUrl address of the simulator's page, e.g. `http://127.0.0.1:8025/` */
  constructor(pageUrl: string) {
    this.#control = new URL('/control/', pageUrl).href;
  }

  /** Returns the state with the last `limit` entries of each list. Default: 100. */
  state(limit?: number): Promise<SimulatorState> {
    return this.#read('state', { limit });
  }

  /** Returns the handsets with their last messages, the latest first. */
  handsets(query: Partial<HandsetQuery> = {}): Promise<{ handsets: HandsetSummary[]; total: number }> {
    return this.#read('handsets', query);
  }

  /** Returns the last messages of a handset as the handset shows them, oldest first. Default limit: 100. */
  texts(msisdn: string, limit?: number): Promise<{ texts: ShownMessage[] }> {
    return this.#read('texts', { msisdn, limit });
  }

  /** Returns the newest requests, callbacks and e-mails, newest first. Default limit: 100 entries. */
  log(query: Partial<LogQuery> = {}): Promise<{ entries: LogEntry[] }> {
    return this.#read('log', query);
  }

  /** Sends a reply from a handset. By default, it answers the last message to the handset. */
  reply(message: HandsetMessage & { inReplyTo?: string }): Promise<IncomingMessage> {
    return this.#do('reply', message);
  }

  /** Sends a new message from a handset to one of the account's numbers. */
  receive(message: HandsetMessage & { to: string }): Promise<IncomingMessage> {
    return this.#do('receive', message);
  }

  /** Changes the status of a message at a handset. */
  status(change: { messageId: string; msisdn: string; statusCode: string; error?: string }): Promise<StatusUpdate> {
    return this.#do('status', change);
  }

  /** Activates a fault for the next `times` requests of an endpoint, or for all requests. `null` removes the fault. */
  async fault(endpoint: Endpoint, fault: Fault | null, times?: number): Promise<void> {
    await this.#do('fault', { endpoint, fault, times });
  }

  /**
   * Sets the result of the next message for all its recipients, instead of RCV (received). `BLOCKED` refuses the
   * message as if the number were blocked.
   */
  async setNextOutcome(statusCode: string | undefined): Promise<void> {
    await this.#do('outcome', { statusCode: statusCode ?? null });
  }

  /** Sets the result of every message to a handset, instead of RCV (received). `undefined` restores the default. */
  async setOutcome(msisdn: string, statusCode: string | undefined): Promise<void> {
    await this.#do('outcome', { msisdn, statusCode: statusCode ?? null });
  }

  /**
   * Starts or ends an outage. During an outage, the service refuses every connection. The control interface then has
   * another port, which this client uses automatically.
   */
  async setOutage(on: boolean): Promise<void> {
    const { pageUrl } = await this.#do<{ pageUrl: string }>('outage', { on });
    const controlUrl = new URL(this.#control);
    controlUrl.port = new URL(pageUrl).port;
    this.#control = controlUrl.href;
  }

  /** Moves the simulator's clock forward. */
  async advanceClock(ms: number): Promise<void> {
    await this.#do('clock', { advanceMs: ms });
  }

  async setBalance(balance: number): Promise<void> {
    await this.#do('balance', { balance });
  }

  /** Sets the maximum number of recipients per day. `null` means no limit. */
  async setDailyLimit(dailyLimit: number | null): Promise<void> {
    await this.#do('daily-limit', { dailyLimit });
  }

  /** Changes the settings that are present. `null` turns a callback off. */
  async setOrganisation(settings: {
    callbackUrl?: string | null;
    callbackStatusUrl?: string | null;
    callbackFormat?: CallbackFormat;
  }): Promise<void> {
    await this.#do('organisation', settings);
  }

  async addContact(name: string, msisdn: string): Promise<void> {
    await this.#do('contacts', { name, msisdn });
  }

  /** @param contacts names of contacts, or numbers */
  async addGroup(name: string, contacts: readonly string[]): Promise<void> {
    await this.#do('groups', { name, contacts });
  }

  /** Blocks a number, so that messages to it are refused, or unblocks it. */
  async block(msisdn: string, blocked = true): Promise<void> {
    await this.#do('block', { msisdn, blocked });
  }

  /** Clears everything and restores the initial settings. */
  async reset(): Promise<void> {
    await this.#do('reset', {});
  }

  /**
   * Calls `look` repeatedly until it returns a value, and returns the value.
   *
   * @param look reads the simulator; returns undefined, null or false until there is a value
   * @param timeoutMs maximum wait in ms; after it, the method rejects with an error that contains the source of `look`
   */
  async until<T>(look: (simulator: this) => Promise<T | undefined | null | false>, timeoutMs = 10_000): Promise<T> {
    const end = Date.now() + timeoutMs;
    for (;;) {
      const value = await look(this);
      if (value !== undefined && value !== null && value !== false) return value;
      if (Date.now() >= end)
        throw new Error(`The simulator did not reach the expected state in ${timeoutMs} ms: ${look.toString()}`);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  #read<T>(path: string, query: object): Promise<T> {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) params.append(name, String(value));
    return this.#ask(`${path}?${params}`);
  }

  #do<T>(action: string, input: object): Promise<T> {
    return this.#ask(action, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    });
  }

  async #ask<T>(path: string, options?: RequestInit): Promise<T> {
    const { origin } = new URL(this.#control);
    const response = await fetch(this.#control + path, options).catch((cause: unknown) => {
      throw new Error(`No simulator answers at ${origin}. Start one, or give the address of its page.`, { cause });
    });
    const answer = await response.json().catch((cause: unknown) => {
      throw new Error(`The server at ${origin} is not a simulator. Give the address of its page.`, { cause });
    });
    if (!response.ok) throw new Error((answer as { error: string }).error);
    return answer as T;
  }
}

/**
 * Creates a client for a simulator that is already running. If the simulator refuses a call, the method rejects with
 * its error message.
 * @param pageUrl address of the simulator's page; the default is where `npx @messaging-service/node-red-sms` runs it
 *
 * @example
 * ```ts
 * import { connectSimulator, startSimulator } from '@messaging-service/node-red-sms/simulator';
 *
 * const started = await startSimulator();
 * const simulator = connectSimulator(started.pageUrl);
 * await simulator.receive({ from: '6421555123', to: '642100000001', body: 'Hello' });
 * console.log((await simulator.handsets()).total);
 * await started.close();
 * ```
 */
export function connectSimulator(pageUrl = 'http://127.0.0.1:8025/'): SimulatorClient {
  return new SimulatorClient(pageUrl);
}
