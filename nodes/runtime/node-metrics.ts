import type { Node } from 'node-red';
import type { SmsMessage } from './messages';

/**
 * Starts to measure a send or a read. The returned function logs the duration and the number of received messages as
 * metrics of Node-RED. As with core nodes, metrics must be switched on in `logging` of `settings.js`.
 */
export function startMeasuring(node: Node, message: SmsMessage): (messageCount?: number) => void {
  const startedAt = performance.now();
  return (messageCount) => {
    if (!node.metric()) return;
    node.metric('duration.millis', message, Number((performance.now() - startedAt).toFixed(3)));
    if (messageCount !== undefined) node.metric('size.messages', message, messageCount);
  };
}
