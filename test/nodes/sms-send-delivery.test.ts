import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeInitializer } from 'node-red';
import { formatFlowMessage, parseFlowMessage } from '../../nodes/runtime/stored-flow-message';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { coreNode, RunningFlow, sendNode, sink, startService, stopEverything, stopLater } from './running-flow';

const handset = '64215551234';
const blocked = '64215550000';

describe('sms-send: delivery and conversation', () => {
  let sim: Simulator;

  beforeEach(async () => {
    sim = await startService();
    sim.block(blocked);
  });

  afterEach(stopEverything);

  function nodes(properties: Record<string, unknown> = {}, of: Record<string, unknown> = {}): FlowNode[] {
    return sendNode(sim, properties, of);
  }

  const start = (properties: Record<string, unknown> = {}, of: Record<string, unknown> = {}, more: FlowNode[] = []) =>
    RunningFlow.start([...nodes(properties, of), ...more]);

  /** Starts a flow with a new user directory, so that its store on disk is empty. */
  function startOnDisk(flow: FlowNode[], ...own: NodeInitializer[]): Promise<RunningFlow> {
    const userDir = mkdtempSync(join(tmpdir(), 'sms-delivery-'));
    stopLater(async () => rmSync(userDir, { recursive: true, force: true }));
    return RunningFlow.start(flow, { settings: { userDir }, nodes: own });
  }

  const errorsOf = (flow: RunningFlow) => flow.received('caught').map(({ sms }) => sms?.error);

  describe('stored messages', () => {
    it('wait through an outage, which raises one error with their number', async () => {
      await sim.setOnline(false);
      const flow = await start({ keep: true });
      for (const payload of ['1', '2', '3']) flow.send('send', { topic: handset, payload });
      await flow.badge('send', { fill: 'red', shape: 'ring', text: 'unreachable, 3 waiting' });
      await until(() => errorsOf(flow).length > 0);
      assert.equal(flow.completions.length, 0);
      await sim.setOnline(true);
      await flow.messages('sent', 3);
      assert.deepEqual(
        sim.messages.map(({ body }) => body),
        ['1', '2', '3'],
      );
      assert.deepEqual(
        errorsOf(flow).map((error) => [error?.code, typeof error?.waiting]),
        [['SMS_UNREACHABLE', 'number']],
      );
      await until(() => flow.completions.length === 3);
      await flow.badge('send', { fill: 'green', shape: 'dot', text: 'sent' });
    });

    it('raise one error per outage, also over redeploys', async () => {
      sim.fault('send', { status: 503 });
      const refused = () => sim.requests.filter(({ status }) => status === 503).length;
      const flow = await start({ keep: true });
      flow.send('send', { topic: handset, payload: '1' });
      await until(() => errorsOf(flow).length > 0);
      for (const name of ['nodes', 'full'] as const) {
        const before = refused();
        await flow.deploy(nodes({ keep: true, name }, { name }), name);
        await until(() => refused() > before, 'another try');
      }
      sim.fault('send', null);
      await flow.messages('sent', 1);
      assert.equal(errorsOf(flow).length, 1);
      sim.fault('send', { status: 503 });
      flow.send('send', { topic: handset, payload: '2' });
      await until(() => errorsOf(flow).length === 2);
    });

    it('wait for their node across a redeploy, with their flow message', async () => {
      await sim.setOnline(false);
      const flow = await start({ keep: true });
      flow.send('send', { topic: handset, payload: 'hello', custom: { at: new Date(0) } });
      await until(() => errorsOf(flow).length > 0);
      await flow.deploy(nodes({ keep: true, priority: 1 }), 'nodes');
      await sim.setOnline(true);
      const [message] = await flow.messages('sent', 1);
      assert.deepEqual((message as { custom?: unknown }).custom, { at: new Date(0) });
      assert.deepEqual(
        errorsOf(flow).filter((error) => error?.code === 'SMS_CLOSED'),
        [],
      );
      assert.equal(sim.messages.length, 1);
    });

    for (const type of ['full', 'nodes'] as const) {
      it(`end the input itself after a redeploy of type ${type} on disk`, async () => {
        await sim.setOnline(false);
        const onDisk = (name: string) => [
          ...nodes(
            { keep: true, to: handset, toType: 'str', wires: [['sent', 'answer'], []] },
            { store: 'disk', name },
          ),
          { id: 'call', type: 'http in', name: '', url: '/call', method: 'post', wires: [['send']] },
          { id: 'answer', type: 'http response', name: '', statusCode: '200', headers: {}, wires: [] },
        ];
        const flow = await startOnDisk(onDisk('before'), coreNode('network/21-httpin'));
        const called = fetch(`${await flow.serve()}/call`, { method: 'POST', body: 'hello' });
        await until(() => errorsOf(flow).length > 0);
        await flow.deploy(onDisk('after'), type);
        await sim.setOnline(true);
        assert.equal((await called).status, 200);
        const [message] = await flow.messages('sent', 1);
        assert.ok(message?.res);
        assert.equal((await flow.done('send', 1)).length, 1);
      });
    }

    it('reach a Catch node once if they fail after a redeploy', async () => {
      sim.fault('send', { status: 503, headers: { 'retry-after': '3600' } });
      const complete = { id: 'complete', type: 'complete', name: '', scope: ['send'], wires: [['completed']] };
      const keeping = (name: string) => [
        ...nodes({ keep: true, expire: 0.02, name }),
        { ...complete, uncaught: false },
        sink('completed'),
      ];
      const flow = await RunningFlow.start(keeping('before'), { nodes: [coreNode('common/24-complete')] });
      flow.send('send', { topic: handset, payload: 'hello' });
      await until(() => errorsOf(flow).length > 0);
      await flow.deploy(keeping('after'), 'nodes');
      const [{ error } = { error: undefined }] = await flow.done('send', 1);
      assert.equal((error as { code?: string } | undefined)?.code, 'SMS_EXPIRED');
      await flow.badge('send', { fill: 'red', shape: 'ring', text: 'expired' });
      const ends = () => errorsOf(flow).filter((one) => one?.code === 'SMS_EXPIRED').length;
      await until(() => ends() > 0);
      await sleep(50);
      assert.deepEqual([ends(), flow.received('completed').length], [1, 0]);
    });

    it('expire with an error', async () => {
      await sim.setOnline(false);
      const flow = await start({ keep: true, expire: 0.005 });
      flow.send('send', { topic: handset, payload: 'hello' });
      await until(() => errorsOf(flow).some((error) => error?.code === 'SMS_EXPIRED'));
      assert.equal(flow.completions.length, 1);
    });

    it('refuse a resolve that is out of its range', async () => {
      const flow = await start({ keep: true, resolve: -1 });
      flow.send('send', { topic: handset, payload: 'hello' });
      await until(() => errorsOf(flow).length > 0);
      assert.equal(errorsOf(flow)[0]?.code, 'SMS_CONFIG');
      assert.equal(sim.messages.length, 0);
    });

    it('keep the priority of their input', async () => {
      await sim.setOnline(false);
      const properties = { keep: true, priority: 'urgency', priorityType: 'msg' };
      const flow = await start(properties, { concurrency: 1 });
      for (const [payload, urgency] of [
        ['low', '-3'],
        ['usual', undefined],
        ['high', 7],
      ])
        flow.send('send', { topic: handset, payload, urgency });
      await until(() => errorsOf(flow).length > 0);
      await flow.deploy(nodes({ ...properties, priorityType: 'num', priority: -10 }, { concurrency: 1 }), 'nodes');
      await sim.setOnline(true);
      await flow.messages('sent', 3);
      assert.deepEqual(
        sim.messages.map(({ body }) => body),
        ['high', 'usual', 'low'],
      );
    });
  });

  describe('typed expire and priority', () => {
    /** A value of each type, and the source of its number. */
    const ways: [type: string, value: string, source: 'message' | 'flow' | 'global' | 'environment'][] = [
      ['msg', 'deep.number', 'message'],
      ['flow', 'number', 'flow'],
      ['global', 'number', 'global'],
      ['env', 'SMS_TEST_NUMBER', 'environment'],
      ['jsonata', 'deep.number', 'message'],
    ];

    const wrongs = [
      ['expire', -1],
      ['expire', 'soon'],
      ['priority', 11],
      ['priority', 0.5],
      ['priority', 'high'],
    ] as const;

    /** Sets the numbers of the sources, starts a node with `properties`, and sends it a message. */
    async function sendWith(
      properties: Record<string, unknown>,
      given: Record<string, unknown> = {},
    ): Promise<RunningFlow> {
      const flow = await start({ keep: true, ...properties });
      const context = flow.node('send').context();
      context.flow.set('number', given.flow);
      context.global.set('number', given.global);
      flow.send('send', { topic: handset, payload: 'hello', deep: { number: given.message } });
      return flow;
    }

    async function isRefused(flow: RunningFlow, field: string): Promise<void> {
      await until(() => errorsOf(flow).length > 0);
      assert.deepEqual([errorsOf(flow)[0]?.code, errorsOf(flow)[0]?.field], ['SMS_INPUT', field]);
      assert.equal(flow.completions.length, 1);
      assert.equal(sim.messages.length, 0);
    }

    afterEach(() => {
      delete process.env.SMS_TEST_NUMBER;
    });

    for (const [type, value, source] of ways) {
      it(`expire after a time of type ${type}`, async () => {
        await sim.setOnline(false);
        process.env.SMS_TEST_NUMBER = '0.005';
        const flow = await sendWith({ expire: value, expireType: type }, { [source]: 0.005 });
        await until(() => errorsOf(flow).some((error) => error?.code === 'SMS_EXPIRED'));
      });

      for (const [field, wrong] of wrongs) {
        it(`refuse ${field} ${wrong} of type ${type}`, async () => {
          process.env.SMS_TEST_NUMBER = String(wrong);
          await isRefused(await sendWith({ [field]: value, [`${field}Type`]: type }, { [source]: wrong }), field);
        });
      }

      it(`use the defaults for blank values of type ${type}`, async () => {
        process.env.SMS_TEST_NUMBER = '';
        const properties = { expire: value, expireType: type, priority: value, priorityType: type };
        const flow = await sendWith(properties, { [source]: '' });
        await flow.messages('sent', 1);
        assert.deepEqual(errorsOf(flow), []);
      });
    }

    for (const type of ['num', 'str', undefined]) {
      for (const [field, wrong] of wrongs) {
        it(`refuse ${field} ${wrong} of the form, of type ${type}`, async () => {
          const typed = type === undefined ? {} : { [`${field}Type`]: type };
          await isRefused(await sendWith({ [field]: String(wrong), ...typed }), field);
        });
      }

      it(`use the defaults for blank values of the form, of type ${type}`, async () => {
        const flow = await sendWith({ expire: '', expireType: type, priority: ' ', priorityType: type });
        await flow.messages('sent', 1);
        assert.deepEqual(errorsOf(flow), []);
      });
    }

    for (const wrong of [true, [], { number: 1 }, Number.NaN, new Date(0)]) {
      it(`refuse a value that is not a number: ${JSON.stringify(wrong)}`, async () => {
        const properties = { priority: 'deep.number', priorityType: 'msg' };
        await isRefused(await sendWith(properties, { message: wrong }), 'priority');
      });
    }

    for (const [field, wrong, expected] of [
      ['priority', 0.5, /is not a whole number from -10 to 10\./],
      ['expire', -1, /is not a number from 0 to 525600\./],
    ] as const) {
      it(`name the allowed numbers of ${field}`, async () => {
        const flow = await sendWith({ [field]: 'deep.number', [`${field}Type`]: 'msg' }, { message: wrong });
        await isRefused(flow, field);
        assert.match(String(errorsOf(flow)[0]?.message), expected);
      });
    }

    it('refuse an expression that fails', async () => {
      await isRefused(await sendWith({ expire: '$error("x")', expireType: 'jsonata' }), 'expire');
    });

    it('do not evaluate expire if the message is not stored', async () => {
      const flow = await sendWith({ keep: false, expire: 'deep.number', expireType: 'msg' }, { message: -1 });
      await flow.messages('sent', 1);
    });
  });

  describe('once', () => {
    it('repeats the outputs with a mark, and sends nothing', async () => {
      const flow = await start({ once: 'key', onceType: 'msg' });
      for (let time = 0; time < 2; time++) {
        flow.send('send', { topic: [handset, blocked], payload: 'hello', key: 'a' });
        await flow.messages('sent', time + 1);
      }
      const [first, second] = flow.received('sent');
      assert.equal(sim.requests.filter(({ path }) => path === '/api/3/sms/out').length, 1);
      assert.deepEqual({ ...first?.sms, duplicate: true }, second?.sms);
      const failed = await flow.messages('failed', 2);
      assert.equal(failed[1]?.sms?.duplicate, true);
      assert.equal(flow.completions.length, 2);
      for (let time = 0; time < 2; time++) {
        flow.send('send', { topic: handset, payload: 'hello', key: 'b' });
        await flow.messages('sent', time + 3);
        await flow.badge('send', { fill: 'green', shape: 'dot', text: ['sent', 'already sent'][time] ?? '' });
      }
    });

    for (const [key, field] of [
      ['', 'once'],
      [undefined, 'once'],
      ['x'.repeat(257), 'once'],
    ] as const) {
      it(`refuses the key ${String(key).slice(0, 10)}`, async () => {
        const flow = await start({ once: 'key', onceType: 'msg' });
        flow.send('send', { topic: handset, payload: 'hello', key });
        await until(() => errorsOf(flow).length > 0);
        assert.deepEqual([errorsOf(flow)[0]?.code, errorsOf(flow)[0]?.field], ['SMS_INPUT', field]);
        assert.equal(sim.messages.length, 0);
      });
    }
  });

  describe('unknown outcomes', () => {
    it('are resolved by the feed', async () => {
      sim.fault('send', { drop: 'after' }, 1);
      const flow = await start({ resolve: 1, messageIdType: 'uuid' });
      flow.send('send', { topic: handset, payload: 'hello' });
      const [message] = await flow.messages('sent', 1);
      const { resolvedBy, accepted, failed, isError } = (message?.sms ?? {}) as Record<string, unknown>;
      assert.deepEqual([resolvedBy, accepted, failed, isError], ['feed', [handset], [], false]);
      assert.equal('statusCode' in (message?.sms ?? {}), false);
      assert.equal(sim.messages.length, 1);
    });

    it('name the searched evidence and the messageId if nothing is found', async () => {
      sim.fault('send', { drop: 'before' }, 1);
      const flow = await start({ resolve: 0.2, messageId: 'mine', messageIdType: 'str' });
      flow.send('send', { topic: handset, payload: 'hello' });
      await until(() => errorsOf(flow).length > 0);
      const [error] = errorsOf(flow);
      assert.deepEqual([error?.code, error?.messageId, error?.searched], ['SMS_UNCERTAIN', 'mine', ['feed']]);
    });
  });

  describe('conversations', () => {
    const receivers: FlowNode[] = [
      { id: 'in', type: 'sms-in', account: 'account', wires: [['in sink']] },
      { id: 'notAwaited', type: 'sms-in', account: 'account', filter: 'notAwaited', wires: [['notAwaited sink']] },
      sink('in sink'),
      sink('notAwaited sink'),
    ];

    it('add the remembered value to a reply', async () => {
      const flow = await start({ messageIdType: 'uuid', remember: 'order', rememberType: 'msg' }, {}, receivers);
      flow.send('send', { topic: handset, payload: 'Ready?', order: { number: 7 } });
      await flow.messages('sent', 1);
      sim.reply({ from: handset, body: 'yes', inReplyTo: sim.messages[0]?.messageId ?? '' });
      const [reply] = await flow.messages('in sink', 1);
      const { sent } = (reply?.sms ?? {}) as { sent: Record<string, unknown> };
      assert.deepEqual(
        [sent.remembered, sent.body, sent.node, sent.matchedBy],
        [{ number: 7 }, 'Ready?', 'send', 'messageId'],
      );
    });

    for (const [name, value, code] of [
      ['large', 'x'.repeat(65 * 1024), 'SMS_INPUT'],
      ['circular', undefined, 'SMS_INPUT'],
    ] as const) {
      it(`refuses to remember a ${name} value`, async () => {
        const flow = await start({ remember: 'value', rememberType: 'msg' });
        const circular: Record<string, unknown> = {};
        circular.self = circular;
        flow.send('send', { topic: handset, payload: 'hi', value: value ?? circular });
        await until(() => errorsOf(flow).length > 0);
        assert.deepEqual([errorsOf(flow)[0]?.code, errorsOf(flow)[0]?.field], [code, 'remember']);
      });
    }
  });

  describe('the stored flow message', () => {
    const read = (text: string) => parseFlowMessage(text, () => assert.fail('unreadable'));

    it('returns as JSON, with Buffers and Dates, without req and res', () => {
      const message = {
        _msgid: '1',
        payload: Buffer.from('é'),
        at: [new Date(5), { deep: new Date(7) }],
        own: { $sms: 'Date', value: 'mine' },
        req: { socket: {} },
        res: {},
        call: () => {},
        nothing: undefined,
      };
      const { req: _, res: __, call: ___, nothing: ____, ...rest } = message;
      assert.deepEqual(read(formatFlowMessage(message as never)), rest);
      const { at } = read(formatFlowMessage({ at: new Date(Number.NaN) } as never)) as { at?: unknown };
      assert.ok(at instanceof Date && Number.isNaN(at.getTime()));
    });

    it('returns without the properties that JSON cannot represent', () => {
      const circular: Record<string, unknown> = {
        _msgid: '2',
        topic: 't',
        payload: [1, Buffer.from('é')],
        $sms: 'own',
      };
      const rest = { ...circular };
      circular.self = circular;
      circular.count = { of: 5n };
      Object.defineProperty(circular, 'broken', {
        enumerable: true,
        get: () => assert.fail('broken'),
      });
      assert.deepEqual(read(formatFlowMessage(circular as never)), rest);
    });

    it('returns with up to 256 KiB of any kind', () => {
      for (const payload of [
        'x'.repeat(262_100),
        Buffer.alloc(196_500),
        { deep: [Buffer.alloc(98_000), Buffer.alloc(98_000)] },
        Array.from({ length: 131_000 }, () => 1),
        Array.from({ length: 65_000 }, () => ({})).map(() => []),
      ]) {
        assert.deepEqual(read(formatFlowMessage({ _msgid: '1', payload })), { _msgid: '1', payload });
      }
    });

    it('is recognised as too large before all of it is written', () => {
      let read = 0;
      const row = () => Object.defineProperty({}, 'cell', { enumerable: true, get: () => ['x'.repeat(1_024), read++] });
      const rows = Array.from({ length: 10_000 }, row);
      const photo = Buffer.alloc(1024 * 1024);
      Object.assign(photo, { toJSON: () => assert.fail('all of it is written') });
      for (const payload of [rows, photo, { photo }, [photo], new Uint8Array(1024 * 1024)]) {
        assert.equal(formatFlowMessage({ _msgid: '1', topic: 't', payload } as never), '{"_msgid":"1","topic":"t"}');
      }
      assert.ok(read < 1_000, String(read));
    });

    it('returns without its content if it is over 256 KiB', () => {
      const large = { _msgid: '1', topic: 't', payload: 'x'.repeat(256 * 1024) };
      assert.deepEqual(read(formatFlowMessage(large)), { _msgid: '1', topic: 't' });
    });

    it('returns with its ackId, whatever its size', () => {
      const sms = { ackId: '1.1', body: 'x'.repeat(256 * 1024) };
      assert.deepEqual(read(formatFlowMessage({ _msgid: '1', sms } as never)), { _msgid: '1', sms: { ackId: '1.1' } });
    });

    it('returns with a topic that is not text, or that is large', () => {
      const payload = 'x'.repeat(256 * 1024);
      const many = Array.from({ length: 30_000 }, (_, index) => `64215${index}`);
      for (const topic of [6421555123, ['6421555123', 6421555124], { at: new Date(5) }, many]) {
        const large = { _msgid: '1', topic, payload };
        assert.deepEqual(read(formatFlowMessage(large as never)), { _msgid: '1', topic });
      }
      const circular: unknown[] = [];
      circular.push(circular);
      for (const topic of [circular, 5n]) {
        assert.deepEqual(read(formatFlowMessage({ _msgid: '1', topic } as never)), { _msgid: '1' });
      }
    });

    it('returns empty and is reported if it cannot be read', () => {
      for (const text of ['', '{"payload":', 'null', '5', '[1]', '"text"']) {
        let isTold = false;
        const message = parseFlowMessage(text, () => {
          isTold = true;
        });
        assert.deepEqual([message, isTold], [{}, true], text);
      }
    });
  });
});
