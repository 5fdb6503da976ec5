import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import helper from 'node-red-node-test-helper';
import type { Simulator } from '../../simulator';
import { type FlowNode, nodeRedGeneration } from '../node-red-process';
import { Closing } from '../src/closing';
import { createSelfSigned, startProxyService } from '../src/raw-service';
import { until } from '../until';
import { certificateOfPfx, clientPfx } from './client-certificate';
import {
  account,
  catcher,
  coreNode,
  countMost,
  handset,
  nodeWithSink,
  payloadsOf,
  RunningFlow,
  sendNode,
  setVariables,
  sink,
  smsNode,
  startService,
  useService,
  variable,
} from './running-flow';

const secret = 'never-shown-4711';

/** Properties of an account, as its form sends them. */
function form(sim: Simulator, properties: Record<string, unknown> = {}): Record<string, unknown> {
  const { credentials: _, type: _type, name: _name, ...settings } = account(sim);
  return { ...settings, ...properties };
}

function send(accountId = 'account'): FlowNode {
  return { id: 'send', type: 'sms-send', account: accountId, wires: [['sent'], []] };
}

/** Sends one message, and returns its error, if any. */
async function outcome(flow: RunningFlow): Promise<Record<string, unknown> | undefined> {
  flow.send('send', { topic: handset, payload: 'hello' });
  await until(() => flow.received('sent').length + flow.received('caught').length > 0, 'an outcome');
  return flow.received('caught')[0]?.sms?.error;
}

