import type { Node, NodeAPI } from 'node-red';

/** Should Node-RED not say that the flows have started, they are taken to have after so long. */
export const startedTimeoutMs = 10_000;

type Runtime = Pick<NodeAPI, 'events' | 'nodes'>;

/** How the flows of one Node-RED fare. Its emitter has one listener for each event: one for each node would be taken for a leak. */
export class Flows {
  static readonly #byEvents = new WeakMap<NodeAPI['events'], Flows>();
  /** What waits for the next start of the flows. */
  readonly #turns = new Set<() => void>();
  /** What waits until nodes that were stopped are back, or will not come. */
  readonly #waiting = new Set<() => void>();
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
      this.#timer = setTimeout(() => this.#settle(), startedTimeoutMs).unref();
    });
    events.on('flows:started', () => {
      this.#settle();
      // Who is called off meanwhile has no turn; who comes meanwhile has it at the next start.
      for (const turn of [...this.#turns]) if (this.#turns.delete(turn)) turn();
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

  /** Whether a node takes part in the flows: not once it is being stopped. */
  isAlive(node: Node): boolean {
    return this.#nodes.getNode(node.id) === node;
  }

  /** Whether nodes have been stopped that may come back. */
  get isChanging(): boolean {
    return this.#isChanging;
  }

  /** Calls back once when the flows have started. Returns how to call it off. */
  onceStarted(callback: () => void): () => void {
    // Of two that give the same function, each has its own turn.
    const turn = () => callback();
    this.#turns.add(turn);
    return () => this.#turns.delete(turn);
  }

  /** Calls back when the flows have started, and once however often it is asked for until then. */
  onNextStart(callback: () => void): void {
    this.#turns.add(callback);
  }

  /** Calls back whenever nodes will be stopped in this turn of the event loop. Returns how to call it off. */
  onStopping(callback: () => void): () => void {
    this.#onStopping.add(callback);
    return () => this.#onStopping.delete(callback);
  }

  /** Calls back once, at once unless nodes have been stopped that may come back. */
  onceSettled(callback: () => void): void {
    if (this.#isChanging) this.#waiting.add(callback);
    else callback();
  }

  /** Calls back when a Catch node that is being replaced hears what `node` raises. It hears nothing of one that is being stopped itself. */
  onceHeard(node: Node, callback: () => void): void {
    if (this.isAlive(node)) this.onceSettled(callback);
    else callback();
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#isChanging = false;
    for (const resume of this.#waiting) {
      this.#waiting.delete(resume);
      resume();
    }
  }
}
