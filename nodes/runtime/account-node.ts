import type { Node, NodeAPI } from 'node-red';
import { type Membership, SmsError } from '../../src';
import type { AccountCredentials } from './account-settings';

/** What an `sms-account` node is to the other nodes. */
export interface AccountNode extends Node<AccountCredentials> {
  /** The part in the account, or why there is none. */
  membership: Membership | SmsError;
  /** The flows have started with it, so that nodes have asked for what it keeps. */
  hasStarted: boolean;
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
