import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { showAndRaise } from './outcome';

/** Should Node-RED not say that the flows have started, they are taken to have after so long. */
const startedTimeoutMs = 10_000;

/** What waits for the next start of the flows, by Node-RED's emitter of events. */
const turnsByEvents = new WeakMap<NodeAPI['events'], Set<() => void>>();

/**
 * Calls back once when the flows have started. Returns how to call it off.
 *
 * However many wait, Node-RED's emitter has one listener: one for each node would be taken for a leak.
 */
export function onceFlowsStarted({ events }: NodeAPI, callback: () => void): () => void {
  const turns = turnsByEvents.get(events) ?? listen(events);
  // Of two that give the same function, each has its own turn.
  const turn = () => callback();
  turns.add(turn);
  return () => turns.delete(turn);
}

function listen(events: NodeAPI['events']): Set<() => void> {
  const turns = new Set<() => void>();
  events.on('flows:started', () => {
    // Who is called off meanwhile has no turn; who comes meanwhile has it at the next start.
    for (const turn of [...turns]) if (turns.delete(turn)) turn();
  });
  turnsByEvents.set(events, turns);
  return turns;
}

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
  const cancelStart = onceFlowsStarted(RED, run);
  const timer = setTimeout(run, startedTimeoutMs);
  const cancel = () => {
    clearTimeout(timer);
    cancelStart();
  };
  return cancel;
}

/** Sends into the flow, and knows whether it got there. */
export interface FlowSender {
  /**
   * Sends one message to each output (`null`: none). Resolves on the next turn of the event loop, when Node-RED has
   * handed it to the next nodes: `false` when the flow was stopped in between, so that they never got it.
   */
  send(outputs: (NodeMessage | NodeMessage[] | null)[]): Promise<boolean>;
  /** The node is being closed. */
  close(): void;
}

/** Makes the sender of a node. */
export function createFlowSender(RED: NodeAPI, node: Node & { wires?: string[][] }): FlowSender {
  let nextNodes: (Node | null)[] | undefined;
  const findNextNodes = () => (node.wires ?? []).flat().map((id) => RED.nodes.getNode(id) as Node | null);
  /** That of what is being sent in one go: what was called back together would otherwise be noted as delivered one by one. */
  let arrival: Promise<boolean> | undefined;
  const arrive = async () => {
    await undefined;
    arrival = undefined;
    // Node-RED delivers by `setImmediate` too, so this, which is set when all has been sent, comes after it.
    await new Promise((resolve) => setImmediate(resolve));
    const atClose = nextNodes;
    return !atClose || findNextNodes().every((next, index) => next !== null && next === atClose[index]);
  };
  return {
    send(outputs) {
      if (nextNodes) return Promise.resolve(false);
      node.send(outputs as NodeMessage[]);
      arrival ??= arrive();
      return arrival;
    },
    close() {
      nextNodes = findNextNodes();
    },
  };
}
