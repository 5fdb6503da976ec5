import type { NodeAPI } from 'node-red';
import { Client, createConnections, joinAccount, SmsError } from '../src';
import { json, serveAccounts } from './runtime/account-admin';
import { AccountNews } from './runtime/account-news';
import type { AccountNode } from './runtime/account-node';
import { AccountNodes } from './runtime/account-nodes';
import { AccountPlaces, inheritFromFormerPlaces } from './runtime/account-places';
import {
  type AccountConfig,
  type AccountCredentials,
  type ConnectionConfig,
  parseAccount,
  parseConnection,
  parseMaxLength,
  parseZone,
} from './runtime/account-settings';
import { type DeployedNode, findNode } from './runtime/deployed-nodes';
import { Flows } from './runtime/flows';
import { logKeptTexts } from './runtime/kept-text-log';
import { raiseToCatch } from './runtime/outcome';
import { savedPassword } from './runtime/saved-password';
import { startWithFlows } from './runtime/start';
import { translate, translateError } from './runtime/texts';
import { explainMissing, resolveVariable } from './runtime/variables';

const mostCharsets = 10;

const connectionFields = ['baseUrl', 'allowHttp', 'authType', 'method', 'tls', 'proxy', 'timeout'] as const;
const credentialFields = ['apiKey', 'userId', 'password'] as const;
const formFields = ['id', ...connectionFields, ...credentialFields] as const;

/** What the form sends to test the connection, as text. */
type ConnectionTest = { [Field in (typeof formFields)[number]]?: string };

/** An account as it is deployed. */
type SavedAccount = DeployedNode & { baseUrl?: unknown };

/** What is known of the account nodes of one Node-RED. */
interface Accounts {
  nodes: AccountNodes;
  places: AccountPlaces;
}

/**
 * By the server of the editor. Node-RED loads a package again that was removed and is installed again, while the routes are still
 * those of the first time.
 */
const accountsByServer = new WeakMap<NodeAPI['httpAdmin'], Accounts>();

