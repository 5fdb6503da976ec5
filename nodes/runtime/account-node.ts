import type { Node, NodeAPI } from 'node-red';
import { type AccountSettings, type Clock, type Membership, SmsError, systemClock } from '../../src';
import { changedTopic } from './account-report';
import type { AccountCredentials } from './account-settings';
import { Flows } from './flows';

/** Settings of which those of the first deployed node of a login apply. */
export type AccountConnection = Partial<Pick<AccountSettings, 'proxy' | 'tls'>>;

/** What an `sms-account` node is to the other nodes. */
export interface AccountNode extends Node<AccountCredentials> {
  /** The part in the account, or why there is none. */
  membership: Membership | SmsError;
  /** Absent if the configuration cannot be used. */
  connection?: AccountConnection;
  /** The flows have started with it, so that nodes have asked for what it keeps. */
  hasStarted: boolean;
  /** Who has opted out is not sent to, with whichever node on its login. */
  optOut: boolean;
  /** Longest body in characters, `undefined` for no limit. */
  maxLength: number | undefined;
  /** IANA name, for times without a zone. */
  timeZone: string;
  /** What nodes that are stopped with it have still to hand over. */
  awaited: Set<Promise<void>>;
}

/** An account that can be used. */
export type UsableAccount = AccountNode & { membership: Membership };

/**
 * Finds the account of a node.
 *
 * @throws SmsError `SMS_CONFIG` when none is chosen or its configuration cannot be used
 */
export function getAccount(RED: NodeAPI, id: string | undefined): UsableAccount {
  if (!id) throw new SmsError('noAccount');
  const node = RED.nodes.getNode(id) as AccountNode | null;
  if (node?.type !== 'sms-account') throw new SmsError('accountMissing');
  if (node.membership instanceof SmsError) throw node.membership;
  return node as UsableAccount;
}

/** The account nodes that run, in the order of the flows. */
export class AccountNodes {
  readonly #flows: Flows;
  /** By id; without a node while it is closed and may come back. */
  readonly #places = new Map<string, AccountNode | undefined>();
  readonly #forgetClosed = () => {
    for (const [id, node] of this.#places) if (!node) this.#places.delete(id);
  };

  constructor(RED: Pick<NodeAPI, 'events' | 'nodes'>) {
    this.#flows = Flows.of(RED);
  }

  get(id: string): AccountNode | undefined {
    return this.#places.get(id);
  }

  *values(): Iterable<AccountNode> {
    for (const node of this.#places.values()) if (node) yield node;
  }

  enter(node: AccountNode): void {
    this.#places.set(node.id, node);
  }

  /**
   * The node is closed. When it is back by the time that the flows have started, it has its place again: Node-RED itself does not
   * say of a node in a subflow whether it was removed.
   */
  leave(node: AccountNode): void {
    if (this.#places.get(node.id) === node) this.#places.set(node.id, undefined);
    this.#flows.onNextStart(this.#forgetClosed);
  }
}

/** What comes at the same time is told at once. */
const gatherMs = 100;
const pauseMs = 1_000;

/**
 * Tells the editors that something has changed in an account, once a second at most. Not what: everybody who may see
 * badges is told, and who may know more asks for it.
 */
export class AccountNews {
  readonly #RED: Pick<NodeAPI, 'comms'>;
  readonly #clock: Clock;
  #isDue = false;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(RED: Pick<NodeAPI, 'comms'>, clock = systemClock) {
    this.#RED = RED;
    this.#clock = clock;
  }

  /** To be called whenever anything may have changed: it costs nothing while word of it is due. */
  readonly changed = (): void => {
    if (this.#isDue) return;
    this.#isDue = true;
    const delayMs = Math.max(gatherMs, this.#lastAt + pauseMs - this.#clock.elapsed());
    this.#clock.after(delayMs, () => this.#tell(), true);
  };

  #tell(): void {
    this.#isDue = false;
    this.#lastAt = this.#clock.elapsed();
    this.#RED.comms.publish(changedTopic, {}, false);
  }
}
