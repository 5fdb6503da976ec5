import type { Changes } from './changes';
import { addBounded } from './keys';
import type { Endpoint, LoggedRequest } from './model';

/**
 * Requests to the service, and the number of requests in flight per endpoint. The log is limited, and the oldest
 * entries are removed first.
 */
export class RequestLog {
  readonly entries: LoggedRequest[] = [];
  readonly #inFlight = new Map<Endpoint, number>();
  readonly #keep: number;
  readonly #changes: Changes;

  constructor(keep: number, changes: Changes) {
    this.#keep = keep;
    this.#changes = changes;
  }

  inFlight(endpoint: Endpoint): number {
    return this.#inFlight.get(endpoint) ?? 0;
  }

  begin(entry: LoggedRequest): void {
    addBounded(this.entries, entry, this.#keep);
    this.#count(entry.endpoint, 1);
    this.#changes.emit('request');
  }

  finish(entry: LoggedRequest): void {
    this.#count(entry.endpoint, -1);
    this.#changes.emit('request');
  }

  /** Clears the entries. Requests in flight are still counted. */
  clear(): void {
    this.entries.length = 0;
  }

  #count(endpoint: Endpoint | undefined, by: 1 | -1): void {
    if (endpoint !== undefined) this.#inFlight.set(endpoint, this.inFlight(endpoint) + by);
  }
}
