import type { Endpoint, Fault } from './model';

/** The active faults, at most one per endpoint. */
export class Faults {
  readonly #active = new Map<Endpoint, { fault: Fault; left: number }>();

  /** Activates a fault for the next `times` requests. `null` removes the fault. */
  set(endpoint: Endpoint, fault: Fault | null, times: number): void {
    if (fault === null || times <= 0) this.#active.delete(endpoint);
    else this.#active.set(endpoint, { fault, left: times });
  }

  clear(): void {
    this.#active.clear();
  }

  /** Returns the fault for a new request, and counts the request. */
  take(endpoint: Endpoint): Fault | undefined {
    const active = this.#active.get(endpoint);
    if (active === undefined) return undefined;
    active.left -= 1;
    if (active.left <= 0) this.#active.delete(endpoint);
    return active.fault;
  }

  /** Describes active faults for the control API. `left` is null if a fault does not end. */
  describe(): Record<string, { fault: Fault; left: number | null }> {
    return Object.fromEntries(
      [...this.#active].map(([endpoint, { fault, left }]) => [
        endpoint,
        { fault, left: Number.isFinite(left) ? left : null },
      ]),
    );
  }
}
