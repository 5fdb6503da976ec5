import { Notices, type SmsError } from '../errors';
import type { Endpoint } from '../polling/endpoint';
import type { Member } from './settings';

/** The part of an account that a {@link ReplyPoll} uses. */
export interface ReplyPollHost {
  /** Endpoint of replies or statuses. */
  readonly endpoint: Endpoint;
  /** Returns the member that polls, or `undefined` if no member is deployed. */
  member(): Member | undefined;
  /** Reports a polling failure to a node. Returns whether the node is deployed. */
  onFailing(node: string, error: SmsError): boolean;
  /** Called when polling works again. One of the nodes logs this. */
  onRecovered(nodes: Iterable<string>): void;
}

/**
 * Polls one endpoint while sending nodes need it: incoming messages while reply requests are open or a node uses
 * opt-outs, or statuses while delivery reports are awaited.
 */
export class ReplyPoll {
  readonly #host: ReplyPollHost;
  /** Nodes that wait for replies or, if this polls statuses, for delivery reports. */
  readonly #waitingNodes = new Set<string>();
  /**
   * Nodes that use opt-outs. They need polls of incoming messages at all times, because a recipient can opt out at any
   * time.
   */
  #listeningNodes: ReadonlySet<string> = new Set();
  /**
   * Nodes that received an error about a failure. They receive another error only if the service has answered a poll
   * since, or if no node needed polls for a time.
   */
  readonly #notices = new Notices();
  #error: SmsError | undefined;
  /** Whether the service itself has failed since polling last worked. False if only the store has failed. */
  #hasServiceFailed = false;
  #unwatch: (() => void) | undefined;

  constructor(host: ReplyPollHost) {
    this.#host = host;
  }

  /** Notes whether a node waits for replies or delivery reports. */
  setWaiting(node: string, isWaiting: boolean): void {
    if (isWaiting) this.#waitingNodes.add(node);
    else this.#waitingNodes.delete(node);
    this.#watch();
  }

  /** Sets the nodes that use opt-outs. */
  listen(nodes: ReadonlySet<string>): void {
    if (nodes.size === 0 && this.#listeningNodes.size === 0) return;
    this.#listeningNodes = nodes;
    this.#watch();
  }

  /** Whether the poll loop is in the state `failing`. */
  get isFailing(): boolean {
    return this.#error !== undefined;
  }

  /** Returns whether a node received an error about the current failure. */
  hasNotified(node: string, { code }: SmsError): boolean {
    return this.#error?.code === code && this.#notices.of(this.#host.endpoint.answers).has(node);
  }

  get #nodes(): ReadonlySet<string> {
    return new Set([...this.#waitingNodes, ...this.#listeningNodes]);
  }

  #watch(): void {
    if (this.#nodes.size === 0) {
      this.stop();
      this.#notices.clear();
      return;
    }
    const member = this.#host.member();
    if (!member) return;
    this.#unwatch ??= this.#host.endpoint.watch(member, {
      onState: (state) => {
        this.#error = state.name === 'failing' ? state.error : undefined;
        if (this.#error && this.#error.code !== 'SMS_STORE') this.#hasServiceFailed = true;
        this.#report();
      },
      // Does nothing, because failures are reported to each node separately.
      onFailing() {},
      onRecovered: () => {
        if (this.#hasServiceFailed) this.#host.onRecovered(this.#nodes.keys());
        this.#hasServiceFailed = false;
      },
    });
    this.#report();
  }

  /** Stops polling. When polling starts again, the nodes do not receive a second error about the same failure. */
  stop(): void {
    this.#waitingNodes.clear();
    this.#listeningNodes = new Set();
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#error = undefined;
  }

  #report(): void {
    const { endpoint, onFailing } = this.#host;
    if (!this.#error) return;
    const notices = this.#notices.of(endpoint.answers);
    for (const node of this.#nodes) {
      if (!notices.has(node) && onFailing(node, this.#error)) notices.add(node);
    }
  }
}
