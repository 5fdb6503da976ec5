import type { Node, NodeAPI } from 'node-red';
import { type AccountSettings, type Clock, type Membership, SmsError, systemClock } from '../../src';
import { changedTopic } from './account-report';
import type { AccountCredentials } from './account-settings';
import { Flows } from './flows';

/** Settings in which the first deployed node of a login decides for all nodes of this login. */
export type AccountConnection = Partial<Pick<AccountSettings, 'proxy' | 'tls'>>;

/** The part of an `sms-account` node that other nodes use. */
export interface AccountNode extends Node<AccountCredentials> {
  /** Link to the account that all nodes of the same login share, or the reason why this node cannot be used. */
  membership: Membership | SmsError;
  /** Absent if the configuration is invalid. */
  connection?: AccountConnection;
  /** Whether the flows have started with this node. All nodes that use it have then joined its account. */
  hasStarted: boolean;
  /** Whether *Opt-out* is set. It then applies to all nodes of the account. */
  optOut: boolean;
  /** Maximum length of a body in characters. `undefined`: no limit. */
  maxLength: number | undefined;
  /** IANA name, for times without a zone. */
  timeZone: string;
  /** Tasks that nodes of this account must finish before the account node closes. */
  pendingTasks: Set<Promise<void>>;
}

/** An account node whose configuration is valid, so that it has joined its account. */
export type UsableAccount = AccountNode & { membership: Membership };

/**
 * Returns the account node that a node uses.
 *
 * @throws SmsError `SMS_CONFIG` if none is chosen or its configuration is invalid
 */
export function getAccount(RED: NodeAPI, id: string | undefined): UsableAccount {
  if (!id) throw new SmsError('noAccount');
  const node = RED.nodes.getNode(id) as AccountNode | null;
  if (node?.type !== 'sms-account') throw new SmsError('accountMissing');
  if (node.membership instanceof SmsError) throw node.membership;
  return node as UsableAccount;
}

/** The deployed account nodes, in the order of the flows. */
export class AccountNodes {
  readonly #flows: Flows;
  /**
   * Nodes by id. The value of a closed node is undefined, so that the node keeps its position if it is deployed again.
   */
  readonly #nodesById = new Map<string, AccountNode | undefined>();
  readonly #forgetClosed = () => {
    for (const [id, node] of this.#nodesById) if (!node) this.#nodesById.delete(id);
  };

  constructor(RED: Pick<NodeAPI, 'events' | 'nodes'>) {
    this.#flows = Flows.of(RED);
  }

  get(id: string): AccountNode | undefined {
    return this.#nodesById.get(id);
  }

  *values(): Iterable<AccountNode> {
    for (const node of this.#nodesById.values()) if (node) yield node;
  }

  add(node: AccountNode): void {
    this.#nodesById.set(node.id, node);
  }

  /**
   * Removes a closed node at the next start of the flows, if it is not deployed again. Until then, the node keeps its
   * position, because Node-RED does not report earlier whether a node in a subflow was removed.
   */
  remove(node: AccountNode): void {
    if (this.#nodesById.get(node.id) === node) this.#nodesById.set(node.id, undefined);
    this.#flows.onNextStart(this.#forgetClosed);
  }
}

/** Minimum delay between a change and its event, in ms. Later changes in this time share the event. */
const gatherMs = 100;
const pauseMs = 1_000;

/**
 * Notifies the editors at most once a second that an account has changed. The event has no content, because every user
 * who can see badges receives it. The sidebar reads the details with a separate permission.
 */
export class ChangeNotifier {
  readonly #RED: Pick<NodeAPI, 'comms'>;
  readonly #clock: Clock;
  #isDue = false;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(RED: Pick<NodeAPI, 'comms'>, clock = systemClock) {
    this.#RED = RED;
    this.#clock = clock;
  }

  /** Schedules an event about a possible change of an account, unless an event is already scheduled. */
  readonly notify = (): void => {
    if (this.#isDue) return;
    this.#isDue = true;
    const delayMs = Math.max(gatherMs, this.#lastAt + pauseMs - this.#clock.elapsed());
    this.#clock.after(delayMs, () => this.#publish(), true);
  };

  #publish(): void {
    this.#isDue = false;
    this.#lastAt = this.#clock.elapsed();
    this.#RED.comms.publish(changedTopic, {}, false);
  }
}
