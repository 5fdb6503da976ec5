import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatFlowMessage, parseFlowMessage, StoredFlowMessage } from '../../nodes/runtime/stored-flow-message';
import { createUserDir, type FlowNode } from '../node-red-process';
import { until } from '../until';
import { blocked, bodiesOf, coreNode, handset, RunningFlow, sendNode, sink, smsNode, useService } from './running-flow';

describe('sms-send', () => {
  const sim = useService();

  const nodes = sendNode.bind(undefined, sim);

  const start = (properties: Record<string, unknown> = {}, of: Record<string, unknown> = {}, more: FlowNode[] = []) =>
    RunningFlow.start([...nodes(properties, of), ...more]);

  describe('with `keep`', () => {
    it('sends stored messages after an outage', async () => {
      await sim.setOnline(false);
      const flow = await start({ keep: true });
      for (const payload of ['1', '2', '3']) flow.send('send', { topic: handset, payload });
      await flow.badge('send', { fill: 'red', shape: 'ring', text: 'unreachable, 3 waiting' });
      assert.equal(flow.completions.length, 0);
      await sim.setOnline(true);
      await flow.messages('sent', 3);
      assert.deepEqual(bodiesOf(sim), ['1', '2', '3']);
      assert.deepEqual(
        flow.errors().map((error) => [error?.code, typeof error?.waiting]),
        [['SMS_UNREACHABLE', 'number']],
      );
      await flow.badge('send', { fill: 'green', shape: 'dot', text: 'sent' });
      assert.equal(flow.completions.length, 3);
    });

    for (const type of ['full', 'nodes'] as const) {
      it(`completes the original input after a \`${type}\` deploy`, async () => {
        await sim.setOnline(false);
        const keeping = { keep: true, to: handset, toType: 'str', wires: [['sent', 'answer'], []] };
        const onDisk = (name: string) => [
          ...nodes(keeping, { store: 'disk', name }),
          { id: 'call', type: 'http in', name: '', url: '/call', method: 'post', wires: [['send']] },
          { id: 'answer', type: 'http response', name: '', statusCode: '200', headers: {}, wires: [] },
        ];
        const settings = { userDir: createUserDir() };
        const flow = await RunningFlow.start(onDisk('before'), { settings, nodes: [coreNode('network/21-httpin')] });
        const called = fetch(`${await flow.serve()}/call`, { method: 'POST', body: 'hello' });
        await until(() => flow.errors().length > 0);
        await flow.deploy(onDisk('after'), type);
        await sim.setOnline(true);
        assert.equal((await called).status, 200);
        const [message] = await flow.messages('sent', 1);
        assert.ok(message?.res);
        assert.equal((await flow.done('send', 1)).length, 1);
      });
    }

    it('raises one error if a message expires after a redeploy', async () => {
      sim.fault('send', { status: 503, headers: { 'retry-after': '3600' } });
      const complete = { id: 'complete', type: 'complete', name: '', scope: ['send'], wires: [['completed']] };
      const keeping = (name: string) => [
        ...nodes({ keep: true, expire: 0.02, name }),
        { ...complete, uncaught: false },
        sink('completed'),
      ];
      const flow = await RunningFlow.start(keeping('before'), { nodes: [coreNode('common/24-complete')] });
      flow.send('send', { topic: handset, payload: 'hello' });
      await until(() => flow.errors().length > 0);
      await flow.deploy(keeping('after'), 'nodes');
      const [{ error } = { error: undefined }] = await flow.done('send', 1);
      assert.equal((error as { code?: string } | undefined)?.code, 'SMS_EXPIRED');
      await flow.badge('send', { fill: 'red', shape: 'ring', text: 'expired' });
      const ends = () => flow.errors().filter((one) => one?.code === 'SMS_EXPIRED').length;
      await until(() => ends() > 0);
      await sleep(50);
      assert.deepEqual([ends(), flow.received('completed').length], [1, 0]);
    });
  });

  describe('with `expire` and `priority`', () => {
    /** Starts a node with `properties`, and sends it a flow message with `msg.value`. */
    async function sendWith(properties: Record<string, unknown>, value?: unknown): Promise<RunningFlow> {
      const flow = await start({ keep: true, ...properties });
      await flow.give('send', { topic: handset, payload: 'hello', value });
      return flow;
    }

    for (const [field, wrong, reason] of [
      ['expire', -1, /is not a number from 0 to 525600\./],
      ['priority', 11, /is not a whole number from -10 to 10\./],
    ] as const) {
      it(`refuses the value ${wrong} for \`${field}\``, async () => {
        const flow = await sendWith({ [field]: 'value', [`${field}Type`]: 'msg' }, wrong);
        const [error] = flow.errors();
        assert.deepEqual([error?.code, error?.field], ['SMS_INPUT', field]);
        assert.match(String(error?.message), reason);
        assert.equal(sim.messages.length, 0);
      });
    }

    it('ignores a wrong `expire` if the message is not stored', async () => {
      const flow = await sendWith({ keep: false, expire: 'value', expireType: 'msg' }, -1);
      assert.deepEqual([flow.errors(), flow.received('sent').length], [[], 1]);
    });

    for (const [what, type] of [
      ['the properties of `msg` are blank', 'msg'],
      ['the numbers in the form are blank', 'num'],
      ['the fields are blank and have no type', undefined],
    ] as const) {
      it(`uses the defaults if ${what}`, async () => {
        const value = type === 'msg' ? 'value' : ' ';
        const flow = await sendWith({ expire: value, expireType: type, priority: value, priorityType: type }, '');
        assert.deepEqual([flow.errors(), flow.received('sent').length], [[], 1]);
      });
    }
  });

  it('passes a `once` duplicate to the outputs without sending it', async () => {
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

  describe('with an unknown outcome', () => {
    it('finds the outcome in the feed', async () => {
      sim.fault('send', { drop: 'after' }, 1);
      const flow = await start({ resolve: 1, messageIdType: 'uuid' });
      flow.send('send', { topic: handset, payload: 'hello' });
      const [message] = await flow.messages('sent', 1);
      const { resolvedBy, accepted, failed, isError } = (message?.sms ?? {}) as Record<string, unknown>;
      assert.deepEqual([resolvedBy, accepted, failed, isError], ['feed', [handset], [], false]);
      assert.equal('statusCode' in (message?.sms ?? {}), false);
      assert.equal(sim.messages.length, 1);
    });

    it('raises SMS_UNCERTAIN if the feed does not contain the message', async () => {
      sim.fault('send', { drop: 'before' }, 1);
      const flow = await start({ resolve: 0.2, messageId: 'mine', messageIdType: 'str' });
      flow.send('send', { topic: handset, payload: 'hello' });
      await until(() => flow.errors().length > 0);
      const [error] = flow.errors();
      assert.deepEqual([error?.code, error?.messageId, error?.searched], ['SMS_UNCERTAIN', 'mine', ['feed']]);
    });
  });

  describe('with `remember`', () => {
    const receivers = [smsNode('in', { wires: [['in sink']] }), sink('in sink')];

    it('adds the remembered value to a reply', async () => {
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

    it('remembers a value of any type', async () => {
      const types = { bool: 'false', num: '7', json: '[1]', jsonata: 'payload & "!"', date: '' };
      const sending = Object.entries(types).map(([id, remember]) =>
        smsNode('send', { id, messageId: id, messageIdType: 'str', remember, rememberType: id, wires: [[]] }),
      );
      const flow = await start({}, {}, [...receivers, ...sending]);
      const remembered: unknown[] = [];
      for (const id of Object.keys(types)) {
        await flow.give(id, { topic: handset, payload: 'hi' });
        sim.reply({ from: handset, body: 'yes', inReplyTo: id });
        const replies = await flow.messages('in sink', remembered.length + 1);
        const { sent } = (replies.at(-1)?.sms ?? {}) as { sent?: { remembered?: unknown } };
        remembered.push(sent?.remembered);
      }
      const time = remembered.pop();
      assert.deepEqual(remembered, [false, 7, [1], 'hi!']);
      assert.ok(Number(time) > Date.UTC(2020), String(time));
    });

    it('refuses a value that is too large or circular', async () => {
      const flow = await start({ remember: 'value', rememberType: 'msg' });
      const circular: Record<string, unknown> = {};
      circular.self = circular;
      for (const value of ['x'.repeat(65 * 1024), circular]) {
        flow.send('send', { topic: handset, payload: 'hi', value });
      }
      await flow.messages('caught', 2);
      for (const error of flow.errors()) assert.deepEqual([error?.code, error?.field], ['SMS_INPUT', 'remember']);
    });
  });

  describe('with a stored flow message', () => {
    const read = (text: string) => parseFlowMessage(text, () => assert.fail('unreadable'));

    it('restores Buffers and Dates', () => {
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

    it('omits properties that JSON cannot represent', () => {
      const circular: Record<string, unknown> = {
        _msgid: '2',
        topic: 't',
        payload: [1, Buffer.from('é')],
        $sms: 'own',
      };
      const rest = { ...circular };
      circular.self = circular;
      circular.count = { of: 5n };
      assert.deepEqual(read(formatFlowMessage(circular as never)), rest);
    });

    it('stops serialising a message as soon as it is too large', () => {
      let read = 0;
      const row = () => Object.defineProperty({}, 'cell', { enumerable: true, get: () => ['x'.repeat(1_024), read++] });
      const rows = Array.from({ length: 10_000 }, row);
      const photo = Buffer.alloc(1024 * 1024);
      const numbers = new Float64Array(256 * 1024);
      let isListed = false;
      const list = () => (isListed = true);
      Object.assign(photo, { toJSON: list });
      Object.defineProperty(numbers, 'last', { enumerable: true, get: list });
      for (const payload of [rows, photo, { photo }, [photo], numbers, { numbers }]) {
        assert.equal(formatFlowMessage({ _msgid: '1', topic: 't', payload } as never), '{"_msgid":"1","topic":"t"}');
      }
      assert.equal(isListed, false, 'neither a Buffer nor a typed array becomes a list of numbers');
      assert.ok(read < 1_000, String(read));
    });

    it('counts only stored properties towards the limit of 256 KiB', () => {
      const notJson = { text: 'x'.repeat(150 * 1024), id: 1n };
      const empty = Object.fromEntries(Array.from({ length: 256 * 1024 }, (_, index) => [index, undefined]));
      const message = { _msgid: '1', empty, notJson, payload: 'x'.repeat(150 * 1024) };
      assert.deepEqual(Object.keys(read(formatFlowMessage(message))), ['_msgid', 'empty', 'payload']);
    });

    it('keeps only `topic` and `ackId` of a message over 256 KiB', () => {
      const payload = 'x'.repeat(256 * 1024);
      const many = Array.from({ length: 30_000 }, (_, index) => `64215${index}`);
      for (const topic of ['t', 6421555123, ['6421555123', 6421555124], { at: new Date(5) }, many]) {
        const large = { _msgid: '1', topic, payload, sms: { ackId: '1.1', body: payload } };
        assert.deepEqual(read(formatFlowMessage(large as never)), { _msgid: '1', topic, sms: { ackId: '1.1' } });
      }
      const circular: unknown[] = [];
      circular.push(circular);
      for (const topic of [circular, 5n]) {
        assert.deepEqual(read(formatFlowMessage({ _msgid: '1', topic } as never)), { _msgid: '1' });
      }
    });

    it('restores an empty message from unreadable data', () => {
      for (const text of ['{"payload":', 'null', '5', '[1]']) {
        let isReported = false;
        const message = parseFlowMessage(text, () => (isReported = true));
        assert.deepEqual([message, isReported], [{}, true], text);
      }
    });

    it('parses a message at most once per turn of the event loop', async () => {
      let parsed = 0;
      const flowMessage = new StoredFlowMessage((text) => {
        parsed++;
        return read(text ?? '');
      });
      const texts = ['a', 'b'].map((topic) => formatFlowMessage({ _msgid: topic, topic } as never));
      const readTwice = () => texts.flatMap((text) => [flowMessage.read(text), flowMessage.read(text)]);
      const first = readTwice();
      assert.deepEqual(
        first.map((message) => (message as { topic?: string }).topic),
        ['a', 'a', 'b', 'b'],
      );
      assert.equal(parsed, 2);
      await new Promise(setImmediate);
      assert.notEqual(flowMessage.read(texts[1]), first[3]);
      assert.equal(parsed, 3);
    });
  });
});
