import type { Node, NodeAPI } from 'node-red';
import type { IncomingRecord } from '../src';
import { type PollingConfig, runPollingNode } from './runtime/polling-node';
import { parseChoice } from './runtime/settings';

export = (RED: NodeAPI) => {
  function SmsIn(this: Node, config: PollingConfig) {
    RED.nodes.createNode(this, config);
    const filter = parseChoice(config.filter, ['all', 'replies', 'new']);
    runPollingNode(RED, this, config, {
      kind: 'incoming',
      wants: (record) => filter === 'all' || (record as IncomingRecord).isReply === (filter === 'replies'),
    });
  }

  RED.nodes.registerType('sms-in', SmsIn);
};
