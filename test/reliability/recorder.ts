import { existsSync, readFileSync } from 'node:fs';
import type { FlowNode, NodeRedProcess } from '../node-red-process';
import { until } from '../until';

/** One event in a flow: a flow message, an error at the Catch node, or a badge of a node. */
export interface Observation {
  payload?: unknown;
  topic?: unknown;
  sms?: Record<string, unknown> & { error?: { code: string; message: string } };
  error?: { message: string; code?: string; source: { id: string; type: string } };
  status?: { fill?: string; shape?: string; text?: string; source: { id: string; type: string } };
  /** Id of the function node that recorded the event. */
  recorder: string;
  /** Monotonic time of the machine in ms, which is equal in all processes. */
  at: number;
  /** Id of the process that recorded the event. */
  pid: number;
  [property: string]: unknown;
}

const waitLimitMs = 60_000;

/**
 * Creates a function node that writes each whole message to a file immediately, so that the record survives a kill. It
 * passes the message on. `before` is code that runs first, and can return before anything is written.
 */
export function createRecorder(id: string, file: string, properties: Partial<FlowNode> = {}, before = ''): FlowNode {
  return {
    id,
    type: 'function',
    z: 'tab',
    x: 500,
    y: 100,
    func: `${before}
      const { req, res, ...rest } = msg;
      const at = Number(process.hrtime.bigint() / 1000n) / 1000;
      const event = { ...rest, recorder: node.id, at, pid: process.pid };
      fs.appendFileSync(${JSON.stringify(file)}, JSON.stringify(event) + '\\n');
      return msg;`,
    libs: [
      { var: 'fs', module: 'fs' },
      { var: 'process', module: 'process' },
    ],
    outputs: 1,
    wires: [[]],
    ...properties,
  };
}

/** Creates a Catch node and a status node for the whole tab. Their recorder writes to `file`. */
export function createObservers(file: string): FlowNode[] {
  const wires = [['observed']];
  return [
    { id: 'catch', type: 'catch', z: 'tab', x: 100, y: 300, scope: null, uncaught: false, wires },
    { id: 'badges', type: 'status', z: 'tab', x: 100, y: 340, scope: null, wires },
    createRecorder('observed', file),
  ];
}

/** Returns all observations so far. */
export function readObservations(file: string): Observation[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  // Leaves out the last line, which a kill may have cut off.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Observation);
}

/** Returns the number of times that each payload was recorded. */
export function readCounts(file: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { payload } of readObservations(file)) counts.set(String(payload), (counts.get(String(payload)) ?? 0) + 1);
  return counts;
}

/** Waits until `expected` different payloads are recorded. Throws if a minute passes without a new payload. */
export async function waitForCounts(file: string, expected: number): Promise<Map<string, number>> {
  for (let { size } = readCounts(file); size < expected; { size } = readCounts(file)) {
    const reached = size;
    await waitUntil(() => readCounts(file).size > reached, `more than ${reached} of ${expected} messages`);
  }
  return readCounts(file);
}

/** Errors of one node, in order. */
export function errorsOf(file: string, id: string): Observation[] {
  return readObservations(file).filter(({ error }) => error?.source.id === id);
}

/** Badges of one node, in order, as `red ring unreachable`. */
export function badgesOf(file: string, id: string): string[] {
  return readObservations(file)
    .map(({ status }) => status)
    .filter((status) => status?.source.id === id)
    .map((status) => [status?.fill, status?.shape, status?.text].filter((part) => part).join(' '));
}

/** Waits until `isTrue` returns true. If it does not within a minute, throws an error that contains `what`. */
export function waitUntil(isTrue: () => boolean | Promise<boolean>, what: string | (() => string)): Promise<void> {
  return until(isTrue, what, { limitMs: waitLimitMs });
}

/** Presses the button of an inject node, with additional properties for its message. */
export async function inject(
  { url }: Pick<NodeRedProcess, 'url'>,
  id: string,
  properties: Record<string, string> = {},
): Promise<void> {
  const props = Object.entries(properties).map(([p, v]) => ({ p, v, vt: 'str' }));
  const response = await fetch(`${url}/inject/${id}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ __user_inject_props__: props }),
  });
  await response.text();
  if (!response.ok) throw new Error(`The inject node answered ${response.status}`);
}

/** Log lines that show a crash or a bug. Input from outside must never cause them. */
export const crash = /uncaught|unhandled|TypeError|RangeError|ReferenceError|node:internal|heap out of memory/i;
