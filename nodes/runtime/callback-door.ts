import type { Node, NodeAPI } from 'node-red';
import { asSmsError, SmsError } from '../../src';
import type { CallbackAnswer } from './callback-body';
import { isPath, isPublicUrl, joinCallbackUrl, normalisePath, parsePath } from './callback-path';
import { type CallbackRouteOptions, mountCallbackRoute } from './callback-route';
import { Flows } from './flows';
import { parseText } from './settings';
import { badges, translateError } from './texts';

/** Where a node is called, and what only its callers know. An error stands for what cannot be used. */
export interface CallbackAddress {
  /** With a leading slash. */
  path: string | SmsError | undefined;
  publicUrl: string | SmsError | undefined;
  /** Without one everybody is let in, and nobody as long as there is an error instead. */
  token: string | SmsError | undefined;
}

/** Reads an address from the configuration and the credentials of a node. */
export function parseAddress({ path, publicUrl, token }: Record<keyof CallbackAddress, unknown>): CallbackAddress {
  return {
    path: attempt(() => {
      const parsed = parsePath(parseText('path', path));
      // With a slash in front Node-RED fills in no variable.
      parseText('path', parsed?.slice(1));
      return parsed;
    }),
    publicUrl: attempt(() => parseText('publicUrl', publicUrl)),
    token: attempt(() => parseText('token', token)?.trim()),
  };
}

function attempt(parse: () => string | undefined): string | SmsError | undefined {
  try {
    return parse();
  } catch (error) {
    return asSmsError(error);
  }
}

/** @throws SmsError that stands for it */
function take(part: string | SmsError | undefined): string | undefined {
  if (part instanceof SmsError) throw part;
  return part;
}

/** A node's way in from outside. */
export interface CallbackDoor {
  /** Where it is, if there is a path that can be read. */
  readonly path: string | undefined;
  /** Why nobody gets in now, if so. */
  readonly problem: SmsError | undefined;
  close(): void;
}

/** What lets a node in on callbacks. */
export type OpenDoor = (node: Node, address: CallbackAddress, handle: CallbackRouteOptions['handle']) => CallbackDoor;

/** Begins with every path free. Of several nodes at one path the first has it, and the next when that one has gone. */
export function createCallbackDoors(RED: NodeAPI): OpenDoor {
  const places = createCallbackPlaces(RED);
  return (node, { path: given, token }, handle) => {
    const path = given instanceof SmsError ? undefined : given;
    const entrance = token instanceof SmsError ? { token: undefined, handle: keepOut } : { token, handle };
    let unmount = () => {};
    let problem: SmsError | undefined;

    const open = () => {
      if (path === undefined) return;
      unmount = mountCallbackRoute(RED, { path, ...entrance });
      problem = token instanceof SmsError ? token : undefined;
      node.status(problem ? badges.error(RED, problem) : badges.at(path));
    };

    /** @throws SmsError when there is something against the path */
    const takePath = () => {
      if (!servesHttp(RED)) throw new SmsError('callbackHttpOff');
      if (given instanceof SmsError) throw given;
      if (path === undefined) throw new SmsError('callbackPathMissing');
      if (!isPath(path)) throw new SmsError('callbackPathInvalid');
      if (!places.take(normalisePath(path), node.id, open)) {
        throw new SmsError('callbackPathTaken', { params: { path } });
      }
      open();
    };

    try {
      takePath();
    } catch (error) {
      problem = asSmsError(error);
      node.status(badges.error(RED, problem));
    }
    return {
      path,
      get problem() {
        return problem;
      },
      close() {
        unmount();
        if (path !== undefined) places.leave(normalisePath(path), node.id);
      },
    };
  };
}

/** Until its token is known, the service is to come again later: no guess is the right one. */
async function keepOut(): Promise<CallbackAnswer> {
  return notNow('The token of this callback is not known.');
}

/**
 * Public address, root of Node-RED's HTTP nodes, path and token in one; `undefined` when that reaches nothing.
 *
 * @throws SmsError `SMS_CONFIG` for what cannot be used
 */
export function formatCallbackAddress(RED: NodeAPI, address: CallbackAddress): string | undefined {
  const [path, publicUrl = '', token] = [take(address.path), take(address.publicUrl), take(address.token)];
  if (!servesHttp(RED) || path === undefined || !isPath(path) || !isPublicUrl(publicUrl)) return undefined;
  const url = joinCallbackUrl(publicUrl, String(RED.settings.httpNodeRoot || '/'), path);
  return token === undefined ? url : `${url}?token=${encodeURIComponent(token)}`;
}

/** Tells the service to bring a callback again later. */
export function notNow(text: string): CallbackAnswer {
  return { status: 503, text };
}

/** Tells the service what it has to mend before it brings a callback again. */
export function refuse(RED: NodeAPI, error: unknown): CallbackAnswer {
  return { status: 400, text: translateError(RED, error).message };
}

/** Says whether Node-RED has a server for the nodes; without one, whatever is mounted is never reached. */
function servesHttp(RED: NodeAPI): boolean {
  return (RED.settings.httpNodeRoot as string | false | undefined) !== false;
}

/** A node in line for a path; without `mount` while it is closed. */
interface Place {
  readonly id: string;
  mount: (() => void) | undefined;
}

/** Who answers at which path: of several nodes the one that was deployed first. */
export interface CallbackPlaces {
  /** Puts a node in line for a path. Returns whether it is first; otherwise `mount` is called when it has become so. */
  take(path: string, id: string, mount: () => void): boolean;
  /** The node is closed. When it is back by the time that the flows have started, it has its place again. */
  leave(path: string, id: string): void;
}

/** Begins with every path free. */
export function createCallbackPlaces(RED: NodeAPI): CallbackPlaces {
  const placesByPath = new Map<string, Place[]>();

  const moveUp = () => {
    for (const [path, places] of placesByPath) {
      const open = places.filter(({ mount }) => mount);
      placesByPath.set(path, open);
      if (open[0] !== places[0]) open[0]?.mount?.();
    }
  };

  return {
    take(path, id, mount) {
      const places = placesByPath.get(path) ?? [];
      placesByPath.set(path, places);
      const own = places.find((place) => place.id === id);
      if (own) own.mount = mount;
      else places.push({ id, mount });
      return places[0]?.id === id;
    },
    leave(path, id) {
      const own = placesByPath.get(path)?.find((place) => place.id === id);
      if (own) own.mount = undefined;
      Flows.of(RED).onNextStart(moveUp);
    },
  };
}

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
