import type { Node, NodeAPI } from 'node-red';
import type { StatusRecord } from '../src';
import { limits } from './limits';
import { type PollingConfig, runPollingNode } from './runtime/polling-node';
import { parseChoice } from './runtime/settings';

export = (RED: NodeAPI) => {
  function SmsStatus(this: Node, config: PollingConfig) {
    RED.nodes.createNode(this, config);
    const filter = parseChoice(config.filter, ['all', 'final']);
    // Whether an unknown code is final is unknown too, so it passes.
    const wants = ({ final }: StatusRecord) => filter === 'all' || final !== false;
    runPollingNode(RED, this, config, {
      range: limits['sms-status'],
      subscribe: (membership, subscriber) => membership.subscribe('status', { ...subscriber, wants }),
    });
  }

  RED.nodes.registerType('sms-status', SmsStatus);
};
