import {
  createLinkedUserDir,
  type DeploymentType,
  type FlowNode,
  type NodeRedExit,
  type NodeRedOptions,
  type NodeRedProcess,
  startNodeRed,
} from './node-red-process';

/** A Node-RED that a test can end and start again. It keeps its user directory, and so its flows, and its port. */
export class RestartableNodeRed {
  readonly userDir = createLinkedUserDir();
  readonly #generation: NodeRedOptions['generation'];
  #process: NodeRedProcess | undefined;
  #earlierLog = '';

  /** @param generation the Node-RED to start, if it differs from that of this run */
  constructor(generation?: NodeRedOptions['generation']) {
    this.#generation = generation;
  }

  /** Starts the process. Without `flows`, it runs the flows that were deployed last. */
  async start(options: Pick<NodeRedOptions, 'flows' | 'env' | 'port'> = {}): Promise<void> {
    const port = options.port ?? this.#process?.port;
    this.#earlierLog = this.log;
    this.#process = await startNodeRed({
      ...options,
      userDir: this.userDir,
      ...(port !== undefined && { port }),
      ...(this.#generation && { generation: this.#generation }),
    });
  }

  get url(): string {
    return this.#process?.url ?? '';
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Output of all processes so far. */
  get log(): string {
    return this.#earlierLog + (this.#process?.log ?? '');
  }

  /** Resolves when the current process has ended. */
  get exited(): Promise<NodeRedExit> {
    return this.#process?.exited ?? Promise.reject(new Error('Node-RED was not started.'));
  }

  async deploy(flows: FlowNode[], type?: DeploymentType): Promise<void> {
    await this.#process?.deploy(flows, type);
  }

  /** Ends the process as Ctrl-C does. */
  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  /** Ends the process without a warning (`kill -9`). */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }
}
