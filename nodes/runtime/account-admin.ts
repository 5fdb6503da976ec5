import type { Request, RequestHandler, Response } from 'express';
import type { NodeAPI } from 'node-red';
import {
  type AccountEntry,
  type AccountState,
  type ConsentChange,
  type EntryAction,
  type EntryQuery,
  type EntryState,
  type Membership,
  type OptOut,
  type OptOutQuery,
  parseMsisdn,
  SmsError,
  type WaitingEntry,
  waitingLists,
} from '../../src';
import type { AccountNode, AccountNodes } from './account-node';
import type {
  AccountsReport,
  DecidedReport,
  EntriesReport,
  EntryReport,
  ErrorReport,
  OptOutChangedReport,
  OptOutsReport,
  RunningAccount,
  StateReport,
  StatesReport,
  WaitingEntryReport,
  WaitingReport,
} from './account-report';
import { formatMetrics, metricsType } from './metrics';
import { translateError } from './texts';

/** Maximum number of entries in one answer, also the default. */
const maxEntries = 200;

/** Maximum length of a search text, in characters. Longer texts are cut off. */
const maxSearchLength = 200;

/** Maximum number of phone numbers in one request. */
const maxNumbers = 10_000;

const entryStates: readonly EntryState[] = ['kept', 'uncertain', 'unhandled'];
const entryActions: readonly EntryAction[] = ['send', 'markSent', 'deliver', 'discard'];
const consentChanges: readonly ConsentChange[] = ['out', 'in'];

/** An account node with a valid configuration. */
type UsableNode = AccountNode & { membership: Membership };

/** The deployed account nodes, in the order of the flows. */
export type RunningNodes = Pick<AccountNodes, 'get' | 'values'>;

/** Accepts only JSON, because a page of another site cannot make a browser post JSON. */
export const json: RequestHandler = (request, response, next) => {
  if (request.is('json')) next();
  else response.status(415).type('text').send('Send JSON.');
};

