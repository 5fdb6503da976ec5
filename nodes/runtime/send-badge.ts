import type { Node, NodeAPI, NodeStatus } from 'node-red';
import type { OutletState } from '../../src';
import { badges, endBadge } from './texts';

/** While messages are in flight, the badge changes no more often: every open editor is told of each change. */
const badgeIntervalMs = 20;

/** The badge of a sending node: what goes on, or else the last outcome. */
export class SendBadge {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  #state: OutletState = { sending: 0, waiting: 0, asking: 0 };
  #outcome: NodeStatus | undefined;
  #shown: NodeStatus | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(RED: NodeAPI, node: Node) {
    this.#RED = RED;
    this.#node = node;
  }

  /** Something has begun or ended. */
  showState(state: OutletState): void {
    const isFirst = this.#state.sending === 0 && state.sending > 0;
    this.#state = state;
    if (isFirst || state.outage) this.#show();
    else this.#showNext();
  }

  /** A text has ended. */
  showOutcome(badge: NodeStatus): void {
    this.#outcome = badge;
    this.#showNext();
  }

  /** The node is closed: what ends from now on shows no more. */
  close(): void {
    clearTimeout(this.#timer);
    endBadge(this.#node);
  }

  /** A failure shows as soon as nothing goes on, lest the next text comes before it. */
  #showNext(): void {
    if (this.#current || this.#outcome?.fill === 'green') this.#showSoon();
    else this.#show();
  }

  #showSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#show();
    }, badgeIntervalMs);
  }

  #show(): void {
    this.#set(this.#current?.() ?? this.#outcome ?? {});
  }

  /** How to say what goes on, if anything does: it changes more often than it is shown. */
  get #current(): (() => NodeStatus) | undefined {
    const { outage, sending, waiting, asking } = this.#state;
    if (outage) return () => badges.error(this.#RED, outage);
    if (sending > 0) return () => badges.sending(this.#RED, sending);
    if (waiting > 0) return () => badges.waitingTexts(this.#RED, waiting);
    return asking > 0 ? () => badges.asking(this.#RED, asking) : undefined;
  }

  #set(badge: NodeStatus): void {
    const { fill, shape, text } = badge;
    const shown = this.#shown;
    if (shown?.fill === fill && shown?.shape === shape && shown?.text === text) return;
    this.#shown = badge;
    this.#node.status(badge);
  }
}
