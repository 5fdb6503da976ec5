import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type { Node, NodeAPI, NodeInitializer, NodeStatus } from 'node-red';
import helper from 'node-red-node-test-helper';
import smsAccount from '../../nodes/sms-account';
import smsAsk from '../../nodes/sms-ask';
import smsCallbackIn from '../../nodes/sms-callback-in';
import smsFeed from '../../nodes/sms-feed';
import smsIn from '../../nodes/sms-in';
import smsOutbox from '../../nodes/sms-outbox';
import smsSend from '../../nodes/sms-send';
import smsStatus from '../../nodes/sms-status';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { readCatalog } from '../catalogs';
import type { DeploymentType, FlowNode } from '../node-red-process';
import { until } from '../until';

/** A flow message that a node received. */
export interface FlowMessage {
  _msgid?: string;
  payload?: unknown;
  topic?: unknown;
  // An open type, because tests read every field that the node under test sets.
  sms?: Record<string, unknown> & { error?: Record<string, unknown> };
  parts?: Record<string, unknown>;
  error?: { message: string; code?: string; source: { id: string } };
  [property: string]: unknown;
}

/** One call of a node's `done`. */
interface Completion {
  id: string;
  error: unknown;
}

type Credentials = Record<string, Record<string, string>>;

const nodeRed = process.env.NR ?? require.resolve('node-red');
/** Loads a module of the Node-RED that runs the flows. */
export const requireFromNodeRed = createRequire(nodeRed);
/** Node-RED's log level `debug`. The log does not contain traces and metrics. */
const lowestLevel = 50;
/** Node-RED's log level of warnings. Errors have lower levels. */
const warningLevel = 30;
const { hooks } = requireFromNodeRed('@node-red/util') as { hooks: Hooks };
const smsNodes = [smsAccount, smsSend, smsAsk, smsIn, smsStatus, smsOutbox, smsFeed, smsCallbackIn];

const running = new Set<{ stop(): Promise<unknown> }>();

/** Stops every flow and simulator of a test. Call it in `afterEach`. */
export async function stopEverything(): Promise<void> {
  for (const item of [...running].reverse()) {
    running.delete(item);
    await item.stop();
  }
}

/** Registers a function that {@link stopEverything} calls. */
export function stopLater(stop: () => Promise<unknown>): void {
  running.add({ stop });
}

