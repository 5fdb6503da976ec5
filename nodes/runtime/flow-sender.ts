import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { Flows } from './flows';

type Outputs = (NodeMessage | NodeMessage[] | null)[];

/** A node with its `wires`: the ids of the next nodes, by output. */
export type WiredNode = Node & { wires?: string[][] };

/**
 * Flow messages that were sent in the same turn of the event loop. One check covers them all: if some might be lost,
 * all of them are sent again.
 */
interface Batch {
  /**
   * Functions that create the flow messages. Each call creates a new flow message, because a node that received an
   * earlier one might have changed it.
   */
  readonly messages: (() => Outputs)[];
  /** Whether the batch waits for the end of a change of the flows. Later batches then wait too. */
  isWaiting: boolean;
  /**
   * Value of `#stops` (how often Node-RED has stopped nodes) when the batch was sent. If `#stops` has changed since
   * then, flow messages might be lost. `undefined` during a change of the flows.
   */
  stops: number | undefined;
  arrival: Promise<boolean>;
}

/**
 * Sends flow messages so that they arrive even during a redeploy.
 *
 * Node-RED silently drops a flow message to a node that is being replaced. Therefore, this class waits for the new
 * node. If the old node might not have handled a flow message, the class sends it again to the new node.
 */
export class FlowSender {
  readonly #RED: NodeAPI;
  readonly #node: WiredNode;
  readonly #flows: Flows;
  readonly #unwatch: () => void;
  /**
   * Nodes that were wired to the outputs of this node when Node-RED last stopped nodes. If all of them still run, flow
   * messages reach them.
   */
  #nextAtStop: Node[] = [];
  #stops = 0;
  #batch: Batch | undefined;
  /** Number of waiting batches. */
  #waitingBatches = 0;
  /** Resolves when all batches that wait now can be sent. */
  #whenFlowsAreStable = Promise.resolve();
  #resume: (() => void) | undefined;
  #isClosed = false;

  constructor(RED: NodeAPI, node: WiredNode) {
    this.#RED = RED;
    this.#node = node;
    this.#flows = Flows.of(RED);
    this.#unwatch = this.#flows.onStopping(() => this.#findNextNodes());
  }

  /**
   * Sends one flow message to each output (`null`: none). Resolves with `true` after the next nodes got them, usually
   * in the next turn of the event loop. Resolves with `false` if this node was stopped before.
   *
   * @param create creates the flow messages; called for each attempt
   */
  send(create: () => Outputs): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    this.#batch ??= this.#createBatch();
    const batch = this.#batch;
    if (this.#waitingBatches > 0 || (this.#flows.isChanging && !this.#areNextAlive)) this.#markWaiting(batch);
    else this.#node.send(create() as NodeMessage[]);
    batch.messages.push(create);
    return batch.arrival;
  }

  /**
   * Sends flow messages one after another, and removes each from `creates` when it has arrived. Resolves with `false`
   * if this node was stopped before all of them had arrived.
   */
  async sendEach(creates: (() => Outputs)[]): Promise<boolean> {
    for (let create = creates[0]; create; create = creates[0]) {
      if (!(await this.send(create))) return false;
      creates.shift();
    }
    return true;
  }

  /**
   * Raises an error, and raises it again if nodes were stopped before a Catch node could pass it on. Resolves with
   * `false` if this node is stopped, because the error might then be lost.
   */
  async raise(raise: () => void): Promise<boolean> {
    let stops: number | undefined;
    do {
      await new Promise<void>((resolve) => this.#flows.onceCatchable(this.#node, resolve));
      if (this.#isStopped) return false;
      stops = this.#stopsNow;
      raise();
      await nextTurn();
    } while (stops !== this.#stops);
    return true;
  }

  /** Stops sending because the node is closed. */
  close(): void {
    this.#isClosed = true;
    this.#unwatch();
    this.#resume?.();
  }

  #findNextNodes(): void {
    this.#stops++;
    const ids = (this.#node.wires ?? []).flat();
    this.#nextAtStop = ids
      .map((id) => this.#RED.nodes.getNode(id))
      .filter((nextNode) => nextNode !== null && nextNode !== undefined);
  }

  #createBatch(): Batch {
    const batch: Batch = { messages: [], isWaiting: false, stops: this.#stopsNow, arrival: Promise.resolve(false) };
    batch.arrival = this.#deliver(batch);
    return batch;
  }

  async #deliver(batch: Batch): Promise<boolean> {
    // Waits for the other calls in this turn of the event loop, so that one check covers the flow messages of all
    // calls.
    await undefined;
    this.#batch = undefined;
    if (!batch.isWaiting && (await this.#hasArrived(batch))) return true;
    this.#markWaiting(batch);
    try {
      do {
        if (this.#isStopped) return false;
        await this.#waitForFlows();
        if (this.#isStopped) return false;
        batch.stops = this.#stopsNow;
        for (const create of batch.messages) this.#node.send(create() as NodeMessage[]);
      } while (!(await this.#hasArrived(batch)));
      return true;
    } finally {
      this.#waitingBatches--;
    }
  }

  #markWaiting(batch: Batch): void {
    if (!batch.isWaiting) this.#waitingBatches++;
    batch.isWaiting = true;
  }

  async #hasArrived({ stops }: Batch): Promise<boolean> {
    // Waits until Node-RED has delivered the flow messages. Node-RED uses `setImmediate` too, and its deliveries come
    // first.
    await nextTurn();
    return stops === this.#stops || this.#areNextAlive;
  }

  get #stopsNow(): number | undefined {
    return this.#flows.isChanging ? undefined : this.#stops;
  }

  get #areNextAlive(): boolean {
    return this.#nextAtStop.every((nextNode) => this.#flows.isAlive(nextNode));
  }

  get #isStopped(): boolean {
    return this.#isClosed || !this.#flows.isAlive(this.#node);
  }

  /**
   * Resolves when a change of the flows has ended or this node is closed. Simultaneous calls resolve in their order.
   */
  #waitForFlows(): Promise<void> {
    this.#whenFlowsAreStable = this.#whenFlowsAreStable.then(async () => {
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
        this.#flows.afterChange(resolve);
      });
    });
    return this.#whenFlowsAreStable;
  }
}
