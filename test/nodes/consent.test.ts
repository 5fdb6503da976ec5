import assert from 'node:assert/strict';
import helper from 'node-red-node-test-helper';
import { createUserDir, type FlowNode } from '../node-red-process';
import { until } from '../until';
import { account, type FlowMessage, RunningFlow, sendNode, sink, smsNode, useService } from './running-flow';

const [one, two, three] = ['6421555001', '6421555002', '6421555003'] as const;

const sender = (properties: Record<string, unknown>) =>
  smsNode('send', { id: 'other', wires: [['sent']], ...properties });

const receiver = smsNode('in', { wires: [['received']] });

const route = '/sms-account/account/optouts';

describe('an account with consent rules', () => {
  const sim = useService();

  /** Returns an account with `settings` and an `sms-send` with the properties `send`. */
  const nodes = ({ send = {}, ...settings }: Record<string, unknown>, ...more: FlowNode[]) => [
    ...sendNode(sim, { ...(send as object) }, settings),
    ...more,
    sink('received'),
  ];

  const send = (flow: RunningFlow, to: unknown, payload = 'hello', from = 'send') =>
    flow.give(from, { topic: to, payload });

  const write = (body: string, from: string = one) => sim.receive({ from, to: '642100000001', body });

  /** Sends a message from a handset, and waits until the flow receives it. */
  async function say(flow: RunningFlow, body: string, from: string = one): Promise<FlowMessage | undefined> {
    const before = flow.received('received').length;
    write(body, from);
    return (await flow.messages('received', before + 1)).at(-1);
  }

  it('opts out a number that sends STOP', async () => {
    const flow = await RunningFlow.start(nodes({ optOut: true }, receiver));
    const message = await say(flow, ' Stop! ');
    assert.deepEqual([message?.payload, message?.topic, message?.sms?.optOut], [' Stop! ', one, 'out']);
    await send(flow, one);
    const [caught] = await flow.messages('caught', 1);
    assert.deepEqual([caught?.error?.code, caught?.sms?.error?.code], ['SMS_OPTED_OUT', 'SMS_OPTED_OUT']);
    assert.equal(sim.messages.length, 0);
    assert.deepEqual(flow.status('send'), { fill: 'red', shape: 'ring', text: 'opted out' });
    assert.equal((await say(flow, 'START'))?.sms?.optOut, 'in');
    await send(flow, one);
    assert.equal(sim.messages.length, 1);
  });

  it('ignores its opt-out list while `optOut` is off', async () => {
    const flow = await RunningFlow.start(nodes({ optOut: true }, receiver));
    await say(flow, 'STOP');
    await flow.deploy(nodes({ optOut: false }, receiver));
    await send(flow, one);
    assert.ok(!('optOut' in ((await say(flow, 'START'))?.sms ?? {})));
    await flow.deploy(nodes({ optOut: true }, receiver));
    await send(flow, one);
    assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_OPTED_OUT');
    assert.equal(sim.messages.length, 1);
  });

  it('passes only the refused recipients to output 2', async () => {
    const flow = await RunningFlow.start(nodes({ optOut: true, prefixes: '+64, 61' }, receiver));
    await say(flow, 'STOP', two);
    await send(flow, [one, two, '16421123456']);
    const [sent] = await flow.messages('sent', 1);
    const failed = await flow.messages('failed', 2);
    assert.deepEqual(sent?.sms?.accepted, [one]);
    assert.deepEqual(
      failed.map(({ topic, payload, sms }) => [topic, payload, sms?.msisdn, sms?.errorCode]),
      [
        ['16421123456', 'hello', '16421123456', 'SMS_NOT_ALLOWED'],
        [two, 'hello', two, 'SMS_OPTED_OUT'],
      ],
    );
    assert.deepEqual(flow.received('caught'), []);
  });

  it('reports a forbidden prefix in preference to an opt-out or a limit', async () => {
    const flow = await RunningFlow.start(nodes({ optOut: true, prefixes: '64', perDay: '1' }, receiver));
    await say(flow, 'STOP', two);
    await send(flow, ['16421123456', two]);
    await send(flow, [two]);
    await send(flow, three);
    await send(flow, [one, two]);
    await send(flow, [one, two, '16421123456']);
    assert.deepEqual(await flow.codes(4), ['SMS_NOT_ALLOWED', 'SMS_OPTED_OUT', 'SMS_OPTED_OUT', 'SMS_NOT_ALLOWED']);
    assert.equal(sim.messages.length, 1);
  });

  it('lets essential messages ignore opt-outs but not prefixes', async () => {
    const alarm = sender({ id: 'alarm', essential: true });
    const flow = await RunningFlow.start(nodes({ optOut: true, prefixes: '64' }, receiver, alarm));
    await say(flow, 'STOP');
    await send(flow, one, 'fire', 'alarm');
    assert.deepEqual((await flow.messages('sent', 1))[0]?.sms?.accepted, [one]);
    await send(flow, '16421123456', 'fire', 'alarm');
    assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_NOT_ALLOWED');
  });

  it('refuses a message to a number outside its prefixes', async () => {
    const flow = await RunningFlow.start(nodes({ prefixes: '61', send: { keep: true } }));
    await send(flow, one);
    assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_NOT_ALLOWED');
    assert.equal(sim.requests.filter(({ endpoint }) => endpoint === 'send').length, 0);
    assert.deepEqual(flow.status('send'), { fill: 'red', shape: 'ring', text: 'number not allowed' });
  });

  it('checks opt-outs again when it sends a stored message', async () => {
    sim.fault('send', { status: 503 });
    const flow = await RunningFlow.start(nodes({ optOut: true, send: { keep: true } }, receiver));
    flow.send('send', { topic: [one, two], payload: 'news' });
    flow.send('send', { topic: one, payload: 'more' });
    await until(() => sim.requests.some(({ status }) => status === 503));
    await say(flow, 'STOP');
    sim.fault('send', null);
    const [failed] = await flow.messages('failed', 1);
    assert.deepEqual([failed?.topic, failed?.sms?.errorCode], [one, 'SMS_OPTED_OUT']);
    const errors = await flow.messages('caught', 2);
    assert.ok(errors.some(({ payload, sms }) => payload === 'more' && sms?.error?.code === 'SMS_OPTED_OUT'));
    assert.deepEqual(sim.messages.at(-1)?.recipients.map(({ msisdn }) => msisdn) ?? [], [two]);
  });

  it('keeps its opt-out list on disk across a restart', async () => {
    const userDir = createUserDir();
    const flow = await RunningFlow.start(nodes({ optOut: true, store: 'disk' }, receiver), { settings: { userDir } });
    await say(flow, 'STOP');
    await flow.stop();
    const again = await RunningFlow.start(nodes({ optOut: true, store: 'disk' }, receiver), { settings: { userDir } });
    await send(again, one);
    assert.equal((await again.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_OPTED_OUT');
  });

  it('lists and changes opted-out numbers through the admin API', async () => {
    const flow = await RunningFlow.start(nodes({ optOut: true }, receiver));
    await say(flow, 'STOP', two);
    const change = (body: object) => helper.request().post(route).send(body);
    assert.deepEqual(
      (await change({ msisdns: ['+6421 555 001', Number(three), two], action: 'out' }).expect(200)).body,
      { changed: 2 },
    );
    const page = await flow.readRoute('account/optouts');
    assert.equal(page.total, 3);
    assert.deepEqual(
      page.optouts.map(({ msisdn, via }: Record<string, unknown>) => [msisdn, via]),
      [
        [three, 'person'],
        ['6421555001', 'person'],
        [two, 'message'],
      ],
    );
    assert.match(page.optouts[0].at, /^\d{4}-\d\d-\d\dT.*Z$/);
    const found = await flow.readRoute('account/optouts?search=5002');
    assert.deepEqual([found.total, found.optouts[0].msisdn], [1, two]);
    assert.deepEqual(await flow.readRoute('account/optouts?search=message'), { optouts: [], total: 0 });
    const readCsv = async (search: string) => {
      const request = helper.request().get(`${route}?search=${search}`).set('accept', 'text/csv');
      return (await request.expect('content-type', /text\/csv/)).text;
    };
    assert.equal(await readCsv('message'), 'msisdn,at,via\r\n');
    const csv = await readCsv('');
    assert.match(csv, /^msisdn,at,via\r\n6421555003,[^,]+Z,person\r\n/);
    assert.equal(csv.split('\r\n').length, 5);
    assert.equal((await flow.readRoute('account/state')).consent.optedOut, 3);
    await change({ msisdns: [two], action: 'in' }).expect(200);
    await send(flow, two);
    await send(flow, one);
    assert.equal(sim.messages.length, 1);
    const many = Array(10_001).fill(one);
    for (const msisdns of [['abc'], [{ toString: 1, valueOf: 1 }], [-64_215_551_234], many]) {
      await change({ msisdns, action: 'out' }).expect(400);
    }
    for (const body of [{}, { msisdns: [one], action: 'x' }]) await change(body).expect(400);
    await helper.request().get('/sms-account/none/optouts').expect(404);
    const { consent, counts } = await flow.readRoute('account/state');
    assert.deepEqual([consent.optedOut, counts.optedOut], [2, 1]);
    assert.match((await helper.request().get('/sms-account/metrics')).text, /node_red_sms_opted_out_numbers\{.*\} 2\n/);
  });

  for (const store of ['memory', 'disk']) {
    it(`opens an unused ${store} store to change the opt-out list`, async () => {
      const userDir = createUserDir();
      const flow = await RunningFlow.start(nodes({ store }), { settings: { userDir } });
      for (const msisdns of [[one], [two], [three]]) {
        await helper.request().post(route).send({ msisdns, action: 'out' }).expect(200, { changed: 1 });
        await flow.deploy(msisdns[0] === one ? nodes({ store }) : [account(sim, { store })]);
        assert.equal((await flow.readRoute('account/optouts')).optouts[0].msisdn, msisdns[0]);
      }
    });
  }

  it('counts refused recipients by reason', async () => {
    const flow = await RunningFlow.start(
      nodes({ optOut: true, prefixes: '6421555', perHandset: '1', send: { keep: true } }, receiver),
    );
    await send(flow, one);
    const change = helper.request().post(route);
    await change.send({ msisdns: [two], action: 'out' }).expect(200);
    await send(flow, `${one} ${two} 6421999001 6421999002`);
    const [caught] = await flow.messages('caught', 1);
    assert.equal(caught?.sms?.error?.code, 'SMS_NOT_ALLOWED');
    const { counts } = await flow.readRoute('account/state');
    assert.deepEqual([counts.notAllowed, counts.optedOut, counts.limited, counts.sent], [2, 1, 1, 1]);
  });

  it('marks a STOP reply to sms-ask as an opt-out', async () => {
    const ask = smsNode('ask', { wires: [['reply'], []] });
    const flow = await RunningFlow.start([...nodes({ optOut: true }, ask, receiver), sink('reply')]);
    flow.send('ask', { topic: one, payload: 'Come?' });
    await flow.done('ask', 1);
    write('STOP');
    const [reply] = await flow.messages('reply', 1);
    assert.deepEqual([reply?.payload, reply?.sms?.optOut], ['STOP', 'out']);
  });

  it('polls for opt-outs although no node receives messages', async () => {
    const flow = await RunningFlow.start(nodes({ optOut: true }));
    write('STOP');
    write('hello', two);
    await until(async () => {
      const { undelivered, unhandled } = (await flow.readRoute('account/state')).inbox;
      return undelivered + unhandled === 2;
    });
    await send(flow, one);
    assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_OPTED_OUT');
    await flow.deploy(nodes({}));
    assert.deepEqual((await flow.readRoute('account/state')).polls, []);
  });

  describe('in several nodes', () => {
    const second = (settings: Record<string, unknown>) => account(sim, { id: 'second', ...settings });

    it('applies the opt-out words of each node to all nodes', async () => {
      const flow = await RunningFlow.start([
        ...nodes({}, receiver, sender({ account: 'second' })),
        second({ optOut: true, optOutWords: 'weg', optInWords: 'zurück' }),
        second({ id: 'third', optOut: true }),
      ]);
      await say(flow, 'weg', one);
      await say(flow, 'stop', two);
      await send(flow, one);
      await send(flow, two, 'hello', 'other');
      assert.deepEqual(await flow.codes(2), ['SMS_OPTED_OUT', 'SMS_OPTED_OUT']);
      assert.equal((await say(flow, 'zurück', one))?.sms?.optOut, 'in');
    });

    it('applies the prefixes of a node only to messages of that node', async () => {
      const flow = await RunningFlow.start([...nodes({ prefixes: '61' }, sender({ account: 'second' })), second({})]);
      await send(flow, one, 'hello', 'other');
      await send(flow, one);
      assert.equal((await flow.messages('caught', 1))[0]?.sms?.error?.code, 'SMS_NOT_ALLOWED');
      assert.equal(sim.messages.length, 1);
    });
  });
});