/** Sets environment variables until the end of the test. */
export function setVariables(variables: Record<string, string>): void {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  stopLater(async () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
}

/** Returns the notation of an environment variable in a property. */
export function variable(name: string): string {
  return `$\{${name}}`;
}

let services = 0;

/** Number of the handset that sends and receives in most tests. */
export const handset = '64215551234';
/** Number to which the simulator of {@link startService} refuses messages (`BLOCKED`). */
export const blocked = '64215550000';

/**
 * Starts a simulator. Polls wait 100 ms, and statuses change only if the test changes them. The address has a new path,
 * because accounts keep their data by address, and a port can be reused.
 */
export async function startService(options: SimulatorOptions = {}): Promise<Simulator> {
  services++;
  const basePath = `/service-${services}`;
  const sim = await startSimulator({ basePath, waitMs: 100, statusDelayMs: Number.POSITIVE_INFINITY, ...options });
  sim.setOutcome(blocked, 'BLOCKED');
  stopLater(() => sim.close());
  return sim;
}

/**
 * Starts a new simulator before each test of a `describe`, and stops every flow and simulator after it.
 *
 * @returns an object that stands for the simulator of the running test
 */
export function useService(options: SimulatorOptions = {}): Simulator {
  let current: Simulator;
  beforeEach(async () => {
    current = await startService(options);
  });
  afterEach(stopEverything);
  return new Proxy({} as Simulator, {
    get(_, name) {
      const value: unknown = Reflect.get(current, name);
      return typeof value === 'function' ? value.bind(current) : value;
    },
  });
}

/** Sends a message directly to the service, without an account node, as another client would. */
export async function sendWithoutAccount(sim: Simulator, params: Record<string, string>): Promise<void> {
  const headers = { authorization: `Bearer ${sim.credentials.apiKey}` };
  const body = new URLSearchParams(params);
  const response = await fetch(`${sim.baseUrl}/api/3/sms/out`, { method: 'POST', headers, body });
  if (response.status !== 200) throw new Error(`The service answered ${response.status}.`);
}

/**
 * Observes from now on how many requests are in flight at an endpoint at the same time.
 * @returns a function that returns the maximum so far
 */
export function countMost(sim: Simulator, endpoint: Parameters<Simulator['polling']>[0]): () => number {
  let most = 0;
  sim.on('change', () => {
    most = Math.max(most, sim.polling(endpoint));
  });
  return () => most;
}

/** Returns the bodies of all messages that a service accepted, in order. */
export function bodiesOf(sim: Pick<Simulator, 'messages'>): string[] {
  return sim.messages.map(({ body }) => body);
}

/** Returns the payloads of flow messages. */
export function payloadsOf(messages: readonly FlowMessage[]): unknown[] {
  return messages.map(({ payload }) => payload);
}

/** One of Node-RED's own nodes, such as `sequence/17-split`. */
export function coreNode(name: string): NodeInitializer {
  return requireFromNodeRed(`@node-red/nodes/core/${name}.js`) as NodeInitializer;
}

/** Returns the text of a catalog key, as a Node-RED in English does. */
function translate(key: string, params: Record<string, unknown> = {}): string {
  const [, file, path = ''] = /^@messaging-service\/node-red-sms\/([\w-]+):(.*)$/.exec(key) ?? [];
  if (file === undefined) return key;
  let found: unknown = readCatalog('en-US', file);
  for (const part of path.split('.')) found = (found as Record<string, unknown> | undefined)?.[part];
  if (typeof found !== 'string') return path;
  return found.replace(/__(\w+?)__/g, (_, name: string) => String(params[name]));
}

/** A flow that runs in this process, from the TypeScript sources. Only one flow can run at a time. */
export class RunningFlow {
  /** Flow messages of each `helper` node, by node id, oldest first. */
  readonly #received = new Map<string, FlowMessage[]>();
  readonly #statuses = new Map<string, NodeStatus[]>();
  /** Every call of `done` by a node under test. */
  readonly completions: Completion[] = [];
  /** Every line of the log: level, id of the node, text. */
  readonly log: { level: number; id?: string; msg: unknown }[] = [];
  readonly #credentials: Credentials;
  #red: NodeAPI | undefined;
  #server: Server | undefined;

  private constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  /**
   * Starts `flow`. Puts nodes with wires on one tab.
   *
   * @param more settings of Node-RED and further node types
   */
  static async start(
    flow: FlowNode[],
    more: { settings?: Record<string, unknown>; nodes?: NodeInitializer[] } = {},
  ): Promise<RunningFlow> {
    const { nodes, credentials } = separateCredentials(flow);
    const started = new RunningFlow(credentials);
    running.add(started);
    helper.init(nodeRed, { ...more.settings } as never);
    const observe = (RED: NodeAPI) => started.#observe(RED);
    await helper.load(
      [observe as NodeInitializer, ...smsNodes, ...(more.nodes ?? [])],
      nodes as never,
      credentials as never,
    );
    started.#collect(nodes);
    return started;
  }

  get red(): NodeAPI {
    if (!this.#red) throw new Error('The flow does not run.');
    return this.#red;
  }

  node(id: string): Node {
    return helper.getNode(id);
  }

  /** Returns the flow messages that a `helper` node received. */
  received(id: string): FlowMessage[] {
    const list = this.#received.get(id) ?? [];
    this.#received.set(id, list);
    return list;
  }

  /** Returns the payloads that a `helper` node received. */
  payloads(id: string): unknown[] {
    return payloadsOf(this.received(id));
  }

  /** Returns the errors that the Catch node of {@link catcher} received. */
  errors(): (Record<string, unknown> | undefined)[] {
    return this.received('caught').map(({ sms }) => sms?.error);
  }

  /** Waits for `count` errors at the Catch node, and returns the codes of all its errors. */
  async codes(count: number): Promise<unknown[]> {
    return (await this.messages('caught', count)).map(({ sms }) => sms?.error?.code);
  }

  /** Waits until a `helper` node has received `count` flow messages. */
  async messages(id: string, count: number): Promise<FlowMessage[]> {
    await until(() => this.received(id).length >= count, `${count} messages at ${id}`);
    return this.received(id);
  }

  /** Returns all badges that a node has shown. */
  statuses(id: string): NodeStatus[] {
    const list = this.#statuses.get(id) ?? [];
    this.#statuses.set(id, list);
    return list;
  }

  /** Returns the texts of all badges that a node has shown. */
  badgeTexts(id: string): (string | undefined)[] {
    return this.statuses(id).map(({ text }) => text);
  }

  /** Returns the current badge of a node. */
  status(id: string): NodeStatus | undefined {
    return this.statuses(id).at(-1);
  }

  /** Waits until a node shows a badge. */
  async badge(id: string, expected: { fill: string; shape: string; text: string }): Promise<void> {
    const shown = () => JSON.stringify(this.status(id));
    await until(
      () => {
        const { fill, shape, text } = (this.status(id) ?? {}) as Record<string, unknown>;
        return fill === expected.fill && shape === expected.shape && text === expected.text;
      },
      () => `the badge ${JSON.stringify(expected)} at ${id}, which is not ${shown()}`,
    );
  }

  /** Returns the lines that a node has logged with this level or a more severe one. */
  logged(id: string, level = warningLevel): string[] {
    return this.log.filter((line) => line.id === id && line.level <= level).map(({ msg }) => String(msg));
  }

  /** Returns the ids of the nodes that have logged that polling works again. */
  recoveries(): (string | undefined)[] {
    return this.log.filter(({ msg }) => msg === 'Polling works again.').map(({ id }) => id);
  }

  /** Sends a flow message to a node, as a wire does. */
  send(id: string, message: Record<string, unknown> = {}): void {
    this.node(id).receive(message as never);
  }

  /** Sends a message to a node. Waits until the node is done and the next nodes have received its outputs. */
  async give(id: string, message: Record<string, unknown> = {}): Promise<void> {
    const { length } = this.#completionsOf(id);
    this.send(id, message);
    await this.done(id, length + 1);
    // Waits, because outputs of this turn of the event loop arrive only in the next turn.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }

  /** Waits until a node has called `done` `count` times, and returns these calls. */
  async done(id: string, count: number): Promise<Completion[]> {
    await until(() => this.#completionsOf(id).length >= count, `done by ${id}`);
    return this.#completionsOf(id);
  }

  #completionsOf(id: string): Completion[] {
    return this.completions.filter((completion) => completion.id === id);
  }

  /** Deploys another flow, and resolves when it runs. */
  async deploy(flow: FlowNode[], type: Exclude<DeploymentType, 'reload'> = 'full'): Promise<void> {
    const { nodes, credentials } = separateCredentials(flow);
    const started = once(this.red.events as never, 'flows:started');
    // Ignores the time limit of the helper, which waits only 300 ms for the flows to start. A node that closes slowly
    // delays the start for longer.
    const deployed = helper
      .setFlows(nodes as never, type, { ...this.#credentials, ...credentials } as never)
      .catch((error: Error) => {
        if (error.message !== 'timeout waiting event') throw error;
      });
    await Promise.all([started, deployed]);
    this.#collect(nodes);
  }

  /** Returns the answer of an admin route of accounts. */
  async readRoute(path: string) {
    return (await helper.request().get(`/sms-account/${path}`).expect(200)).body;
  }

  /** Requests a connection test, and returns the answer. */
  async testConnection(form: Record<string, unknown>): Promise<{ ok: boolean; account?: unknown; error?: unknown }> {
    return (await helper.request().post('/sms-account/test').send(form).expect(200)).body;
  }

  /** Serves the HTTP nodes of Node-RED on loopback, and returns the address. */
  async serve(): Promise<string> {
    if (!this.#server) {
      this.#server = createServer(this.red.httpNode as never).listen(0, '127.0.0.1');
      await once(this.#server, 'listening');
    }
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Stops everything. */
  async stop(): Promise<void> {
    running.delete(this);
    const server = this.#server;
    if (server) {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    }
    await helper.unload();
    const { events, log } = this.red;
    events.removeListener('node-status', this.#onStatus);
    hooks.remove('*.running-flow');
    log.removeHandler(this.#logHandler as never);
  }

  readonly #onStatus = ({ id, status }: { id: string; status?: NodeStatus }) => {
    if (status) this.statuses(id).push(structuredClone(status));
  };

  readonly #logHandler = {
    emit: (_: string, line: { level: number; id?: string; msg: unknown }) => {
      if (line.level <= lowestLevel) this.log.push(line);
    },
    on: () => {},
  };

  #observe(RED: NodeAPI): void {
    this.#red = RED;
    Object.assign(RED, { _: translate });
    const { events, log } = RED;
    events.on('node-status', this.#onStatus);
    hooks.add('onComplete.running-flow', ({ node, error }) => {
      if (node.node.type.startsWith('sms-')) this.completions.push({ id: node.id, error });
    });
    log.addHandler(this.#logHandler as never);
  }

  #collect(nodes: FlowNode[]): void {
    for (const { id, type } of nodes) {
      if (type !== 'helper') continue;
      const node = helper.getNode(id) as (Node & { isCollected?: boolean }) | null;
      if (!node || node.isCollected) continue;
      node.isCollected = true;
      node.on('input', (message, _send, done) => {
        this.received(id).push(message as unknown as FlowMessage);
        done();
      });
    }
  }
}

interface Hooks {
  add(name: string, handler: (event: { node: { id: string; node: { type: string } }; error?: unknown }) => void): void;
  remove(name: string): void;
}

function separateCredentials(flow: FlowNode[]): { nodes: FlowNode[]; credentials: Credentials } {
  const credentials: Credentials = {};
  const nodes = flow.map(({ credentials: own, ...node }) => {
    if (own) credentials[node.id] = own;
    return 'wires' in node ? { x: 0, y: 0, z: 'tab', ...node } : node;
  });
  const needsTab = nodes.some(({ z }) => z === 'tab') && !nodes.some(({ id }) => id === 'tab');
  return { nodes: needsTab ? [{ id: 'tab', type: 'tab', label: 'Test' } as FlowNode, ...nodes] : nodes, credentials };
}

/** Creates an `sms-account` for a simulator, with a store in memory, that polls without a pause. */
export function account(
  sim: Pick<Simulator, 'baseUrl' | 'credentials'>,
  properties: Record<string, unknown> = {},
): FlowNode {
  const { baseUrl, credentials } = sim;
  const own = { baseUrl, pause: '0', store: 'memory', credentials: { ...credentials } };
  return { id: 'account', type: 'sms-account', ...own, ...properties };
}

/** Creates a node of this package that uses the account of {@link account}, wired to the node `got`. */
export function smsNode(type: string, properties: Record<string, unknown> = {}): FlowNode {
  return { id: type, type: `sms-${type}`, account: 'account', wires: [['got']], ...properties };
}

/** Creates an account, a node that uses it, a sink `got` for its output, and a Catch node. */
export function nodeWithSink(
  sim: Simulator,
  type: string,
  properties: Record<string, unknown> = {},
  ofAccount: Record<string, unknown> = {},
): FlowNode[] {
  return [account(sim, ofAccount), smsNode(type, properties), sink('got'), ...catcher()];
}

/** Creates a node that records flow messages for the test. */
export function sink(id: string): FlowNode {
  return { id, type: 'helper', wires: [] };
}

/** Creates a Catch node for all other nodes of the flow, and a sink `caught`. */
export function catcher(): FlowNode[] {
  return [{ id: 'catch', type: 'catch', name: '', scope: null, uncaught: false, wires: [['caught']] }, sink('caught')];
}

/** Creates an `sms-ask` node with a sink at each output. */
export function askNode(
  sim: Simulator,
  properties: Record<string, unknown> = {},
  of: Record<string, unknown> = {},
): FlowNode[] {
  return sendNode(sim, properties, of, [['answer'], ['noAnswer']], 'ask');
}

/** Creates an `sms-send` node with a sink at the end of each wire. */
export function sendNode(
  sim: Simulator,
  properties: Record<string, unknown> = {},
  of: Record<string, unknown> = {},
  wires: readonly string[][] = [['sent'], ['failed']],
  type = 'send',
): FlowNode[] {
  return [account(sim, of), smsNode(type, { wires, ...properties }), ...wires.flat().map(sink), ...catcher()];
}