describe('sms-account', () => {
  const sim = useService();

  it('tells its form which other nodes share the login', async () => {
    setVariables({ SMS_TEST_URL: sim.baseUrl });
    await RunningFlow.start([
      account(sim),
      account(sim, { id: 'second', name: 'Second', baseUrl: variable('SMS_TEST_URL') }),
      account(sim, { id: 'other', credentials: { apiKey: 'other' } }),
      account(sim, { id: 'broken', baseUrl: 'nowhere' }),
    ]);
    const ask = async (values: Record<string, unknown>) =>
      (await helper.request().post('/sms-account/same').send(form(sim, values)).expect(200)).body;
    const second = { same: [{ id: 'second', name: 'Second', differs: [] }] };
    assert.deepEqual(await ask({}), second, 'with the saved values');
    assert.deepEqual(await ask({ baseUrl: variable('SMS_TEST_URL'), apiKey: sim.credentials.apiKey }), second);
    assert.deepEqual(await ask({ apiKey: 'other' }), { same: [{ id: 'other', name: '', differs: [] }] });
    for (const values of [{ baseUrl: 'nowhere' }, { apiKey: '' }, { baseUrl: 'https://sms.example' }]) {
      assert.deepEqual(await ask(values), { same: [] });
    }
    assert.deepEqual(sim.requests, []);
  });

  describe('connection test', () => {
    it('uses saved credentials to read the feed', async () => {
      const flow = await RunningFlow.start([account(sim)]);
      sim.receive({ from: handset, to: '642100000001', body: 'unread' });
      for (const apiKey of [undefined, '__PWRD__']) {
        assert.deepEqual(await flow.testConnection(form(sim, { apiKey })), {
          ok: true,
          account: { balance: 1_000_000, type: 'Prepaid', currency: 'EUR' },
        });
      }
      for (const { endpoint, params } of sim.requests) assert.deepEqual([endpoint, params.size], ['feed', '1']);
      assert.equal(sim.incoming[0]?.read, false);
    });

    it('uses unsaved values of the form', async () => {
      const other = await startService({ credentials: { userId: 'new', password: 'pass', apiKey: 'new-key' } });
      const flow = await RunningFlow.start([
        account(sim, { credentials: { apiKey: 'old', userId: 'u', password: 'p' } }),
      ]);
      for (const values of [
        { apiKey: 'new-key' },
        { authType: 'basic', userId: 'new', password: 'pass' },
        { id: 'unknown', authType: 'form', method: 'GET', userId: 'new', password: 'pass' },
      ]) {
        const answer = await flow.testConnection(form(sim, { baseUrl: other.baseUrl, ...values }));
        assert.equal(answer.ok, true, JSON.stringify(answer));
      }
      assert.deepEqual(
        other.requests.map(({ method, headers, params }) => [method, headers.authorization, params.userId]),
        [
          ['POST', 'Bearer new-key', undefined],
          ['POST', `Basic ${Buffer.from('new:pass').toString('base64')}`, undefined],
          ['GET', undefined, 'new'],
        ],
      );
    });

    it('sends saved credentials only to the saved scheme, host and port', async () => {
      const other = await startService();
      const flow = await RunningFlow.start([
        account(sim, { credentials: { apiKey: 'key', userId: 'u', password: secret } }),
      ]);
      for (const [values, field] of [
        [{}, 'apiKey'],
        [{ apiKey: '__PWRD__' }, 'apiKey'],
        [{ authType: 'basic', userId: 'u' }, 'password'],
        [{ authType: 'form', password: 'typed' }, 'userId'],
      ] as const) {
        for (const baseUrl of [other.baseUrl, sim.baseUrl.replace('127.0.0.1', 'localhost'), 'https://127.0.0.1']) {
          const { ok, error } = await flow.testConnection(form(sim, { baseUrl, ...values }));
          const { code, field: named, message } = error as Record<string, string>;
          assert.deepEqual([ok, code, named], [false, 'SMS_CONFIG', field], baseUrl);
          assert.equal(message?.includes(secret), false);
        }
      }
      assert.deepEqual([...other.requests, ...sim.requests], []);
      const typed = await flow.testConnection(form(sim, { baseUrl: `${sim.baseUrl}/elsewhere` }));
      assert.notEqual((typed.error as { code: string } | undefined)?.code, 'SMS_CONFIG');
    });

    it('uses the saved credentials of a disabled account', async () => {
      const flow = await RunningFlow.start([account(sim, { d: true })]);
      assert.equal((await flow.testConnection(form(sim))).ok, true);
    });

    it('does not use the saved credentials of another node', async () => {
      const { apiKey } = sim.credentials;
      const other = { id: 'other', type: 'sms-callback-in', credentials: { apiKey, token: apiKey } };
      const flow = await RunningFlow.start([account(sim), other]);
      const answer = await flow.testConnection(form(sim, { id: 'other' }));
      assert.equal((answer.error as { code: string }).code, 'SMS_CONFIG');
      assert.deepEqual(sim.requests, []);
    });

    describe('in a subflow', () => {
      /**
       * Starts an account in a subflow that defines the variables `URL` and `KEY`. The instance of the subflow sets
       * another `KEY`.
       */
      function start(key: Record<string, unknown>): Promise<RunningFlow> {
        const KEY = sim.credentials.apiKey;
        const env = [
          { name: 'URL', type: 'str', value: sim.baseUrl },
          { name: 'KEY', ...key },
        ];
        const ofInstance = [{ name: 'KEY', type: 'str', value: 'own' }];
        return RunningFlow.start(
          [
            { id: 'global', type: 'global-config', env: [{ name: 'EVERYWHERE', type: 'str', value: KEY }] },
            { id: 'sub', type: 'subflow', name: '', in: [], out: [], env, credentials: { KEY } },
            account(sim, { z: 'sub' }),
            { id: 'instance', type: 'subflow:sub', name: '', env: ofInstance, wires: [] },
          ],
          { nodes: [coreNode('common/91-global-config')] },
        );
      }

      for (const [what, type, name] of [
        ['a subflow variable', 'str', 'KEY'],
        ['a subflow variable that refers to a global variable', 'env', 'KEY'],
        ['a subflow credential', 'cred', 'KEY'],
        ['a global variable', 'cred', 'EVERYWHERE'],
      ] as const) {
        it(`uses ${what}`, async () => {
          const flow = await start({ type, value: { str: sim.credentials.apiKey, env: 'EVERYWHERE', cred: '' }[type] });
          const answer = await flow.testConnection(form(sim, { baseUrl: variable('URL'), apiKey: variable(name) }));
          assert.equal(answer.ok, true, JSON.stringify(answer));
        });
      }

      for (const [what, type, value] of [
        ['a blank variable', 'str', ''],
        ['a variable with invalid JSON', 'json', '{'],
        ['a JSONata variable', 'jsonata', '"the-key"'],
      ] as const) {
        it(`rejects ${what}`, async () => {
          const flow = await start({ type, value });
          const { error } = await flow.testConnection(form(sim, { apiKey: variable('KEY') }));
          assert.match(JSON.stringify(error), /SMS_CONFIG.*variable KEY of the subflow/);
          assert.equal(sim.requests.length, 0);
        });
      }
    });

    it("uses the environment variables of the account's flow", async () => {
      const env = [{ name: 'KEY', type: 'str', value: sim.credentials.apiKey }];
      const flow = await RunningFlow.start([{ id: 'tab', type: 'tab', label: '', env }, account(sim, { z: 'tab' })]);
      assert.equal((await flow.testConnection(form(sim, { apiKey: variable('KEY') }))).ok, true);
    });

    it('never shows a credential in an error', async () => {
      const flow = await RunningFlow.start([account(sim)]);
      const wrong = { apiKey: secret, userId: 'someone', password: secret };
      const cases: [Record<string, unknown>, string, number | undefined][] = [
        [wrong, 'SMS_UNAUTHORIZED', 401],
        [{ ...wrong, authType: 'form', method: 'GET' }, 'SMS_UNAUTHORIZED', 401],
        [{ ...wrong, apiKey: '' }, 'SMS_CONFIG', undefined],
        [{ ...wrong, apiKey: `${secret}\n\u{1f511}` }, 'SMS_CONFIG', undefined],
        [{ ...wrong, tls: 'missing' }, 'SMS_CONFIG', undefined],
        [{ ...wrong, baseUrl: `https://user:${secret}@sms.example.com` }, 'SMS_CONFIG', undefined],
        [{ ...wrong, baseUrl: 'http://127.0.0.1:1' }, 'SMS_UNREACHABLE', undefined],
      ];
      for (const [values, code, statusCode] of cases) {
        const answer = await flow.testConnection(form(sim, values));
        const { message, ...error } = answer.error as { message: string };
        assert.deepEqual(error, { code, ...(statusCode && { statusCode }) }, JSON.stringify(values));
        assert.notEqual(message.trim(), '');
        assert.deepEqual(Object.keys(answer), ['ok', 'error']);
        assert.equal(answer.ok, false);
        assert.equal(JSON.stringify(answer).includes(secret), false);
      }
      assert.equal(inspect(flow.log, { depth: 9 }).includes(secret), false);
    });

    it('raises SMS_CONFIG for malformed values', async () => {
      const flow = await RunningFlow.start([account(sim)]);
      const strange = { id: { a: 1 }, baseUrl: {}, authType: [], timeout: {}, apiKey: { x: 1 }, tls: [1], proxy: {} };
      const { baseUrl } = sim;
      const bodies: unknown[] = [
        strange,
        [],
        { baseUrl, apiKey: { x: 1 } },
        { id: 'account', baseUrl, apiKey: null },
        { id: 'account', baseUrl, authType: 'basic', userId: ['x'], password: {} },
        { id: { toString: 1 }, baseUrl },
      ];
      for (const body of bodies) {
        const answer = await flow.testConnection(body as Record<string, unknown>);
        assert.equal((answer.error as { code: string }).code, 'SMS_CONFIG', JSON.stringify(body));
      }
      assert.deepEqual(sim.requests, []);
    });
  });

  describe('with wrong settings', () => {
    const bad: Record<string, Record<string, unknown>> = {
      'a blank base URL': { baseUrl: '' },
      'a missing API key': { credentials: {} },
      'a missing password': { authType: 'form', credentials: { userId: 'demo' } },
      'the store "Redis" instead of "redis"': { store: 'Redis' },
      'an unknown authentication': { authType: 'digest' },
      'the method "get" instead of "GET"': { method: 'get' },
      'a flag that is not a boolean': { dedupe: 'on' },
      'an `allowHttp` that is an object': { allowHttp: { on: true } },
      'a missing TLS configuration': { tls: 'gone' },
      'a proxy that is not an http proxy node': { proxy: 'send' },
      'quiet hours without an end': { quietFrom: '21:00' },
      'a prefix with letters': { prefixes: '64 abc' },
    };
    for (const [what, properties] of Object.entries(bad)) {
      it(`raises SMS_CONFIG for ${what}`, async () => {
        const flow = await RunningFlow.start(sendNode(sim, {}, properties));
        flow.send('send', { topic: handset, payload: 'hello' });
        flow.send('send', { topic: handset, payload: 'hello' });
        await flow.done('send', 2);
        assert.deepEqual(await flow.codes(2), ['SMS_CONFIG', 'SMS_CONFIG']);
        assert.equal(flow.logged('account').length, 1);
        assert.deepEqual(flow.status('send'), { fill: 'red', shape: 'ring', text: 'not configured' });
        assert.equal(sim.requests.length, 0);
        assert.equal(inspect(flow.log, { depth: 9 }).includes(secret), false);
      });
    }
  });

  describe('with valid settings', () => {
    it('sends by plain http to another host if `allowHttp` is set', async () => {
      const properties = { baseUrl: 'http://sms.invalid', allowHttp: true };
      const flow = await RunningFlow.start(sendNode(sim, { retries: 0 }, properties));
      assert.equal((await outcome(flow))?.code, 'SMS_UNREACHABLE');
    });

    it('resolves environment variables in settings and credentials', async () => {
      const { baseUrl, credentials } = sim;
      setVariables({ SMS_TEST_URL: baseUrl, SMS_TEST_KEY: credentials.apiKey, SMS_TEST_MAX: '3' });
      const properties = {
        baseUrl: variable('SMS_TEST_URL'),
        maxLength: variable('SMS_TEST_MAX'),
        credentials: { apiKey: variable('SMS_TEST_KEY') },
      };
      const flow = await RunningFlow.start(sendNode(sim, {}, properties));
      assert.equal((await outcome(flow))?.field, 'body');
      flow.send('send', { topic: handset, payload: 'hel' });
      await flow.messages('sent', 1);
    });
  });

  for (const [what, properties] of [
    ['API key', { credentials: { apiKey: variable('SMS_TEST_ABSENT') } }],
    ['password', { authType: 'basic', credentials: { userId: 'ann', password: variable('SMS_TEST_ABSENT') } }],
    ['user ID', { authType: 'form', credentials: { userId: variable('SMS_TEST_ABSENT'), password: secret } }],
    ['Redis URL', { store: 'redis', credentials: { apiKey: secret, redisUrl: variable('SMS_TEST_ABSENT') } }],
    ['base URL', { baseUrl: variable('SMS_TEST_ABSENT') }],
  ] as const) {
    it(`raises SMS_CONFIG if its ${what} is an unset environment variable`, async () => {
      const flow = await RunningFlow.start(sendNode(sim, {}, properties));
      const error = await outcome(flow);
      assert.equal(error?.code, 'SMS_CONFIG');
      assert.match(String(error?.message), /variable SMS_TEST_ABSENT is not set/);
      assert.equal(sim.requests.length, 0);
      const answer = await flow.testConnection(form(sim, { ...properties, apiKey: '__PWRD__', id: 'account' }));
      if (what !== 'Redis URL') assert.match(JSON.stringify(answer), /"SMS_CONFIG".*SMS_TEST_ABSENT/);
    });
  }

  it('ignores an unset variable in a credential that it does not use', async () => {
    const credentials = {
      ...sim.credentials,
      userId: variable('SMS_TEST_ABSENT'),
      redisUrl: variable('SMS_TEST_ABSENT'),
    };
    const flow = await RunningFlow.start(sendNode(sim, {}, { credentials }));
    flow.send('send', { topic: handset, payload: 'hello' });
    await flow.messages('sent', 1);
  });

  describe('with a flow variable', () => {
    /** Creates an account, and a node that sends, in a flow with a variable `VALUE`. */
    const inFlow = (type: string, value: string, properties: Record<string, unknown>): FlowNode[] => [
      { id: 'tab', type: 'tab', label: '', env: [{ name: 'VALUE', type, value }] },
      ...sendNode(sim, {}, { z: 'tab', ...properties }),
    ];

    for (const [what, type, value] of [
      ['number', 'num', '0'],
      ['boolean', 'bool', 'false'],
    ] as const) {
      it(`reads the ${what} ${value} as text`, async () => {
        const service = await startService({ credentials: { ...sim.credentials, password: value } });
        const credentials = { ...sim.credentials, password: variable('VALUE') };
        const properties = { authType: 'form', baseUrl: service.baseUrl, credentials };
        const flow = await RunningFlow.start(inFlow(type, value, properties));
        assert.equal(await outcome(flow), undefined);
      });
    }

    it('raises SMS_CONFIG if the variable is an object', async () => {
      const flow = await RunningFlow.start(
        inFlow('json', JSON.stringify({ hidden: secret }), { credentials: { apiKey: variable('VALUE') } }),
      );
      const error = await outcome(flow);
      assert.equal(error?.code, 'SMS_CONFIG');
      assert.match(String(error?.message), /"API key" is not text/);
      assert.equal(inspect([flow.log, flow.received('caught')], { depth: 9 }).includes(secret), false);
      assert.equal(sim.requests.length, 0);
    });
  });

  describe('with tls', () => {
    const tls = (properties: Record<string, unknown>): FlowNode => {
      const noFiles = { cert: '', key: '', ca: '' };
      return { id: 'tls', type: 'tls-config', ...noFiles, verifyservercert: true, ...properties };
    };

    /** Sends a message to a service with TLS, and returns its error and the badge. */
    async function sendWith(service: Simulator, properties: Record<string, unknown>) {
      const flow = await RunningFlow.start([tls(properties), ...sendNode(service, { retries: 0 }, { tls: 'tls' })], {
        nodes: [coreNode('network/05-tls')],
      });
      const error = await outcome(flow);
      await until(() => flow.status('send')?.fill !== 'blue', 'the badge of the outcome');
      const badge = flow.status('send')?.text;
      await flow.stop();
      return { code: error?.code, badge };
    }

    it('trusts only the certificates in its tls-config', async () => {
      const { key, cert } = createSelfSigned();
      const service = await startService({ tls: { key, cert } });
      const cases: [Record<string, unknown>, string | undefined][] = [
        [{}, 'SMS_UNREACHABLE'],
        [{ verifyservercert: false }, undefined],
        [{ caname: 'ca.pem', servername: 'localhost', credentials: { cadata: cert } }, undefined],
      ];
      for (const [properties, code] of cases) {
        const error = await sendWith(service, properties);
        const badge = code ? 'untrusted issuer' : 'sent';
        assert.deepEqual([error.code, error.badge], [code, badge], JSON.stringify(properties));
      }
      assert.equal(service.messages.length, 2);
    });

    // Node-RED 4 does not support these ways. It reads certificates only from files, or as uploaded in the editor.
    const byEnvironment = {
      certType: 'env',
      certEnv: 'SMS_TEST_CERT',
      keyEnv: 'SMS_TEST_CERT_KEY',
      caEnv: 'SMS_TEST_CA',
    };
    const client = createSelfSigned();
    const asPfx = { certType: 'pfx', credentials: { p12data: clientPfx, passphrase: 'secret' } };
    const inNodeRed5: [name: string, properties: Record<string, unknown>, code?: string][] = [
      ['the PFX certificate of its tls-config', asPfx],
      ['no certificate if its PFX is locked', { ...asPfx, credentials: { p12data: clientPfx } }, 'SMS_UNREACHABLE'],
      ['the certificate in environment variables', { ...byEnvironment, verifyservercert: true }],
    ];
    const ways: typeof inNodeRed5 = [
      ['no certificate if its tls-config has none', {}, 'SMS_UNREACHABLE'],
      ['the certificate of its tls-config', { credentials: { certdata: client.cert, keydata: client.key } }],
      ...(nodeRedGeneration >= 5 ? inNodeRed5 : []),
    ];
    for (const [name, properties, code] of ways) {
      it(`sends ${name}`, async () => {
        const { key, cert } = createSelfSigned();
        // Excludes TLS 1.3, in which a client sends its request before it learns that the server refused its
        // certificate.
        const asked = {
          requestCert: true,
          ca: [client.cert, certificateOfPfx],
          rejectUnauthorized: true,
          maxVersion: 'TLSv1.2' as const,
        };
        const service = await startService({ tls: { key, cert, ...asked } });
        setVariables({ SMS_TEST_CERT: client.cert, SMS_TEST_CERT_KEY: client.key, SMS_TEST_CA: cert });
        const servername = 'localhost';
        const error = await sendWith(service, { servername, verifyservercert: false, ...properties });
        assert.equal(error.code, code);
        assert.equal(service.messages.length, code === undefined ? 1 : 0);
      });
    }
  });

  describe('with a proxy', () => {
    const closing = new Closing();
    afterEach(() => closing.run());

    it('sends through its http proxy node, except to `noproxy` hosts', async () => {
      const proxy = await startProxyService(closing);
      const credentials = { username: 'u', password: 'p' };
      const nodes = (noproxy: string[]) => [
        { id: 'proxy', type: 'http proxy', name: '', url: proxy.baseUrl, noproxy, credentials },
        ...sendNode(sim, {}, { proxy: 'proxy' }),
      ];
      const flow = await RunningFlow.start(nodes([]), { nodes: [coreNode('network/06-httpproxy')] });
      assert.equal(await outcome(flow), undefined);
      const login = `Basic ${Buffer.from('u:p').toString('base64')}`;
      assert.deepEqual([proxy.forwarded, proxy.authorizations], [[`${sim.baseUrl}/api/3/sms/out`], [login]]);
      await flow.deploy(nodes(['127.0.0.1']));
      flow.send('send', { topic: handset, payload: 'direct' });
      await flow.messages('sent', 2);
      assert.equal(proxy.forwarded.length, 1);
    });

    for (const name of ['http_proxy', 'HTTP_PROXY']) {
      it(`uses the environment variables ${name} and no_proxy by default`, async () => {
        const proxy = await startProxyService(closing);
        setVariables({ [name]: proxy.baseUrl });
        for (const no_proxy of ['', '127.0.0.1']) {
          setVariables({ no_proxy });
          const flow = await RunningFlow.start(sendNode(sim));
          assert.equal(await outcome(flow), undefined);
          assert.equal(proxy.forwarded.length, 1, no_proxy);
          await flow.stop();
        }
      });
    }
  });

  describe('with a shared login', () => {
    it('polls once for both account nodes', async () => {
      const most = countMost(sim, 'incoming');
      const flow = await RunningFlow.start([
        account(sim),
        account(sim, { id: 'copy', baseUrl: `${sim.baseUrl}/` }),
        smsNode('in', { id: 'in1', wires: [['got1']] }),
        smsNode('in', { id: 'in2', account: 'copy', wires: [['got2']] }),
        sink('got1'),
        sink('got2'),
      ]);
      for (const body of ['a', 'b', 'c']) sim.receive({ from: handset, to: '642100000001', body });
      for (const id of ['got1', 'got2']) assert.deepEqual(payloadsOf(await flow.messages(id, 3)), ['a', 'b', 'c']);
      assert.equal(most(), 1);
    });

    it('shares one `concurrency` between both account nodes', async () => {
      sim.fault('send', { delayMs: 30 });
      const most = countMost(sim, 'send');
      const flow = await RunningFlow.start([
        ...sendNode(sim, {}, { concurrency: '2' }),
        account(sim, { id: 'copy', concurrency: '2' }),
        { ...send('copy'), id: 'send2' },
      ]);
      for (let index = 0; index < 6; index++) {
        flow.send(index % 2 ? 'send' : 'send2', { topic: handset, payload: `${index}` });
      }
      await flow.messages('sent', 6);
      assert.equal(most(), 2);
    });
  });

  describe('when it polls', () => {
    for (const parallelPolls of [1, 4]) {
      it(`limits simultaneous polls to ${parallelPolls} if \`parallelPolls\` is ${parallelPolls}`, async () => {
        for (let index = 0; index < 30; index++) sim.receive({ from: handset, to: '642100000001', body: `${index}` });
        sim.fault('incoming', { delayMs: 30 }, 31);
        const most = countMost(sim, 'incoming');
        const flow = await RunningFlow.start(nodeWithSink(sim, 'in', {}, { parallelPolls: String(parallelPolls) }));
        const bodies = (await flow.messages('got', 30)).map(({ payload }) => Number(payload));
        const all = [...Array(30).keys()];
        assert.equal(most(), parallelPolls);
        assert.deepEqual([bodies.length, new Set(bodies)], [30, new Set(all)]);
        if (parallelPolls === 1) assert.deepEqual(bodies, all);
      });
    }

    it('waits 30 s after a 204 answer if `pause` is 30', async () => {
      const flow = await RunningFlow.start(nodeWithSink(sim, 'in', {}, { pause: '30' }));
      await flow.badge('in', { fill: 'green', shape: 'ring', text: 'waiting 30 s' });
      assert.deepEqual(
        sim.requests.map(({ status }) => status),
        [204],
      );
    });
  });
});

