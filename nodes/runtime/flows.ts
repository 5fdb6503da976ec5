import type { Node, NodeAPI } from 'node-red';

/**
 * Maximum wait for Node-RED to report the start of the flows, in ms since the flows stopped or a node was created.
 * Afterwards, the flows count as started.
 */
export const startedTimeoutMs = 10_000;

type Runtime = Pick<NodeAPI, 'events' | 'nodes'>;

/**
 * Tracks when the flows stop and start. One listener per event serves all nodes, because many listeners cause a
 * warning.
 */
export class Flows {
  static readonly #byEvents = new WeakMap<NodeAPI['events'], Flows>();
  /** Callbacks for the next start of the flows. */
  readonly #startCallbacks = new Set<() => void>();
  /** Callbacks for the end of a change of the flows. */
  readonly #changeEndCallbacks = new Set<() => void>();
  readonly #onStopping = new Set<() => void>();
  readonly #nodes: NodeAPI['nodes'];
  #timer: NodeJS.Timeout | undefined;
  #isChanging = false;

  private constructor({ events, nodes }: Runtime) {
    this.#nodes = nodes;
    events.on('flows:stopping', () => {
      clearTimeout(this.#timer);
      this.#isChanging = true;
      for (const callback of this.#onStopping) callback();
    });
    events.on('flows:stopped', () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#endChange(), startedTimeoutMs).unref();
    });
    events.on('flows:started', () => {
      this.#endChange();
      // A callback that is removed during this loop is not called. A callback that is added waits for the next start.
      for (const callback of [...this.#startCallbacks]) if (this.#startCallbacks.delete(callback)) callback();
    });
  }

  static of(runtime: Runtime): Flows {
    let flows = Flows.#byEvents.get(runtime.events);
    if (!flows) {
      flows = new Flows(runtime);
      Flows.#byEvents.set(runtime.events, flows);
    }
    return flows;
  }

  /** Says whether a node is deployed and not being stopped. */
  isAlive(node: Node): boolean {
    return this.#nodes.getNode(node.id) === node;
  }

  /** Whether the flows are being changed. Nodes that were stopped might then be deployed again. */
  get isChanging(): boolean {
    return this.#isChanging;
  }

  /** Calls back once when the flows have started. Returns a function that cancels the callback. */
  onceStarted(callback: () => void): () => void {
    // Creates a separate function for each call. If several callers pass the same function, the set would hold it only
    // once.
    const uniqueCallback = () => callback();
    this.#startCallbacks.add(uniqueCallback);
    return () => this.#startCallbacks.delete(uniqueCallback);
  }

  /** Calls back at the next start of the flows. A function that is passed several times is called once. */
  onNextStart(callback: () => void): void {
    this.#startCallbacks.add(callback);
  }

  /**
   * Adds a function that is called before nodes are stopped, in the same turn of the event loop. Returns a function
   * that removes it.
   */
  onStopping(callback: () => void): () => void {
    this.#onStopping.add(callback);
    return () => this.#onStopping.delete(callback);
  }

  /** Calls back once: immediately, or after the current change of the flows. */
  afterChange(callback: () => void): void {
    if (this.#isChanging) this.#changeEndCallbacks.add(callback);
    else callback();
  }

  /**
   * Calls back when Catch nodes can receive errors of `node`: after the current change of the flows. If `node` itself
   * is being stopped, calls back immediately.
   */
  onceCatchable(node: Node, callback: () => void): void {
    if (this.isAlive(node)) this.afterChange(callback);
    else callback();
  }

  #endChange(): void {
    clearTimeout(this.#timer);
    this.#isChanging = false;
    for (const callback of this.#changeEndCallbacks) {
      this.#changeEndCallbacks.delete(callback);
      callback();
    }
  }
}
