import type { Node, NodeAPI } from 'node-red';
import { type PollingConfig, runPollingNode } from './runtime/polling-node';

export = (RED: NodeAPI) => {
  function SmsIn(this: Node, config: PollingConfig) {
    RED.nodes.createNode(this, config);
    runPollingNode(RED, this, config, {
      kind: 'incoming',
      filters: {
        all: () => true,
        replies: ({ isReply }) => isReply,
        new: ({ isReply }) => !isReply,
        notAwaited: ({ awaited }) => awaited !== true,
      },
    });
  }

  RED.nodes.registerType('sms-in', SmsIn);
};
