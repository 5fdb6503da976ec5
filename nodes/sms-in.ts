import type { Node, NodeAPI } from 'node-red';
import type { IncomingRecord } from '../src';
import { limits } from './limits';
import { type PollingConfig, runPollingNode } from './runtime/polling-node';
import { parseChoice } from './runtime/settings';

/** Which messages each filter lets through. */
const filters = {
  all: () => true,
  replies: ({ isReply }: IncomingRecord) => isReply,
  new: ({ isReply }: IncomingRecord) => !isReply,
  unasked: ({ awaited }: IncomingRecord) => awaited !== true,
} as const;

export = (RED: NodeAPI) => {
  function SmsIn(this: Node, config: PollingConfig) {
    RED.nodes.createNode(this, config);
    runPollingNode(RED, this, config, {
      range: limits['sms-in'],
      subscribe: (membership, subscriber) => {
        const wants = filters[parseChoice('filter', config.filter, ['all', 'replies', 'new', 'unasked'])];
        return membership.subscribe('incoming', { ...subscriber, wants });
      },
    });
  }

  RED.nodes.registerType('sms-in', SmsIn);
};
