import { isDeepStrictEqual } from 'node:util';
import type { Node, NodeAPI } from 'node-red';
import { Client, createConnections, isBlank, isSmsError, keyOfLogin, SmsError } from '../../src';
import { isEnv } from '../limits';
import { json, type RunningNodes } from './account-admin';
import type { AccountConnection } from './account-node';
import { type SameLoginReport, savedPassword } from './account-report';
import {
  type AccountCredentials,
  type ConnectionConfig,
  type ConnectionSettings,
  connectionFields,
  parseConnection,
} from './account-settings';
import { translateError } from './texts';

const credentialFields = ['apiKey', 'userId', 'password'] as const;
const formFields = ['id', ...connectionFields, ...credentialFields] as const;

/** Connection settings in the form of an account, as text. */
type ConnectionForm = { [Field in (typeof formFields)[number]]?: string };

/** The configuration of a deployed node. The node itself might not have started. */
type DeployedNode = Parameters<Parameters<NodeAPI['nodes']['eachNode']>[0]>[0];

type SavedAccount = DeployedNode & { baseUrl?: unknown };

/** Serves the admin routes that the form of an account calls with its current values. */
export function serveForm(RED: NodeAPI, nodes: RunningNodes): void {
  const mayWrite = RED.auth.needsPermission('sms-account.write');

  RED.httpAdmin.post('/sms-account/test', mayWrite, json, async (request, response) => {
    try {
      response.json({ ok: true, account: await testConnection(readForm(RED, parseForm(request.body))) });
    } catch (error) {
      const { code, message, statusCode, field } = translateError(RED, error);
      const facts = { ...(statusCode ? { statusCode } : undefined), ...(field ? { field } : undefined) };
      response.json({ ok: false, error: { code, message, ...facts } });
    }
  });

  RED.httpAdmin.post('/sms-account/same', mayWrite, json, (request, response) => {
    const form = parseForm(request.body);
    const report: SameLoginReport = { same: [] };
    try {
      const settings = readForm(RED, form);
      const key = keyOfLogin(settings);
      for (const { id, name = '', membership, connection } of nodes.values()) {
        if (id === form.id || membership instanceof SmsError || membership.key !== key) continue;
        // If the proxy and TLS settings of this node are ignored, reports no differences, because the settings of
        // another node apply.
        const differs = membership.connection ? [] : findDiffering(settings, connection);
        report.same.push({ id, name: String(name), differs });
      }
    } catch {
      // Reports no nodes if a value of the form is missing or invalid, because the form then has no login to compare.
    }
    response.json(report);
  });
}

/** Returns the connection settings in which two account nodes differ. */
function findDiffering(form: AccountConnection, otherConnection: AccountConnection = {}): ('proxy' | 'tls')[] {
  return (['proxy', 'tls'] as const).filter((name) => !isDeepStrictEqual(form[name], otherConnection[name]));
}

/** Reads one entry of the feed and returns the account details. The service marks nothing as read. */
async function testConnection(settings: ConnectionSettings) {
  const connections = createConnections(settings);
  try {
    const { account } = await new Client({ ...settings, connections }).readFeed({ size: 1 });
    return account;
  } finally {
    connections.close().catch(() => {});
  }
}

/** Reads the request body. A value that a form field cannot contain counts as blank. */
function parseForm(body: unknown): ConnectionForm {
  const form: ConnectionForm = {};
  const values = Object(body) as Record<string, unknown>;
  for (const name of formFields) {
    const value = values[name];
    if (value !== undefined) form[name] = ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : '';
  }
  return form;
}

/** @throws SmsError `SMS_CONFIG` */
function readForm(RED: NodeAPI, form: ConnectionForm): ConnectionSettings {
  // Finds only account nodes, so that a request cannot use the saved credentials of other nodes.
  const savedAccount = findNode(RED, ({ id, type }) => id === form.id && type === 'sms-account');
  const config: ConnectionConfig = {};
  for (const name of connectionFields) {
    const value = form[name];
    if (value !== undefined) config[name] = resolveVariable(RED, value, savedAccount?.id);
  }
  const credentials = chooseCredentials(RED, form, config, savedAccount);
  try {
    return parseConnection(RED, config, credentials);
  } catch (error) {
    throw explainMissing(RED, error, savedAccount?.id);
  }
}

/**
 * Returns the credentials of the form, with saved credentials instead of blank fields.
 *
 * @throws SmsError `SMS_CONFIG` if a needed credential was saved for another address. Otherwise, an editor user could
 * send a saved credential to any address.
 */
