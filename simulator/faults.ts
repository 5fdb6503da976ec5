import type { Endpoint, Fault, SimulatorState } from './model';

/** The active faults, at most one per endpoint. */
export class Faults {
  readonly #active = new Map<Endpoint, { fault: Fault; requestsLeft: number }>();

  /** Activates a fault for the next `times` requests. `null` removes the fault. */
  set(endpoint: Endpoint, fault: Fault | null, times: number): void {
    if (fault === null || times <= 0) this.#active.delete(endpoint);
    else this.#active.set(endpoint, { fault, requestsLeft: times });
  }

  clear(): void {
    this.#active.clear();
  }

  /** Returns the fault for a new request, and counts the request. */
  take(endpoint: Endpoint): Fault | undefined {
    const activeFault = this.#active.get(endpoint);
    if (activeFault === undefined) return undefined;
    activeFault.requestsLeft -= 1;
    if (activeFault.requestsLeft <= 0) this.#active.delete(endpoint);
    return activeFault.fault;
  }

  describe(): SimulatorState['faults'] {
    return Object.fromEntries(
      [...this.#active].map(([endpoint, { fault, requestsLeft }]) => [
        endpoint,
        { fault, left: Number.isFinite(requestsLeft) ? requestsLeft : null },
      ]),
    );
  }
}