export = (RED: NodeAPI) => {
  const { nodes, places } = serveOnce(RED);
  const news = new AccountNews(RED);

  function SmsAccount(this: AccountNode, config: AccountConfig) {
    RED.nodes.createNode(this, config);
    this.awaited = new Set();
    this.hasStarted = false;
    const cancelStart = startWithFlows(RED, this, () => {
      this.hasStarted = true;
      news.changed();
    });
    let stopInheriting = () => {};
    try {
      this.maxLength = parseMaxLength(config);
      this.timeZone = parseZone(config);
      const settings = parseAccount(RED, config, this.credentials ?? {}, () => {
        this.warn(translate(RED, 'log.noUserDir'));
      });
      this.membership = joinAccount({
        ...settings,
        ...logKeptTexts(RED, this),
        onUnknownCharset: createCharsetWarning(RED, this),
        onUnreadable: (place) => this.warn(translate(RED, 'log.unreadable', { place })),
        onFault: (error) => raiseToCatch(RED, this, error),
        onChanged: news.changed,
        onAsideFull: () => this.warn(translate(RED, 'log.asideFull')),
      });
      stopInheriting = inheritFromFormerPlaces(RED, this, {
        membership: this.membership,
        places: places.of(this.id, settings.placesFile),
        ...settings,
      });
    } catch (error) {
      this.membership = translateError(RED, error);
      this.error(this.membership);
    }
    nodes.enter(this);
    news.changed();
    this.on('close', (done: () => void) => {
      cancelStart();
      nodes.leave(this);
      news.changed();
      stopInheriting();
      const { membership, awaited } = this;
      if (membership instanceof SmsError) done();
      else {
        const returning = new Promise<void>((resolve) => Flows.of(RED).onceSettled(resolve));
        void Promise.all(awaited).then(() => membership.leave(returning).finally(done));
      }
    });
  }

  RED.nodes.registerType<AccountNode, AccountConfig, object, AccountCredentials>('sms-account', SmsAccount, {
    credentials: {
      apiKey: { type: 'password' },
      userId: { type: 'text' },
      password: { type: 'password' },
      redisUrl: { type: 'password' },
    },
  });

  RED.httpAdmin.post(
    '/sms-account/test',
    RED.auth.needsPermission('sms-account.write'),
    json,
    async (request, response) => {
      try {
        response.json({ ok: true, account: await testConnection(parseForm(request.body)) });
      } catch (error) {
        const { code, message, statusCode, field } = translateError(RED, error);
        const facts = { ...(statusCode ? { statusCode } : undefined), ...(field ? { field } : undefined) };
        response.json({ ok: false, error: { code, message, ...facts } });
      }
    },
  );

  /** Reads one entry of the feed, which marks nothing as read, and returns the account details. */
  async function testConnection(form: ConnectionTest) {
    const saved = form.id === undefined ? undefined : findAccount(form.id);
    const config: ConnectionConfig = {};
    for (const name of connectionFields) {
      const value = form[name];
      if (value !== undefined) config[name] = resolveVariable(RED, value, saved?.id);
    }
    const settings = parse(config, chooseCredentials(form, config, saved), saved?.id);
    const connections = createConnections(settings);
    try {
      const { account } = await new Client({ ...settings, connections }).readFeed({ size: 1 });
      return account;
    } finally {
      connections.close().catch(() => {});
    }
  }

  /**
   * Those of the form; in the place of one that it does not hold the one that is saved.
   *
   * @throws SmsError `SMS_CONFIG` for one that is needed and was saved for another address: whoever may edit may not read it
   */
  function chooseCredentials(form: ConnectionTest, { baseUrl, authType }: ConnectionConfig, saved?: SavedAccount) {
    const known: AccountCredentials = (saved && RED.nodes.getCredentials(saved.id)) || {};
    const isElsewhere = originOf(baseUrl) !== originOf(saved && resolveVariable(RED, saved.baseUrl, saved.id));
    const needed: readonly string[] = authType === 'basic' || authType === 'form' ? ['userId', 'password'] : ['apiKey'];
    const credentials: AccountCredentials = {};
    for (const field of credentialFields) {
      const given = form[field];
      const isSaved = given === undefined || given === savedPassword;
      const value = resolveVariable(RED, isSaved ? known[field] : given, saved?.id);
      if (value === undefined) continue;
      if (isSaved && isElsewhere && needed.includes(field) && originOf(baseUrl) !== undefined) {
        throw new SmsError('credentialElsewhere', { field, params: { field } });
      }
      credentials[field] = value;
    }
    return credentials;
  }

  function parse(config: ConnectionConfig, credentials: AccountCredentials, id: string | undefined) {
    try {
      return parseConnection(RED, config, credentials);
    } catch (error) {
      throw explainMissing(RED, error, id);
    }
  }

  /** A node that is deployed as an account, be it started or not: the credentials of any other are none of its business. */
  function findAccount(id: string): SavedAccount | undefined {
    return findNode(RED, (node) => node.id === id && node.type === 'sms-account');
  }
};

function serveOnce(RED: NodeAPI): Accounts {
  const served = accountsByServer.get(RED.httpAdmin);
  if (served) return served;
  const accounts = { nodes: new AccountNodes(RED), places: new AccountPlaces() };
  accountsByServer.set(RED.httpAdmin, accounts);
  serveAccounts(RED, accounts.nodes);
  return accounts;
}

/** Makes what warns of each character set once, and of so many only, since the service names them. */
function createCharsetWarning(RED: NodeAPI, node: AccountNode): (charset: string) => void {
  const warned = new Set<string>();
  return (charset) => {
    if (warned.has(charset) || warned.size === mostCharsets) return;
    warned.add(charset);
    node.warn(translate(RED, 'log.unknownCharset', { charset }));
  };
}

/** Reads the body of a test. A value that no field of a form has counts as a field left blank. */
function parseForm(body: unknown): ConnectionTest {
  const form: ConnectionTest = {};
  const given = Object(body) as Record<string, unknown>;
  for (const name of formFields) {
    const value = given[name];
    if (value !== undefined) form[name] = ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : '';
  }
  return form;
}

/** Scheme, host and port of an address; `undefined` when it is none. */
function originOf(address: unknown): string | undefined {
  const text = String(address ?? '').trim();
  return URL.canParse(text) ? new URL(text).origin : undefined;
}
