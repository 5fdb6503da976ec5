import type { Node, NodeAPI, NodeDef } from 'node-red';
import { type Membership, SmsError, type Subscriber, type Subscription } from '../../src';
import type { limits } from '../limits';
import { getAccount } from './account-node';
import { FlowSender } from './flow-sender';
import { Flows } from './flows';
import { raiseToCatch, takeAcknowledgements } from './outcome';
import { createDeliveredMessage, createReceivedMessage } from './received-message';
import { parseChoice, parseNumber } from './settings';
import { startWithFlows } from './start';
import { badges, endBadge, showPollState, translate, translateError } from './texts';

/** What the nodes that poll have in common. */
export interface PollingConfig extends NodeDef {
  account?: string;
  filter?: string;
  acknowledge?: string;
  ackTimeout?: number | string;
  maxAttempts?: number | string;
}

/** What sets a node that polls apart from the others. */
export interface Polled {
  range: (typeof limits)['sms-in' | 'sms-status'];
  /** Subscribes the node to what it is for, and says what it wants of that. */
  subscribe(membership: Membership, subscriber: Omit<Subscriber, 'wants'>): Subscription;
}

/** Makes a node deliver what its account polls, and take acknowledgements at its input. */
export function runPollingNode(RED: NodeAPI, node: Node, config: PollingConfig, polled: Polled): void {
  const sender = new FlowSender(RED, node);
  let subscription: Subscription | undefined;

  const subscribe = () => {
    const { membership } = getAccount(RED, config.account);
    const { range } = polled;
    subscription = polled.subscribe(membership, {
      id: node.id,
      acknowledge: parseChoice('acknowledge', config.acknowledge, ['auto', 'flow']),
      ackTimeoutMs: parseNumber('ackTimeout', config.ackTimeout, range.ackTimeout) * 1_000,
      maxAttempts: parseNumber('maxAttempts', config.maxAttempts, range.maxAttempts),
      send: (delivery) => sender.send(() => [createDeliveredMessage(delivery)]),
      onUndelivered: (news, attempts) => {
        const message = createReceivedMessage(news, { redelivered: true });
        const error = translateError(RED, new SmsError('undelivered', { params: { attempts } }));
        Flows.of(RED).onceHeard(node, () => node.error(error, message));
      },
      onState: (state) => showPollState(RED, node, state),
      onFailing: (error) => raiseToCatch(RED, node, error),
      onRecovered: () => node.log(translate(RED, 'log.recovered')),
    });
  };

  node.status(badges.connecting(RED));
  const cancelStart = startWithFlows(RED, node, subscribe);

  takeAcknowledgements(node, () => subscription);

  node.on('close', (done: () => void) => {
    cancelStart();
    endBadge(node);
    sender.close();
    subscription?.close();
    // What was sent in this turn of the event loop is settled in the next.
    setImmediate(done);
  });
}
