import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Express } from 'express';
import type { NodeAPI } from 'node-red';
import helper from 'node-red-node-test-helper';
import { serveAccounts } from '../../nodes/runtime/account-admin';
import type { AccountNode } from '../../nodes/runtime/account-node';
import type { AccountsReport, EntriesReport } from '../../nodes/runtime/account-report';
import smsAccount from '../../nodes/sms-account';
import { type AccountEntry, type AccountState, type EntryAction, type EntryState, SmsError } from '../../src';
import { startNodeRed } from '../node-red-process';
import { until } from '../until';
import { idleState } from './account-state';
import {
  account,
  coreNode,
  nodeWithSink,
  RunningFlow,
  requireFromNodeRed,
  stopLater,
  useService,
} from './running-flow';

// The Express of Node-RED.
const express = requireFromNodeRed('express') as {
  (): Express;
  json(): Parameters<Express['use']>[0];
};

const state: AccountState = {
  ...idleState,
  polls: [
    { kind: 'incoming', state: 'waiting', since: 0, lastAnswerAt: 1_000 },
    { kind: 'status', state: 'failing', since: 0, error: new SmsError('forbiddenRead') },
  ],
  inbox: { undelivered: 2, oldestAt: 2_000, unhandled: 1 },
  sends: {
    ...idleState.sends,
    kept: 1,
    oldestKeptAt: 3_000,
    failing: {
      error: new SmsError('unreachable', { params: { host: 'sms.example', detail: 'down' } }),
      since: 4_000,
      nextTryAt: 5_000,
    },
  },
  store: { kind: 'disk', ok: false, error: new SmsError('storeUnavailable', { params: { detail: 'ENOSPC' } }) },
};
const kept: AccountEntry = { id: 'k1', state: 'kept', at: 4_000, node: 'send', to: ['64215551234'], body: 'private' };

/** An account node with a fake membership. */
function createNode(id: string, key: string, isStoreRead = () => true): AccountNode {
  const membership = {
    key,
    state: () => state,
    countsToday: () => ({ ...state.counts, sent: 7 }),
    entries: (wanted: EntryState, { limit, after = '0' }: { limit: number; after?: string }) => {
      const entries = wanted === 'kept' ? Array.from({ length: 300 }, () => kept) : [];
      const end = Number(after) + limit;
      const next = end < entries.length ? { next: String(end) } : undefined;
      return { entries: entries.slice(Number(after), end), total: entries.length, ...next };
    },
    waiting: async (list: string, query: object) => ({
      items: [{ id: 'w1', at: 5_000, endsAt: 6_000, node: 'ask', body: JSON.stringify([list, query]) }],
      total: 1,
    }),
    knowsEntries: isStoreRead,
    refresh: () => Promise.resolve(),
    actOnAll: async (state: EntryState, action: EntryAction) => {
      if (action === 'deliver') return 'unfit';
      return { done: state === 'kept' ? 299 : 0, left: 1 };
    },
    act: async (entry: string, action: EntryAction) => {
      if (entry === 'broken') throw new SmsError('storeUnavailable', { params: { detail: 'ENOSPC' } });
      if (entry !== kept.id) return 'gone';
      return action === 'deliver' ? 'unfit' : 'done';
    },
  };
  return { id, name: `name of ${id}`, membership, hasStarted: true } as unknown as AccountNode;
}

