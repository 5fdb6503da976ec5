import type { Request, RequestHandler, Response } from 'express';
import type { NodeAPI } from 'node-red';
import {
  type AccountEntry,
  type AccountState,
  type EntryAction,
  type EntryState,
  type Membership,
  SmsError,
} from '../../src';
import type { AccountNode, AccountNodes } from './account-node';
import type {
  AccountsReport,
  DecidedReport,
  EntriesReport,
  EntryReport,
  RunningAccount,
  StateReport,
} from './account-report';
import { formatMetrics, type MeasuredAccount, metricsType } from './metrics';
import { OptOutRoutes } from './opt-out-routes';
import { translateError } from './texts';

/** At most so many entries are shown at once, and as many when nobody asks for fewer. */
const mostEntries = 200;

const entryStates: readonly EntryState[] = ['kept', 'uncertain', 'aside'];
const entryActions: readonly EntryAction[] = ['send', 'sent', 'deliver', 'discard'];

/** An account node whose configuration can be used. */
type UsableNode = AccountNode & { membership: Membership };

/** The account nodes that run, in the order of the flows. */
export type RunningNodes = Pick<AccountNodes, 'get' | 'values'>;

/** Lets JSON in alone: what a page of another site can have a browser post is none. */
export const json: RequestHandler = (request, response, next) => {
  if (request.is('json')) next();
  else response.status(415).type('text').send('Send JSON.');
};

/** Serves what goes on in the accounts, and takes what is decided about their entries. */
export function serveAccounts(RED: NodeAPI, nodes: RunningNodes): void {
  const mayRead = RED.auth.needsPermission('sms-account.read');
  // What it shows are private texts.
  const mayWrite = RED.auth.needsPermission('sms-account.write');
  const { httpAdmin } = RED;

  httpAdmin.get('/sms-account/metrics', mayRead, async (_request, response) => {
    await refresh(nodes.values());
    neverKeep(response)
      .setHeader('Content-Type', metricsType)
      .end(formatMetrics(findMeasured(nodes)));
  });

  httpAdmin.get('/sms-account/state', mayRead, async (_request, response) => {
    await refresh(nodes.values());
    const accounts = findAccounts(nodes).map((account) => formatAccount(RED, account));
    const report: AccountsReport = { at: formatTime(Date.now()), accounts };
    neverKeep(response).json(report);
  });

  httpAdmin.get(
    '/sms-account/:id/state',
    mayRead,
    withAccount(async (node, _request, response) => {
      await refresh([node]);
      response.json(formatState(RED, node.membership.state()));
    }),
  );

  const optOuts = new OptOutRoutes(RED);
  httpAdmin.get(
    '/sms-account/:id/optouts',
    mayWrite,
    withAccount(({ membership }, request, response) => void optOuts.read(membership, request, response)),
  );

  httpAdmin.post(
    '/sms-account/:id/optouts',
    mayWrite,
    json,
    withAccount(({ membership }, { body }, response) => void optOuts.change(membership, body, response)),
  );

  httpAdmin.get(
    '/sms-account/:id/entries',
    mayWrite,
    withEntries(({ membership }, { query }, response) => {
      const state = parseState(query.state);
      if (!state) {
        response.sendStatus(400);
        return;
      }
      const { after } = query;
      const place = typeof after === 'string' ? after : undefined;
      const { entries, ...rest } = membership.entries(state, parseMost(query.most), place);
      const report: EntriesReport = { entries: entries.map((entry) => formatEntry(RED, entry)), ...rest };
      response.json(report);
    }),
  );

  httpAdmin.post(
    '/sms-account/:id/entries/:entry',
    mayWrite,
    json,
    withDecision(async ({ membership }, { params }, response, action) => {
      const decision = await membership.act(params.entry ?? '', action);
      if (decision === 'done') response.json({ ok: true });
      else response.sendStatus(decision === 'gone' ? 404 : 409);
    }),
  );

  httpAdmin.post(
    '/sms-account/:id/entries',
    mayWrite,
    json,
    withDecision(async ({ membership }, { body }, response, action) => {
      const state = parseState(Object(body).state);
      const decided = state && (await membership.actOnAll(state, action));
      if (!decided) response.sendStatus(400);
      else if (decided === 'unfit') response.sendStatus(409);
      else response.json(decided satisfies DecidedReport);
    }),
  );

  function withDecision(
    decide: (node: UsableNode, request: Request, response: Response, action: EntryAction) => Promise<void>,
  ): RequestHandler {
    return withEntries(async (node, request, response) => {
      const action = entryActions.find((one) => one === Object(request.body).action);
      if (!action) {
        response.sendStatus(400);
        return;
      }
      try {
        await decide(node, request, response, action);
      } catch (error) {
        const { code, message } = translateError(RED, error);
        response.status(503).json({ error: { code, message } });
      }
    });
  }

  /** Not before it is known what there is. */
  function withEntries(handle: Parameters<typeof withAccount>[0]): RequestHandler {
    return withAccount((node, request, response) => {
      if (node.hasStarted && node.membership.knowsEntries()) void handle(node, request, response);
      else response.set('Retry-After', '1').sendStatus(503);
    });
  }

  function withAccount(
    handle: (node: UsableNode, request: Request, response: Response) => void | Promise<void>,
  ): RequestHandler {
    return (request, response) => {
      const node = nodes.get(request.params.id ?? '');
      if (node && isUsable(node)) void handle(node, request, neverKeep(response));
      else response.sendStatus(404);
    };
  }
}

