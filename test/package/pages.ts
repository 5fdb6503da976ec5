import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Context } from 'mocha';
import { type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { simulator } from '../simulator/use-simulator';
import { skip } from '../skip';
import { root } from './packed';

/** Reads a file of the project. */
export function readPage(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/** Returns the code blocks of a language, in order. */
export function codeBlocks(page: string, language: string): string[] {
  return [...page.matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code = '']) => code);
}

/** Starts Node-RED with flows from a page of `docs/`. Their account uses the simulator of the running test. */
export function runFlows(flows: FlowNode[]): Promise<NodeRedProcess> {
  const apiKey = simulator.credentials.apiKey ?? '';
  const env = { SMS_BASE_URL: simulator.baseUrl, SMS_API_KEY: apiKey };
  const complete = (node: FlowNode) => (node.type === 'sms-account' ? { ...node, credentials: { apiKey } } : node);
  return startNodeRed({ env, flows: flows.map(complete) });
}

/** Runs commands of a page and returns their output. Skips the test if curl is not installed. */
export async function runCommands(context: Context, commands: string): Promise<string> {
  try {
    return (await promisify(execFile)('sh', ['-e', '-c', commands])).stdout;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 127) throw error;
    return skip(context, 'curl is not installed');
  }
}
