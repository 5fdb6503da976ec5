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
    else this.#showSoon();
  }

  /** A text has ended; a failure shows for a moment in any case. */
  showOutcome(badge: NodeStatus): void {
    this.#outcome = badge;
    if (badge.fill !== 'green') this.#set(badge);
    this.#showSoon();
  }

  /** The node is closed: what ends from now on shows no more. */
  close(): void {
    clearTimeout(this.#timer);
    endBadge(this.#node);
  }

  #showSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#show();
    }, badgeIntervalMs);
  }

  #show(): void {
    const { outage, sending, waiting, asking } = this.#state;
    if (outage) this.#set(badges.error(this.#RED, outage));
    else if (sending > 0) this.#set(badges.sending(this.#RED, sending));
    else if (waiting > 0) this.#set(badges.waitingTexts(this.#RED, waiting));
    else if (asking > 0) this.#set(badges.asking(this.#RED, asking));
    else if (this.#outcome) this.#set(this.#outcome);
  }

  #set(badge: NodeStatus): void {
    const { fill, shape, text } = badge;
    const shown = this.#shown;
    if (shown?.fill === fill && shown?.shape === shape && shown?.text === text) return;
    this.#shown = badge;
    this.#node.status(badge);
  }
}