/** Serves the state of the accounts and lists of their messages (entries), and lets users act on these messages. */
export function serveAccounts(RED: NodeAPI, nodes: RunningNodes): void {
  const mayRead = RED.auth.needsPermission('sms-account.read');
  // This permission is also needed to read entries, because entries contain private message bodies.
  const mayWrite = RED.auth.needsPermission('sms-account.write');
  const { httpAdmin } = RED;

  httpAdmin.get(
    '/sms-account/metrics',
    mayRead,
    answerOfAll((response) => {
      response.setHeader('Content-Type', metricsType).end(formatMetrics(findMeasured(nodes)));
    }),
  );

  httpAdmin.get(
    '/sms-account/state',
    mayRead,
    answerOfAll((response) => {
      const states = [...nodes.values()].map((node): [string, StateReport | { error: ErrorReport }] => [
        node.id,
        isUsable(node) ? formatNode(RED, nodes, node) : { error: formatError(RED, node.membership) },
      ]);
      response.json(Object.fromEntries(states) satisfies StatesReport);
    }),
  );

  httpAdmin.get(
    '/sms-account/overview',
    mayRead,
    answerOfAll((response) => {
      const accounts = findAccounts(nodes).map((account) => formatAccount(RED, nodes, account));
      response.json({ at: formatTime(Date.now()), accounts } satisfies AccountsReport);
    }),
  );

  httpAdmin.get(
    '/sms-account/:id/state',
    mayRead,
    answer(async (node) => {
      await refresh([node]);
      return formatNode(RED, nodes, node);
    }),
  );

  httpAdmin.get(
    '/sms-account/:id/optouts',
    mayWrite,
    answer(({ membership }, request, response) => readOptOuts(membership, request, response)),
  );

  httpAdmin.post(
    '/sms-account/:id/optouts',
    mayWrite,
    json,
    answer(({ membership }, { body }) => changeOptOuts(membership, body)),
  );

  httpAdmin.get(
    '/sms-account/:id/entries',
    mayWrite,
    answerOfEntries(async ({ membership }, { query }) => {
      const state = oneOf(entryStates, query.state);
      if (!state) return 400;
      const { entries, ...pageInfo } = membership.entries(state, parseQuery(query));
      return { entries: entries.map((entry) => formatEntry(RED, entry)), ...pageInfo } satisfies EntriesReport;
    }),
  );

  // Serves the received records that wait for a flow, and the open reply requests.
  httpAdmin.get(
    '/sms-account/:id/waiting',
    mayWrite,
    answerOfEntries(async ({ membership }, { query }) => {
      const list = oneOf(waitingLists, query.list);
      if (!list) return 400;
      const { items, ...pageInfo } = await membership.waiting(list, parseQuery(query));
      return { entries: items.map(formatWaiting), ...pageInfo } satisfies WaitingReport;
    }),
  );

  httpAdmin.post(
    '/sms-account/:id/entries/:entry',
    mayWrite,
    json,
    answerOfEntries(async ({ membership }, { params, body }) => {
      const action = oneOf(entryActions, Object(body).action);
      const decision = action && (await membership.act(params.entry ?? '', action));
      if (!decision) return 400;
      return decision === 'done' ? { ok: true } : decision === 'gone' ? 404 : 409;
    }),
  );

  httpAdmin.post(
    '/sms-account/:id/entries',
    mayWrite,
    json,
    answerOfEntries(async ({ membership }, { body }) => {
      const [state, action] = [oneOf(entryStates, Object(body).state), oneOf(entryActions, Object(body).action)];
      const result = state && action && (await membership.actOnAll(state, action));
      if (!result) return 400;
      return result === 'unfit' ? 409 : (result satisfies DecidedReport);
    }),
  );

  httpAdmin.post(
    '/sms-account/:id/former',
    mayWrite,
    json,
    answer(async ({ membership }, { body }) => {
      if (Object(body).action !== 'forget') return 400;
      return (await membership.forgetFormer()) ? { ok: true } : 404;
    }),
  );

  /** Creates a handler that reads or changes an account's entries. Answers 503 while the store is being opened. */
  function answerOfEntries(handle: Handle): RequestHandler {
    return answer(async (node, request, response) => {
      if (node.hasStarted && node.membership.knowsEntries()) return handle(node, request, response);
      response.set('Retry-After', '1');
      return 503;
    });
  }

  function answer(handle: Handle): RequestHandler {
    return async (request, response) => {
      const node = nodes.get(request.params.id ?? '');
      if (!node || !isUsable(node)) {
        response.sendStatus(404);
        return;
      }
      await orFail(response, async () => {
        const result = await handle(node, request, withoutCache(response));
        if (typeof result === 'number') response.sendStatus(result);
        else if (result) response.json(result);
      });
    };
  }

  /** Creates a handler for requests that concern all accounts. */
  function answerOfAll(write: (response: Response) => void): RequestHandler {
    return (_request, response) =>
      orFail(response, async () => {
        await refresh(nodes.values());
        write(withoutCache(response));
      });
  }

  /**
   * Answers 503 if `write` fails. Without this, the rejection would end Node-RED, because Express does not catch
   * rejections.
   */
  async function orFail(response: Response, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (response.headersSent) response.destroy();
      else response.status(503).json({ error: formatError(RED, error) });
    }
  }
}

/**
 * Handles a request. Resolves with an HTTP status or a JSON body, or with `undefined` if it has written the answer
 * itself. Can reject.
 */
type Handle = (node: UsableNode, request: Request, response: Response) => Promise<number | object | undefined>;

/** Updates the counts that are read from the store. Never rejects. */
async function refresh(nodes: Iterable<AccountNode>): Promise<void> {
  await Promise.all([...nodes].filter(isUsable).map(({ membership }) => membership.refresh()));
}

function isUsable(node: AccountNode): node is UsableNode {
  return !(node.membership instanceof SmsError);
}