function chooseCredentials(
  RED: NodeAPI,
  form: ConnectionForm,
  { baseUrl, authType }: ConnectionConfig,
  savedAccount: SavedAccount | undefined,
): AccountCredentials {
  const savedCredentials: AccountCredentials = (savedAccount && RED.nodes.getCredentials(savedAccount.id)) || {};
  const origin = originOf(baseUrl);
  const isElsewhere = origin !== originOf(savedAccount && resolveVariable(RED, savedAccount.baseUrl, savedAccount.id));
  const neededFields: readonly string[] =
    authType === 'basic' || authType === 'form' ? ['userId', 'password'] : ['apiKey'];
  const credentials: AccountCredentials = {};
  for (const field of credentialFields) {
    const formValue = form[field];
    const isSaved = formValue === undefined || formValue === savedPassword;
    const value = resolveVariable(RED, isSaved ? savedCredentials[field] : formValue, savedAccount?.id);
    if (isBlank(value)) continue;
    // Ignores an invalid address here, because a later check refuses it.
    if (isSaved && isElsewhere && origin !== undefined && neededFields.includes(field)) {
      throw new SmsError('credentialElsewhere', { field, params: { field } });
    }
    credentials[field] = value;
  }
  return credentials;
}

/** Returns scheme, host and port of an address, or `undefined` if it is invalid. */
function originOf(address: unknown): string | undefined {
  const text = String(address ?? '').trim();
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

/** An environment variable that a subflow declares, with its default. */
interface Declaration {
  name: string;
  type?: string;
  value?: unknown;
  /** Id of the subflow. */
  id: string;
}

/** Types of environment variables that can be evaluated synchronously and without a flow message. */
const knownTypes = ['str', 'num', 'bool', 'json', 'env', 'cred'];

/**
 * Replaces `${NAME}` by the value of the variable, as Node-RED does for deployed nodes. If the variable has no value,
 * `${NAME}` stays.
 *
 * @param id id of the deployed account; for an account in a subflow, the defaults of the subflow apply
 */
function resolveVariable(RED: NodeAPI, value: unknown, id: string | undefined): unknown {
  if (typeof value !== 'string' || !isEnv(value)) return value;
  const runningNode = id ? RED.nodes.getNode(id) : null;
  const declaration = id && !runningNode ? findDeclaration(RED, id, value.slice(2, -1)) : undefined;
  const resolvedValue = declaration ? evaluateDeclared(RED, declaration) : evaluate(RED, value, 'env', runningNode);
  return isBlank(resolvedValue) ? value : resolvedValue;
}

/** If the subflow of the account declares the missing variable, returns a clearer error. Otherwise, returns `error`. */
function explainMissing(RED: NodeAPI, error: unknown, id: string | undefined): unknown {
  if (!id || !isSmsError(error) || error.reason !== 'variableMissing') return error;
  const { variable = '' } = error.params;
  return findDeclaration(RED, id, variable) ? new SmsError('variableOfSubflow', { params: { variable } }) : error;
}

function evaluateDeclared(RED: NodeAPI, { id, name, type = 'str', value }: Declaration): unknown {
  const credentials = (RED.nodes.getCredentials(id) ?? {}) as Record<string, unknown>;
  const byDefault = type === 'cred' ? credentials[name] : value;
  return isBlank(byDefault) || !knownTypes.includes(type) ? undefined : evaluate(RED, String(byDefault), type);
}

/** Evaluates a value. Returns `undefined` if the evaluation fails. */
function evaluate(RED: NodeAPI, value: string, type: string, node: Node | null = null): unknown {
  try {
    return RED.util.evaluateNodeProperty(value, type, node ?? findGlobalNode(RED) ?? ({} as never), {});
  } catch {
    return undefined;
  }
}

function findDeclaration(RED: NodeAPI, id: string, name: unknown): Declaration | undefined {
  const containerId = findNode(RED, (node) => node.id === id)?.z;
  const subflow = findNode(RED, (node) => node.id === containerId && node.type === 'subflow');
  const { env = [] } = (subflow ?? {}) as { env?: Omit<Declaration, 'id'>[] };
  const declaration = env.find((variable) => variable.name === name);
  return subflow && declaration && { ...declaration, id: subflow.id };
}

/** Returns the node that holds the global environment variables, for an account that is not deployed yet. */
function findGlobalNode(RED: NodeAPI): Node | null {
  const globalNode = findNode(RED, ({ type }) => type === 'global-config');
  return globalNode ? RED.nodes.getNode(globalNode.id) : null;
}

/** Returns the first matching node. */
function findNode(RED: NodeAPI, isMeant: (node: DeployedNode) => boolean): DeployedNode | undefined {
  let firstMatch: DeployedNode | undefined;
  RED.nodes.eachNode((node) => {
    if (!firstMatch && isMeant(node)) firstMatch = node;
  });
  return firstMatch;
}
