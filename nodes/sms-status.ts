import type { Node, NodeAPI } from 'node-red';
import type { StatusRecord } from '../src';
import { type PollingConfig, runPollingNode } from './runtime/polling-node';
import { parseChoice } from './runtime/settings';

export = (RED: NodeAPI) => {
  function SmsStatus(this: Node, config: PollingConfig) {
    RED.nodes.createNode(this, config);
    const filter = parseChoice(config.filter, ['all', 'final']);
    // Whether an unknown code is final is unknown too, so it passes.
    runPollingNode(RED, this, config, {
      kind: 'status',
      wants: (record) => filter === 'all' || (record as StatusRecord).final !== false,
    });
  }

  RED.nodes.registerType('sms-status', SmsStatus);
};