/** An account with all its nodes. The first node represents the account. */
interface FoundAccount {
  node: AccountNode;
  ids: string[];
  names: string[];
  optOut: boolean;
}

function findAccounts(nodes: RunningNodes): FoundAccount[] {
  const accountsByMembership = new Map<string, FoundAccount>();
  for (const node of nodes.values()) {
    // Nodes of the same login form one account. A node with an invalid configuration counts as a separate account.
    const key = isUsable(node) ? `key ${node.membership.key}` : `node ${node.id}`;
    const account = accountsByMembership.get(key) ?? { node, ids: [], names: [], optOut: false };
    account.ids.push(node.id);
    account.names.push(nameOf(node));
    account.optOut ||= node.optOut;
    accountsByMembership.set(key, account);
  }
  return [...accountsByMembership.values()];
}

/** Returns the name as text, because an environment variable can make it a number. */
function nameOf({ name = '' }: AccountNode): string {
  return String(name);
}

function findMeasured(nodes: RunningNodes): Parameters<typeof formatMetrics>[0] {
  return findAccounts(nodes).flatMap(({ node }) =>
    isUsable(node) ? [{ id: node.id, name: nameOf(node), state: node.membership.state() }] : [],
  );
}

function oneOf<T extends string>(choices: readonly T[], value: unknown): T | undefined {
  return choices.find((choice) => choice === value);
}

/** Reads the page that a request asks for. An invalid limit means the maximum. */
function parseQuery({ limit: requestedLimit, after, search }: Request['query']): EntryQuery {
  const limit = Math.floor(Number(requestedLimit ?? maxEntries));
  return {
    limit: limit >= 1 ? Math.min(limit, maxEntries) : maxEntries,
    after: typeof after === 'string' ? after : undefined,
    search: typeof search === 'string' ? search.slice(0, maxSearchLength) : '',
  };
}

function withoutCache(response: Response): Response {
  return response.set('Cache-Control', 'no-store');
}

/** Answers with a page of opted-out numbers as JSON, or with the whole list as CSV if the request accepts CSV. */
async function readOptOuts(membership: Membership, request: Request, response: Response): Promise<object | undefined> {
  const { search, next } = Object(request.query) as Record<string, unknown>;
  const query: OptOutQuery = {
    ...(typeof search === 'string' ? { search } : undefined),
    ...(typeof next === 'string' && next !== '' ? { after: next } : undefined),
  };
  const isCsv = request.accepts(['application/json', 'text/csv']) === 'text/csv';
  const { optouts, ...pageInfo } = await membership.optOuts({
    ...query,
    ...(isCsv && { limit: Number.POSITIVE_INFINITY }),
  });
  const reports = optouts.map(formatOptOut);
  if (!isCsv) return { optouts: reports, ...pageInfo } satisfies OptOutsReport;
  const lines = reports.map((report) => `${Object.values(report).join(',')}\r\n`);
  response.type('text/csv').end(['msisdn,at,via\r\n', ...lines].join(''));
  return undefined;
}

async function changeOptOuts(membership: Membership, body: unknown): Promise<number | OptOutChangedReport> {
  const { msisdns, action } = Object(body) as Record<string, unknown>;
  const change = oneOf(consentChanges, action);
  if (!change || !Array.isArray(msisdns) || msisdns.length > maxNumbers) return 400;
  const numbers = msisdns.flatMap((value: unknown) => (isNumberLike(value) && parseMsisdn(String(value))) || []);
  if (numbers.length !== msisdns.length) return 400;
  return { changed: await membership.changeOptOuts(numbers, change) };
}

/**
 * Whether a value is text or a positive whole number. Other numbers are refused, because parsing would ignore their
 * sign or decimal point as formatting.
 */
function isNumberLike(value: unknown): boolean {
  return typeof value === 'string' || (Number.isInteger(value) && Number(value) > 0);
}

function formatOptOut({ msisdn, at, via }: OptOut): OptOutsReport['optouts'][number] {
  return { msisdn, at: formatTime(at), via };
}

