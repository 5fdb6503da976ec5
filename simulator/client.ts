import type { HandsetSummary, LogEntry, ShownMessage, SimulatorState } from './model';

const retryMs = 25;

/** The paths that a client can read, each with the type of its answer. */
export interface SimulatorViews {
  state: SimulatorState;
  handsets: { handsets: HandsetSummary[] };
  texts: { texts: ShownMessage[] };
  log: { entries: LogEntry[] };
}

/** The control interface of a simulator in another process. If the simulator refuses a call, the method rejects. */
export class SimulatorClient {
  readonly #pageUrl: string;

  /** @param pageUrl address of the simulator's page, e.g. `http://127.0.0.1:8025/` */
  constructor(pageUrl: string) {
    this.#pageUrl = pageUrl;
  }

  /** Reads a path of the control interface, e.g. `read('texts', { msisdn: '6421555123' })`. */
  read<V extends keyof SimulatorViews>(
    path: V,
    parameters: Readonly<Record<string, string | number>> = {},
  ): Promise<SimulatorViews[V]> {
    const query = Object.entries(parameters).map(([name, value]) => [name, String(value)]);
    return this.#ask(`${path}?${new URLSearchParams(query)}`);
  }

  /** Changes the simulator, e.g. `change('outcome', { msisdn: '6421555123', statusCode: 'NRCV' })`. */
  change<T = unknown>(path: string, fields: object = {}): Promise<T> {
    return this.#ask(path, { method: 'POST', body: JSON.stringify(fields) });
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

  async #ask<T>(path: string, options?: RequestInit): Promise<T> {
    const { origin, href } = new URL(`/control/${path}`, this.#pageUrl);
    const response = await fetch(href, options).catch((cause: unknown) => {
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
 * Creates a client for a simulator that is already running.
 * @param pageUrl address of the simulator's page; the default is where `npx @messaging-service/node-red-sms` runs it
 *
 * @example
 * ```ts
 * import { connectSimulator, startSimulator } from '@messaging-service/node-red-sms/simulator';
 *
 * const started = await startSimulator();
 * const simulator = connectSimulator(started.pageUrl);
 * await simulator.change('receive', { from: '6421555123', to: '642100000001', body: 'Hello' });
 * console.log((await simulator.read('texts', { msisdn: '6421555123' })).texts);
 * await started.close();
 * ```
 */
export function connectSimulator(pageUrl = 'http://127.0.0.1:8025/'): SimulatorClient {
  return new SimulatorClient(pageUrl);
}
