import type { Node, NodeAPI, NodeDef } from 'node-red';
import { type RecordOfKind, SmsError, type Subscriber, type Subscribers, type Subscription } from '../../src';
import { limits } from '../limits';
import { getAccount } from './account-node';
import { badges, endBadge, showPollState } from './badges';
import { raiseToCatch, startWithFlows } from './failures';
import { FlowSender } from './flow-sender';
import { Flows } from './flows';
import { acceptAcknowledgements, createDeliveredMessage, createReceivedMessage } from './messages';
import { parseChoice, parseNumber } from './settings';
import { translate, translateError } from './texts';

/** The properties that all receiving nodes have. */
export interface ReceivingConfig extends NodeDef {
  account?: string;
  acknowledge?: string;
  ackTimeout?: number | string;
  maxAttempts?: number | string;
}

/** The properties of the nodes that poll. */
export interface PollingConfig extends ReceivingConfig {
  filter?: string;
}

/** The kind of records that a node polls for, and the choices of its filter. */
export interface Polled<K extends 'incoming' | 'status'> {
  kind: K;
  /**
   * For each choice of the property `filter`, a function that says whether the node delivers a record. The first choice
   * is the default.
   */
  filters: Readonly<Record<string, NonNullable<Subscribers[K]['wants']>>>;
}

/**
 * Creates the options that all receiving nodes share: how the flow acknowledges records, and which error is raised for
 * a record without acknowledgement.
 */
export function createReceiver(RED: NodeAPI, node: Node, config: ReceivingConfig) {
  const { ackTimeout, maxAttempts } = limits['sms-in'];
  return {
    id: node.id,
    acknowledge: parseChoice('acknowledge', config.acknowledge, ['auto', 'flow']),
    ackTimeoutMs: parseNumber('ackTimeout', config.ackTimeout, ackTimeout) * 1_000,
    maxAttempts: parseNumber('maxAttempts', config.maxAttempts, maxAttempts),
    onUndelivered: (event: RecordOfKind, attempts: number) => {
      const message = createReceivedMessage(event, { redelivered: true });
      const error = translateError(RED, new SmsError('undelivered', { params: { attempts } }));
      Flows.of(RED).onceCatchable(node, () => node.error(error, message));
    },
  };
}

/** Makes a node deliver polled records and accept acknowledgements at its input. */
export function runPollingNode<K extends 'incoming' | 'status'>(
  RED: NodeAPI,
  node: Node,
  config: PollingConfig,
  { kind, filters }: Polled<K>,
): void {
  const sender = new FlowSender(RED, node);
  let subscription: Subscription | undefined;

  const subscribe = () => {
    const { membership } = getAccount(RED, config.account);
    const filter = parseChoice('filter', config.filter, Object.keys(filters) as [string, ...string[]]);
    const subscriber: Omit<Subscriber, 'wants'> = {
      ...createReceiver(RED, node, config),
      send: (delivery) => sender.send(() => [createDeliveredMessage(delivery)]),
      onState: (state) => showPollState(node, state),
      onFailing: (error) => raiseToCatch(RED, node, error),
      onRecovered: () => node.log(translate(RED, 'log.recovered')),
    };
    subscription = membership.subscribe(kind, { ...subscriber, wants: filters[filter] } as Subscribers[K]);
  };

  node.status(badges.connecting());
  const cancelStart = startWithFlows(RED, node, subscribe);

  acceptAcknowledgements(node, () => subscription);

  node.on('close', (done: () => void) => {
    cancelStart();
    endBadge(node);
    sender.close();
    subscription?.close();
    // Waits for the next turn of the event loop. By then, Node-RED has delivered the flow messages of this turn.
    setImmediate(done);
  });
}
