import type { NodeAPI, NodeDef } from 'node-red';
import {
  asSmsError,
  type CallbackEvent,
  type CallbackRequest,
  type CallbackSubscription,
  isBlank,
  parseCallback,
  type SmsError,
} from '../src';
import { limits } from './limits';
import { getAccount } from './runtime/account-node';
import { badges, endBadge } from './runtime/badges';
import {
  type CallbackNode,
  CallbackPaths,
  formatCallbackAddress,
  parseCallbackPath,
  parseToken,
} from './runtime/callback-address';
import { type CallbackAnswer, mountCallbackRoute } from './runtime/callback-route';
import { raiseToCatch, showAndRaise, startWithFlows } from './runtime/failures';
import { FlowSender } from './runtime/flow-sender';
import { createDeliveredMessage, takeAcknowledgements } from './runtime/messages';
import { parseChoice, parseNumber } from './runtime/settings';
import { translateError } from './runtime/texts';

interface CallbackConfig extends NodeDef {
  account?: string;
  path?: unknown;
  publicUrl?: unknown;
  acknowledge?: string;
  ackTimeout?: number | string;
}

type Query = Record<string, string | string[]>;

export = (RED: NodeAPI) => {
  const paths = new CallbackPaths(RED);

  function SmsCallbackIn(this: CallbackNode, config: CallbackConfig) {
    RED.nodes.createNode(this, config);
    const address = { path: config.path, publicUrl: config.publicUrl, token: findToken(RED, this) };
    const sender = new FlowSender(RED, this);
    let subscription: CallbackSubscription | undefined;
    let path: string | undefined;
    let unmount = () => {};
    /** Why nobody gets in now, if so. */
    let problem: SmsError | undefined;
    /** The badge shows why one could not be taken, not the path. */
    let showsError = false;

    this.callbackUrl = () => {
      if (problem) throw problem;
      return formatCallbackAddress(RED, address);
    };

    const subscribe = () =>
      getAccount(RED, config.account).membership.subscribe('callback', {
        id: this.id,
        path,
        acknowledge: parseChoice('acknowledge', config.acknowledge, ['auto', 'flow']),
        ackTimeoutMs: parseNumber('ackTimeout', config.ackTimeout, limits['sms-callback-in'].ackTimeout) * 1_000,
        send: (delivery) =>
          sender.send(() => {
            const message = createDeliveredMessage(delivery);
            return delivery.kind === 'status' ? [null, message] : [message, null];
          }),
      });

    const accept = async (event: CallbackEvent, query: Query): Promise<CallbackAnswer> => {
      try {
        // Without one the flows have not started yet, or it is told why there is none.
        if (!subscription) getAccount(RED, config.account);
        // What the address was called with goes along with every record.
        for (const record of event.records) record.query = query;
        const isTaken = await subscription?.accept(event);
        // Every badge is an event to the editor and to Status nodes, and thousands of callbacks may come in a second.
        if (path !== undefined && showsError) this.status(badges.at(path));
        showsError = false;
        return isTaken ? { status: 200, text: 'OK' } : notNow('The flow has not taken it.');
      } catch (error) {
        // Once until one is taken again; why there is no account was told at the start.
        if (subscription && !showsError) raiseToCatch(RED, this, error);
        this.status(badges.error(error));
        showsError = true;
        // The error may name a folder of this machine, or a host, and anybody may call.
        return notNow('It cannot be kept now.');
      }
    };

    const handle = async (body: CallbackRequest, query: Query): Promise<CallbackAnswer> => {
      let event: CallbackEvent;
      try {
        event = parseCallback(body);
      } catch (error) {
        return { status: 400, text: translateError(RED, error).message };
      }
      return accept(event, query);
    };

    const open = () => {
      if (path === undefined) return;
      problem = undefined;
      try {
        unmount = mountCallbackRoute(RED, { path, token: parseToken(address.token), handle });
        this.status(badges.at(path));
      } catch (error) {
        // Until its token is known, the service is to come again later: no guess is the right one.
        const keepOut = async () => notNow('The token of this callback is not known.');
        unmount = mountCallbackRoute(RED, { path, token: undefined, handle: keepOut });
        problem = asSmsError(error);
        this.status(badges.error(problem));
      }
    };

    try {
      path = parseCallbackPath(config.path);
      paths.claim(path, this.id, open);
      open();
    } catch (error) {
      problem = asSmsError(error);
      this.status(badges.error(problem));
    }

    const cancelStart = startWithFlows(RED, this, () => {
      if (problem) showAndRaise(RED, this, problem);
      subscription = subscribe();
    });

    takeAcknowledgements(this, () => subscription);

    this.on('close', (done: () => void) => {
      cancelStart();
      endBadge(this);
      sender.close();
      unmount();
      paths.leave(path, this.id);
      subscription?.close();
      setImmediate(done);
    });
  }

  RED.nodes.registerType<CallbackNode, CallbackConfig, object, { token?: string }>('sms-callback-in', SmsCallbackIn, {
    credentials: { token: { type: 'password' } },
  });
};

/** Tells the service to bring a callback again later. */
function notNow(text: string): CallbackAnswer {
  return { status: 503, text };
}

/** The token, or else the variable that was to be one and is blank. */
function findToken(RED: NodeAPI, node: CallbackNode & { _alias?: string }): unknown {
  const { token } = node.credentials ?? {};
  if (!isBlank(token)) return token;
  // Those of a node in a subflow are saved under the id that it has there.
  const saved: { token?: unknown } = RED.nodes.getCredentials(node._alias ?? node.id) ?? {};
  return saved.token;
}
