import type { NodeAPI } from 'node-red';
import {
  asSmsError,
  type CallbackEvent,
  type CallbackRequest,
  type CallbackSubscription,
  isBlank,
  parseCallback,
  type SmsError,
} from '../src';
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
import { acceptAcknowledgements, createDeliveredMessage } from './runtime/messages';
import { createReceiver, type ReceivingConfig } from './runtime/polling-node';
import { translateError } from './runtime/texts';

interface CallbackConfig extends ReceivingConfig {
  path?: unknown;
  publicUrl?: unknown;
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
    /** Reason why the node accepts no callback now. */
    let problem: SmsError | undefined;
    /** Whether the badge shows why a callback was refused, instead of the path. */
    let showsError = false;

    this.callbackUrl = () => {
      if (problem) throw problem;
      return formatCallbackAddress(RED, address);
    };

    const subscribe = () =>
      getAccount(RED, config.account).membership.subscribe('callback', {
        ...createReceiver(RED, this, config),
        path,
        send: (delivery) =>
          sender.send(() => {
            const message = createDeliveredMessage(delivery);
            return delivery.kind === 'status' ? [null, message] : [message, null];
          }),
      });

    const accept = async (event: CallbackEvent, query: Query): Promise<CallbackAnswer> => {
      try {
        if (!subscription) {
          getAccount(RED, config.account);
          return createTryLater('The flows have not started yet.');
        }
        for (const record of event.records) record.query = query;
        await subscription.accept(event);
        // Shows the path again only after an error, because each badge is an event for the editor and for Status nodes,
        // and thousands of callbacks can arrive in a second.
        if (path !== undefined && showsError) this.status(badges.at(path));
        showsError = false;
        return { status: 200, text: 'OK' };
      } catch (error) {
        if (asSmsError(error).code === 'SMS_CLOSED') return createTryLater('The flows are being deployed.');
        // Raises only the first of several errors in a row. If the account cannot be used, raises none, because the
        // node has reported this at its start.
        if (subscription && !showsError) raiseToCatch(RED, this, error);
        this.status(badges.error(error));
        showsError = true;
        // The answer does not contain the error, because the error can name a local folder or a host, and anyone can
        // call this address.
        return createTryLater('The message cannot be stored now.');
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

    const mount = () => {
      if (path === undefined) return;
      problem = undefined;
      try {
        unmount = mountCallbackRoute(RED, { path, token: parseToken(address.token), handle });
        this.status(badges.at(path));
      } catch (error) {
        // Refuses every request, because the node could not read its token.
        const refuse = async () => createTryLater('The token of this callback is not known.');
        unmount = mountCallbackRoute(RED, { path, token: undefined, handle: refuse });
        problem = asSmsError(error);
        this.status(badges.error(problem));
      }
    };

    try {
      path = parseCallbackPath(config.path);
      paths.claim(path, this.id, mount);
      mount();
    } catch (error) {
      problem = asSmsError(error);
      this.status(badges.error(problem));
    }

    const cancelStart = startWithFlows(RED, this, () => {
      if (problem) showAndRaise(RED, this, problem);
      subscription = subscribe();
    });

    acceptAcknowledgements(this, () => subscription);

    this.on('close', (done: () => void) => {
      cancelStart();
      endBadge(this);
      sender.close();
      unmount();
      paths.release(path, this.id);
      subscription?.close();
      setImmediate(done);
    });
  }

  RED.nodes.registerType<CallbackNode, CallbackConfig, object, { token?: string }>('sms-callback-in', SmsCallbackIn, {
    credentials: { token: { type: 'password' } },
  });
};

/** Creates the answer that makes the service repeat the callback later. */
function createTryLater(text: string): CallbackAnswer {
  return { status: 503, text };
}

/** Returns the token. If it is an environment variable that is not set, returns `${NAME}`. */
function findToken(RED: NodeAPI, node: CallbackNode & { _alias?: string }): unknown {
  const { token } = node.credentials ?? {};
  if (!isBlank(token)) return token;
  // For a node in a subflow, Node-RED stores the credentials under the id of the original node in the subflow's
  // template.
  const saved: { token?: unknown } = RED.nodes.getCredentials(node._alias ?? node.id) ?? {};
  return saved.token;
}
