import assert from 'node:assert/strict';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import {
  account,
  countMost,
  type FlowMessage,
  handset,
  nodeWithSink,
  payloadsOf,
  RunningFlow,
  sendWithoutAccount,
  sink,
  smsNode,
  useService,
} from './running-flow';

const other = '64215559999';

const outboxNode = (properties: Record<string, unknown> = {}) => smsNode('outbox', { interval: '0', ...properties });

describe('sms-outbox', () => {
  const sim = useService();

  const nodes = (properties: Record<string, unknown> = {}, ofAccount: Record<string, unknown> = {}) =>
    nodeWithSink(sim, 'outbox', { interval: '0', ...properties }, ofAccount);

  const start = (properties: Record<string, unknown> = {}, more: FlowNode[] = []) =>
    RunningFlow.start([...nodes(properties), ...more]);

  const sendElsewhere = (body: string, to = handset) => sendWithoutAccount(sim, { to, body, messageId: `id-${body}` });

  const trigger = (flow: RunningFlow, message: Record<string, unknown> = {}) => flow.give('outbox', message);

  function polls(): number {
    return sim.requests.filter(({ endpoint }) => endpoint === 'outbox').length;
  }

  it('sends the body and recipients of each sent message', async () => {
    sim.addContact('Anna', handset);
    await sendElsewhere('first', `Anna ${other}`);
    await sendElsewhere('second');
    sim.deleteMessage('id-second');
    const flow = await start();
    const outer = { id: 'outer', index: 3 };
    await trigger(flow, { topic: 'asked', kept: { deep: 1 }, parts: outer, sms: { ackId: '1.1', from: handset } });
    const got = await flow.messages('got', 2);
    const [first, second] = got;
    assert.deepEqual(first?.sms, {
      ackId: '1.1',
      messageId: 'id-first',
      body: 'first',
      recipientCount: 2,
      recipients: `Anna, ${other}`,
      messageDate: sim.messages[0]?.messageDate,
      statusCode: 'SNT',
      deleted: false,
      recipientsList: [
        { from: '642100000001', to: handset, name: 'Anna', statusCode: 'SNT', channel: 'Sms' },
        { from: '642100000001', to: other, statusCode: 'SNT', channel: 'Sms' },
      ],
    });
    assert.deepEqual([first?.payload, first?.topic], ['first', `${handset} ${other}`]);
    assert.deepEqual([second?.sms?.deleted, second?.sms?.recipientCount], [true, 1]);
    assert.deepEqual(
      got.map(({ kept, parts }) => [kept, parts]),
      [0, 1].map((index) => [{ deep: 1 }, { id: first?.parts?.id, type: 'array', count: 2, index, parts: outer }]),
    );
    assert.notEqual(first?.kept, second?.kept);
    assert.notEqual(first?.parts?.parts, second?.parts?.parts);
    assert.equal(first?._msgid, second?._msgid);
    assert.deepEqual([sim.requests.at(-1)?.method, sim.requests.at(-1)?.path], ['GET', '/api/3/sms/out/poll']);
  });

  describe('on an input', () => {
    it('sends all records as one list if `output` is `list`', async () => {
      const flow = await start({}, [outboxNode({ id: 'list', output: 'list', wires: [['got2']] }), sink('got2')]);
      await trigger(flow);
      flow.send('list', { topic: 'mine', payload: 'x', kept: 1 });
      const [message] = await flow.messages('got2', 1);
      assert.deepEqual([message?.topic, message?.payload, message?.kept], ['mine', [], 1]);
      assert.equal(flow.received('got').length, 0);
      assert.deepEqual(flow.status('outbox'), { fill: 'green', shape: 'dot', text: 'messages: 0' });
      for (const body of ['a', 'b']) await sendElsewhere(body);
      flow.send('list', { topic: 'mine', kept: 1 });
      const [, { topic, kept, payload } = assert.fail()] = await flow.messages('got2', 2);
      assert.deepEqual([topic, kept, payloadsOf(payload as FlowMessage[]).length], ['mine', 1, 2]);
      assert.deepEqual(flow.status('list'), { fill: 'green', shape: 'dot', text: 'messages: 2' });
    });

    it('sends 501 records in order with one `msg.parts.id`', async () => {
      const ids = Array.from({ length: 501 }, (_, index) => `m${index}`);
      const body = JSON.stringify(ids.map((messageId) => ({ messageId, body: messageId })));
      sim.fault('outbox', { status: 200, body, contentType: 'application/json' });
      const flow = await start();
      await trigger(flow, { kept: { deep: 1 } });
      const got = await flow.messages('got', ids.length);
      const [{ parts } = assert.fail()] = got;
      assert.deepEqual(
        got.map((message) => [message.payload, message.kept, message.parts]),
        ids.map((id, index) => [id, { deep: 1 }, { id: parts?.id, type: 'array', count: ids.length, index }]),
      );
      assert.deepEqual(flow.status('outbox'), { fill: 'green', shape: 'dot', text: 'messages: 501' });
    });

    it('delivers a repeated record once, only to the node that requested it', async () => {
      await sendElsewhere('a');
      const flow = await start({}, [outboxNode({ id: 'second', wires: [['got2']] }), sink('got2')]);
      await trigger(flow);
      await flow.messages('got', 1);
      sim.fault('outbox', { repeat: true });
      await trigger(flow);
      flow.send('second');
      await flow.done('second', 1);
      sim.fault('outbox', null);
      await sendElsewhere('b');
      await trigger(flow);
      assert.deepEqual(payloadsOf(await flow.messages('got', 2)), ['a', 'b']);
      assert.deepEqual(flow.received('got2'), []);
    });

    it('runs one more poll for all inputs that arrive during a poll', async () => {
      sim.fault('outbox', { delayMs: 50 });
      const flow = await start({ output: 'list' });
      flow.send('outbox', { topic: 'first' });
      await until(() => sim.polling('outbox') === 1);
      for (let index = 0; index < 999; index++) flow.send('outbox', { topic: index });
      assert.equal((await flow.messages('got', 1_000)).length, 1_000);
      assert.equal((await flow.done('outbox', 1_000)).length, 1_000);
      assert.equal(polls(), 2);
    });

    for (const output of ['each', 'list'] as const) {
      it(`sends all records of a shared poll for each input if \`output\` is \`${output}\``, async () => {
        await sendElsewhere('1');
        await sendElsewhere('2');
        const flow = await start({ output });
        sim.fault('outbox', { delayMs: 50, status: 200, body: '[]', contentType: 'application/json' }, 1);
        flow.send('outbox', { topic: 'first' });
        await until(() => polls() === 1);
        for (const asked of ['b', 'c']) flow.send('outbox', { asked });
        await flow.done('outbox', 3);
        const bodiesOfInput = (wanted: string) => {
          const copies = flow.received('got').filter(({ asked }) => asked === wanted);
          if (output === 'list') return copies.map(({ payload }) => payloadsOf(payload as FlowMessage[]).length);
          const ids = new Set(copies.map(({ parts }) => parts?.id));
          return [...payloadsOf(copies), ids.size];
        };
        const expected = output === 'list' ? [2] : ['1', '2', 1];
        assert.deepEqual([bodiesOfInput('b'), bodiesOfInput('c')], [expected, expected]);
        const partIds = new Set(flow.received('got').map(({ parts }) => parts?.id));
        assert.equal(partIds.size, output === 'list' ? 1 : 2);
        assert.equal(polls(), 2);
      });
    }

    it('completes waiting inputs when the node stops', async () => {
      sim.fault('outbox', { hang: true }, 1);
      const flow = await RunningFlow.start(nodes({}, { timeout: '1' }));
      flow.send('outbox', { topic: 'polls' });
      await until(() => polls() === 1);
      for (let index = 0; index < 5; index++) flow.send('outbox', { topic: 'waits' });
      await flow.deploy([account(sim, { timeout: '1' })]);
      await flow.done('outbox', 6);
      assert.equal(polls(), 1);
    });

    it('raises an error if the poll fails', async () => {
      const flow = await start();
      sim.fault('outbox', { status: 500 });
      await trigger(flow, { topic: 'mine' });
      assert.deepEqual(
        flow.received('caught').map(({ sms, topic, error }) => [sms?.error?.code, topic, error?.code]),
        [['SMS_SERVICE', 'mine', 'SMS_SERVICE']],
      );
      assert.deepEqual(flow.status('outbox'), { fill: 'red', shape: 'ring', text: 'service error' });
      assert.deepEqual([flow.received('got').length, flow.completions.length], [0, 1]);
    });
  });

  it('does not show an old badge after a deploy', async () => {
    const flow = await start();
    sim.fault('outbox', { delayMs: 100 });
    flow.send('outbox');
    await sim.until(() => sim.polling('outbox') === 1);
    await flow.deploy(nodes({ name: 'new' }));
    await flow.done('outbox', 1);
    assert.deepEqual(flow.status('outbox'), {});
  });

  describe('with an interval', () => {
    it('polls once for all nodes, at their shortest interval', async () => {
      const most = countMost(sim, 'outbox');
      const flow = await start({ interval: '0.1' }, [
        outboxNode({ id: 'slow', interval: '1000', output: 'list', wires: [['got2']] }),
        sink('got2'),
      ]);
      await sendElsewhere('a');
      assert.equal((await flow.messages('got', 1))[0]?.payload, 'a');
      const [list] = await flow.messages('got2', 1);
      assert.deepEqual(
        ((list?.payload ?? []) as { body: string }[]).map(({ body }) => body),
        ['a'],
      );
      await sendElsewhere('b');
      await flow.messages('got', 2);
      await flow.messages('got2', 2);
      assert.equal(most(), 1);
      assert.equal(flow.received('got2').length, 2);
    });

    it('shows the number of messages after each poll', async () => {
      const flow = await start({ interval: '0.1' });
      const shown = () => flow.statuses('outbox').map(({ fill, text }) => `${fill} ${text}`);
      await until(() => shown().length >= 4, 'the badges of two polls');
      assert.deepEqual(shown().slice(0, 4), ['blue reading', 'green messages: 0', 'blue reading', 'green messages: 0']);
    });

    it('logs the recovery after a failed poll', async () => {
      sim.fault('outbox', { status: 500 }, 1);
      const flow = await start({ interval: '0.1' });
      await until(() => flow.recoveries().length > 0);
      const before = polls();
      await until(() => polls() > before + 1, 'another poll');
      assert.deepEqual([flow.received('caught').length, flow.recoveries()], [1, ['outbox']]);
      await flow.badge('outbox', { fill: 'green', shape: 'dot', text: 'messages: 0' });
    });

    it('also reads when an input arrives', async () => {
      const flow = await start({ interval: '1000' });
      await until(() => polls() === 1);
      await sendElsewhere('a');
      await trigger(flow, { kept: 1 });
      assert.equal((await flow.messages('got', 1))[0]?.kept, 1);
    });

    it('delivers the records of a poll that a redeploy interrupts', async () => {
      await sendElsewhere('a');
      sim.fault('outbox', { delayMs: 150 });
      const flow = await start({ interval: '1000' });
      await sim.until(() => sim.polling('outbox') === 1);
      await flow.deploy(nodes({ interval: '1000', name: 'new' }));
      assert.deepEqual(payloadsOf(await flow.messages('got', 1)), ['a']);
    });

    it('raises SMS_CONFIG for an invalid interval', async () => {
      const flow = await start({ interval: 'often' });
      assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_CONFIG');
    });
  });
});
