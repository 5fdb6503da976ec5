import type { Node, NodeAPI } from 'node-red';
import { SmsError } from '../../src';
import { addToken, isPath, isPublicUrl, joinCallbackUrl, normalisePath, parsePath } from './callback-path';
import { Flows } from './flows';
import { parseText } from './settings';

/** An `sms-callback-in` node, as other nodes see it. */
export interface CallbackNode extends Node<{ token?: string }> {
  /**
   * Returns the full address that the service calls, with the token. `undefined`: the node has no usable address.
   *
   * @throws SmsError `SMS_CONFIG` if an environment variable of the node is not set, or another node has its path
   */
  callbackUrl(): string | undefined;
}

/** Says whether a node is an `sms-callback-in`. */
export function isCallbackNode(node: Node | null): node is CallbackNode {
  return node?.type === 'sms-callback-in';
}

/**
 * Reads a path from the configuration of a node, with a leading slash.
 *
 * @throws SmsError `SMS_CONFIG` if an environment variable is not set
 */
export function parseCallbackPath(value: unknown): string | undefined {
  const path = parsePath(parseText('path', value));
  // Also refuses `/${NAME}`, because Node-RED does not replace a variable after a slash.
  parseText('path', path?.slice(1));
  return path;
}

/**
 * Reads the token. `undefined`: requests need no token.
 *
 * @throws SmsError `SMS_CONFIG` if the token is an environment variable that is not set
 */
export function parseToken(value: unknown): string | undefined {
  return parseText('token', value)?.trim();
}

/**
 * Joins public URL, root of Node-RED's HTTP nodes, path and token. `undefined`: the result is not a usable address.
 *
 * @throws SmsError `SMS_CONFIG` if a property is not text
 */
export function formatCallbackAddress(
  RED: NodeAPI,
  address: { path: unknown; publicUrl: unknown; token: unknown },
): string | undefined {
  const path = parseCallbackPath(address.path);
  const publicUrl = parseText('publicUrl', address.publicUrl) ?? '';
  const token = parseToken(address.token);
  if (!servesHttp(RED) || path === undefined || !isPath(path) || !isPublicUrl(publicUrl)) return undefined;
  const url = joinCallbackUrl(publicUrl, String(RED.settings.httpNodeRoot || '/'), path);
  return token === undefined ? url : addToken(url, token);
}

/** Says whether Node-RED serves HTTP nodes. */
function servesHttp(RED: NodeAPI): boolean {
  return (RED.settings.httpNodeRoot as string | false | undefined) !== false;
}

/** A node that claims a path. `mount` is absent while the node is closed. */
interface Claim {
  readonly id: string;
  mount: (() => void) | undefined;
}

/**
 * The callback nodes of each path. Only the node that was deployed first serves the path. If this node is removed, the
 * next one serves the path.
 */
export class CallbackPaths {
  readonly #RED: NodeAPI;
  readonly #claims = new Map<string, Claim[]>();
  readonly #moveUp = () => {
    for (const [path, claims] of this.#claims) {
      const mountedClaims = claims.filter(({ mount }) => mount);
      if (mountedClaims.length > 0) this.#claims.set(path, mountedClaims);
      else this.#claims.delete(path);
      if (mountedClaims[0] !== claims[0]) mountedClaims[0]?.mount?.();
    }
  };

  constructor(RED: NodeAPI) {
    this.#RED = RED;
  }

  /**
   * Claims a path for a node.
   *
   * @param mount serves the path; called later if the nodes that claimed the path earlier are removed
   * @throws SmsError `SMS_CONFIG` if the path is not usable, or another node has it
   */
  claim(path: string | undefined, id: string, mount: () => void): void {
    if (!servesHttp(this.#RED)) throw new SmsError('callbackHttpOff');
    if (path === undefined) throw new SmsError('callbackPathMissing');
    if (!isPath(path)) throw new SmsError('callbackPathInvalid');
    const name = normalisePath(path);
    const claims = this.#claims.get(name) ?? [];
    this.#claims.set(name, claims);
    const ownClaim = claims.find((claim) => claim.id === id);
    if (ownClaim) ownClaim.mount = mount;
    else claims.push({ id, mount });
    if (claims[0]?.id !== id) throw new SmsError('callbackPathTaken', { params: { path } });
  }

  /**
   * Notes that a node is closed. The node loses its claim, unless it is deployed again before the flows have started.
   */
  release(path: string | undefined, id: string): void {
    const ownClaim = this.#claims.get(normalisePath(path ?? ''))?.find((claim) => claim.id === id);
    if (ownClaim) ownClaim.mount = undefined;
    Flows.of(this.#RED).onNextStart(this.#moveUp);
  }
}
