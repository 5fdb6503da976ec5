import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import {
  createLinkedUserDir,
  type FlowNode,
  type NodeRedOptions,
  type NodeRedProcess,
  startNodeRed,
} from '../node-red-process';
import { until } from '../until';
import { linkNodePackages } from './packages';

const folder = join(__dirname, '..', '..', 'examples');
/** File of each example, by the name of the example without its number. */
export const files = new Map(
  readdirSync(folder).map((file) => [file.replace(/^\d\d /, '').replace(/\.json$/, ''), file]),
);

/** Options of a Node-RED with the context store that some examples need. */
const how: NodeRedOptions = {
  env: { no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1' },
  settings: {
    contextStorage: {
      default: { module: 'memory' },
      file: { module: 'localfilesystem', config: { cache: false } },
    },
  },
};

/** A flow message that a debug node of an example shows. */
interface Shown {
  /** Name of the debug node. */
  name: string;
  payload?: unknown;
  topic?: unknown;
  sms?: Record<string, unknown>;
  error?: { message: string };
  code?: unknown;
  answers?: unknown;
}

/** Handsets of an example. Each example has different handsets, so that no two flows answer the same handset. */
function handsetsOf(name: string): { number: string; other: string; third: string; duty: string } {
  const block = `6421555${files.get(name)?.slice(0, 2)}`;
  return { number: `${block}1`, other: `${block}2`, third: `${block}3`, duty: `${block}9` };
}

/** Reads the flow of an example. */
export function readExample(name: string): FlowNode[] {
  return JSON.parse(readFileSync(join(folder, files.get(name) ?? name), 'utf8')) as FlowNode[];
}

/** Returns the error code of a flow message. */
export function codeOf(shown: Shown | undefined): unknown {
  return (shown?.sms?.error as { code?: unknown } | undefined)?.code;
}

/** The Node-RED that {@link useExamples} started for the running suite. */
export let nodeRed: NodeRedProcess;
/** The simulator of the deployed example. */
export let simulator: Simulator;
let flow: FlowNode[];
let deployments = 0;

/** Simulators and other servers of a test, which close at its end. */
export const opened: { close(): Promise<void> }[] = [];

/** Properties that a test changes in the nodes of a type. */
type Edits = Record<string, object | ((node: FlowNode) => object)>;

/** Deploys an example with an account at a new simulator, and with debug nodes that write to the log. */
async function deploy(name: string, edits: Edits = {}, options: SimulatorOptions = {}): Promise<void> {
  simulator = await startSimulator({ statusDelayMs: 10, ...options });
  opened.push(simulator);
  flow = readExample(name);
  deployments += 1;
  // Uses a new id, because an account with the id of an earlier test would import the data of that test.
  const ownId = (id: unknown) => `${id}-${deployments}`;
  await nodeRed.deploy(
    flow.map((node) => {
      if (node.type === 'debug') return logInsteadOf(node);
      const account = node.account !== undefined && { account: ownId(node.account) };
      const atSimulator = node.type === 'sms-account' && {
        id: ownId(node.id),
        baseUrl: simulator.baseUrl,
        credentials: { apiKey: simulator.credentials.apiKey },
      };
      const edit = edits[node.type];
      return { ...node, ...account, ...atSimulator, ...(typeof edit === 'function' ? edit(node) : edit) };
    }),
  );
}

/** Returns a node that writes the messages of a debug node to the log of Node-RED, where {@link listShown} reads them. */
function logInsteadOf({ id, z, name }: FlowNode): FlowNode {
  const func = `const { payload, topic, sms, error, code, answers } = msg;
const shown = { name: ${JSON.stringify(name)}, payload, topic, sms, error: error && { message: error.message }, code, answers };
node.log('shown-${deployments} ' + JSON.stringify(shown));`;
  return { id, type: 'function', z, func, outputs: 0, wires: [] };
}

/** Returns the flow messages that the debug nodes of the deployed example have shown. */
function listShown(): Shown[] {
  const lines = nodeRed.log.matchAll(new RegExp(`shown-${deployments} (.*)\n`, 'g'));
  return [...lines].map(([, json = '']) => JSON.parse(json) as Shown);
}

/**
 * Defines the tests of an example. The tests get the handsets of the example, and a function that deploys the example
 * with changed nodes.
 */
export function example(
  name: string,
  define: (
    example: ReturnType<typeof handsetsOf> & { deploy: (edits?: Edits, options?: SimulatorOptions) => Promise<void> },
  ) => void,
): void {
  describe(`"${name}"`, () => define({ ...handsetsOf(name), deploy: (...changes) => deploy(name, ...changes) }));
}

export async function press(name: string): Promise<void> {
  const button = flow.find((node) => node.type === 'inject' && node.name === name);
  assert.ok(button, name);
  const response = await fetch(`${nodeRed.url}/inject/${button.id}`, { method: 'POST' });
  assert.equal(response.status, 200);
}

/** Returns the messages sent so far, each with its recipients. */
export function sent(): string[] {
  return simulator.messages.map(({ to, body }) => `${to.join(' ')}: ${body}`);
}

export async function untilSent(...expected: string[]): Promise<void> {
  await until(
    () => expected.every((text) => sent().includes(text)),
    () => `sent: ${JSON.stringify(sent())}, log: ${nodeRed.log}`,
  );
}

/** Returns the address of the admin routes of the deployed account. */
function accountUrl(): string {
  const id = flow.find(({ type }) => type === 'sms-account')?.id;
  return `${nodeRed.editorUrl}/sms-account/${id}-${deployments}`;
}

export async function untilShown(name: string, count = 1): Promise<Shown[]> {
  const list = () => listShown().filter((shown) => shown.name === name);
  await until(
    () => list().length >= count,
    () => `${name} is not in the log: ${nodeRed.log}`,
  );
  return list();
}

/** Names of the debug nodes that have shown something. */
export function namesShown(): string[] {
  return [...new Set(listShown().map(({ name }) => name))];
}

/** Kills Node-RED with `kill -9`, and starts it again with the same flow. */
export async function restart(): Promise<void> {
  await nodeRed.kill();
  await nodeRed.start();
}

/** Waits until the account lists `count` stored messages or opted-out numbers. */
export async function untilListed(list: 'entries?state=kept' | 'optouts', count: number): Promise<void> {
  await until(async () => {
    const answer = await fetch(`${accountUrl()}/${list}`);
    return answer.ok && ((await answer.json()) as { total: number }).total === count;
  }, `${list} tells ${count}`);
}

/** Sends a message from a handset, and waits until the flow has received this message. */
export async function write(from: string, body: string): Promise<void> {
  const message = simulator.receive({ from, to: '642100000001', body });
  await simulator.until(() => message.read);
}

/** Starts Node-RED for the tests of a suite. */
export function useExamples(): void {
  before(async () => {
    const userDir = createLinkedUserDir();
    linkNodePackages(userDir);
    nodeRed = await startNodeRed({ ...how, userDir });
  });

  after(() => nodeRed.kill());

  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
    const { userDir } = nodeRed;
    for (const name of readdirSync(userDir).filter((file) => /^sms-(?:received$|.*\.csv$)/.test(file))) {
      rmSync(join(userDir, name), { recursive: true });
    }
  });
}
