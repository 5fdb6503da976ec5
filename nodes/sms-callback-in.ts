import type { NodeAPI, NodeDef } from 'node-red';
import { type CallbackEvent, type CallbackRequest, type CallbackSubscription, isBlank, parseCallback } from '../src';
import { limits } from './limits';
import { getAccount } from './runtime/account-node';
import type { CallbackAnswer } from './runtime/callback-body';
import {
  type CallbackNode,
  createCallbackDoors,
  formatCallbackAddress,
  notNow,
  parseAddress,
  refuse,
} from './runtime/callback-door';
import { FlowSender } from './runtime/flow-sender';
import { raiseToCatch, showAndRaise, takeAcknowledgements } from './runtime/outcome';
import { createDeliveredMessage } from './runtime/received-message';
import { parseChoice, parseNumber } from './runtime/settings';
import { startWithFlows } from './runtime/start';
import { badges, endBadge } from './runtime/texts';

interface CallbackConfig extends NodeDef {
  account?: string;
  path?: unknown;
  publicUrl?: unknown;
  acknowledge?: string;
  ackTimeout?: number | string;
}

type Query = Record<string, string | string[]>;

const accepted: CallbackAnswer = { status: 200, text: 'OK' };

export = (RED: NodeAPI) => {
  const openDoor = createCallbackDoors(RED);

  function SmsCallbackIn(this: CallbackNode, config: CallbackConfig) {
    RED.nodes.createNode(this, config);
    const { path, publicUrl } = config;
    const address = parseAddress({ path, publicUrl, token: findToken(RED, this) });
    const sender = new FlowSender(RED, this);
    let subscription: CallbackSubscription | undefined;
    /** The badge shows why one could not be taken, not the path. */
    let showsError = false;

    this.callbackUrl = () => formatCallbackAddress(RED, address);

    const subscribe = () =>
      getAccount(RED, config.account).membership.subscribe('callback', {
        id: this.id,
        path: door.path,
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
        if (door.path !== undefined && showsError) this.status(badges.at(door.path));
        showsError = false;
        return isTaken ? accepted : notNow('The flow has not taken it.');
      } catch (error) {
        // Once until one is taken again; why there is no account was told at the start.
        if (subscription && !showsError) raiseToCatch(RED, this, error);
        this.status(badges.error(RED, error));
        showsError = true;
        // The error may name a folder of this machine, or a host, and anybody may call.
        return notNow('It cannot be kept now.');
      }
    };

    const door = openDoor(this, address, async (body: CallbackRequest, query) => {
      let event: CallbackEvent;
      try {
        event = parseCallback(body);
      } catch (error) {
        return refuse(RED, error);
      }
      return accept(event, query);
    });

    const cancelStart = startWithFlows(RED, this, () => {
      if (door.problem) showAndRaise(RED, this, door.problem);
      subscription = subscribe();
    });

    takeAcknowledgements(this, () => subscription);

    this.on('close', (done: () => void) => {
      cancelStart();
      endBadge(this);
      sender.close();
      door.close();
      subscription?.close();
      setImmediate(done);
    });
  }

  RED.nodes.registerType<CallbackNode, CallbackConfig, object, { token?: string }>('sms-callback-in', SmsCallbackIn, {
    credentials: { token: { type: 'password' } },
  });
};

/** The token, or else the variable that was to be one and is blank. */
function findToken(RED: NodeAPI, node: CallbackNode & { _alias?: string }): unknown {
  const { token } = node.credentials ?? {};
  if (!isBlank(token)) return token;
  // Those of a node in a subflow are saved under the id that it has there.
  const saved: { token?: unknown } = RED.nodes.getCredentials(node._alias ?? node.id) ?? {};
  return saved.token;
}
