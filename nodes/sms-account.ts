import type { Node, NodeAPI } from 'node-red';
import { type AccountSettings, joinAccount, SmsError, systemClock } from '../src';
import { serveAccounts } from './runtime/account-admin';
import { serveForm } from './runtime/account-form';
import { type AccountNode, AccountNodes, ChangeNotifier } from './runtime/account-node';
import { AccountPlaces, importFromFormerPlaces } from './runtime/account-places';
import {
  type AccountConfig,
  type AccountCredentials,
  parseAccount,
  parseMaxLength,
  parseZone,
} from './runtime/account-settings';
import { raiseToCatch, startWithFlows } from './runtime/failures';
import { Flows } from './runtime/flows';
import { translate, translateError } from './runtime/texts';

/** Name of the node that receives each kind of record, for the log. */
const receivers = { incoming: 'sms in', status: 'sms status', outbox: 'sms outbox' } as const;

/** Log messages within this time are combined into one line. */
const logDelayMs = 1_000;

/** The account nodes of one Node-RED. */
interface Accounts {
  nodes: AccountNodes;
  places: AccountPlaces;
}

/**
 * Accounts by admin server. After the package is removed and installed again, Node-RED runs this module again but keeps
 * the old routes. This map lets old routes and new nodes use the same accounts.
 */
const accountsByServer = new WeakMap<NodeAPI['httpAdmin'], Accounts>();

export = (RED: NodeAPI) => {
  const { nodes, places } = serveOnce(RED);
  const changeNotifier = new ChangeNotifier(RED);

  function SmsAccount(this: AccountNode, config: AccountConfig) {
    RED.nodes.createNode(this, config);
    this.pendingTasks = new Set();
    this.hasStarted = false;
    this.optOut = false;
    const cancelStart = startWithFlows(RED, this, () => {
      this.hasStarted = true;
      warnOfOtherConnection(RED, nodes, this);
      changeNotifier.notify();
    });
    let stopImporting = () => {};
    try {
      this.maxLength = parseMaxLength(config);
      this.timeZone = parseZone(config);
      const settings = parseAccount(RED, config, this.credentials ?? {}, () => {
        this.warn(translate(RED, 'log.noUserDir'));
      });
      this.optOut = settings.optOut !== undefined;
      this.connection = {
        ...(settings.proxy && { proxy: settings.proxy }),
        ...(settings.tls && { tls: settings.tls }),
      };
      this.membership = joinAccount({
        ...settings,
        ...createStoredMessageLog(RED, this),
        onDamaged: (error) => this.error(translateError(RED, error).message),
        onFault: (error) => raiseToCatch(RED, this, error),
        onChanged: changeNotifier.notify,
        onUnhandledFull: () => this.warn(translate(RED, 'log.unhandledFull')),
        onUnreceived: (kind) => {
          this.warn(translate(RED, 'log.untaken', { type: receivers[kind] }));
        },
      });
      stopImporting = importFromFormerPlaces(RED, this, {
        membership: this.membership,
        places,
        ...settings,
      });
    } catch (error) {
      this.membership = translateError(RED, error);
      this.error(this.membership);
    }
    nodes.add(this);
    changeNotifier.notify();
    this.on('close', (done: () => void) => {
      const stoppedAt = systemClock.elapsed();
      cancelStart();
      nodes.remove(this);
      changeNotifier.notify();
      stopImporting();
      const { membership, pendingTasks } = this;
      if (membership instanceof SmsError) done();
      else {
        const returning = new Promise<void>((resolve) => Flows.of(RED).afterChange(resolve));
        void Promise.all(pendingTasks).then(() => membership.leave(returning, stoppedAt).finally(done));
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
};

/** Warns if proxy or TLS settings of this node are ignored, because those of another node of the same login apply. */
function warnOfOtherConnection(RED: NodeAPI, nodes: AccountNodes, node: AccountNode): void {
  const { membership } = node;
  const connection = membership instanceof SmsError ? undefined : membership.connection;
  if (!connection) return;
  const name = nodes.get(connection.id)?.name || connection.id;
  const settings = connection.settings.map((setting) => translate(RED, `label.${setting}`)).join(', ');
  node.warn(translate(RED, 'log.connectionDiffers', { name, settings }));
}

function serveOnce(RED: NodeAPI): Accounts {
  const existing = accountsByServer.get(RED.httpAdmin);
  if (existing) return existing;
  const accounts = { nodes: new AccountNodes(RED), places: new AccountPlaces() };
  accountsByServer.set(RED.httpAdmin, accounts);
  serveAccounts(RED, accounts.nodes);
  serveForm(RED, accounts.nodes);
  return accounts;
}

/**
 * Logs stored messages whose flow receives no outcome: those that were discarded, and those that expired while their
 * node did not exist.
 */
function createStoredMessageLog(
  RED: NodeAPI,
  node: Node,
): Required<Pick<AccountSettings, 'onAbandoned' | 'onDiscarded'>> {
  const counts = new Map<string, number>();
  const logAll = () => {
    for (const [id, count] of counts) node.log(translate(RED, 'log.abandoned', { node: id, count }));
    counts.clear();
  };
  return {
    onAbandoned(id) {
      if (counts.size === 0) setTimeout(logAll, logDelayMs).unref();
      counts.set(id, (counts.get(id) ?? 0) + 1);
    },
    // If the message belongs to no node, the log names the account node.
    onDiscarded: (id) => node.log(translate(RED, 'log.discarded', { node: id || node.id })),
  };
}