/** Serves account nodes at a new address, and returns a function that sends requests to them. */
async function serve(...nodes: AccountNode[]) {
  const { red } = await RunningFlow.start([]);
  const httpAdmin = express();
  httpAdmin.use(express.json());
  serveAccounts({ ...red, auth: red.auth, httpAdmin } as NodeAPI, new Map(nodes.map((node) => [node.id, node])));
  const server = createServer(httpAdmin).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stopLater(async () => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return async (path: string, decision?: unknown, asked: RequestInit = {}) => {
    const headers = { 'content-type': 'application/json' };
    const options = decision === undefined ? asked : { method: 'POST', headers, body: JSON.stringify(decision) };
    const response = await fetch(`http://127.0.0.1:${port}/sms-account/${path}`, options);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
  };
}

describe('the admin API', () => {
  const sim = useService();

  it('returns the state of an account with times in ISO 8601', async () => {
    const ask = await serve(createNode('a', 'login'));
    const { status, body, headers } = await ask('a/state');
    assert.equal(status, 200);
    const { store, sends, ...rest } = body;
    const at = (second: number) => new Date(second * 1_000).toISOString();
    assert.deepEqual(rest, {
      consent: { optedOut: 2 },
      polls: [
        { kind: 'incoming', state: 'waiting', since: at(0), lastAnswerAt: at(1) },
        { kind: 'status', state: 'failing', since: at(0) },
      ],
      inbox: { undelivered: 2, oldestAt: at(2), unhandled: 1 },
      counts: state.counts,
    });
    const { message, ...failing } = sends.failing;
    assert.ok(message);
    assert.deepEqual(
      { ...sends, failing },
      {
        ...state.sends,
        oldestKeptAt: at(3),
        failing: { code: 'SMS_UNREACHABLE', since: at(4), nextTryAt: at(5) },
      },
    );
    const { message: _, ...error } = store.error;
    assert.deepEqual({ ...store, error }, { kind: 'disk', ok: false, error: { code: 'SMS_STORE' } });
    assert.equal(headers.get('cache-control'), 'no-store');
  });

  it('returns exactly the properties in docs/reference/admin.md', async () => {
    const ask = await serve(createNode('a', 'login'));
    const page = readFileSync(join(__dirname, '..', '..', 'docs', 'reference', 'admin.md'), 'utf8');
    const [, shown = ''] = /^```json\n([\s\S]*?)^```$/m.exec(page) ?? [];
    const pathsOf = (value: unknown, path: string): string[] =>
      Object(value) === value
        ? Object.entries(value as object).flatMap(([key, one]) =>
            pathsOf(one, Array.isArray(value) ? `${path}[]` : `${path}.${key}`),
          )
        : [path];
    const [told, documented] = [(await ask('a/state')).body, JSON.parse(shown)].map((one) => new Set(pathsOf(one, '')));
    assert.deepEqual([...(told ?? [])].sort(), [...(documented ?? [])].sort());
  });

  it('answers 404 for an unknown node or a misconfigured account', async () => {
    const broken = { ...createNode('broken', ''), membership: new SmsError('noAccount') } as AccountNode;
    const ask = await serve(createNode('a', 'login'), broken);
    for (const id of ['b', 'broken', '__proto__', '%00']) {
      assert.equal((await ask(`${id}/state`)).status, 404);
      assert.equal((await ask(`${id}/entries?state=kept`)).status, 404);
      assert.equal((await ask(`${id}/entries/k1`, { action: 'send' })).status, 404);
    }
  });

  it('exports metrics once for two nodes that share a login', async () => {
    const ask = await serve(createNode('a', 'login'), createNode('b', 'login'), createNode('c', 'other'));
    const { text, headers } = await ask('metrics');
    assert.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    assert.deepEqual(text.match(/^node_red_sms_sends_kept\{.*$/gm), [
      'node_red_sms_sends_kept{account="a",name="name of a"} 1',
      'node_red_sms_sends_kept{account="c",name="name of c"} 1',
    ]);
    assert.equal(text.includes('private'), false);
  });

  it('returns entries in pages of at most 200', async () => {
    const ask = await serve(createNode('a', 'login'));
    const { entries, total }: EntriesReport = (await ask('a/entries?state=kept')).body;
    assert.deepEqual([entries.length, total], [200, 300]);
    assert.deepEqual(entries[0], { ...kept, at: '1970-01-01T00:00:04.000Z' });
    assert.deepEqual((await ask('a/entries?state=unhandled')).body, { entries: [], total: 0 });
    const read = async (query: string) => {
      const { entries, next }: EntriesReport = (await ask(`a/entries?state=kept&${query}`)).body;
      return [entries.length, next];
    };
    assert.deepEqual(await read('limit=20&after=20'), [20, '40']);
    assert.deepEqual(await read('after=200'), [100, undefined]);
    for (const limit of ['1000', '0', '-1', 'many', '', '1&limit=2']) {
      assert.deepEqual(await read(`limit=${limit}`), [200, '200'], limit);
    }
  });

  it('lists two account nodes that share a login as one account', async () => {
    const broken = { ...createNode('broken', ''), name: '', membership: new SmsError('noAccount') } as AccountNode;
    const ask = await serve(createNode('a', 'login'), broken, createNode('b', 'login'), createNode('c', 'other'));
    const { status, body, headers } = await ask('overview');
    const { at, accounts }: AccountsReport = body;
    assert.deepEqual([status, headers.get('cache-control')], [200, 'no-store']);
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000);
    assert.deepEqual(
      accounts.map(({ ids, names, name, error }) => [ids, names, name, error?.code]),
      [
        [['a', 'b'], ['name of a', 'name of b'], 'name of a', undefined],
        [['broken'], [''], '', 'SMS_CONFIG'],
        [['c'], ['name of c'], 'name of c', undefined],
      ],
    );
    assert.deepEqual(accounts[0]?.state, (await ask('a/state')).body);
    assert.deepEqual([accounts[0]?.today?.sent, accounts[0]?.state?.counts.sent], [7, 1]);
    assert.deepEqual(accounts[0]?.failures, {
      status: 'The service does not allow these credentials to read. Check the rights of the account.',
    });
    assert.equal(accounts[1]?.state, undefined);
  });

  it('truncates a search text to 200 characters', async () => {
    const ask = await serve(createNode('a', 'login'));
    const { body } = await ask(`a/waiting?list=awaitingReply&limit=1000&after=x&search=${'y'.repeat(300)}`);
    const query = ['awaitingReply', { limit: 200, after: 'x', search: 'y'.repeat(200) }];
    assert.deepEqual(body, {
      entries: [
        {
          id: 'w1',
          at: '1970-01-01T00:00:05.000Z',
          endsAt: '1970-01-01T00:00:06.000Z',
          node: 'ask',
          body: JSON.stringify(query),
        },
      ],
      total: 1,
    });
    assert.equal((await ask('a/waiting?list=kept')).status, 400);
    assert.equal((await ask('a/waiting')).status, 400);
  });

  it('answers 400 for an unknown state or action', async () => {
    const ask = await serve(createNode('a', 'login'));
    for (const query of ['', '?state=', '?state=all', '?state=kept&state=unhandled']) {
      assert.equal((await ask(`a/entries${query}`)).status, 400, query);
    }
    for (const decision of [{}, [], { action: 'sell' }, { action: ['send'] }]) {
      assert.equal((await ask('a/entries/k1', decision)).status, 400, JSON.stringify(decision));
    }
  });

  it('answers 404, 409 or 503 if an action fails', async () => {
    const ask = await serve(createNode('a', 'login'));
    const decide = async (entry: string, action: string) => (await ask(`a/entries/${entry}`, { action })).status;
    assert.equal(await decide('k1', 'send'), 200);
    assert.equal(await decide('k1', 'discard'), 200);
    assert.equal(await decide('k2', 'discard'), 404);
    assert.equal(await decide('k1', 'deliver'), 409);
    assert.equal(await decide('broken', 'send'), 503);
  });

  it('applies one action to a whole list of entries', async () => {
    const ask = await serve(createNode('a', 'login'));
    const { status, body } = await ask('a/entries', { state: 'kept', action: 'send' });
    assert.deepEqual([status, body], [200, { done: 299, left: 1 }]);
    assert.equal((await ask('a/entries', { state: 'kept', action: 'deliver' })).status, 409);
    for (const decision of [{ action: 'send' }, { state: 'kept' }, { state: 'all', action: 'send' }, []]) {
      assert.equal((await ask('a/entries', decision)).status, 400);
    }
  });

  it('answers 503 until the store is open', async () => {
    let isRead = false;
    const starting = { ...createNode('starting', 'login'), hasStarted: false } as AccountNode;
    const ask = await serve(
      createNode('opening', 'login', () => isRead),
      starting,
    );
    for (const id of ['opening', 'starting']) {
      for (const [path, decision] of [
        ['entries?state=kept', undefined],
        ['waiting?list=undelivered', undefined],
        ['entries/k1', { action: 'send' }],
      ] as const) {
        const { status, headers } = await ask(`${id}/${path}`, decision);
        assert.deepEqual([status, headers.get('retry-after')], [503, '1'], `${id} ${path}`);
      }
      assert.equal((await ask(`${id}/state`)).status, 200);
    }
    isRead = true;
    assert.equal((await ask('opening/entries?state=kept')).status, 200);
  });

  it('answers 415 to a POST request that is not JSON', async () => {
    await RunningFlow.start([account(sim)]);
    const paths = ['entries/none', 'entries', 'optouts', 'former'].map((path) => `account/${path}`);
    for (const path of ['test', 'same', ...paths]) {
      for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data']) {
        const request = helper.request().post(`/sms-account/${path}`).set('content-type', type);
        await request.set('origin', 'https://elsewhere.example').send('action=discard').expect(415, 'Send JSON.');
      }
      await helper.request().post(`/sms-account/${path}`).expect(415);
    }
    assert.deepEqual(sim.requests, []);
  });

  it('answers 401 to a user without the permission for a route', async () => {
    const flows = [account(sim), { id: 'tab', type: 'tab', label: 'Test' }];
    for (const [permissions, mayRead, mayWrite] of [
      [['flows.write', 'inject.write'], false, false],
      [['flows.write', 'sms-account.read'], true, false],
      [['*.read', 'flows.write', 'sms-account.write'], true, true],
    ] as const) {
      const adminAuth = { type: 'credentials', users: [], default: { permissions } };
      const nodeRed = await startNodeRed({ settings: { adminAuth }, flows });
      stopLater(() => nodeRed.stop());
      const ask = async (path: string, body?: object) => {
        const headers = { 'content-type': 'application/json' };
        const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {};
        return (await fetch(`${nodeRed.url}/sms-account/${path}`, init)).status;
      };
      for (const path of ['account/state', 'metrics', 'state']) {
        assert.equal(await ask(path), mayRead ? 200 : 401, `${permissions} ${path}`);
      }
      for (const path of ['account/entries?state=unhandled', 'account/waiting?list=undelivered', 'account/optouts']) {
        assert.equal(await ask(path), mayWrite ? 200 : 401, `${permissions} ${path}`);
      }
      assert.equal(await ask('test', { baseUrl: sim.baseUrl, apiKey: '' }), mayWrite ? 200 : 401);
      // With the permission, the answer is 404, because the entry `none` does not exist.
      assert.equal(await ask('account/entries/none', { action: 'discard' }), mayWrite ? 404 : 401);
      await nodeRed.stop();
    }
  });

  it('names the account node that determines the proxy', async () => {
    const proxy = (id: string) => ({ id, type: 'http proxy', url: `http://127.0.0.1:1/${id}`, noproxy: ['127.0.0.1'] });
    const flow = await RunningFlow.start(
      [proxy('p1'), account(sim, { name: 'First' }), account(sim, { id: 'second', name: 'Second', proxy: 'p1' })],
      { nodes: [coreNode('network/06-httpproxy')] },
    );
    await until(() => flow.logged('second').length > 0);
    assert.match(flow.logged('second')[0] ?? '', /"First" has the same login and was deployed first.*: Proxy\.$/);
    const { account: first, second } = await flow.readRoute('state');
    assert.equal(first.connection, undefined);
    assert.deepEqual(second.connection, { name: 'First', settings: ['proxy'] });
    const overview: AccountsReport = await flow.readRoute('overview');
    assert.deepEqual(overview.accounts[0]?.state?.connection, second.connection);
  });

  it('keeps working after the account is redeployed', async () => {
    const oneAttempt = { acknowledge: 'flow', inputs: 1, ackTimeout: '0.05', maxAttempts: '1' };
    const flow = await RunningFlow.start(nodeWithSink(sim, 'in', oneAttempt, { name: 'Main' }));
    sim.receive({ from: '64215551234', to: '642100000001', body: 'hello' });
    const [caught] = await flow.messages('caught', 1);
    assert.equal(caught?.error?.code, 'SMS_UNDELIVERED');
    const { entries }: EntriesReport = await flow.readRoute('account/entries?state=unhandled');
    const [{ id = undefined, node = undefined } = {}] = entries;
    assert.equal(node, 'in');
    await helper.request().post(`/sms-account/account/entries/${id}`).send({ action: 'deliver' }).expect(200);
    const [, again] = await flow.messages('got', 2);
    assert.deepEqual([again?.payload, again?.sms?.redelivered], ['hello', true]);
    await flow.deploy([account(sim, { name: 'Renamed' })]);
    const { text } = await helper.request().get('/sms-account/metrics').expect(200);
    assert.match(text, /^node_red_sms_received_messages_total\{account="account",name="Renamed"\} 1$/m);
    await flow.deploy([]);
    await helper.request().get('/sms-account/account/state').expect(404);
  });

  /** Returns the node ids of each account in the running flow. */
  const readAccounts = async (flow: RunningFlow): Promise<string[][]> => {
    const { accounts }: AccountsReport = await flow.readRoute('overview');
    return accounts.map(({ ids }) => ids);
  };

  it('returns the states of all account nodes by node ID', async () => {
    const broken = { id: 'broken', type: 'sms-account', baseUrl: 'nonsense', credentials: { apiKey: 'key' } };
    const flow = await RunningFlow.start([account(sim), account(sim, { id: 'copy' }), broken]);
    const states = await flow.readRoute('state');
    assert.deepEqual(Object.keys(states).sort(), ['account', 'broken', 'copy']);
    const state = await flow.readRoute('account/state');
    assert.deepEqual([states.account, states.copy], [state, state]);
    assert.equal(states.broken.error.code, 'SMS_CONFIG');
  });

  it('keeps the position of a redeployed account node in the list', async () => {
    const second = account(sim, { id: 'second' });
    const flow = await RunningFlow.start([account(sim, { id: 'first' }), second]);
    await flow.deploy([account(sim, { id: 'first', name: 'Renamed' }), second], 'nodes');
    assert.deepEqual(await readAccounts(flow), [['first', 'second']]);
    await flow.deploy([second], 'nodes');
    await flow.deploy([account(sim, { id: 'first' }), second], 'nodes');
    assert.deepEqual(await readAccounts(flow), [['second', 'first']]);
  });

  it('works after the package is removed and installed again', async () => {
    const flow = await RunningFlow.start([account(sim)]);
    const { nodes } = flow.red;
    const registerType = (type: string, ...rest: [never, never]) => nodes.registerType(`${type}-again`, ...rest);
    smsAccount({ ...flow.red, nodes: { ...nodes, registerType } } as NodeAPI);
    await flow.deploy([account(sim, { id: 'again', type: 'sms-account-again' })]);
    assert.deepEqual(await readAccounts(flow), [['again']]);
    await flow.readRoute('again/state');
  });
});
