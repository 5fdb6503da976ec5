import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WebSocket } from 'undici';
import { type Fault, type LoggedRequest, type Simulator, startSimulator } from '../../simulator';
import { createLinkedUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { Closing } from '../src/closing';
import { startRawService, startSocketService } from '../src/raw-service';
import { createTemporaryFolder } from '../temporary-folder';
import { createNode } from './flows';
import { crash, createObservers, createRecorder, inject, readObservations, waitUntil } from './recorder';

const onPress = ['send', 'outbox', 'feed'] as const;
/**
 * Special characters that a user can choose in a secret. The service must receive them unchanged, and no secret may
 * leak.
 */
const oddities = ' %+&=/?"<ö>';
const callbackToken = `callback-token${oddities}`;
const proxyPassword = `proxy-password${oddities}`;
const redisPassword = 'redis-password';
const passphrase = `passphrase${oddities}`;
const typedKey = 'typed-into-the-form-key';
const typedPassword = `typed-into-the-form-password${oddities}`;

const kinds = (['bearer', 'basic', 'form'] as const).flatMap((authType) =>
  (['POST', 'GET'] as const).map((method) => ({ authType, method })),
);

/** A login method, with credentials that the service accepts and credentials that it rejects. */
interface Login {
  authType: 'bearer' | 'basic' | 'form';
  method: 'POST' | 'GET';
  simulator: Simulator;
  /** Suffix of the ids of the nodes whose account has the right credentials. */
  right: string;
  /** Suffix of the ids of the nodes whose account has wrong credentials. */
  wrong: string;
}

const faults: Fault[] = [
  { status: 400, reason: 'Something is missing' },
  { status: 403 },
  { status: 500 },
  { status: 302, headers: { location: 'https://elsewhere.example/' } },
  { garbage: true },
  { half: true },
  { drop: 'after' },
  { hang: true },
];

describe('a secret', function () {
  this.timeout(180_000);
  let folder: string;
  let observed: string;
  const closing = new Closing();
  const logins: Login[] = [];
  const secrets: { name: string; secret: string; userId?: string }[] = [
    { name: 'callback token', secret: callbackToken },
    { name: 'proxy password', secret: proxyPassword, userId: 'proxy-user' },
    { name: 'Redis password', secret: redisPassword, userId: 'redis-user' },
    { name: 'TLS passphrase', secret: passphrase },
    { name: 'typed API key', secret: typedKey },
    { name: 'typed password', secret: typedPassword, userId: 'typed-user' },
  ];
  /** Everything that could contain a secret, by name. */
  const places = new Map<string, string>();
  let seenByProxy = '';
  let seenByRedis = '';
  let comms = '';
  let nodeRed: NodeRedProcess;

  before('all nodes are used, with right and wrong credentials', async () => {
    folder = createTemporaryFolder('sms-secrets');
    observed = join(folder, 'observed.jsonl');
    for (const { authType, method } of kinds) {
      const name = `${authType}-${method}`;
      const userId = `user-${name}@example.com`;
      const password = `password-${name}${oddities}`;
      const credentials = { userId, password, apiKey: `api-key-${name}` };
      const simulator = await startSimulator({ waitMs: 200, statusDelayMs: 0, credentials });
      logins.push({ authType, method, simulator, right: `right-${name}`, wrong: `wrong-${name}` });
      const isKey = authType === 'bearer';
      for (const start of ['', 'wrong-']) {
        const secret = start + (isKey ? credentials.apiKey : password);
        secrets.push({ name: `${start}${name}`, secret, ...(isKey ? undefined : { userId: start + userId }) });
      }
    }
    const proxy = await startRawService(closing, (request, response) => {
      seenByProxy += `${request.headers['proxy-authorization']}\n`;
      response.writeHead(407, 'Proxy Authentication Required').end();
    });
    const redis = await startSocketService(closing, (socket) =>
      socket.on('data', (data) => {
        seenByRedis += String(data);
        socket.write('-WRONGPASS invalid username-password pair or user is disabled.\r\n');
      }),
    );
    const userDir = createLinkedUserDir();
    nodeRed = await startNodeRed({
      userDir,
      settings: { logging: { console: { level: 'trace', metrics: true, audit: true } } },
      flows: createFlows({ proxyPort: proxy.port, redisPort: redis.port }),
    });
    const socket = await listenToComms();

    await useAll();
    for (const fault of faults) {
      for (const { simulator } of logins) for (const endpoint of onPress) simulator.fault(endpoint, fault);
      await pressUntilAllFail(JSON.stringify(fault));
    }
    for (const [index, { simulator }] of logins.entries()) {
      const fault = faults[index % faults.length] ?? null;
      for (const endpoint of ['incoming', 'status'] as const) simulator.fault(endpoint, fault, 1);
    }
    await waitUntil(
      () => logins.every(({ right }) => ['in', 'status'].every((type) => errorsAt(`${type}-${right}`) > 0)),
      'a poll of each fails',
    );
    for (const { simulator } of logins) await simulator.setOnline(false);
    await pressUntilAllFail('the service offline');

    places.set('answers of the admin API', await askAdminApi());
    // Because the editor gets events in order, a current status shows that all earlier events have arrived.
    await waitUntil(() => comms.includes('unreachable'), 'the editor receives the status');
    socket.close();
    await nodeRed.stop();
    places.set('the log', nodeRed.log);
    places.set('the events of the editor', comms);
    places.set('messages, errors and badges', readFileSync(observed, 'utf8'));
    for (const file of listFiles(userDir)) {
      for (const encoding of ['latin1', 'utf8'] as const) {
        places.set(`the file ${file}, as ${encoding}`, readFileSync(join(userDir, file), encoding));
      }
    }
  });

  after(async () => {
    await nodeRed?.kill();
    for (const { simulator } of logins) await simulator.close();
    await closing.run();
  });

  it('is used in successful and failed requests by every login method', () => {
    for (const { authType, method, simulator } of logins) {
      const statuses = new Set(simulator.requests.map(({ status }) => status));
      for (const status of [200, 400, 401, 403, 500]) {
        assert.ok(statuses.has(status), `${status} with ${authType} by ${method}`);
      }
    }
    assert.ok(seenByProxy.includes(encodeBasic('proxy-user', proxyPassword)), 'the proxy');
    assert.ok(seenByRedis.includes(redisPassword), 'the Redis server');
    const codes = new Set(readObservations(observed).map(({ error }) => error?.code));
    for (const code of ['BAD_REQUEST', 'CONFIG', 'FORBIDDEN', 'INPUT', 'RESPONSE', 'SERVICE', 'STORE']) {
      assert.ok(codes.has(`SMS_${code}`), code);
    }
    for (const code of ['UNAUTHORIZED', 'UNCERTAIN', 'UNREACHABLE']) assert.ok(codes.has(`SMS_${code}`), code);
    assert.match(nodeRed.log, /\[trace\]/);
    assert.match(nodeRed.log, /\[metric\]/);
    assert.match(nodeRed.log, /\[audit\]/);
    assert.ok([...places.keys()].some((name) => name.includes('flows_cred.json')));
    assert.ok([...places.keys()].some((name) => name.includes('sms-inbox')));
    for (const topic of ['status/send-right-basic-GET', '"debug"']) assert.ok(comms.includes(topic), topic);
    assert.doesNotMatch(nodeRed.log, crash);
  });

  it('is found by `findSecrets` in each encoding', () => {
    for (const { secret, userId } of secrets) {
      for (const form of formsOf(secret, userId)) assert.ok(findSecrets(`... ${form} ...`).length > 0, form);
    }
  });

  it('does not appear in logs, admin answers, messages, badges or files', () => {
    for (const [name, text] of places) assert.deepEqual(findSecrets(text), [], name);
  });

  it('appears in a URL only as a form parameter of a GET request', () => {
    for (const { authType, method, simulator } of logins) {
      const withSecret = simulator.requests.filter(
        ({ path, query }) => findSecrets(`${path}?${JSON.stringify(query)}`).length > 0,
      );
      const mayHave = (request: LoggedRequest) =>
        authType === 'form' && request.method === 'GET' && (method === 'GET' || request.endpoint === 'outbox');
      assert.deepEqual(
        withSecret.filter((request) => !mayHave(request)).map(({ path }) => path),
        [],
        `${authType} by ${method}`,
      );
      assert.equal(withSecret.length > 0, authType === 'form', 'polling the outbox is always a GET');
    }
  });

  it('is sent only in the `Authorization` header or as a form parameter', () => {
    for (const { authType, simulator } of logins) {
      for (const { headers, body, params } of simulator.requests) {
        const { authorization = '', ...others } = headers;
        assert.deepEqual(findSecrets(JSON.stringify(others)), []);
        if (authType === 'form') assert.equal(authorization, '');
        else assert.deepEqual(findSecrets(body.replaceAll(encodeForm(params.callbackUrl ?? ''), '')), []);
      }
    }
  });

  function createFlows({ proxyPort, redisPort }: { proxyPort: number; redisPort: number }): FlowNode[] {
    const [{ simulator, right: first }] = logins as [Login];
    const accounts = logins.flatMap(({ authType, method, simulator: { baseUrl, credentials }, right, wrong }) => {
      const { apiKey, userId, password } = credentials;
      const wrongOnes = { apiKey: `wrong-${apiKey}`, userId: `wrong-${userId}`, password: `wrong-${password}` };
      return [
        createAccount(right, { baseUrl, authType, method }, { ...credentials }),
        createAccount(wrong, { baseUrl, authType, method }, wrongOnes),
      ];
    });
    const { baseUrl } = simulator;
    const apiKey = { apiKey: simulator.credentials.apiKey };
    accounts.push(
      createAccount('odd-proxy', { baseUrl: 'http://sms.example', allowHttp: true, proxy: 'proxy' }, apiKey),
      createAccount('odd-tls', { baseUrl: baseUrl.replace('http:', 'https:'), tls: 'tls' }, apiKey),
      ...['redis', 'http'].map((scheme) => {
        const redisUrl = `${scheme}://redis-user:${redisPassword}@127.0.0.1:${redisPort}`;
        return createAccount(
          `odd-${scheme}`,
          { baseUrl: `${baseUrl}/${scheme}`, store: 'redis' },
          { ...apiKey, redisUrl },
        );
      }),
      createAccount('odd-key', { baseUrl }, { apiKey: `${typedKey} \n` }),
      createAccount('odd-line', { baseUrl }, { apiKey: `${typedKey}\nsecond line` }),
    );
    const press = accounts.flatMap(({ id }) => onPress.map((type) => `${type}-${String(id).slice('account-'.length)}`));
    return [
      { id: 'tab', type: 'tab', label: 'flow' },
      ...createObservers(observed),
      createRecorder('seen', observed, { wires: [['debug']] }),
      createNode('debug', 'debug', [], { active: true, tosidebar: true, complete: 'true', targetType: 'full' }),
      ...accounts,
      ...accounts.flatMap(({ id }) => createUsers(String(id).slice('account-'.length))),
      ...['right-', 'wrong-', 'odd-'].map((start) =>
        createNode(`press-${start}`, 'inject', [press.filter((id) => id.includes(`-${start}`))], { props: [] }),
      ),
      {
        id: 'proxy',
        type: 'http proxy',
        url: `http://127.0.0.1:${proxyPort}`,
        noproxy: [],
        credentials: { username: 'proxy-user', password: proxyPassword },
      },
      {
        id: 'tls',
        type: 'tls-config',
        verifyservercert: true,
        cert: '',
        key: '',
        ca: '',
        credentials: { keydata: 'no key', certdata: 'none', passphrase },
      },
      createNode('callback', 'sms-callback-in', [['seen'], ['seen']], {
        account: `account-${first}`,
        path: '/callback',
        publicUrl: 'https://flows.example.com',
        credentials: { token: callbackToken },
      }),
    ];
  }

  /** Uses the nodes in all ways, with correct and with wrong credentials. */
  async function useAll(): Promise<void> {
    for (const start of ['right-', 'wrong-', 'odd-']) {
      await pressAll(start);
      await inject(nodeRed, `press-${start}`, { topic: '0 is no number', payload: 'refused', size: 'none' });
    }
    for (const { simulator } of logins) {
      await simulator.until(() => simulator.messages.length > 0, 60_000);
      simulator.reply({ from: '64215550001', body: 'a reply' });
    }
    for (const token of [callbackToken, 'wrong', '']) {
      const body = `called with ${token.length}`;
      const form = { messageId: 'm', from: '64215550001', to: '1', inReplyToId: 'x', body };
      const init = { method: 'POST', body: new URLSearchParams(form) };
      const response = await fetch(`${nodeRed.url}/callback?token=${encodeURIComponent(token)}`, init);
      await response.text();
      assert.equal(response.status, token === callbackToken ? 200 : 401);
    }
    const hasBadge = (id: string) => readObservations(observed).some(({ status }) => status?.source.id === id);
    await waitUntil(() => logins.every(({ right }) => hasBadge(`feed-${right}`)), 'feeds are read');
    for (const { wrong } of logins) {
      for (const type of ['in', 'status', ...onPress]) {
        await waitUntil(() => errorsAt(`${type}-${wrong}`) > 0, `${type}-${wrong} fails`);
      }
    }
    for (const node of ['send-odd-proxy', 'send-odd-tls', 'in-odd-redis', 'send-odd-http', 'send-odd-line']) {
      await waitUntil(() => errorsAt(node) > 0, `${node} fails`);
    }
  }

  async function pressAll(start: string): Promise<void> {
    await inject(nodeRed, `press-${start}`, { topic: '64215550001', payload: 'text' });
  }

  function errorsAt(id: string): number {
    return readObservations(observed).filter(({ error }) => error?.source.id === id).length;
  }

  /** Presses the button of the nodes with the right credentials, and waits until each of the nodes fails. */
  async function pressUntilAllFail(cause: string): Promise<void> {
    const isPressed = new RegExp(`^(${onPress.join('|')})-right-`);
    const countErrors = () =>
      readObservations(observed).filter(({ error }) => error && isPressed.test(error.source.id)).length;
    const expected = countErrors() + logins.length * onPress.length;
    await pressAll('right-');
    await waitUntil(() => countErrors() >= expected, `an error of each node with ${cause}`);
  }

  async function askAdminApi(): Promise<string> {
    const ids = logins.flatMap(({ right, wrong }) => [`account-${right}`, `account-${wrong}`]);
    ids.push('account-odd-proxy', 'account-odd-tls', 'account-odd-redis', 'account-odd-http');
    const admin = ['flows', 'flow/tab', 'nodes', 'settings', 'context/global', 'context/flow/tab', 'flows/state'];
    const others = ['sms-callback-in/callback', 'http%20proxy/proxy', 'tls-config/tls'];
    const nodes = [...ids.map((id) => `sms-account/${id}`), ...others];
    const paths = [...admin, ...nodes.map((node) => `credentials/${node}`)];
    let answers = '';
    const ask = async (path: string, init?: RequestInit) => {
      const headers = { 'Content-Type': 'application/json' };
      const response = await fetch(`${nodeRed.url}${path}`, { ...init, headers });
      answers += `${path} ${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}\n`;
    };
    for (const path of paths) await ask(`/${path}`);
    for (const { authType, method, simulator, right, wrong } of logins) {
      await simulator.setOnline(true);
      for (const endpoint of onPress) simulator.fault(endpoint, null);
      const form = { baseUrl: simulator.baseUrl, authType, method, timeout: 5 };
      const saved = { apiKey: '__PWRD__', password: '__PWRD__' };
      for (const id of [right, wrong]) await test({ ...form, ...saved, id: `account-${id}` });
      await test({ ...form, apiKey: typedKey, userId: 'typed-user', password: typedPassword });
      await test({ ...form, apiKey: `${typedKey}\n${typedKey}`, userId: '', password: typedPassword });
    }
    const throughProxy = { baseUrl: 'http://sms.example', allowHttp: true, proxy: 'proxy' };
    await test({ ...throughProxy, id: 'account-odd-proxy', apiKey: typedKey });
    await test({ id: 'account-odd-tls', baseUrl: 'https://127.0.0.1:1', tls: 'tls', apiKey: typedKey });
    await test({ baseUrl: `https://typed-user:${encodeURIComponent(typedPassword)}@sms.example`, apiKey: typedKey });
    assert.equal(answers.split('"ok":true').length - 1, logins.length, answers);
    return answers;

    function test(form: object): Promise<void> {
      return ask('/sms-account/test', { method: 'POST', body: JSON.stringify(form) });
    }
  }

  /** Connects as an editor does, to receive its events. */
  async function listenToComms(): Promise<WebSocket> {
    const socket = new WebSocket(`${nodeRed.url.replace('http', 'ws')}/comms`);
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    socket.addEventListener('message', ({ data }) => {
      comms += `${String(data)}\n`;
    });
    for (const topic of ['status/#', 'debug', 'notification/#', 'event-log/#']) {
      socket.send(JSON.stringify({ subscribe: topic }));
    }
    return socket;
  }

  /** Names of the secrets that a string contains in any form. */
  function findSecrets(text: string): string[] {
    return secrets
      .filter(({ secret, userId }) => [...formsOf(secret, userId)].some((form) => text.includes(form)))
      .map(({ name }) => name);
  }
});

function createAccount(name: string, properties: Partial<FlowNode>, credentials: Record<string, string>): FlowNode {
  const account = { id: `account-${name}`, type: 'sms-account', pause: 0, timeout: 2, credentials };
  return { ...account, ...properties };
}

/** Creates nodes of five types that use the account. */
function createUsers(name: string): FlowNode[] {
  const account = `account-${name}`;
  const wires = [['seen']];
  // Callbacks only with POST, because the URL of a GET would contain the callback URL and its token.
  const callback = name.endsWith('POST') ? { callbackNode: 'callback', callbackUrlType: 'node' } : undefined;
  return [
    createNode(`in-${name}`, 'sms-in', wires, { account }),
    createNode(`status-${name}`, 'sms-status', wires, { account }),
    createNode(`outbox-${name}`, 'sms-outbox', wires, { account, interval: 0 }),
    createNode(`feed-${name}`, 'sms-feed', wires, { account, interval: 0, size: 'size', sizeType: 'msg' }),
    createNode(`send-${name}`, 'sms-send', [['seen'], ['seen']], { account, retries: 0, ...callback }),
  ];
}

/** Returns the forms that a secret can have in a log, a URL, a header, JSON or HTML. */
function formsOf(secret: string, userId: string | undefined): Set<string> {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const forms = [
    secret,
    encodeURIComponent(secret),
    encodeURI(secret),
    encodeForm(secret),
    JSON.stringify(secret).slice(1, -1),
    secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;'),
    Buffer.from(secret).toString('latin1'),
    Buffer.from(secret).toString('hex'),
    base64(secret),
    Buffer.from(secret).toString('base64url'),
    ...(userId === undefined ? [] : [encodeBasic(userId, secret)]),
  ];
  return new Set(forms.map((form) => form.replace(/=+$/, '')));
}

function encodeForm(text: string): string {
  return new URLSearchParams({ text }).toString().slice('text='.length);
}

function encodeBasic(userId: string, password: string): string {
  return Buffer.from(`${userId}:${password}`).toString('base64').replace(/=+$/, '');
}

/**
 * Lists the files below a folder. Does not follow links, although some versions of Node.js do when they list
 * recursively.
 */
function listFiles(folder: string, below = ''): string[] {
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = join(below, entry.name);
    if (entry.isDirectory()) return listFiles(folder, path);
    return entry.isFile() ? [path] : [];
  });
}
