import type { Node, NodeAPI } from 'node-red';
import { Flows, startedTimeoutMs } from './flows';
import { showAndRaise } from './outcome';

/**
 * Starts a node when every node of the flows is there to receive, and reports what that throws. Returns how to call it
 * off.
 *
 * A message may come at once, and a node that is not there yet would not get it. Nor is there a Catch node before.
 */
export function startWithFlows(RED: NodeAPI, node: Node, start: () => void): () => void {
  const run = () => {
    cancel();
    try {
      start();
    } catch (error) {
      showAndRaise(RED, node, error);
    }
  };
  const cancelStart = Flows.of(RED).onceStarted(run);
  const timer = setTimeout(run, startedTimeoutMs);
  const cancel = () => {
    clearTimeout(timer);
    cancelStart();
  };
  return cancel;
}
