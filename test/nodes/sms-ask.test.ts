import assert from 'node:assert/strict';
import { createUserDir, type FlowNode } from '../node-red-process';
import { until } from '../until';
import { askNode, blocked, handset, RunningFlow, sink, smsNode, useService } from './running-flow';
import { uuid } from './sending';

const other = '64215559999';
const answers = [
  { value: 'YES', words: ['yes', 'ja', '1', '👍'] },
  { value: 'NO', words: ['no'] },
];

describe('sms-ask', () => {
  const sim = useService();

  const nodes = askNode.bind(undefined, sim);

  const start = (properties: Record<string, unknown> = {}, more: FlowNode[] = [], of: Record<string, unknown> = {}) =>
    RunningFlow.start([...nodes(properties, of), ...more]);

  const ask = (flow: RunningFlow, message: Record<string, unknown> = {}) =>
    flow.give('ask', { topic: handset, payload: 'Come?', ...message });

  const idOf = (index: number) => sim.messages[index]?.messageId ?? '';
  const reply = (body: string, from = handset, inReplyTo = idOf(0)) => sim.reply({ from, body, inReplyTo });

  describe('at output 1', () => {
    it('sends a copy of the input with the answer', async () => {
      const flow = await start({ answers, remember: 'x', rememberType: 'str' });
      await ask(flow, { topic: [handset], extra: { n: 1 } });
      assert.match(idOf(0), uuid);
      reply('Ja!');
      const [answer] = await flow.messages('answer', 1);
      const { _msgid, sms, ...rest } = answer ?? {};
      assert.deepEqual(rest, { payload: 'YES', topic: handset, extra: { n: 1 } });
      const { messageId: _, messageDate: __, displayName: ___, contentType: ____, to: _____, ...record } = sms ?? {};
      const { sentAt, ...sent } = record.sent as Record<string, unknown>;
      assert.match(String(sentAt), /^\d{4}-.*Z$/);
      assert.deepEqual(
        { ...record, sent },
        {
          from: handset,
          inReplyToId: idOf(0),
          isReply: true,
          body: 'Ja!',
          via: 'poll',
          awaited: true,
          answer: 'YES',
          sent: {
            messageId: idOf(0),
            to: [handset],
            body: 'Come?',
            node: 'ask',
            remembered: 'x',
            matchedBy: 'messageId',
          },
        },
      );
      assert.deepEqual([flow.received('noAnswer'), flow.received('caught')], [[], []]);
    });

    it('sends any reply if `answers` is empty', async () => {
      const flow = await start();
      await ask(flow, { topic: `${handset} ${blocked}`, sms: { ackId: '1.1', body: 'x' } });
      reply('Maybe');
      const [answer] = await flow.messages('answer', 1);
      assert.deepEqual([answer?.payload, Object.hasOwn(answer?.sms ?? {}, 'answer')], ['Maybe', false]);
      const [none] = await flow.messages('noAnswer', 1);
      assert.deepEqual([answer?.sms?.ackId, none?.sms?.ackId], ['1.1', '1.1']);
    });
  });

  describe('at output 2', () => {
    it('sends a copy for each recipient without an answer', async () => {
      const flow = await start({ answers, wait: 0.02 }, [smsNode('status', { wires: [[]] })]);
      const third = '64215558888';
      await ask(flow, { topic: [handset, other, third, blocked] });
      sim.status({ messageId: idOf(0), msisdn: other, statusCode: 'EXP' });
      reply('who?');
      const received = await flow.messages('noAnswer', 4);
      const bySms = new Map(received.map(({ payload, topic, sms }) => [String(topic), { payload, sms }]));
      const { errorCode, errorMessage, ...failed } = bySms.get(blocked)?.sms ?? {};
      const messageId = idOf(0);
      assert.deepEqual(failed, { messageId, msisdn: blocked, reason: 'failed' });
      assert.ok(errorCode !== undefined && typeof errorMessage === 'string');
      assert.deepEqual(
        [handset, other, third].map((one) => bySms.get(one)),
        [
          { msisdn: handset, reason: 'unclear', reply: 'who?' },
          { msisdn: other, reason: 'undelivered', statusCode: 'EXP' },
          { msisdn: third, reason: 'timeout' },
        ].map((sms) => ({ payload: 'Come?', sms: { messageId, ...sms } })),
      );
      assert.deepEqual([flow.received('answer'), flow.received('caught')], [[], []]);
    });

    it('sends a copy even if every recipient failed', async () => {
      const flow = await start();
      await ask(flow, { topic: blocked });
      const [none] = await flow.messages('noAnswer', 1);
      assert.deepEqual([none?.topic, none?.sms?.reason, flow.received('caught')], [blocked, 'failed', []]);
    });
  });

  it('sends nothing to either output if the service refuses the message', async () => {
    const flow = await start({ answers });
    sim.fault('send', { status: 403 });
    await ask(flow);
    await flow.messages('caught', 1);
    assert.deepEqual(
      [flow.errors()[0]?.code, flow.received('answer'), flow.received('noAnswer')],
      ['SMS_FORBIDDEN', [], []],
    );
  });

  it('sends one message for two inputs with the same `once` key', async () => {
    const flow = await start({ once: 'key', onceType: 'msg' });
    await ask(flow, { key: 'k' });
    await ask(flow, { key: 'k' });
    reply('yes');
    await flow.messages('answer', 1);
    await new Promise(setImmediate);
    assert.deepEqual([sim.messages.length, flow.received('answer').length, flow.completions.length], [1, 1, 2]);
    assert.deepEqual([flow.received('noAnswer'), flow.received('caught')], [[], []]);
  });

  it('sends the `again` message once after unclear replies', async () => {
    const again = { again: 'words', againType: 'msg', from: '642100000009', contentType: '' };
    const flow = await start({ answers, ...again });
    await ask(flow, { words: 'Bitte JA oder NEIN 🙂' });
    for (const body of ['who?', 'what?']) reply(body);
    await until(() => sim.messages.length === 2);
    const [, second] = sim.messages;
    assert.deepEqual([second?.to, second?.body, second?.from], [[handset], 'Bitte JA oder NEIN 🙂', '642100000009']);
    assert.match(idOf(1), uuid);
    assert.notEqual(idOf(1), idOf(0));
    reply('👍', handset, idOf(1));
    const [answer] = await flow.messages('answer', 1);
    assert.equal(answer?.payload, 'YES');
    assert.deepEqual([sim.messages.length, flow.completions.length], [2, 1]);
  });

  it('refuses an input with an invalid `again` message', async () => {
    for (const again of ['x'.repeat(481), {}]) {
      const flow = await start({ answers, again: 'words', againType: 'msg' });
      await ask(flow, { words: again });
      assert.deepEqual([flow.errors()[0]?.code, flow.errors()[0]?.field], ['SMS_INPUT', 'again']);
      await flow.stop();
    }
    assert.equal(sim.messages.length, 0);
  });

  it('refuses a `wait` that is out of range', async () => {
    for (const wait of [0, -1, 'soon', 43_201]) {
      const flow = await start({ wait: 'wait', waitType: 'msg' });
      await ask(flow, { wait });
      assert.deepEqual([flow.errors()[0]?.code, flow.errors()[0]?.field], ['SMS_INPUT', 'wait']);
      await flow.stop();
    }
    const flow = await start({ wait: 'wait', waitType: 'msg' });
    await ask(flow);
    await flow.badge('ask', { fill: 'blue', shape: 'ring', text: 'awaiting 1 replies' });
  });

  it('raises SMS_CONFIG for invalid `answers`', async () => {
    for (const wrong of ['yes', [{ value: 'YES', words: [] }], [...answers, { value: 'LATER', words: ['Yes!'] }]]) {
      const flow = await start({ answers: wrong });
      await ask(flow);
      await flow.messages('caught', 1);
      assert.equal(flow.errors()[0]?.code, 'SMS_CONFIG');
      await flow.stop();
    }
  });

  it('hides its replies from an sms-in with the filter `notAwaited`', async () => {
    const receivers = [
      smsNode('in', { id: 'all', wires: [['all sink']] }),
      smsNode('in', { id: 'rest', filter: 'notAwaited', wires: [['rest sink']] }),
    ];
    const flow = await start({ answers }, [...receivers, ...['all sink', 'rest sink'].map(sink)]);
    await ask(flow);
    for (const body of ['who?', 'yes', 'and more']) reply(body);
    const [unclear, answer, more] = await flow.messages('all sink', 3);
    assert.deepEqual(
      [unclear, answer, more].map((message) => message?.sms?.awaited),
      [true, true, undefined],
    );
    await flow.messages('rest sink', 1);
    assert.deepEqual(flow.payloads('rest sink'), ['and more']);
  });

  it('polls only while it waits for a reply', async () => {
    const flow = await start();
    assert.equal(sim.polling('incoming'), 0);
    await ask(flow);
    await until(() => sim.polling('incoming') === 1);
    reply('yes');
    await flow.messages('answer', 1);
    await until(() => sim.polling('incoming') === 0);
  });

  it('raises one error while polls for replies fail', async () => {
    sim.fault('incoming', { status: 500 }, 2);
    const flow = await start();
    for (const topic of [handset, other]) flow.send('ask', { topic, payload: 'Come?' });
    await until(() => flow.recoveries().includes('ask'));
    assert.deepEqual(
      flow.errors().map((error) => [error?.code, error?.statusCode, error?.waiting]),
      [['SMS_SERVICE', 500, 0]],
    );
  });

  it('keeps the properties of a large flow message across a redeploy', async () => {
    const userDir = createUserDir();
    const onDisk = (name: string) => nodes({}, { store: 'disk', name });
    const flow = await RunningFlow.start(onDisk('before'), { settings: { userDir } });
    await ask(flow, { big: 'x'.repeat(300 * 1024) });
    await flow.deploy(onDisk('after'), 'full');
    reply('yes');
    const [answer] = await flow.messages('answer', 1);
    assert.equal((answer?.big as string | undefined)?.length, 300 * 1024);
  });
});
