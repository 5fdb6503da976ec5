import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { UsableAccount } from '../../nodes/runtime/account-node';
import type { CallbackNode } from '../../nodes/runtime/callback-address';
import { createUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { until } from '../until';
import {
  account,
  bodiesOf,
  catcher,
  handset,
  payloadsOf,
  RunningFlow,
  sink,
  smsNode,
  stopLater,
  useService,
  variable,
} from './running-flow';

const formType = 'application/x-www-form-urlencoded';
const date = '2026-11-20T10:11:12.345Z';
const maxBytes = 256 * 1024;

const xmlReply = (body = 'yes <&> "ok"') =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<inbound-message messageId="order-7" receivedDate="${date}">` +
  `<recipient displayName="Anna" msisdn="${handset}"><body><![CDATA[${body}]]></body></recipient></inbound-message>`;
const form = (fields: Record<string, string>) =>
  new URLSearchParams({ to: '642100', from: handset, inReplyToId: 'order-7', ...fields }).toString();
const formReply = (messageId = 'in1', body = 'yes <&> "ok"') => form({ messageId, body });
const formStatus = form({ messageId: 's1', statusCode: 'NUR', error: 'Unreachable' });

async function post(
  url: string,
  body?: string | Uint8Array | Readable,
  headers: Record<string, string> = {},
  method = 'POST',
) {
  const response = await fetch(url, {
    method,
    // Sets an empty type, because fetch would otherwise choose one.
    headers: { 'content-type': '', ...headers },
    ...(body === undefined ? {} : { body: body as never, duplex: 'half' }),
  } as RequestInit);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const byFlow = { acknowledge: 'flow', inputs: 1 };

const callbackNode = (properties: Record<string, unknown> = {}) =>
  smsNode('callback-in', { id: 'callback', path: '/sms/callback', wires: [['replies'], ['statuses']], ...properties });

describe('sms-callback-in', () => {
  const sim = useService();

  function nodes(properties: Record<string, unknown> = {}, of: Record<string, unknown> = {}): FlowNode[] {
    return [account(sim, of), callbackNode(properties), sink('replies'), sink('statuses'), ...catcher()];
  }

  async function start(
    properties: Record<string, unknown> = {},
    more: FlowNode[] = [],
    settings: Record<string, unknown> = {},
    of: Record<string, unknown> = {},
  ): Promise<{ flow: RunningFlow; url: string }> {
    const flow = await RunningFlow.start([...nodes(properties, of), ...more], { settings });
    return { flow, url: `${await flow.serve()}/sms/callback` };
  }

  describe('with a token', () => {
    const token = 'a secret+/=&ä';
    const withToken = { credentials: { token } };

    it('answers 401 to a request without the token', async () => {
      const { flow, url } = await start(withToken);
      for (const query of ['', '?token=', '?token=wrong', '?Token=x', `?t=${encodeURIComponent(token)}`]) {
        const { status, text } = await post(url + query, formReply());
        assert.equal(status, 401, query);
        assert.equal(text.includes(token), false);
      }
      assert.equal((await post(`${url}?token=${encodeURIComponent(token)}x`, formReply())).status, 401);
      assert.equal((await post(`${url}?x=1&token=${encodeURIComponent(token)}`, formReply())).status, 200);
      await flow.messages('replies', 1);
      assert.equal(flow.received('replies').length, 1);
      assert.equal(JSON.stringify(flow.log).includes(token), false);
    });

    for (const [what, env, reason] of [
      ['not set', [], /variable SMS_TEST_TOKEN is not set/],
      ['blank', [{ type: 'str', value: ' ' }], /variable SMS_TEST_TOKEN is not set/],
      ['an object', [{ type: 'json', value: '{"hidden":"never-shown"}' }], /"token" is not text/i],
    ] as const) {
      it(`answers 503 if the environment variable of the token is ${what}`, async () => {
        const token = variable('SMS_TEST_TOKEN');
        const tab = { id: 'tab', type: 'tab', label: '', env: env.map((one) => ({ name: 'SMS_TEST_TOKEN', ...one })) };
        const properties = { credentials: { token }, publicUrl: 'https://flows.example.com' };
        const { flow, url } = await start(properties, [tab]);
        const [caught] = await flow.messages('caught', 1);
        assert.deepEqual([caught?.error?.source.id, caught?.error?.code], ['callback', 'SMS_CONFIG']);
        assert.match(String(caught?.error?.message), reason);
        assert.deepEqual(flow.status('callback'), { fill: 'red', shape: 'ring', text: 'not configured' });
        for (const query of ['', '?token=', `?token=${encodeURIComponent(token)}`, '?token=undefined', '?token=%20']) {
          assert.equal((await post(url + query, formReply())).status, 503, query);
        }
        assert.deepEqual(flow.received('replies'), []);
        const { callbackUrl } = flow.node('callback') as CallbackNode;
        assert.throws(callbackUrl, { code: 'SMS_CONFIG', message: reason });
        assert.equal(inspect([flow.log, flow.received('caught')], { depth: 9 }).includes('never-shown'), false);
      });
    }
  });

  it('adds the query parameters as `msg.sms.query`, without the token', async () => {
    const { flow, url } = await start({ credentials: { token: 't' } });
    await post(
      `${url}?token=t&status=RCV&name=A%26B+%C3%A5&x=1&x=2&__proto__=p&constructor=c&empty=`,
      `${formReply()}&query=q`,
    );
    const [message] = await flow.messages('replies', 1);
    assert.deepEqual(message?.sms?.query, { status: 'RCV', name: 'A&B å', x: ['1', '2'], empty: '' });
  });

  it('answers 405 to a method other than POST', async () => {
    const { flow, url } = await start();
    for (const method of ['GET', 'PUT', 'OPTIONS']) {
      const { status, headers } = await post(url, undefined, {}, method);
      assert.deepEqual([status, headers.get('allow')], [405, 'POST']);
    }
    assert.equal(flow.received('replies').length, 0);
  });

  it('answers 400 to a request that is neither a reply nor a status', async () => {
    const { flow, url } = await start();
    for (const body of [
      undefined,
      '{"from":"1","body":"x"}',
      '<inbound-message><recipient></inbound-message>',
      `<!DOCTYPE a [<!ENTITY x "y">]>${xmlReply().replace(/^<\?xml.*\n/, '')}`,
      'a=b',
      Buffer.from([0, 1, 2, 255, 254]),
    ]) {
      const { status, text } = await post(url, body, { 'content-type': formType });
      assert.equal(status, 400, text);
      assert.match(text, /^[^\r\n<>]+$/);
    }
    const compressed = { 'content-type': formType, 'content-encoding': 'gzip' };
    assert.equal((await post(url, gzipSync(formReply()), compressed)).status, 400);
    assert.equal(flow.received('replies').length + flow.received('statuses').length, 0);
    assert.equal((await post(url, xmlReply(), { 'content-encoding': 'identity' })).status, 200);
    await flow.messages('replies', 1);
  });

  it('answers 413 to a body over 256 KiB', async () => {
    const filled = (bytes: number) => `${formReply('large')}&pad=`.padEnd(bytes, 'x');
    const { flow, url } = await start();
    assert.equal((await post(url, filled(maxBytes + 1))).status, 413);
    // The client does not end its request body, so that it can still read the answer.
    const endless = request(url, { method: 'POST' });
    endless.write(filled(maxBytes + 1));
    const [answer] = (await once(endless, 'response')) as [IncomingMessage];
    endless.destroy();
    assert.equal(answer.statusCode, 413);
    assert.equal((await post(url, formReply('small'))).status, 200);
    assert.equal((await post(url, filled(maxBytes))).status, 200);
    const received = await flow.messages('replies', 2);
    assert.deepEqual(
      received.map(({ sms }) => sms?.messageId),
      ['small', 'large'],
    );
  });

  it('answers 200 before the flow acknowledges the message', async () => {
    const { flow, url } = await start(byFlow);
    const inbox = () => (flow.node('account') as UsableAccount).membership.state().inbox;
    assert.deepEqual(await post(url, formReply()).then(({ status, text }) => [status, text]), [200, 'OK']);
    const [message] = await flow.messages('replies', 1);
    assert.equal(typeof message?.sms?.ackId, 'string');
    assert.equal((await post(url, formReply())).status, 200);
    assert.deepEqual([flow.received('replies').length, inbox().undelivered], [1, 1]);
    flow.send('callback', message as Record<string, unknown>);
    await flow.done('callback', 1);
    assert.equal(inbox().undelivered, 0);
  });

  describe('with an account', () => {
    it('answers 503 while the store fails', async () => {
      const userDir = createUserDir();
      writeFileSync(join(userDir, 'sms-inbox'), 'in the way');
      const { flow, url } = await start({}, [], { userDir }, { store: 'disk' });
      const { status, text, headers } = await post(url, formReply());
      assert.deepEqual([status, headers.get('retry-after')], [503, '30']);
      assert.equal(text, 'The message cannot be stored now.');
      const [caught] = await flow.messages('caught', 1);
      assert.match(String(caught?.sms?.error?.message), /^The store .*(?:ENOTDIR|EEXIST)/);
      assert.equal(flow.received('replies').length, 0);
      const { fill, shape } = flow.status('callback') ?? {};
      assert.deepEqual([fill, shape], ['red', 'ring']);
      rmSync(join(userDir, 'sms-inbox'));
      await until(async () => (await post(url, formReply())).status === 200);
      assert.equal(flow.received('caught').length, 1, 'one error, however often the service tries');
      assert.equal((await flow.messages('replies', 1)).length, 1);
      await flow.badge('callback', { fill: 'green', shape: 'dot', text: '/sms/callback' });
      const { length } = flow.statuses('callback');
      assert.equal((await post(url, formStatus)).status, 200);
      assert.equal(flow.statuses('callback').length, length, 'a badge was shown again that stood there already');
    });

    it('answers 503 if the account is misconfigured', async () => {
      const { url } = await start({}, [], {}, { baseUrl: '' });
      assert.equal((await post(url, formReply())).status, 503);
    });

    it('redelivers an unacknowledged message after a restart', async () => {
      const userDir = createUserDir();
      const first = await start(byFlow, [], { userDir }, { store: 'disk' });
      assert.equal((await post(first.url, formReply())).status, 200);
      await first.flow.messages('replies', 1);
      await first.flow.stop();
      const second = await start(byFlow, [], { userDir }, { store: 'disk' });
      const [message] = await second.flow.messages('replies', 1);
      assert.deepEqual([message?.payload, message?.sms?.redelivered], ['yes <&> "ok"', true]);
      await second.flow.stop();
    });
  });

  describe('with an HTTP route', () => {
    it('raises SMS_CONFIG for a blank path', async () => {
      const { flow } = await start({ path: '   ' });
      assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_CONFIG');
    });

    it('raises SMS_CONFIG for a path with a query string', async () => {
      const { flow, url } = await start({ path: '/sms?token=secret' });
      const { code, message } = (await flow.messages('caught', 1))[0]?.sms?.error ?? {};
      assert.equal(code, 'SMS_CONFIG');
      assert.match(String(message), /contains \? or #/);
      assert.equal(String(message).includes('secret'), false);
      assert.equal(flow.status('callback')?.fill, 'red');
      assert.equal((await post(new URL('/sms', url).href, formReply())).status, 404);
    });

    it('serves the percent-encoded form of its path', async () => {
      const [path, encoded] = ['/sms 100%', '/sms%20100%25'];
      const { flow, url } = await start({ path, publicUrl: 'https://flows.example.com/' });
      const callbackUrl = (flow.node('callback') as CallbackNode).callbackUrl();
      assert.equal(callbackUrl, `https://flows.example.com${encoded}`);
      assert.equal((await post(new URL(encoded, url).href, formReply())).status, 200);
      await flow.messages('replies', 1);
      await flow.badge('callback', { fill: 'green', shape: 'dot', text: path });
    });

    it('serves no route if the variable of its path is not set', async () => {
      const { flow, url } = await start({ path: variable('SMS_TEST_PATH'), publicUrl: 'https://flows.example.com' });
      const [caught] = await flow.messages('caught', 1);
      assert.match(String(caught?.error?.message), /variable SMS_TEST_PATH is not set/);
      assert.equal((await post(new URL('/$%7BSMS_TEST_PATH%7D', url).href, formReply())).status, 404);
      await flow.deploy(nodes({ publicUrl: variable('SMS_TEST_URL') }));
      assert.throws(() => (flow.node('callback') as CallbackNode).callbackUrl(), {
        code: 'SMS_CONFIG',
        message: /SMS_TEST_URL/,
      });
    });

    it('raises SMS_CONFIG if `httpNodeRoot` is false', async () => {
      const { flow, url } = await start({}, [], { httpNodeRoot: false });
      const { code, message } = (await flow.messages('caught', 1))[0]?.sms?.error ?? {};
      assert.deepEqual([code, /no HTTP nodes \(httpNodeRoot is false\)/.test(String(message))], ['SMS_CONFIG', true]);
      assert.equal((await post(url, formReply())).status, 404);
    });

    it('removes its old routes at every type of redeploy', async () => {
      const { flow } = await start();
      const app = flow.red.httpNode as unknown as { _router?: { stack: unknown[] }; router?: { stack: unknown[] } };
      const countRoutes = () => ('_router' in app && app._router ? app._router : app.router)?.stack.length;
      const before = countRoutes();
      for (const type of ['full', 'flows', 'nodes'] as const) {
        await flow.deploy(nodes({ name: type, path: '/elsewhere' }), type);
        await flow.deploy(nodes(), type);
        assert.equal(countRoutes(), before);
      }
      assert.equal(typeof before, 'number');
    });

    it('gets no messages while an earlier node uses its path', async () => {
      const second = callbackNode({ id: 'second', path: '/SMS/Callback/', wires: [['late'], []] });
      const { flow, url } = await start({}, [second, sink('late')]);
      const caught = await flow.messages('caught', 1);
      assert.deepEqual(
        caught.map(({ error }) => [error?.source.id, error?.code]),
        [['second', 'SMS_CONFIG']],
      );
      await flow.badge('second', { fill: 'red', shape: 'ring', text: 'path in use' });
      for (const type of ['nodes', 'flows'] as const) {
        await flow.deploy([...nodes({ name: type }), second, sink('late')], type);
        await post(url, formReply(type));
        await until(() => flow.received('replies').some(({ sms }) => sms?.messageId === type));
      }
      assert.equal(flow.received('late').length, 0);
      const others = nodes().filter(({ id }) => id !== 'callback');
      await flow.deploy([...others, second, sink('late')], 'nodes');
      assert.equal((await post(url, formReply('3'))).status, 200);
      assert.equal((await flow.messages('late', 1))[0]?.sms?.messageId, '3');
      await until(() => flow.status('second')?.fill === 'green');
    });

    it('has no callback URL while another node has its path', async () => {
      const publicUrl = 'https://flows.example.com';
      const others = [
        callbackNode({ id: 'second', publicUrl, wires: [[], []], credentials: { token: 'second' } }),
        smsNode('send', { callbackNode: 'second', callbackUrlType: 'node', wires: [[], []] }),
      ];
      const { flow } = await start({ publicUrl }, others);
      await flow.messages('caught', 1);
      flow.send('send', { topic: handset, payload: 'hello' });
      const { error } = (await flow.messages('caught', 2))[1]?.sms ?? {};
      assert.deepEqual([error?.code, error?.field], ['SMS_CONFIG', 'callbackUrl']);
      assert.match(String(error?.message), /^Another sms callback node already has the path \/sms\/callback\./);
      assert.equal(sim.messages.length, 0);
    });

    it('accepts a request whose body `httpNodeMiddleware` has already read', async () => {
      type Asked = IncomingMessage & { body?: Buffer; _body?: boolean };
      const httpNodeMiddleware = [
        (asked: Asked, answer: { sendStatus(status: number): void }, next: () => void) => {
          if (asked.headers['x-block']) answer.sendStatus(418);
          else next();
        },
        async (asked: Asked, _: unknown, next: () => void) => {
          asked.body = Buffer.concat(await asked.toArray());
          asked._body = true;
          next();
        },
      ];
      const { flow, url } = await start({}, [], { httpNodeMiddleware });
      assert.equal((await post(url, formReply(), { 'x-block': 'yes' })).status, 418);
      const bytes = Buffer.from('from=1&messageId=1&body=café', 'latin1');
      const answer = await post(url, bytes, { 'content-type': `${formType}; charset=ISO-8859-1` });
      assert.equal(answer.status, 200);
      assert.deepEqual(payloadsOf(await flow.messages('replies', 1)), ['café']);
    });

    it('answers with the CORS headers of `httpNodeCors`', async () => {
      const httpNodeCors = { origin: 'https://example.com', methods: 'POST' };
      const { url } = await start({}, [], { httpNodeCors });
      const { status, headers } = await post(url, formReply());
      assert.deepEqual([status, headers.get('access-control-allow-origin')], [200, 'https://example.com']);
      const preflight = await post(url, undefined, { 'access-control-request-method': 'POST' }, 'OPTIONS');
      assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-methods')], [204, 'POST']);
    });
  });

  it('is not blocked by slow or broken requests', async () => {
    const { flow, url } = await start();
    /** Opens a request over a socket, and sends only a part of its body. */
    const open = async (part: string, length: number) => {
      const { port, pathname } = new URL(url);
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      await once(socket, 'connect');
      socket.write(`POST ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n${part}`);
      return socket;
    };
    const body = formReply('slow');
    const sockets = await Promise.all(Array.from({ length: 50 }, () => open(body.slice(0, 9), body.length)));
    const broken = await open(formReply('broken'), 1_000);
    broken.destroy();
    await once(broken, 'close');
    assert.equal((await post(url, formReply('quick'))).status, 200);
    const [slow = assert.fail()] = sockets;
    for (const character of body.slice(9)) slow.write(character);
    const [answer] = await once(slow, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 200 /);
    for (const socket of sockets) socket.destroy();
    assert.deepEqual(
      (await flow.messages('replies', 2)).map(({ sms }) => sms?.messageId),
      ['quick', 'slow'],
    );
  });

  describe('in a separate process', () => {
    let nodeRed: NodeRedProcess;

    /** Like {@link nodes}, but for a separate process. Its node `echo` forwards each received message. */
    function processNodes(properties: Record<string, unknown> = {}): FlowNode[] {
      const to = { to: handset, toType: 'str', retries: 0, wires: [[], []] };
      const ofTab = { z: 'tab', x: 0, y: 0 };
      return [
        { id: 'tab', type: 'tab', label: 'Test' },
        account(sim, { concurrency: '1' }),
        { ...callbackNode(properties), ...ofTab, wires: [['echo'], ['echo']] },
        { id: 'echo', type: 'sms-send', account: 'account', ...ofTab, ...to },
      ];
    }

    async function startProcess(settings: Record<string, unknown>, flows = processNodes()): Promise<void> {
      nodeRed = await startNodeRed({ settings, flows });
      stopLater(() => nodeRed.stop());
    }

    async function sent(count: number): Promise<string[]> {
      await sim.until(() => sim.messages.length >= count);
      return bodiesOf(sim);
    }

    it('accepts only FORMv1 and XML if nodes and editor share the HTTP root', async () => {
      await startProcess({});
      const url = `${nodeRed.url}/sms/callback`;
      const answers: [string, string, number][] = [
        [formReply('1', 'a form + ä'), formType, 200],
        [xmlReply('XML + ä'), 'text/xml', 200],
        [formStatus, formType, 200],
        [formReply('2', 'unlabelled'), '', 200],
        [formReply('3', 'plain'), 'text/plain', 200],
        [`${formReply('raw', 'raw')}&pad=${"'".repeat(200_000)}`, formType, 200],
        [form({ body: '20%ab €!', contentType: 'text/plain; charset=UTF-16' }), formType, 200],
        [xmlReply('as a form'), formType, 400],
        [JSON.stringify({ from: handset, body: 'JSON' }), 'application/json', 400],
        ['', formType, 400],
        ['from[a]=1&body[b]=2', formType, 400],
        [`${formReply('4')}&pad=`.padEnd(maxBytes + 1, 'x'), formType, 413],
        [`${formReply('5')}&pad=`.padEnd(maxBytes + 1, 'x'), 'text/plain', 413],
      ];
      for (const [body, type, expected] of answers) {
        const { status } = await post(url, body, { 'content-type': type });
        assert.equal(status, expected, `${type} ${body.slice(0, 60)}`);
      }
      // A chunked body has no length, so the node estimates the length from the parsed body.
      const measured: [string, number, number][] = [
        [`${formReply('6')}&pad=`, maxBytes, 200],
        [`${formReply('7')}&pad=`, maxBytes + 1, 413],
        [`${formReply('10')}${'&b%5Bc%5D%5Bd%5D=1'.repeat(15)}&pad=`, maxBytes, 200],
        [`${formReply('11')}${'&b%5Bc%5D%5Bd%5D=1'.repeat(15)}&pad=`, maxBytes + 1, 413],
        [`${formReply('12')}&pad=${'%C3%A4'.repeat(10_000)}`, maxBytes, 200],
        [`${formReply('13')}&pad=${'%C3%A4'.repeat(10_000)}`, maxBytes + 1, 413],
      ];
      for (const [body, bytes, expected] of measured) {
        const { status } = await post(url, Readable.from([body.padEnd(bytes, 'x')]), { 'content-type': formType });
        assert.equal(status, expected, `${body.slice(0, 100)} ${bytes}`);
      }
      assert.equal((await post(url, undefined, {}, 'GET')).status, 405);
      const usual = Array<string>(3).fill('yes <&> "ok"');
      const texts = ['a form + ä', 'XML + ä', 'NUR', 'unlabelled', 'plain', 'raw', '20%ab €!', ...usual];
      assert.deepEqual(await sent(texts.length), texts);
    });

    it('detects the format by the body, not the content type', async () => {
      const flows = processNodes({ publicUrl: 'http://127.0.0.1:1', credentials: { token: 't&t' } }).map((node) =>
        node.id === 'echo' ? { ...node, callbackNode: 'callback', callbackUrlType: 'node' } : node,
      );
      await startProcess({ httpAdminRoot: '/admin', httpNodeRoot: '/red' }, flows);
      const url = `${nodeRed.url}/red/sms/callback?token=t%26t`;
      assert.equal((await post(url, xmlReply('first'), { 'content-type': formType })).status, 200);
      assert.equal((await post(url, formReply('2', 'second'), { 'content-type': 'application/json' })).status, 200);
      assert.equal((await post(`${nodeRed.url}/sms/callback`, formReply('3'))).status, 404);
      assert.deepEqual(await sent(2), ['first', 'second']);
      const { pathname, search } = new URL(sim.messages[0]?.callbackUrl ?? '');
      assert.equal((await post(`${nodeRed.url}${pathname}${search}`, formReply('4', 'third'))).status, 200);
      await sent(3);
    });

    it('answers 404 after a redeploy removes the node', async () => {
      // Adds a core `http in` node at the same path. It answers if the callback node is removed.
      const onTab = [
        { id: 'http', type: 'http in', url: '/sms/callback', method: 'post', wires: [['answer']] },
        { id: 'answer', type: 'http response', statusCode: '202', wires: [] },
      ].map((node) => ({ ...node, name: '', z: 'tab', x: 0, y: 0 }));
      await startProcess({}, [...processNodes(), ...onTab]);
      const url = `${nodeRed.url}/sms/callback`;
      for (const type of ['nodes', 'flows', 'full'] as const) {
        await nodeRed.deploy([...processNodes(), ...onTab], type);
        const without = processNodes().filter(({ id }) => id !== 'callback');
        await nodeRed.deploy([...without, ...onTab], type);
        assert.equal((await post(url, formReply(type), { 'content-type': formType })).status, 202);
        await nodeRed.deploy(without, type);
        assert.equal((await post(url, formReply(type), { 'content-type': formType })).status, 404);
      }
      await nodeRed.deploy(processNodes(), 'nodes');
      assert.equal((await post(url, formReply('end', 'end'))).status, 200);
      assert.equal((await sent(1)).at(-1), 'end');
    });
  });
});
