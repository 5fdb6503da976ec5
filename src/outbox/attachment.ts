import type { Clock } from '../clock';
import { UnderWay } from './counts';
import type { Outlet, SendingNode, SendRequest } from './outlet';

/** What ends texts of a node that is being closed. */
export interface StopSignals {
  /** What has not left does not leave any more. */
  signal: AbortSignal;
  /** What has left is not followed any longer. */
  giveUp: AbortSignal;
}

/** Requests that have left are followed for so long when the flow is stopped; Node-RED waits for 15 s. */
export const closeGraceMs = 10_000;

/** What an attachment does with what the node gives it. */
export interface AttachmentOptions {
  submit(request: SendRequest, from: Attachment): Promise<void>;
  onRefused(): void;
  /** The number of texts under way has changed. */
  onChanged(from: Attachment): void;
  onClosed(from: Attachment): void;
}

/** One sending node's part in the sending side of an account, from its start to its end. */
export class Attachment implements SendingNode {
  readonly outlet: Outlet;
  readonly #clock: Clock;
  readonly #submit: (request: SendRequest, from: Attachment) => Promise<void>;
  readonly #onClosed: () => void;
  readonly #onRefused: () => void;
  readonly #stop = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #running: UnderWay;

  constructor(outlet: Outlet, clock: Clock, options: AttachmentOptions) {
    this.outlet = outlet;
    this.#clock = clock;
    this.#submit = options.submit;
    this.#onClosed = () => options.onClosed(this);
    this.#onRefused = () => options.onRefused();
    this.#running = new UnderWay(() => options.onChanged(this));
  }

  get signals(): StopSignals {
    return { signal: this.#stop.signal, giveUp: this.#giveUp.signal };
  }

  /** Texts under way that are not kept. */
  get running(): number {
    return this.#running.size;
  }

  send(request: SendRequest): void {
    void this.#running.run(() => this.#submit(request, this));
  }

  countRefused(): void {
    this.#onRefused();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#onClosed();
    const timer = this.#clock.after(closeGraceMs, () => this.#giveUp.abort());
    await this.#running.idle();
    timer.cancel();
  }
}
