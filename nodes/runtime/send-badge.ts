import type { Node, NodeStatus } from 'node-red';
import type { SendHandlerState } from '../../src';
import { badges, endBadge } from './badges';

/**
 * Minimum time in ms between badge changes while messages are in flight. Limits the traffic, because every open editor
 * receives each change.
 */
const badgeIntervalMs = 20;

/**
 * Pause in ms between the end of the last send and the next badge. The outcome follows the end of the send, because it
 * is stored first. It usually arrives during this pause. Without the pause, the badge would briefly show the previous
 * outcome.
 */
const outcomeFollowsMs = 250;

/** The badge of a sending node: its current activity, or else its last outcome. */
export class SendBadge {
  readonly #node: Node;
  #state: SendHandlerState = { sending: 0, waiting: 0, awaitingReply: 0 };
  #outcome: (() => NodeStatus) | undefined;
  #isFailure = false;
  /** Whether the latest outcome still has to be shown. */
  #isNew = false;
  #shownBadge: NodeStatus | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Delays the next badge after the last send has ended (see {@link outcomeFollowsMs}). */
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(node: Node) {
    this.#node = node;
  }

  showState(state: SendHandlerState): void {
    const isFirst = this.#state.sending === 0 && state.sending > 0;
    this.#state = state;
    if (isFirst || state.outage) this.#show();
    else this.#showNext();
  }

  /** @param create creates the badge; called only if the outcome is shown */
  showOutcome(create: () => NodeStatus, { isFailure }: { isFailure: boolean }): void {
    this.#outcome = create;
    this.#isFailure = isFailure;
    this.#isNew = true;
    this.#showNext();
  }

  /** Removes the badge of a closed node. Later changes do not show a badge again. */
  close(): void {
    this.#cancel();
    endBadge(this.#node);
  }

  /**
   * Shows the next badge after a short pause. If no message is in flight, shows a failure immediately, because the next
   * message could hide it.
   */
  #showNext(): void {
    const show = () => this.#show();
    if (!this.#createCurrentBadge && !this.#isNew) {
      this.#cancel();
      this.#idleTimer = setTimeout(show, outcomeFollowsMs);
    } else if (this.#createCurrentBadge || !this.#isFailure) {
      this.#timer ??= setTimeout(show, badgeIntervalMs);
    } else show();
  }

  #show(): void {
    this.#cancel();
    const currentBadge = this.#createCurrentBadge?.();
    if (!currentBadge) this.#isNew = false;
    this.#setBadge(currentBadge ?? this.#outcome?.() ?? {});
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#idleTimer);
    this.#timer = undefined;
  }

  /** Returns a function that creates the badge of the current activity. Returns `undefined` if the node is idle. */
  get #createCurrentBadge(): (() => NodeStatus) | undefined {
    const { outage, sending, waiting, nextAt, awaitingReply } = this.#state;
    if (outage) return () => badges.outage(outage, waiting);
    if (sending > 0) return () => badges.sending(sending);
    if (waiting > 0 && nextAt !== undefined) return () => badges.waitingUntil(waiting, nextAt);
    if (waiting > 0) return () => badges.waitingMessages(waiting);
    return awaitingReply > 0 ? () => badges.awaitingReply(awaitingReply) : undefined;
  }

  #setBadge(badge: NodeStatus): void {
    const { fill, shape, text } = badge;
    const shownBadge = this.#shownBadge;
    if (shownBadge?.fill === fill && shownBadge?.shape === shape && shownBadge?.text === text) return;
    this.#shownBadge = badge;
    this.#node.status(badge);
  }
}
