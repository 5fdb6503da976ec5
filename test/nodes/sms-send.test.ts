import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import helper from 'node-red-node-test-helper';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import {
  account,
  blocked,
  bodiesOf,
  coreNode,
  handset,
  RunningFlow,
  sendNode,
  setVariables,
  sink,
  stopLater,
  useService,
  variable,
} from './running-flow';
import { send, sendRefused, toCallbackNode, uuid } from './sending';

describe('sms-send', () => {
  const sim = useService();

  const start = (properties: Record<string, unknown> = {}, more: FlowNode[] = [], of: Record<string, unknown> = {}) =>
    RunningFlow.start([...sendNode(sim, properties, of), ...more]);

  const refuses = sendRefused.bind(undefined, sim);

  describe('after an answer', () => {
    it('sends the input with the result to output 1', async () => {
      const flow = await start();
      await send(flow, { other: { kept: true }, sms: { earlier: 1 } });
      const [message] = flow.received('sent');
      const { messageId } = sim.messages[0] ?? assert.fail();
      const { _msgid, ...rest } = message ?? assert.fail();
      assert.deepEqual(rest, {
        topic: handset,
        payload: 'hello',
        other: { kept: true },
        sms: {
          messageId,
          statusCode: 200,
          isError: false,
          recipients: [{ msisdn: handset, isError: false }],
          accepted: [handset],
          failed: [],
          encoding: 'GSM-7',
          parts: 1,
        },
      });
      assert.equal(flow.received('sent').length, 1);
      assert.deepEqual(flow.received('failed'), []);
      assert.deepEqual(flow.received('caught'), []);
      assert.deepEqual(flow.completions, [{ id: 'send', error: undefined }]);
      assert.equal(typeof _msgid, 'string');
    });

    it('sends a copy per failed recipient to output 2', async () => {
      const flow = await start();
      await send(flow, { topic: `${handset} ${blocked} Nobody`, deep: { a: [1] } });
      const [sent] = flow.received('sent');
      const { messageId } = sim.messages[0] ?? assert.fail();
      const failed = [
        { msisdn: blocked, errorCode: 403, errorMessage: 'Number is in the blocked list' },
        { msisdn: 'Nobody', errorCode: 403, errorMessage: 'Contact is not in the address book' },
      ];
      const isError = true;
      assert.deepEqual(
        [sent?.sms?.recipients, sent?.sms?.accepted, sent?.sms?.failed],
        [[{ msisdn: handset, isError: false }, ...failed.map((result) => ({ ...result, isError }))], [handset], failed],
      );
      assert.equal(sent?.topic, `${handset} ${blocked} Nobody`);
      const copies = flow.received('failed');
      assert.deepEqual(
        copies.map(({ topic, payload, sms, deep }) => ({ topic, payload, sms, deep })),
        failed.map((result) => ({
          topic: result.msisdn,
          payload: 'hello',
          sms: { messageId, ...result },
          deep: { a: [1] },
        })),
      );
      assert.deepEqual(
        copies.map(({ parts }) => parts),
        failed.map((_, index) => ({ ...copies[0]?.parts, type: 'array', count: 2, index })),
      );
      assert.notEqual(copies[0]?.deep, copies[1]?.deep);
      assert.equal(flow.completions.length, 1);
      assert.deepEqual(flow.received('caught'), []);
      assert.deepEqual(flow.status('send'), { fill: 'yellow', shape: 'dot', text: '2 of 3 failed' });
    });

    it('sends nothing to output 1 if every recipient failed', async () => {
      const flow = await start();
      await send(flow, { topic: [blocked] });
      assert.deepEqual(flow.received('sent'), []);
      assert.deepEqual(flow.received('failed')[0]?.topic, blocked);
      assert.deepEqual(flow.received('caught'), []);
      assert.deepEqual(flow.completions, [{ id: 'send', error: undefined }]);
      assert.deepEqual(flow.status('send'), { fill: 'red', shape: 'dot', text: '1 of 1 failed' });
    });

    it('lets a join node collect the copies from output 2', async () => {
      const join = { id: 'join', type: 'join', name: '', mode: 'auto', wires: [['joined']] };
      const flow = await RunningFlow.start(
        [...sendNode(sim, {}, {}, [['sent'], ['join']]).filter(({ id }) => id !== 'join'), join, sink('joined')],
        { nodes: [coreNode('sequence/17-split')] },
      );
      flow.send('send', { topic: `${handset} ${blocked} Nobody`, payload: 'hello' });
      assert.deepEqual((await flow.messages('joined', 1))[0]?.payload, ['hello', 'hello']);
    });

    it('treats a 204 as success for every recipient', async () => {
      sim.fault('send', { status: 204 });
      const flow = await start();
      await send(flow);
      const { statusCode, isError, recipients, accepted, failed } = flow.received('sent')[0]?.sms ?? {};
      assert.deepEqual([statusCode, isError, recipients, accepted, failed], [204, false, [], [handset], []]);
    });
  });

  describe('with typed fields', () => {
    it('uses `msg.topic` and `msg.payload` by default', async () => {
      const from = '642100000009';
      // A flow from a file can lack types, or have null instead of a name.
      for (const properties of [{}, { to: 'topic', body: 'payload', from }, { to: null, body: null }]) {
        const flow = await start(properties);
        await send(flow, { topic: `+${handset}`, payload: 42 });
        const { to, body } = sim.messages.at(-1) ?? assert.fail();
        assert.deepEqual([to, body], [[handset], '42']);
        await flow.stop();
      }
      assert.equal(sim.messages[1]?.from, from);
      await refuses(await start({ body: null, bodyType: 'str' }), {}, 'SMS_INPUT', 'body');
    });

    for (const field of ['to', 'once']) {
      it(`sends nothing if the variable in \`${field}\` is not set`, async () => {
        const absent = variable('SMS_TEST_ABSENT');
        const flow = await start({ [field]: absent, [`${field}Type`]: 'str' });
        await refuses(flow, { topic: handset }, 'SMS_CONFIG');
        assert.match(String(flow.received('caught')[0]?.error?.message), /variable SMS_TEST_ABSENT is not set/);
      });
    }

    it('does not replace an environment variable inside other text', async () => {
      const absent = variable('SMS_TEST_ABSENT');
      const flow = await start({ from: `${absent}!`, fromType: 'str' });
      await send(flow, { topic: handset, payload: absent });
      assert.deepEqual([sim.requests[0]?.params.from, sim.messages[0]?.body], [`${absent}!`, absent]);
    });

    const values: [source: string, type: string, value: string, expected: unknown][] = [
      ['`msg.deep.from`', 'msg', 'deep.from', '642100'],
      ['the flow context', 'flow', 'sender', '642101'],
      ['the global context', 'global', 'sender', '642102'],
      ['a string', 'str', '642103', '642103'],
      ['a number', 'num', '642104', '642104'],
      ['an environment variable', 'env', 'SMS_TEST_SENDER', '642105'],
      ['a JSONata expression', 'jsonata', '"6421" & deep.last', '642106'],
      ['a missing property of `msg`', 'msg', 'missing.property', undefined],
      ['a missing flow variable', 'flow', 'missing', undefined],
    ];
    for (const [source, type, value, expected] of values) {
      it(`${expected ? 'takes the sender from' : 'sends no sender for'} ${source}`, async () => {
        setVariables({ SMS_TEST_SENDER: '642105' });
        const flow = await start({ from: value, fromType: type });
        const context = flow.node('send').context();
        context.flow.set('sender', '642101');
        context.global.set('sender', '642102');
        await send(flow, { deep: { from: '642100', last: '06' } });
        assert.equal(sim.requests[0]?.params.from, expected);
      });
    }

    for (const [expression, reason] of [
      ['payload +', /evaluated: Unexpected end of expression\. Correct/],
      ['$error("no sender\\n for it.")', /evaluated: no sender for it\. Correct/],
      ['-payload', /evaluated: Cannot negate a non-numeric value: …\. Correct/],
    ] as const) {
      it(`explains the error in the expression \`${expression}\``, async () => {
        const flow = await start({ from: expression, fromType: 'jsonata' });
        flow.send('send', { topic: handset, payload: 'private' });
        const [caught] = await flow.messages('caught', 1);
        assert.deepEqual([caught?.sms?.error?.code, caught?.sms?.error?.field], ['SMS_INPUT', 'from']);
        assert.match(String(caught?.error?.message), reason);
        assert.equal(JSON.stringify(flow.log).includes('private'), false);
      });
    }

    it('encodes every parameter exactly once', async () => {
      const lineBreak = '\r\nX-Smuggled: 1';
      const flow = await start({
        from: `Acme${lineBreak}`,
        messageId: `id-1${lineBreak}`,
        messageIdType: 'str',
        fragmentationLimit: '3',
        fragmentationLimitType: 'num',
        contentType: 'text/plain',
        contentTypeType: 'str',
        callbackUrl: 'https://example.com/r?m={!messageId}&b={!body}&x=%20+',
        callbackUrlType: 'str',
        callbackStatusUrl: 'https://example.com/s?m={!status}&n={!recipient.msisdn}',
        callbackStatusUrlType: 'str',
      });
      await send(flow, { payload: `a+b & c=d ÆØ €${lineBreak}` });
      assert.deepEqual(sim.requests[0]?.params, {
        to: handset,
        body: `a+b & c=d ÆØ €${lineBreak}`,
        from: `Acme${lineBreak}`,
        messageId: `id-1${lineBreak}`,
        fragmentationLimit: '3',
        contentType: 'text/plain',
        callbackUrl: 'https://example.com/r?m={!messageId}&b={!body}&x=%20+',
        callbackStatusUrl: 'https://example.com/s?m={!status}&n={!recipient.msisdn}',
      });
    });
  });

  describe('with a body', () => {
    it('accepts a string, number, boolean or Buffer', async () => {
      const flow = await start();
      for (const payload of ['0', 0, false, true, 1.5, Buffer.from('æøå')]) await send(flow, { payload });
      assert.deepEqual(bodiesOf(sim), ['0', '0', 'false', 'true', '1.5', 'æøå']);
    });

    it('refuses a body of more than `maxLength` characters or emojis', async () => {
      const flow = await start();
      await refuses(flow, { payload: 'x'.repeat(481) }, 'SMS_INPUT', 'body');
      await refuses(flow, { payload: '😀'.repeat(481) }, 'SMS_INPUT', 'body');
      await send(flow, { payload: '😀'.repeat(480) });
      assert.equal(sim.messages.length, 1);
    });

    it('refuses a body with more parts than the fragmentation limit', async () => {
      const flow = await start({ fragmentationLimit: 'limit', fragmentationLimitType: 'msg' }, [], { maxLength: '10' });
      await refuses(flow, { limit: 1, payload: 'x'.repeat(161) }, 'SMS_INPUT', 'body');
      await send(flow, { limit: '2', payload: 'x'.repeat(161) });
      assert.deepEqual([flow.received('sent')[0]?.sms?.parts, flow.received('sent')[0]?.sms?.encoding], [2, 'GSM-7']);
    });
  });

  it('chooses UTF-16 for a Greek body if the content type is `auto`', async () => {
    const flow = await start({ contentTypeType: 'auto' });
    await send(flow, { payload: 'Δ ł' });
    assert.equal(sim.requests[0]?.params.contentType, 'text/plain; charset=UTF-16');
    const { sms } = flow.received('sent')[0] ?? assert.fail();
    assert.deepEqual([sms?.encoding, sms?.parts], ['UCS-2', 1]);
  });

  describe('with a message ID', () => {
    it('uses a new UUID for each message if the type is uuid', async () => {
      const flow = await start({ messageId: '', messageIdType: 'uuid' });
      await send(flow);
      await send(flow);
      const ids = sim.requests.map(({ params }) => params.messageId ?? '');
      assert.match(ids[0] ?? '', uuid);
      assert.match(ids[1] ?? '', uuid);
      assert.notEqual(ids[0], ids[1]);
      assert.equal(flow.received('sent')[1]?.sms?.messageId, ids[1]);
    });

    it('refuses a message ID of more than 36 characters', async () => {
      const flow = await start({ messageId: 'id', messageIdType: 'msg' });
      await refuses(flow, { id: 'x'.repeat(37) }, 'SMS_INPUT', 'messageId');
      await refuses(flow, { id: {} }, 'SMS_INPUT', 'messageId', /is not text/);
      await send(flow, { id: 'x'.repeat(36) });
      assert.equal(sim.messages[0]?.messageId, 'x'.repeat(36));
    });
  });

  describe('with a callback URL', () => {
    const callback: FlowNode = {
      id: 'callback',
      type: 'sms-callback-in',
      account: 'account',
      path: '/sms/callback',
      publicUrl: ' https://flows.example.com/ ',
      wires: [[], []],
      credentials: { token: 'a token&more' },
    };

    for (const [root, prefix] of [
      [undefined, ''],
      ['/', ''],
      ['/red/nodes/', '/red/nodes'],
    ] as const) {
      it(`sends the public URL of a callback node if \`httpNodeRoot\` is ${root ?? 'not set'}`, async () => {
        const settings = root === undefined ? {} : { httpNodeRoot: root };
        const flow = await RunningFlow.start([...sendNode(sim, toCallbackNode), callback], { settings });
        await send(flow);
        const url = new URL(sim.messages[0]?.callbackUrl ?? '');
        assert.equal(url.origin + url.pathname, `https://flows.example.com${prefix}/sms/callback`);
        assert.deepEqual(Object.fromEntries(url.searchParams), { token: 'a token&more' });
        assert.equal(sim.messages[0]?.callbackStatusUrl, url.href);
      });
    }

    it('raises SMS_CONFIG if `callbackStatusNode` is blank', async () => {
      const flow = await start({ callbackStatusUrlType: 'node', callbackStatusNode: ' ' });
      await refuses(flow, {}, 'SMS_CONFIG', 'callbackStatusUrl');
    });

    const unusable: [string, Partial<FlowNode> | undefined][] = [
      ['that does not exist', undefined],
      ['without a public URL', { publicUrl: ' ' }],
      ['with an invalid public URL', { publicUrl: 'https://flows.example.com?a=b' }],
      ['of another type', { type: 'helper' }],
    ];
    for (const [what, change] of unusable) {
      it(`raises SMS_CONFIG for a callback node ${what}`, async () => {
        const more = change ? [{ ...callback, ...change } as FlowNode] : [];
        const flow = await start({ callbackNode: 'callback', callbackUrlType: 'node' }, more);
        await send(flow);
        const errors = flow.received('caught').filter(({ error }) => error?.source.id === 'send');
        assert.deepEqual(
          errors.map(({ sms }) => [sms?.error?.code, sms?.error?.field]),
          [['SMS_CONFIG', 'callbackUrl']],
        );
        assert.equal(sim.requests.length, 0);
        assert.equal(flow.completions.filter(({ id }) => id === 'send').length, 1);
      });
    }

    it('encodes an e-mail address as a mailto URL', async () => {
      const mail = { mailto: 'desk@example.com', subject: 'Re: A & B', body: 'From {!recipient.msisdn}\n{!body} 100%' };
      const expected =
        'mailto:desk@example.com?Subject=Re%3A%20A%20%26%20B&Body=From%20{!recipient.msisdn}%0A{!body}%20100%25';
      for (const [callbackUrl, callbackUrlType] of [
        [JSON.stringify(mail), 'mailto'],
        ['mail', 'msg'],
        [expected, 'str'],
        // A variable of a subflow contains an object.
        [mail, 'mailto'],
        [mail, 'str'],
      ]) {
        const flow = await start({ callbackUrl, callbackUrlType });
        await send(flow, { mail });
        assert.deepEqual(
          sim.requests.splice(0).map(({ params }) => params.callbackUrl),
          [expected],
        );
        await flow.stop();
      }
    });
  });

  describe('when a send fails', () => {
    const cases: [string, Parameters<Simulator['fault']>[1], Record<string, unknown>, RegExp][] = [
      [
        'SMS_BAD_REQUEST for the status 400',
        { status: 400, reason: 'Body too long' },
        { code: 'SMS_BAD_REQUEST', statusCode: 400, errorMessage: 'Body too long' },
        /^Body too long$/,
      ],
      [
        'SMS_UNAUTHORIZED for the status 401',
        { status: 401 },
        { code: 'SMS_UNAUTHORIZED', statusCode: 401, errorCode: 401, errorMessage: 'Unauthorized' },
        /credentials/,
      ],
      ['SMS_RESPONSE for an answer that is not XML', { garbage: true }, { code: 'SMS_RESPONSE' }, /read/],
      ['SMS_UNCERTAIN if no answer comes in time', { hang: true }, { code: 'SMS_UNCERTAIN' }, /timed out/],
    ];
    for (const [what, fault, expected, message] of cases) {
      it(`raises one ${what}`, async () => {
        const flow = await start({}, [], { timeout: '0.3' });
        sim.fault('send', fault);
        await send(flow);
        const [caught] = await flow.messages('caught', 1);
        const { message: text, ...error } = caught?.sms?.error ?? {};
        if (!('statusCode' in expected)) delete error.statusCode;
        assert.deepEqual(error, expected);
        assert.match(String(text), message);
        assert.equal(caught?.error?.code, expected.code);
        assert.deepEqual([caught?.payload, caught?.topic], ['hello', handset]);
        assert.equal(flow.received('caught').length, 1);
        assert.equal(flow.received('sent').length + flow.received('failed').length, 0);
        assert.equal(flow.completions.length, 1);
        assert.equal(sim.requests.length, 1);
        const { fill, shape } = flow.status('send') ?? {};
        assert.deepEqual([fill, shape], ['red', 'ring']);
      });
    }

    it('raises SMS_UNREACHABLE after the last retry', async () => {
      let failures = 0;
      const count = () => failures++;
      subscribe('undici:client:connectError', count);
      stopLater(async () => unsubscribe('undici:client:connectError', count));
      const flow = await start({ retries: 1 });
      await sim.setOnline(false);
      await send(flow);
      assert.equal(failures, 2);
      assert.equal(flow.received('caught')[0]?.sms?.error?.code, 'SMS_UNREACHABLE');
      assert.deepEqual(flow.status('send'), { fill: 'red', shape: 'ring', text: 'unreachable' });
      assert.equal(flow.completions.length, 1);
    });

    it('raises SMS_CONFIG if `retries` is not a number', async () => {
      await refuses(await start({ retries: 'often' }), {}, 'SMS_CONFIG');
    });

    it('retries after an unknown outcome if `retryUncertain` is on', async () => {
      sim.fault('send', { drop: 'after' }, 1);
      const flow = await start({ retries: 3, retryUncertain: true });
      await send(flow);
      assert.equal(flow.received('sent').length, 1);
      assert.equal(sim.messages.length, 2);
      assert.deepEqual(flow.received('caught'), []);
    });
  });

  it('uses the method and authentication of the account', async () => {
    const flow = await start({}, [], { method: 'GET', authType: 'form' });
    const body = 'ÆØ +&=\r\nX-Smuggled: 1\r\n\r\nGET /smuggled HTTP/1.1';
    await send(flow, { payload: body });
    const [sent] = sim.requests;
    const query = { userId: 'demo', password: 'demo-password', to: handset, body };
    assert.deepEqual([sent?.method, sent?.path, sent?.query], ['GET', '/api/3/sms/out', query]);
    assert.equal(sim.requests.length, 1);
  });

  describe('with queued messages', () => {
    const invalidInput = { fill: 'red', shape: 'ring', text: 'invalid input' };

    it('shows how many messages are being sent', async () => {
      sim.fault('send', { delayMs: 30 });
      const flow = await start();
      for (let index = 0; index < 3; index++) flow.send('send', { topic: handset, payload: `${index}` });
      await flow.badge('send', { fill: 'blue', shape: 'dot', text: 'sending 3' });
      await flow.messages('sent', 3);
      await flow.badge('send', { fill: 'green', shape: 'dot', text: 'sent' });
    });

    it('shows no failure badge while a message is being sent', async () => {
      sim.fault('send', { delayMs: 100 });
      const flow = await start();
      await send(flow, { topic: '' });
      await flow.badge('send', invalidInput);
      flow.send('send', { topic: handset, payload: 'hello' });
      await send(flow, { topic: '' });
      await flow.messages('sent', 1);
      await flow.badge('send', { fill: 'green', shape: 'dot', text: 'sent' });
      assert.deepEqual(flow.badgeTexts('send'), ['invalid input', 'sending 1', 'sent']);
    });

    it('clears its badge after a user discards the waiting message', async () => {
      await sim.setOnline(false);
      const flow = await start({ keep: true });
      flow.send('send', { topic: handset, payload: 'hello' });
      await flow.badge('send', { fill: 'red', shape: 'ring', text: 'unreachable, 1 waiting' });
      const [{ id }] = (await flow.readRoute('account/entries?state=kept')).entries;
      await helper.request().post(`/sms-account/account/entries/${id}`).send({ action: 'discard' }).expect(200);
      await until(() => flow.status('send')?.text === undefined);
    });

    it('raises SMS_BUSY if the queue is full', async () => {
      sim.fault('send', { delayMs: 10 });
      const flow = await start({}, [], { concurrency: '1', queueLimit: '2' });
      for (let index = 0; index < 5; index++) flow.send('send', { topic: handset, payload: `${index}` });
      assert.equal((await flow.done('send', 5)).length, 5);
      await flow.messages('sent', 3);
      assert.deepEqual(
        flow.received('caught').map(({ payload, sms }) => [payload, sms?.error?.code]),
        [
          ['3', 'SMS_BUSY'],
          ['4', 'SMS_BUSY'],
        ],
      );
      assert.deepEqual(bodiesOf(sim), ['0', '1', '2']);
      assert.equal(flow.received('sent').length, 3);
    });

    it('sends 500 messages with one outcome each', async () => {
      const flow = await start();
      for (let index = 0; index <= 500; index++) {
        flow.send('send', { topic: index === 250 ? '' : handset, payload: `${index}` });
      }
      await flow.done('send', 501);
      await flow.messages('sent', 500);
      assert.equal(sim.messages.length, 500);
      assert.equal(new Set(flow.payloads('sent')).size, 500);
      assert.deepEqual([flow.received('caught').length, flow.completions.length], [1, 501]);
      await flow.badge('send', { fill: 'green', shape: 'dot', text: 'sent' });
      const shown = flow.badgeTexts('send');
      assert.equal(shown[0], 'sending 1');
      assert.equal(shown.filter((text) => text === 'invalid input').length, 0);
      assert.ok(shown.length < 200, `${shown.length} changes`);
    });
  });

  describe('when the node closes', () => {
    it('ends only waiting sends with SMS_CLOSED', async () => {
      const flow = await start({}, [], { concurrency: '1' });
      sim.fault('send', { delayMs: 150 });
      for (const payload of ['in flight', 'waiting', 'waiting too']) flow.send('send', { topic: handset, payload });
      await sim.until(() => sim.polling('send') === 1);
      await flow.deploy([account(sim)]);
      const outcomes = flow.completions.map(({ error }) => (error as { code?: string } | undefined)?.code);
      assert.deepEqual(outcomes.sort(), ['SMS_CLOSED', 'SMS_CLOSED', undefined]);
      assert.deepEqual(bodiesOf(sim), ['in flight']);
      assert.deepEqual([sim.requests.length, sim.requests[0]?.aborted], [1, undefined]);
    });

    it('delivers the outcome of the current send after a redeploy', async () => {
      const flow = await start();
      sim.fault('send', { delayMs: 100 });
      flow.send('send', { topic: `${handset} ${blocked}`, payload: 'hello' });
      await sim.until(() => sim.polling('send') === 1);
      await flow.deploy(sendNode(sim, { name: 'changed' }), 'nodes');
      assert.deepEqual((await flow.messages('sent', 1))[0]?.sms?.accepted, [handset]);
      assert.equal((await flow.messages('failed', 1))[0]?.topic, blocked);
      assert.deepEqual(flow.completions, [{ id: 'send', error: undefined }]);
      assert.equal(sim.messages.length, 1);
    });
  });
});
