import type { Node, NodeAPI } from 'node-red';
import type { StatusRecord } from '../src';
import { limits } from './limits';
import { type PollingConfig, runPollingNode } from './runtime/polling-node';
import { parseChoice } from './runtime/settings';

/** Which statuses each filter lets through. Whether an unknown code is final is unknown too, so it passes. */
const filters = {
  all: () => true,
  final: ({ final }: StatusRecord) => final !== false,
} as const;

export = (RED: NodeAPI) => {
  function SmsStatus(this: Node, config: PollingConfig) {
    RED.nodes.createNode(this, config);
    runPollingNode(RED, this, config, {
      range: limits['sms-status'],
      subscribe: (membership, subscriber) => {
        const wants = filters[parseChoice('filter', config.filter, ['all', 'final'])];
        return membership.subscribe('status', { ...subscriber, wants });
      },
    });
  }

  RED.nodes.registerType('sms-status', SmsStatus);
};
