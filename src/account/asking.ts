import type { Endpoints } from './endpoints';
import type { Member } from './member';

/** Has incoming messages polled while questions are open, as for a node that receives them. */
export class Asking {
  readonly #endpoints: Endpoints;
  readonly #member: () => Member | undefined;
  #unwatch: (() => void) | undefined;

  /** @param member in whose name to poll */
  constructor(endpoints: Endpoints, member: () => Member | undefined) {
    this.#endpoints = endpoints;
    this.#member = member;
  }

  set(isAsking: boolean): void {
    if (!isAsking) {
      this.#unwatch?.();
      this.#unwatch = undefined;
      return;
    }
    const member = this.#member();
    if (this.#unwatch || !member) return;
    // The sending node has no badge for a loop; those that receive tell of its failures.
    this.#unwatch = this.#endpoints.of('incoming').watch(member, { onState() {}, onFailing() {}, onRecovered() {} });
  }
}
