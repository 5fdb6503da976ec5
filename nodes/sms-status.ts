import type { Node, NodeAPI } from 'node-red';
import { type PollingConfig, runPollingNode } from './runtime/polling-node';

export = (RED: NodeAPI) => {
  function SmsStatus(this: Node, config: PollingConfig) {
    RED.nodes.createNode(this, config);
    runPollingNode(RED, this, config, {
      kind: 'status',
      filters: {
        all: () => true,
        // Also delivers statuses with an unknown code, because the code might be final.
        final: ({ final }) => final !== false,
      },
    });
  }

  RED.nodes.registerType('sms-status', SmsStatus);
};
