import type { Node } from 'node-red';

/** What an `sms-callback-in` node is to the other nodes. */
export interface CallbackNode extends Node<{ token?: string }> {
  /**
   * The full address that the service is to call, with the token; `undefined` when there is none that reaches it.
   *
   * @throws SmsError `SMS_CONFIG` when a variable of it is not set
   */
  callbackUrl(): string | undefined;
}

/** Says whether a node is an `sms-callback-in`. */
export function isCallbackNode(node: Node | null): node is CallbackNode {
  return node?.type === 'sms-callback-in';
}