function formatAccount(RED: NodeAPI, nodes: RunningNodes, { node, ids, names, optOut }: FoundAccount): RunningAccount {
  const name = nameOf(node);
  if (!isUsable(node)) return { ids, name, names, error: formatError(RED, node.membership) };
  const { membership } = node;
  const state = membership.state();
  // If the proxy or TLS settings of several nodes are ignored, reports only the first of these nodes, because the
  // sidebar shows one card for all nodes of the account.
  const [connection] = ids.flatMap((id) => {
    const node = nodes.get(id);
    return (node && isUsable(node) && formatConnection(nodes, node)) || [];
  });
  const failures = state.polls.flatMap(({ kind, error }) => (error ? [[kind, formatError(RED, error).message]] : []));
  return {
    ids,
    name,
    names,
    state: { ...formatState(RED, state), ...(connection && { connection }) },
    today: membership.countsToday(),
    todaySince: formatTime(startedToday()),
    failures: Object.fromEntries(failures),
    optOut,
  };
}

/** Returns the start of the process, in ms since 1970, if it started today. */
function startedToday(): number | undefined {
  const startedAt = Date.now() - process.uptime() * 1_000;
  return startedAt > new Date().setHours(0, 0, 0, 0) ? startedAt : undefined;
}

function formatNode(RED: NodeAPI, nodes: RunningNodes, node: UsableNode): StateReport {
  const connection = formatConnection(nodes, node);
  return { ...formatState(RED, node.membership.state()), ...(connection && { connection }) };
}

/**
 * Lists the proxy and TLS settings of a node that are ignored. Also returns the name of the node whose settings apply
 * instead: the first deployed node of the same login.
 */
function formatConnection(nodes: RunningNodes, { membership }: UsableNode): StateReport['connection'] {
  const { connection } = membership;
  const connectionNode = connection && nodes.get(connection.id);
  return connectionNode && { name: nameOf(connectionNode) || connectionNode.id, settings: connection.settings };
}

function formatState(RED: NodeAPI, { polls, inbox, sends, consent, store, counts }: AccountState): StateReport {
  const { failing, ...sendCounts } = sends;
  const { error, former, ...storeFacts } = store;
  return {
    polls: polls.map(({ kind, state, since, lastAnswerAt }) => ({
      kind,
      state,
      since: formatTime(since),
      lastAnswerAt: formatTime(lastAnswerAt),
    })),
    inbox: { ...inbox, oldestAt: formatTime(inbox.oldestAt) },
    sends: {
      ...sendCounts,
      oldestKeptAt: formatTime(sends.oldestKeptAt),
      ...(failing && {
        failing: {
          ...formatError(RED, failing.error),
          since: formatTime(failing.since),
          nextTryAt: formatTime(failing.nextTryAt),
        },
      }),
    },
    consent,
    store: {
      ...storeFacts,
      ...(error && { error: translateError(RED, error).toJSON() }),
      ...(former && { former: { kind: former.kind, error: formatError(RED, former.error) } }),
    },
    counts,
  };
}

function formatEntry(RED: NodeAPI, { error, ...entry }: AccountEntry): EntryReport {
  const { dueAt, leftAt } = { dueAt: undefined, leftAt: undefined, ...entry };
  return {
    ...entry,
    at: formatTime(entry.at),
    dueAt: formatTime(dueAt),
    leftAt: formatTime(leftAt),
    ...(error && { error: formatError(RED, error) }),
  };
}

function formatWaiting({ at, endsAt, ...entry }: WaitingEntry): WaitingEntryReport {
  return { ...entry, at: formatTime(at), endsAt: formatTime(endsAt) };
}

function formatError(RED: NodeAPI, error: unknown): ErrorReport {
  const { code, message } = translateError(RED, error);
  return { code, message };
}

/** Formats a time as ISO 8601. Returns undefined, which JSON omits, if there is no time. */
function formatTime(ms: number): string;
function formatTime(ms: number | undefined): string | undefined;
function formatTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
