import type { Node, NodeAPI, NodeStatus } from 'node-red';
import type { SendHandlerState } from '../../src';
import { badges, endBadge } from './texts';

/** While messages are in flight, the badge changes no more often: every open editor is told of each change. */
const badgeIntervalMs = 20;

/** So long the outcome of a kept text may take, which is saved before it is told: until then the last one would be shown again. */
const outcomeFollowsMs = 250;

/** The badge of a sending node: what goes on, or else the last outcome. */
export class SendBadge {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  #state: SendHandlerState = { sending: 0, waiting: 0, asking: 0 };
  #outcome: (() => NodeStatus) | undefined;
  #isFailure = false;
  /** The outcome has not been shown yet. */
  #isNew = false;
  #shown: NodeStatus | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Nothing goes on, and it is not known how the last text has ended. */
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(RED: NodeAPI, node: Node) {
    this.#RED = RED;
    this.#node = node;
  }

  /** Something has begun or ended. */
  showState(state: SendHandlerState): void {
    const isFirst = this.#state.sending === 0 && state.sending > 0;
    this.#state = state;
    if (isFirst || state.outage) this.#show();
    else this.#showNext();
  }

  /**
   * A text has ended.
   *
   * @param create makes the badge; many texts end of which none is shown
   */
  showOutcome(create: () => NodeStatus, { isFailure }: { isFailure: boolean }): void {
    this.#outcome = create;
    this.#isFailure = isFailure;
    this.#isNew = true;
    this.#showNext();
  }

  /** The node is closed: what ends from now on shows no more. */
  close(): void {
    this.#cancel();
    endBadge(this.#node);
  }

  /** A failure shows as soon as nothing goes on, lest the next text comes before it. */
  #showNext(): void {
    const show = () => this.#show();
    if (!this.#current && !this.#isNew) {
      this.#cancel();
      this.#idleTimer = setTimeout(show, outcomeFollowsMs);
    } else if (this.#current || !this.#isFailure) {
      this.#timer ??= setTimeout(show, badgeIntervalMs);
    } else show();
  }

  #show(): void {
    this.#cancel();
    const current = this.#current?.();
    if (!current) this.#isNew = false;
    this.#set(current ?? this.#outcome?.() ?? {});
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#idleTimer);
    this.#timer = undefined;
  }

  /** How to say what goes on, if anything does: it changes more often than it is shown. */
  get #current(): (() => NodeStatus) | undefined {
    const { outage, sending, waiting, nextAt, asking } = this.#state;
    if (outage) return () => badges.outage(this.#RED, outage, waiting);
    if (sending > 0) return () => badges.sending(this.#RED, sending);
    if (waiting > 0 && nextAt !== undefined) return () => badges.waitingUntil(this.#RED, waiting, nextAt);
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