/** What is known of the lists may be old. Never rejects. */
async function refresh(nodes: Iterable<AccountNode>): Promise<void> {
  await Promise.all([...nodes].filter(isUsable).map(({ membership }) => membership.refresh()));
}

function isUsable(node: AccountNode): node is UsableNode {
  return !(node.membership instanceof SmsError);
}

/** An account with the nodes that count as one: the first of them speaks for all. */
interface FoundAccount {
  node: AccountNode;
  ids: string[];
  names: string[];
  optOut: boolean;
}

function findAccounts(nodes: RunningNodes): FoundAccount[] {
  const found = new Map<string, FoundAccount>();
  for (const node of nodes.values()) {
    // One that cannot be used is like no other.
    const key = isUsable(node) ? `key ${node.membership.key}` : `node ${node.id}`;
    const account = found.get(key) ?? { node, ids: [], names: [], optOut: false };
    account.ids.push(node.id);
    account.names.push(nameOf(node));
    account.optOut ||= node.optOut;
    found.set(key, account);
  }
  return [...found.values()];
}

/** A variable of a flow may have put a number there. */
function nameOf({ name = '' }: AccountNode): string {
  return String(name);
}

function findMeasured(nodes: RunningNodes): MeasuredAccount[] {
  return findAccounts(nodes).flatMap(({ node }) => {
    if (!isUsable(node)) return [];
    const { id, membership } = node;
    return [{ id, name: nameOf(node), state: membership.state() }];
  });
}

function parseState(asked: unknown): EntryState | undefined {
  return entryStates.find((one) => one === asked);
}

/** A number of entries within bounds, whatever was asked for. */
function parseMost(asked: unknown): number {
  const most = Math.floor(Number(asked ?? mostEntries));
  return most >= 1 ? Math.min(most, mostEntries) : mostEntries;
}

function neverKeep(response: Response): Response {
  return response.set('Cache-Control', 'no-store');
}

function formatAccount(RED: NodeAPI, { node, ids, names, optOut }: FoundAccount): RunningAccount {
  const name = nameOf(node);
  if (!isUsable(node)) {
    const { code, message } = translateError(RED, node.membership);
    return { ids, name, names, error: { code, message } };
  }
  const { membership } = node;
  const state = membership.state();
  return {
    ids,
    name,
    names,
    state: formatState(RED, state),
    today: membership.countsToday(),
    todaySince: formatTime(startedToday()),
    failures: formatFailures(RED, state),
    optOut,
  };
}

/** When the process started, where no midnight has been since. */
function startedToday(): number | undefined {
  const startedAt = Date.now() - process.uptime() * 1_000;
  return startedAt > new Date().setHours(0, 0, 0, 0) ? startedAt : undefined;
}

function formatFailures(RED: NodeAPI, { polls }: AccountState): NonNullable<RunningAccount['failures']> {
  const failing = polls.flatMap(({ kind, error }) => (error ? [[kind, translateError(RED, error).message]] : []));
  return Object.fromEntries(failing);
}

function formatState(RED: NodeAPI, { polls, inbox, sends, consent, store, counts }: AccountState): StateReport {
  const { error, ...storeFacts } = store;
  return {
    polls: polls.map(({ kind, state, since, lastAnswerAt }) => ({
      kind,
      state,
      since: formatTime(since),
      lastAnswerAt: formatTime(lastAnswerAt),
    })),
    inbox: { ...inbox, oldestAt: formatTime(inbox.oldestAt) },
    sends: formatSends(RED, sends),
    consent,
    store: { ...storeFacts, ...(error ? { error: translateError(RED, error).toJSON() } : undefined) },
    counts,
  };
}

function formatSends(RED: NodeAPI, { failing, ...sends }: AccountState['sends']): StateReport['sends'] {
  const report = { ...sends, oldestKeptAt: formatTime(sends.oldestKeptAt) };
  if (!failing) return report;
  const { error, since, nextTryAt } = failing;
  const { code, message } = translateError(RED, error);
  return { ...report, failing: { code, message, since: formatTime(since), nextTryAt: formatTime(nextTryAt) } };
}

function formatEntry(RED: NodeAPI, { error, ...entry }: AccountEntry): EntryReport {
  const { dueAt, leftAt } = { dueAt: undefined, leftAt: undefined, ...entry };
  const report = { ...entry, at: formatTime(entry.at), dueAt: formatTime(dueAt), leftAt: formatTime(leftAt) };
  if (!error) return report;
  const { code, message } = translateError(RED, error);
  return { ...report, error: { code, message } };
}

/** What has no time is left out of JSON. */
function formatTime(ms: number): string;
function formatTime(ms: number | undefined): string | undefined;
function formatTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
