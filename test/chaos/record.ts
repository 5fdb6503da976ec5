import type { FlowNode } from '../node-red-process';
import { createRecorder, readObservations } from '../reliability/recorder';

/** Monotonic time of the machine in ms. It is equal in all processes, so that their records can be compared. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** One flow message from an output of a node, or one error of the node at the Catch node. */
export interface Observation {
  at: number;
  pid: number;
  /** Id of the node. */
  node: string;
  /** Number of the output, from 1. For an error, 0. */
  output: number;
  payload?: unknown;
  topic?: unknown;
  /** Id of the input that caused the observation. Absent for incoming messages and statuses. */
  inputId?: string;
  sms?: {
    redelivered?: boolean;
    duplicate?: boolean;
    via?: string;
    statusCode?: string | number;
    messageId?: string;
    ackId?: string;
    reason?: string;
    accepted?: string[];
    replacements?: number;
    error?: { code: string; message: string; waiting?: number; statusCode?: number };
    [property: string]: unknown;
  };
}

/** Creates a function node that records the flow messages of `node` at `output`. */
export function recordOutput(file: string, node: string, output: number, place: Partial<FlowNode> = {}): FlowNode {
  return createRecorder(recorderOf(node, output), file, place);
}

export function recorderOf(node: string, output: number): string {
  return `record-${node}-${output}`;
}

/** Returns all observations so far. */
export function readOutputs(file: string): Observation[] {
  return readObservations(file).map(({ recorder, error, ...event }) => {
    const [, node = '', output] = /^record-(.+)-(\d)$/.exec(recorder) ?? [];
    return { ...event, node: error?.source.id ?? node, output: Number(output) } as Observation;
  });
}

/** A fault or change that the test caused in the machine or in Node-RED. */
export interface Disturbance {
  kind: string;
  /** Description for the report of a failure. */
  description: string;
  from: number;
  to: number;
}

/** One message that the test sent into the flow. */
export interface Input {
  id: string;
  node: 'plain' | 'kept' | 'once' | 'ask' | 'report' | 'replace';
  /** Body that the flow receives. Absent if the flow message has `msg.reset`. */
  postedBody?: string;
  /** Body that the service receives. */
  body: string;
  to: string[];
  /** Deduplication key or `replace` key of the message. */
  key?: string;
  /** True if the flow message withdraws the stored message with its key. */
  isReset?: boolean;
  from: number;
  /** Time at which the flow confirmed the message. Undefined if it did not. */
  confirmedAt?: number;
}

/** A line of the log about inputs that a node could not store during a full deploy. */
export interface LoggedRefusal {
  node: string;
  count: number;
  /** Time at which the deploy began. */
  at: number;
}

/** All data of a run. */
export interface Story {
  seed: number;
  minutes: number;
  startsOnRedis: boolean;
  begun: number;
  ended: number;
  observations: Observation[];
  disturbances: Disturbance[];
  inputs: Input[];
  loggedRefusals: LoggedRefusal[];
  log: string;
  /** Final state of the account, as its sidebar shows it. */
  state: Record<string, unknown> | undefined;
  endedBy: { at: number; how: string }[];
  pids: { pid: number; from: number; to: number; listening: number }[];
}
