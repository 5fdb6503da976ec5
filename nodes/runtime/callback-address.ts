import type { Node, NodeAPI } from 'node-red';
import { SmsError } from '../../src';
import { addToken, isPath, isPublicUrl, joinCallbackUrl, normalisePath, parsePath } from './callback-path';
import { Flows } from './flows';
import { parseText } from './settings';

/** What an `sms-callback-in` node is to the other nodes. */
export interface CallbackNode extends Node<{ token?: string }> {
  /**
   * The full address that the service is to call, with the token; `undefined` when there is none that reaches it.
   *
   * @throws SmsError `SMS_CONFIG` when a variable of it is not set, or nobody gets in, such as where another node has its path
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
 * @throws SmsError `SMS_CONFIG` when a variable of it is not set
 */
export function parseCallbackPath(value: unknown): string | undefined {
  const path = parsePath(parseText('path', value));
  // With a slash in front Node-RED fills in no variable.
  parseText('path', path?.slice(1));
  return path;
}

/**
 * Reads what only those know who may call; `undefined`: everybody may.
 *
 * @throws SmsError `SMS_CONFIG` when it is a variable that is not set
 */
export function parseToken(value: unknown): string | undefined {
  return parseText('token', value)?.trim();
}

/**
 * Public address, root of Node-RED's HTTP nodes, path and token in one; `undefined` when that reaches nothing.
 *
 * @throws SmsError `SMS_CONFIG` for what cannot be used
 */
export function formatCallbackAddress(
  RED: NodeAPI,
  given: { path: unknown; publicUrl: unknown; token: unknown },
): string | undefined {
  const path = parseCallbackPath(given.path);
  const publicUrl = parseText('publicUrl', given.publicUrl) ?? '';
  const token = parseToken(given.token);
  if (!servesHttp(RED) || path === undefined || !isPath(path) || !isPublicUrl(publicUrl)) return undefined;
  const url = joinCallbackUrl(publicUrl, String(RED.settings.httpNodeRoot || '/'), path);
  return token === undefined ? url : addToken(url, token);
}

/** Says whether Node-RED has a server for the nodes; without one, whatever is mounted is never reached. */
function servesHttp(RED: NodeAPI): boolean {
  return (RED.settings.httpNodeRoot as string | false | undefined) !== false;
}

/** A node in line for a path; without `mount` while it is closed. */
interface Claim {
  readonly id: string;
  mount: (() => void) | undefined;
}

/** Who answers at which path: of several nodes the one that was deployed first, and the next when that one has gone. */
export class CallbackPaths {
  readonly #RED: NodeAPI;
  readonly #claims = new Map<string, Claim[]>();
  readonly #moveUp = () => {
    for (const [path, claims] of this.#claims) {
      const open = claims.filter(({ mount }) => mount);
      if (open.length > 0) this.#claims.set(path, open);
      else this.#claims.delete(path);
      if (open[0] !== claims[0]) open[0]?.mount?.();
    }
  };

  constructor(RED: NodeAPI) {
    this.#RED = RED;
  }

  /**
   * Puts a node in line for a path.
   *
   * @param mount called when the node has become the first
   * @throws SmsError `SMS_CONFIG` when the path cannot be used, or another node has it now
   */
  claim(path: string | undefined, id: string, mount: () => void): void {
    if (!servesHttp(this.#RED)) throw new SmsError('callbackHttpOff');
    if (path === undefined) throw new SmsError('callbackPathMissing');
    if (!isPath(path)) throw new SmsError('callbackPathInvalid');
    const name = normalisePath(path);
    const claims = this.#claims.get(name) ?? [];
    this.#claims.set(name, claims);
    const own = claims.find((claim) => claim.id === id);
    if (own) own.mount = mount;
    else claims.push({ id, mount });
    if (claims[0]?.id !== id) throw new SmsError('callbackPathTaken', { params: { path } });
  }

  /** The node is closed. When it is back by the time that the flows have started, it has its place again. */
  leave(path: string | undefined, id: string): void {
    const own = this.#claims.get(normalisePath(path ?? ''))?.find((claim) => claim.id === id);
    if (own) own.mount = undefined;
    Flows.of(this.#RED).onNextStart(this.#moveUp);
  }
}
