import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { Flows } from './flows';

type Outputs = (NodeMessage | NodeMessage[] | null)[];

/** A node with the ids of the next ones, by its outputs. */
export type WiredNode = Node & { wires?: string[][] };

/** What was sent in one go: together it got there, or not. */
interface Batch {
  /** Each makes one message anew: who got the one before may have changed it. */
  readonly messages: (() => Outputs)[];
  /** It waits for the flows to start, and so does what comes after it. */
  isHeld: boolean;
  /** How often nodes had been stopped when it was sent; `undefined`: they were just being. */
  stops: number | undefined;
  arrival: Promise<boolean>;
}

/**
 * Sends into the flow, and sees to it that it gets there.
 *
 * Node-RED drops what is sent to a node that is being replaced, and says nothing of it: what would meet one waits for its
 * successor, and what was on its way is sent again.
 */
export class FlowSender {
  readonly #RED: NodeAPI;
  readonly #node: WiredNode;
  readonly #flows: Flows;
  readonly #unwatch: () => void;
  /** The next nodes as they were when nodes were stopped for the last time. */
  #nextAtStop: Node[] = [];
  #stops = 0;
  #batch: Batch | undefined;
  /** Batches that are held. */
  #held = 0;
  /** What the last that is held waits for. */
  #settled = Promise.resolve();
  #resume: (() => void) | undefined;
  #isClosed = false;

  constructor(RED: NodeAPI, node: WiredNode) {
    this.#RED = RED;
    this.#node = node;
    this.#flows = Flows.of(RED);
    this.#unwatch = this.#flows.onStopping(() => this.#lookAtNext());
  }

  /**
   * Sends one message to each output (`null`: none). Resolves when Node-RED has handed it to the next nodes, which is on
   * the next turn of the event loop unless one is being replaced: `false` when this node was stopped in between, so that
   * they never got it.
   *
   * @param create makes the messages; is called again if they have to be sent again
   */
  send(create: () => Outputs): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    this.#batch ??= this.#open();
    const batch = this.#batch;
    if (this.#held > 0 || (this.#flows.isChanging && !this.#areNextAlive)) this.#hold(batch);
    else this.#node.send(create() as NodeMessage[]);
    batch.messages.push(create);
    return batch.arrival;
  }

  /** Sends one after the other, and takes each that got there out of the list. `false` when some are left, as of {@link send}. */
  async sendEach(creates: (() => Outputs)[]): Promise<boolean> {
    for (let create = creates[0]; create; create = creates[0]) {
      if (!(await this.send(create))) return false;
      creates.shift();
    }
    return true;
  }

  /**
   * Raises an error, as {@link send} sends: again when nodes were stopped before a Catch node can have passed it on. Resolves with
   * `false` when this node is stopped: then it was not raised, or may not have been passed on.
   */
  async raise(raise: () => void): Promise<boolean> {
    let stops: number | undefined;
    do {
      await new Promise<void>((resolve) => this.#flows.onceHeard(this.#node, resolve));
      if (this.#isStopped) return false;
      stops = this.#stopsNow;
      raise();
      await nextTurn();
    } while (stops !== this.#stops);
    return true;
  }

  /** The node is closed. */
  close(): void {
    this.#isClosed = true;
    this.#unwatch();
    this.#resume?.();
  }

  #lookAtNext(): void {
    this.#stops++;
    const ids = (this.#node.wires ?? []).flat();
    this.#nextAtStop = ids
      .map((id) => this.#RED.nodes.getNode(id))
      .filter((next) => next !== null && next !== undefined);
  }

  #open(): Batch {
    const batch: Batch = { messages: [], isHeld: false, stops: this.#stopsNow, arrival: Promise.resolve(false) };
    batch.arrival = this.#bring(batch);
    return batch;
  }

  async #bring(batch: Batch): Promise<boolean> {
    // What is called back together shares a batch: it would otherwise be noted as delivered one by one.
    await undefined;
    this.#batch = undefined;
    if (!batch.isHeld && (await this.#hasArrived(batch))) return true;
    this.#hold(batch);
    try {
      do {
        if (this.#isStopped) return false;
        await this.#settle();
        if (this.#isStopped) return false;
        batch.stops = this.#stopsNow;
        for (const create of batch.messages) this.#node.send(create() as NodeMessage[]);
      } while (!(await this.#hasArrived(batch)));
      return true;
    } finally {
      this.#held--;
    }
  }

  #hold(batch: Batch): void {
    if (!batch.isHeld) this.#held++;
    batch.isHeld = true;
  }

  async #hasArrived({ stops }: Batch): Promise<boolean> {
    // Node-RED delivers by `setImmediate` too, so this, which is set when all has been sent, comes after it.
    await nextTurn();
    return stops === this.#stops || this.#areNextAlive;
  }

  get #stopsNow(): number | undefined {
    return this.#flows.isChanging ? undefined : this.#stops;
  }

  get #areNextAlive(): boolean {
    return this.#nextAtStop.every((next) => this.#flows.isAlive(next));
  }

  get #isStopped(): boolean {
    return this.#isClosed || !this.#flows.isAlive(this.#node);
  }

  /** Resolves when the flows are not being changed any more, or this node was closed: in the order of the calls. */
  #settle(): Promise<void> {
    this.#settled = this.#settled.then(async () => {
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
        this.#flows.onceSettled(resolve);
      });
    });
    return this.#settled;
  }
}
