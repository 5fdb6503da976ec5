import type { Node, NodeAPI } from 'node-red';
import { isBlank, isSmsError, SmsError } from '../../src';
import { findNode } from './deployed-nodes';
import { isEnv } from './env';

/** A variable as a subflow declares it, with what it is where an instance says nothing else. */
interface Declaration {
  name: string;
  type?: string;
  value?: unknown;
  /** Of the subflow. */
  id: string;
}

/** Types whose value is known without a message and at once. */
const knownTypes = ['str', 'num', 'bool', 'json', 'env', 'cred'];

/**
 * Puts the value of a variable in the place of `${NAME}`, as Node-RED does it in what is deployed; a form still holds the name. What is
 * not set stays as it is.
 *
 * @param id the deployed account that the form is of, if any. One in a subflow runs only as copies: it has what the subflow itself says.
 */
export function resolveVariable(RED: NodeAPI, value: unknown, id: string | undefined): unknown {
  if (typeof value !== 'string' || !isEnv(value)) return value;
  const running = id ? RED.nodes.getNode(id) : null;
  const declared = id && !running ? findDeclaration(RED, id, value.slice(2, -1)) : undefined;
  const found = declared ? evaluateDeclared(RED, declared) : evaluate(RED, value, 'env', running);
  return isBlank(found) ? value : found;
}

/** Says of a variable that is missing that it is up to the subflow, where that declares it. */
export function explainMissing(RED: NodeAPI, error: unknown, id: string | undefined): unknown {
  if (!id || !isSmsError(error) || error.reason !== 'variableMissing') return error;
  const { variable = '' } = error.params;
  return findDeclaration(RED, id, variable) ? new SmsError('variableOfSubflow', { params: { variable } }) : error;
}

function evaluateDeclared(RED: NodeAPI, { id, name, type = 'str', value }: Declaration): unknown {
  const credentials = (RED.nodes.getCredentials(id) ?? {}) as Record<string, unknown>;
  const given = type === 'cred' ? credentials[name] : value;
  return isBlank(given) || !knownTypes.includes(type) ? undefined : evaluate(RED, String(given), type);
}

/** What cannot be read is nothing. */
function evaluate(RED: NodeAPI, value: string, type: string, node: Node | null = null): unknown {
  try {
    return RED.util.evaluateNodeProperty(value, type, node ?? findGlobalNode(RED) ?? ({} as never), {});
  } catch {
    return undefined;
  }
}

function findDeclaration(RED: NodeAPI, id: string, name: unknown): Declaration | undefined {
  const place = findNode(RED, (node) => node.id === id)?.z;
  const subflow = findNode(RED, (node) => node.id === place && node.type === 'subflow');
  const { env = [] } = (subflow ?? {}) as { env?: Omit<Declaration, 'id'>[] };
  const found = env.find((variable) => variable.name === name);
  return subflow && found && { ...found, id: subflow.id };
}

/** The node that has the global environment variables, which an account knows that is not deployed yet. */
function findGlobalNode(RED: NodeAPI): Node | null {
  const found = findNode(RED, ({ type }) => type === 'global-config');
  return found ? RED.nodes.getNode(found.id) : null;
}