describe('a node with wrong settings', () => {
  const sim = useService();

  it('raises SMS_CONFIG for a misspelt option', async () => {
    const choices: [type: string, property: string, misspelt: string][] = [
      ['sms-in', 'filter', 'reply'],
      ['sms-in', 'acknowledge', 'Flow'],
      ['sms-status', 'filter', 'finals'],
      ['sms-status', 'acknowledge', 'Auto'],
      ['sms-outbox', 'output', 'lists'],
      ['sms-feed', 'format', 'Atom'],
      ['sms-feed', 'messages', 'in'],
      ['sms-feed', 'output', 'one'],
      ['sms-callback-in', 'acknowledge', 'yes'],
    ];
    const nodeOf = (type: string, property: string, value: string) => ({
      id: `${type} ${property} ${value}`,
      type,
      account: 'account',
      interval: '0',
      path: `/${property}${value === '' ? '/blank' : ''}`,
      wires: [],
      [property]: value,
    });
    const flow = await RunningFlow.start([
      account(sim),
      ...choices.flatMap(([type, property, value]) => [nodeOf(type, property, value), nodeOf(type, property, '')]),
      ...catcher(),
    ]);
    const caught = await flow.messages('caught', choices.length);
    assert.deepEqual(
      caught.map(({ error, sms }) => [error?.source.id, sms?.error?.code]).sort(),
      choices.map((choice) => [choice.join(' '), 'SMS_CONFIG']).sort(),
    );
    const text = 'The setting "Acknowledge" has an unknown value. Use one of these values: auto, flow.';
    assert.equal(caught.filter(({ error }) => error?.message?.endsWith(text)).length, 3);
  });

  it('raises SMS_CONFIG for a flag that is not a boolean', async () => {
    const flags = ['yes', '', 'TRUE'];
    const sending = flags.map((keep) => ({ ...send(), id: `keep ${keep}`, keep }));
    const flow = await RunningFlow.start([account(sim), ...sending, sink('sent'), ...catcher()]);
    for (const { id } of sending) flow.send(id, { topic: handset, payload: id });
    await flow.messages('sent', 2);
    const [error, ...others] = flow.errors();
    assert.deepEqual([error?.code, others], ['SMS_CONFIG', []]);
    assert.match(String(error?.message), /Use one of these values: true, false\.$/);
  });

  it('raises SMS_CONFIG if it has no account', async () => {
    const types = ['sms-send', 'sms-in', 'sms-status', 'sms-outbox', 'sms-feed', 'sms-callback-in'];
    const flow = await RunningFlow.start([
      ...types.map((type) => ({ id: type, type, account: '', path: '/x', wires: [] })),
      ...catcher(),
    ]);
    flow.send('sms-send', { topic: handset, payload: 'hello' });
    const caught = await flow.messages('caught', types.length);
    assert.deepEqual(
      caught.map(({ error, sms }) => [error?.source.id, error?.code, sms?.error?.code]).sort(),
      types.map((type) => [type, 'SMS_CONFIG', 'SMS_CONFIG']).sort(),
    );
    for (const type of types) {
      assert.deepEqual(flow.status(type), { fill: 'red', shape: 'ring', text: 'not configured' });
    }
  });

  it('raises SMS_CONFIG if its account is disabled', async () => {
    for (const nodes of [
      [account(sim, { d: true }), send()],
      [account(sim), send('sent')],
    ]) {
      const flow = await RunningFlow.start([...nodes, sink('sent'), ...catcher()]);
      const { code, message } = (await outcome(flow)) ?? {};
      assert.equal(code, 'SMS_CONFIG');
      assert.match(String(message), /does not exist, is disabled or is not deployed yet/);
      await flow.stop();
    }
  });
});
