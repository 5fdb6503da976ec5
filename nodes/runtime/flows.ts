import type { Node, NodeAPI } from 'node-red';
import { showAndRaise } from './outcome';

/** Should Node-RED not say that the flows have started, they are taken to have after so long. */
const startedTimeoutMs = 10_000;

/** Who is told how the flows fare. */
export interface FlowsWatcher {
  /** Nodes will be stopped in this turn of the event loop, those that a deployment does not concern excepted. */
  onStopping(): void;
  /** Nodes that were stopped are back, or will not come. */
  onSettled(): void;
}

/** How the flows of one Node-RED fare. Its emitter has one listener for each event: one for each node would be taken for a leak. */
export class Flows {
  static readonly #byEvents = new WeakMap<NodeAPI['events'], Flows>();
  /** What waits for the next start of the flows. */
  readonly #turns = new Set<() => void>();
  readonly #watchers = new Set<FlowsWatcher>();
  #timer: NodeJS.Timeout | undefined;
  #isChanging = false;

  private constructor(events: NodeAPI['events']) {
    events.on('flows:stopping', () => {
      clearTimeout(this.#timer);
      this.#isChanging = true;
      for (const watcher of this.#watchers) watcher.onStopping();
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

  static of({ events }: Pick<NodeAPI, 'events'>): Flows {
    let flows = Flows.#byEvents.get(events);
    if (!flows) {
      flows = new Flows(events);
      Flows.#byEvents.set(events, flows);
    }
    return flows;
  }

  /** Nodes have been stopped that may come back. */
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

  watch(watcher: FlowsWatcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: FlowsWatcher): void {
    this.#watchers.delete(watcher);
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#isChanging = false;
    for (const watcher of this.#watchers) watcher.onSettled();
  }
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
  const cancelStart = Flows.of(RED).onceStarted(run);
  const timer = setTimeout(run, startedTimeoutMs);
  const cancel = () => {
    clearTimeout(timer);
    cancelStart();
  };
  return cancel;
}
