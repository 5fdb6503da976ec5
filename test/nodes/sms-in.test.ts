import assert from 'node:assert/strict';
import type { UsableAccount } from '../../nodes/runtime/account-node';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { account, handset, nodeWithSink, payloadsOf, RunningFlow, sink, smsNode, useService } from './running-flow';

const number = '642100000001';
const listening = { fill: 'green', shape: 'dot', text: 'listening' };

const inNode = (properties: Record<string, unknown> = {}) => smsNode('in', properties);

describe('sms-in', () => {
  const sim = useService();

  function receive(body: string): void {
    sim.receive({ from: handset, to: number, body });
  }

  function start(properties: Record<string, unknown> = {}, more: FlowNode[] = [], of: Record<string, unknown> = {}) {
    return RunningFlow.start([...nodeWithSink(sim, 'in', properties, of), ...more]);
  }

  describe('when a message arrives', () => {
    it('sends a flow message with `payload`, `topic` and `sms`', async () => {
      const flow = await start();
      const { messageId, messageDate } = sim.receive({ from: handset, to: number, body: 'Grüße + & =\n€' });
      const [{ _msgid, ...message } = assert.fail()] = await flow.messages('got', 1);
      assert.equal(typeof _msgid, 'string');
      assert.deepEqual(message, {
        payload: 'Grüße + & =\n€',
        topic: handset,
        sms: {
          messageId,
          from: handset,
          to: number,
          isReply: false,
          body: 'Grüße + & =\n€',
          messageDate,
          contentType: 'text/plain',
          via: 'poll',
        },
      });
    });

    it('sends a separate object to each next node', async () => {
      const flow = await start({ wires: [['got', 'got2']] }, [
        sink('got2'),
        inNode({ id: 'in2', wires: [['got3']] }),
        sink('got3'),
      ]);
      receive('one');
      const all = [await flow.messages('got', 1), await flow.messages('got2', 1), await flow.messages('got3', 1)];
      const records = all.map(([message]) => message?.sms);
      Object.assign(records[0] ?? {}, { body: 'changed' });
      assert.deepEqual(
        records.slice(1).map((record) => record?.body),
        ['one', 'one'],
      );
    });
  });

  for (const [filter, what, expected] of [
    ['all', 'every message', ['new', 'reply', 'end', 'end reply']],
    ['replies', 'only replies', ['reply', 'end reply']],
    ['new', 'no replies', ['new', 'end']],
  ] as const) {
    it(`delivers ${what} if the filter is \`${filter}\``, async () => {
      const flow = await start({ filter });
      receive('new');
      sim.reply({ from: handset, body: 'reply' });
      receive('end');
      sim.reply({ from: handset, body: 'end reply' });
      assert.deepEqual(payloadsOf(await flow.messages('got', expected.length)), expected);
      await sim.until(() => sim.incoming.every(({ read }) => read));
      assert.deepEqual(flow.payloads('got'), expected);
    });
  }

  describe('while polling', () => {
    it('delivers a repeated message twice if `dedupe` is off', async () => {
      const flow = await start({}, [], { dedupe: false });
      receive('a');
      await flow.messages('got', 1);
      sim.fault('incoming', { repeat: true }, 1);
      assert.deepEqual(payloadsOf(await flow.messages('got', 2)), ['a', 'a']);
    });

    it('shows the badge *connecting*, then *listening*', async () => {
      const flow = await start();
      await flow.badge('in', listening);
      assert.deepEqual(flow.statuses('in')[0], { fill: 'yellow', shape: 'ring', text: 'connecting' });
    });

    it('stops polling when the node is removed', async () => {
      const flow = await start();
      await flow.badge('in', listening);
      await flow.deploy([account(sim)], 'nodes');
      assert.deepEqual(flow.status('in'), {});
      await sim.until(() => sim.polling('incoming') === 0);
      const { length } = sim.requests;
      receive('unread');
      await flow.testConnection({ id: 'account', baseUrl: sim.baseUrl });
      assert.deepEqual(
        sim.requests.slice(length).map(({ endpoint }) => endpoint),
        ['feed'],
      );
      assert.equal(sim.incoming[0]?.read, false);
    });
  });

  describe('while polls fail', () => {
    it('waits longer after each failed poll', async () => {
      sim.fault('incoming', { status: 500 }, 2);
      const failing = { fill: 'red', shape: 'ring', text: 'service error' };
      const flow = await start({}, [inNode({ id: 'twin' })]);
      const sources = () => flow.received('caught').map(({ error }) => error?.source.id);
      for (const id of ['in', 'twin']) await flow.badge(id, failing);
      await flow.badge('in', listening);
      await flow.badge('twin', listening);
      assert.deepEqual(sources().sort(), ['in', 'twin']);
      for (const { sms, error } of flow.received('caught')) {
        assert.deepEqual([sms?.error?.code, error?.code], ['SMS_SERVICE', 'SMS_SERVICE']);
      }
      const [first, second, third] = sim.requests.map(({ at }) => at);
      const [firstMs, secondMs] = [Number(second) - Number(first), Number(third) - Number(second)];
      assert.ok(firstMs >= 980 && secondMs >= 1_980, `${firstMs} ms, ${secondMs} ms`);
      assert.deepEqual(flow.recoveries(), ['in']);
      sim.fault('incoming', { status: 401 });
      await until(() => sources().length === 4, 'one error for each new failing period');
      await flow.badge('in', { fill: 'red', shape: 'ring', text: 'unauthorized' });
    });

    it('receives messages after an outage of the service', async () => {
      const flow = await start();
      await flow.badge('in', listening);
      await sim.setOnline(false);
      await flow.badge('in', { fill: 'red', shape: 'ring', text: 'unreachable' });
      await sim.setOnline(true);
      receive('back');
      assert.deepEqual(payloadsOf(await flow.messages('got', 1)), ['back']);
      assert.equal(flow.received('caught').length, 1);
    });
  });

  it('delivers a message once to each instance of a subflow', async () => {
    const nodes = (name: string): FlowNode[] => [
      account(sim),
      { id: 'sub', type: 'subflow', name: 'receiver', in: [], out: [{ x: 1, y: 1, wires: [{ id: 'in', port: 0 }] }] },
      inNode({ z: 'sub', name, wires: [[]] }),
      { id: 'one', type: 'subflow:sub', name: '', wires: [['got']] },
      { id: 'two', type: 'subflow:sub', name: '', wires: [['got2']] },
      sink('got'),
      sink('got2'),
    ];
    const flow = await RunningFlow.start(nodes(''));
    for (const body of ['before', 'after']) receive(body);
    for (const id of ['got', 'got2']) await flow.messages(id, 2);
    await flow.deploy(nodes('changed'), 'nodes');
    receive('last');
    for (const id of ['got', 'got2']) {
      assert.deepEqual(payloadsOf(await flow.messages(id, 3)), ['before', 'after', 'last']);
    }
  });

  describe('with acknowledgement', () => {
    const byFlow = { acknowledge: 'flow', inputs: 1 };

    it('does not redeliver a message that the flow acknowledges', async () => {
      const flow = await start(byFlow);
      receive('a');
      const [message] = await flow.messages('got', 1);
      assert.equal(typeof message?.sms?.ackId, 'string');
      assert.equal('redelivered' in (message?.sms ?? {}), false);
      // A blank `error` counts as no error.
      flow.send('in', { sms: { ackId: message?.sms?.ackId }, error: ' ' });
      const strange = [{}, { sms: null }, { sms: 'x' }, { sms: {} }, { sms: { ackId: 7 } }, { sms: { ackId: 'no.1' } }];
      for (const input of strange) flow.send('in', input);
      for (const { error } of await flow.done('in', 1 + strange.length)) assert.equal(error, undefined);
      await flow.deploy(nodeWithSink(sim, 'in', { ...byFlow, name: 'new' }));
      receive('b');
      assert.deepEqual(payloadsOf(await flow.messages('got', 2)), ['a', 'b']);
    });

    it('redelivers a message that the flow returns with an error', async () => {
      const flow = await start(byFlow);
      receive('a');
      const [first] = await flow.messages('got', 1);
      flow.send('in', { sms: first?.sms, error: { message: 'database down' } });
      const [, second] = await flow.messages('got', 2);
      assert.deepEqual([second?.payload, second?.topic, second?.sms?.redelivered], ['a', handset, true]);
      flow.send('in', { sms: second?.sms });
      await flow.done('in', 2);
      assert.deepEqual(flow.received('caught'), []);
    });

    it('delivers an unacknowledged message `maxAttempts` times', async () => {
      const flow = await start({ ...byFlow, ackTimeout: '0.05', maxAttempts: '3' });
      receive('a');
      const [caught] = await flow.messages('caught', 1);
      const got = flow.received('got');
      assert.deepEqual(payloadsOf(got), ['a', 'a', 'a']);
      assert.deepEqual(
        got.map(({ sms }) => sms?.redelivered ?? false),
        [false, true, true],
      );
      assert.equal(caught?.error?.code, 'SMS_UNDELIVERED');
      assert.match(caught?.error?.message ?? '', /did not acknowledge the message \(attempts: 3\)/);
      assert.deepEqual([caught?.payload, caught?.topic, caught?.sms?.body], ['a', handset, 'a']);
      assert.equal(caught?.sms?.redelivered, true);
      receive('b');
      await until(() => flow.received('got').some(({ payload }) => payload === 'b'));
      assert.equal(flow.payloads('got').filter((payload) => payload === 'a').length, 3);
    });

    it('accepts an outcome of sms-send as an acknowledgement', async () => {
      const send = smsNode('send', { keep: true, wires: [['in', 'sent'], []] });
      const flow = await start({ ...byFlow, wires: [['got', 'send']] }, [send, sink('sent')]);
      receive('a');
      const [sent] = await flow.messages('sent', 1);
      assert.equal(sent?.sms?.ackId, flow.received('got')[0]?.sms?.ackId);
      const { membership } = flow.node('account') as UsableAccount;
      await until(() => membership.state().inbox.undelivered === 0, 'the message is acknowledged');
      assert.equal(membership.state().inbox.unhandled, 0);
      assert.deepEqual([sim.messages.length, flow.received('got').length], [1, 1]);
      receive('x'.repeat(481));
      const [caught] = await flow.messages('caught', 1);
      const { ackId, error } = caught?.sms ?? {};
      assert.deepEqual([ackId, error?.code], [flow.received('got')[1]?.sms?.ackId, 'SMS_INPUT']);
      flow.send('in', caught as Record<string, unknown>);
      assert.equal((await flow.messages('got', 3))[2]?.sms?.redelivered, true);
    });

    it('pauses polling at 100 unacknowledged messages', async () => {
      const flow = await start(byFlow);
      for (let index = 0; index < 110; index++) receive(`${index}`);
      await flow.badge('in', { fill: 'blue', shape: 'ring', text: 'paused: 100 unacknowledged' });
      await sim.until(() => sim.polling('incoming') === 0);
      assert.equal(flow.received('got').length, 100);
      const read = sim.incoming.filter((message) => message.read).length;
      assert.ok(read <= 101, String(read));
      for (let index = 0; index < 110; index++) {
        const message = (await flow.messages('got', index + 1))[index];
        flow.send('in', { sms: message?.sms });
      }
      assert.deepEqual(payloadsOf(await flow.messages('got', 110)), [...Array(110).keys()].map(String));
      await flow.badge('in', listening);
    });

    for (const [option, value] of [
      ['ackTimeout', 'soon'],
      ['maxAttempts', '0'],
      ['maxAttempts', '1.5'],
    ] as const) {
      it(`raises SMS_CONFIG if \`${option}\` is "${value}"`, async () => {
        const flow = await start({ ...byFlow, [option]: value });
        assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_CONFIG');
      });
    }
  });
});
