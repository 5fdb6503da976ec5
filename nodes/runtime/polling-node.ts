import type { Node, NodeAPI, NodeDef } from 'node-red';
import { type InboxRecord, SmsError, type Subscription } from '../../src';
import { limits } from '../limits';
import { getAccount } from './account-node';
import { createFlowSender, startWithFlows } from './flows';
import { raiseToCatch, takeAcknowledgements } from './outcome';
import { createDeliveredMessage, createReceivedMessage } from './received-message';
import { parseChoice, parseNumber } from './settings';
import { badges, showPollState, translate, translateError } from './texts';

/** What the nodes that poll have in common. */
export interface PollingConfig extends NodeDef {
  account?: string;
  filter?: string;
  acknowledge?: string;
  ackTimeout?: number | string;
  maxAttempts?: number | string;
}

/** What a node delivers of what its account polls. */
export interface Polled {
  kind: 'incoming' | 'status';
  wants(record: InboxRecord): boolean;
}

/** Makes a node deliver what its account polls, and take acknowledgements at its input. */
export function runPollingNode(RED: NodeAPI, node: Node, config: PollingConfig, { kind, wants }: Polled): void {
  const sender = createFlowSender(RED, node);
  let subscription: Subscription | undefined;

  const subscribe = () => {
    const { membership } = getAccount(RED, config.account);
    const range = limits[kind === 'incoming' ? 'sms-in' : 'sms-status'];
    subscription = membership.subscribe(kind, {
      id: node.id,
      wants,
      acknowledge: parseChoice(config.acknowledge, ['auto', 'flow']),
      ackTimeoutMs: parseNumber('ackTimeout', config.ackTimeout, range.ackTimeout) * 1_000,
      maxAttempts: parseNumber('maxAttempts', config.maxAttempts, range.maxAttempts),
      send: (delivery) => sender.send([createDeliveredMessage(delivery)]),
      onUndelivered: (record, attempts) => {
        const message = createReceivedMessage(kind, record, { redelivered: true });
        node.error(translateError(RED, new SmsError('undelivered', { params: { attempts } })), message);
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
    sender.close();
    subscription?.close();
    // What was sent in this turn of the event loop is settled in the next.
    setImmediate(done);
  });
}
