import type { Endpoint, Fault } from './model';

/** The faults that are switched on, one per endpoint at most. */
export class Faults {
  readonly #active = new Map<Endpoint, { fault: Fault; left: number }>();

  /** Switches a fault on for the next `times` requests; null switches it off. */
  set(endpoint: Endpoint, fault: Fault | null, times: number): void {
    if (fault === null || times <= 0) this.#active.delete(endpoint);
    else this.#active.set(endpoint, { fault, left: times });
  }

  clear(): void {
    this.#active.clear();
  }

  /** The fault for a request that has just come; it counts as one time. */
  take(endpoint: Endpoint): Fault | undefined {
    const active = this.#active.get(endpoint);
    if (active === undefined) return undefined;
    active.left -= 1;
    if (active.left <= 0) this.#active.delete(endpoint);
    return active.fault;
  }

  /** Describes active faults for the control API. `left` is null if a fault has no end. */
  describe(): Record<string, { fault: Fault; left: number | null }> {
    return Object.fromEntries(
      [...this.#active].map(([endpoint, { fault, left }]) => [
        endpoint,
        { fault, left: Number.isFinite(left) ? left : null },
      ]),
    );
  }
}
