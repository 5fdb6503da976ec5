import { existsSync, readFileSync } from 'node:fs';
import type { FlowNode } from '../node-red-process';

/** Milliseconds of the machine's clock that is never set: the same in every process, so that what they write down compares. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** One message that the flow saw at one output of one node, or an error of it at the Catch node. */
export interface Seen {
  at: number;
  pid: number;
  /** Id of the node. */
  node: string;
  /** Counted from 1; 0 for an error. */
  output: number;
  payload?: unknown;
  topic?: unknown;
  /** Id of the input that the flow received, for outgoing messages. */
  feed?: string;
  sms?: {
    redelivered?: boolean;
    duplicate?: boolean;
    via?: string;
    statusCode?: string | number;
    messageId?: string;
    ackId?: string;
    reason?: string;
    accepted?: string[];
    error?: { code: string; message: string; waiting?: number; statusCode?: number };
    [property: string]: unknown;
  };
}

/** A function node that writes down what comes out of `node` at `output` before anything else can happen to it. */
export function createRecorder(file: string, node: string, output: number, place: Partial<FlowNode> = {}): FlowNode {
  return {
    id: recorderOf(node, output),
    type: 'function',
    z: 'tab',
    x: 500,
    y: 100,
    func: `const at = Number(process.hrtime.bigint() / 1000n) / 1000;
const seen = { at, pid: process.pid, node: ${output === 0 ? 'msg.error.source.id' : `'${node}'`}, output: ${output}, payload: msg.payload, topic: msg.topic, feed: msg.feed, sms: msg.sms };
fs.appendFileSync(${JSON.stringify(file)}, JSON.stringify(seen) + '\\n');
return msg;`,
    libs: [
      { var: 'fs', module: 'fs' },
      { var: 'process', module: 'process' },
    ],
    outputs: 1,
    wires: [[]],
    ...place,
  };
}

export function recorderOf(node: string, output: number): string {
  return `seen-${node}-${output}`;
}

/** Lines of JSON as they were appended; a kill may have cut one off. */
export function readLines<Line>(file: string): Line[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Line];
      } catch {
        return [];
      }
    });
}

/** Something that was done to the machine or to Node-RED. */
export interface Happening {
  kind: string;
  /** In words, for the story that is told of a failure. */
  what: string;
  from: number;
  to: number;
}

/** One text that was handed to the flow. */
export interface Feed {
  id: string;
  node: 'plain' | 'kept' | 'once' | 'ask' | 'report';
  body: string;
  to: string[];
  /** The key of `once`. */
  key?: string;
  from: number;
  /** When the flow said that it has it; undefined when it did not say so. */
  taken?: number;
}

/** Everything that is known at the end. */
export interface Story {
  seed: number;
  minutes: number;
  startsOnRedis: boolean;
  begun: number;
  ended: number;
  seen: Seen[];
  happenings: Happening[];
  feeds: Feed[];
  log: string;
  /** How the event loop of each process went. */
  loops: LoopWindow[];
  control: LoopWindow[];
  /** The state of the account that its sidebar shows, after everything has come to rest. */
  state: Record<string, unknown> | undefined;
  endedBy: { at: number; how: string }[];
  pids: { pid: number; from: number; to: number; listening: number }[];
}

/** A quarter of a second in the life of a process. */
export interface LoopWindow {
  at: number;
  pid: number;
  /** The longest that the event loop was kept, less the time in which the machine gave the process no processor. */
  stallMs: number;
  waitedMs: number;
  heapBytes: number;
}

/** Finds the faults of some kinds that overlap a period. */
export function during(story: Story, kinds: RegExp, from: number, to: number): Happening[] {
  return story.happenings.filter((one) => kinds.test(one.kind) && one.from <= to && one.to >= from);
}
