import { type SmsError, Told } from '../errors';
import type { Endpoint } from '../polling/endpoint';
import type { Member } from './settings';

/** What the polling for reply requests, or for reports, needs of its account. */
export interface ReplyPollHost {
  /** Where replies, or statuses, come from. */
  readonly endpoint: Endpoint;
  /** In whose name to poll; `undefined`: nobody is here. */
  member(): Member | undefined;
  /** Polling fails for a node. Returns whether it is here to be told. */
  onFailing(node: string, error: SmsError): boolean;
  /** It works again, which one of these nodes is to log. */
  onRecovered(nodes: Iterable<string>): void;
}

/**
 * Has incoming messages polled while reply requests are open, and where people may opt out of what nodes send, as for nodes that receive them; or
 * statuses while reports are.
 */
export class ReplyPoll {
  readonly #host: ReplyPollHost;
  /** Those with open reply requests, or reports. */
  readonly #waiting = new Set<string>();
  /** Those whose recipients may opt out. */
  #listening: ReadonlySet<string> = new Set();
  /** Who knows that polling fails. They are told again only of what began after another answer. */
  readonly #told = new Told();
  #error: SmsError | undefined;
  /** Whether the service has failed since polling last worked, and not the store alone. */
  #hasServiceFailed = false;
  #unwatch: (() => void) | undefined;

  constructor(host: ReplyPollHost) {
    this.#host = host;
  }

  /** A node has reply requests, or reports, or has come to hear of failures; or it has none any more. */
  set(node: string, isWaiting: boolean): void {
    if (isWaiting) this.#waiting.add(node);
    else this.#waiting.delete(node);
    this.#watch();
  }

  /** These nodes, and no others, send to people who may opt out. */
  listen(nodes: ReadonlySet<string>): void {
    if (nodes.size === 0 && this.#listening.size === 0) return;
    this.#listening = nodes;
    this.#watch();
  }

  /** Whether polling fails. */
  get isFailing(): boolean {
    return this.#error !== undefined;
  }

  /** Whether a node has been told that polling fails for this reason, and it does still. */
  hasTold(node: string, { code }: SmsError): boolean {
    return this.#error?.code === code && this.#told.of(this.#host.endpoint.answers).has(node);
  }

  get #nodes(): ReadonlySet<string> {
    return new Set([...this.#waiting, ...this.#listening]);
  }

  #watch(): void {
    if (this.#nodes.size === 0) {
      this.rest();
      this.#told.clear();
      return;
    }
    const member = this.#host.member();
    if (!member) return;
    this.#unwatch ??= this.#host.endpoint.watch(member, {
      onState: (state) => {
        this.#error = state.name === 'failing' ? state.error : undefined;
        if (this.#error && this.#error.code !== 'SMS_STORE') this.#hasServiceFailed = true;
        this.#tell();
      },
      // Not each of them is here when it begins.
      onFailing() {},
      onRecovered: () => {
        if (this.#hasServiceFailed) this.#host.onRecovered(this.#nodes.keys());
        this.#hasServiceFailed = false;
      },
    });
    this.#tell();
  }

  /** Nobody is here in whose name to poll. Whoever comes back, as after a deployment, is not told again of the same failure. */
  rest(): void {
    this.#waiting.clear();
    this.#listening = new Set();
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#error = undefined;
  }

  #tell(): void {
    const { endpoint, onFailing } = this.#host;
    if (!this.#error) return;
    const told = this.#told.of(endpoint.answers);
    for (const node of this.#nodes) {
      if (!told.has(node) && onFailing(node, this.#error)) told.add(node);
    }
  }
}
