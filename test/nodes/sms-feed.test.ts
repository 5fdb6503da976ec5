import assert from 'node:assert/strict';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { handset, nodeWithSink, RunningFlow, sendWithoutAccount, sink, smsNode, useService } from './running-flow';

const accountDetails = { balance: 1_000_000, type: 'Prepaid', currency: 'EUR' };

const feedNode = (properties: Record<string, unknown> = {}) => smsNode('feed', properties);

describe('sms-feed', () => {
  const sim = useService();

  function start(properties: Record<string, unknown> = {}, more: FlowNode[] = []) {
    return RunningFlow.start([...nodeWithSink(sim, 'feed', properties), ...more]);
  }

  async function fill(): Promise<void> {
    await sendWithoutAccount(sim, { to: handset, body: 'out <b> & "more"', messageId: 'm1' });
    sim.reply({ from: handset, body: 'in ]]> € 😀' });
  }

  function requestedParams(): Record<string, string>[] {
    return sim.requests.filter(({ endpoint }) => endpoint === 'feed').map((request) => request.params);
  }

  const trigger = (flow: RunningFlow, message: Record<string, unknown> = {}) => flow.give('feed', message);

  it('obeys `concurrency` and `queueLimit` of the account', async () => {
    const nodes = nodeWithSink(sim, 'feed', {}, { concurrency: 2, queueLimit: 3 });
    const flow = await RunningFlow.start([...nodes, feedNode({ id: 'other' })]);
    sim.fault('feed', { hang: true });
    for (let index = 0; index < 4; index++) flow.send('feed', { index });
    await sim.until(() => sim.polling('feed') === 2);
    for (let index = 4; index < 7; index++) flow.send('other', { index });
    assert.deepEqual(await flow.codes(2), ['SMS_BUSY', 'SMS_BUSY']);
    assert.equal(requestedParams().length, 2);
  });

  describe('when a read succeeds', () => {
    it('sends a list of entries and the account data', async () => {
      await fill();
      const flow = await start();
      await trigger(flow, { topic: 'kept', other: 1, sms: { ackId: '1.1', body: 'balance?' } });
      const [message] = await flow.messages('got', 1);
      assert.deepEqual(requestedParams(), [{ format: 'ATOM', size: '8' }]);
      const { updated, ...sms } = message?.sms ?? {};
      assert.match(String(updated), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      assert.deepEqual(sms, {
        ackId: '1.1',
        account: { ...accountDetails, balance: sim.balance },
        title: 'Recent messages',
        format: 'ATOM',
      });
      assert.deepEqual([message?.topic, message?.other, message?.parts], ['kept', 1, undefined]);
      const entries = message?.payload as Record<string, unknown>[];
      assert.deepEqual(new Set(entries.map(({ body }) => body)), new Set(['out <b> & "more"', 'in ]]> € 😀']));
      const sent = entries.find(({ id }) => id === 'urn:sms:out:m1');
      const { messageDate } = sim.messages[0] ?? assert.fail();
      assert.deepEqual(sent, {
        id: 'urn:sms:out:m1',
        title: `To ${handset}`,
        body: 'out <b> & "more"',
        published: messageDate,
        updated: messageDate,
        author: '642100000001',
        categories: ['out'],
        fields: { statusCode: 'SNT' },
      });
      assert.deepEqual(flow.status('feed'), { fill: 'green', shape: 'dot', text: 'messages: 2' });
    });

    it('sends the same entries for ATOM and RSS', async () => {
      await fill();
      const flow = await start({}, [feedNode({ id: 'rss', format: 'RSS', wires: [['got2']] }), sink('got2')]);
      await trigger(flow);
      flow.send('rss');
      const [atom] = await flow.messages('got', 1);
      const [rss] = await flow.messages('got2', 1);
      const seconds = (time: unknown) => String(time).slice(0, '2026-12-24T18:00:00'.length);
      const withoutFraction = (entries: unknown) =>
        (entries as Record<string, unknown>[])
          .map((entry) => ({ ...entry, published: seconds(entry.published), updated: seconds(entry.updated) }))
          .sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
      assert.deepEqual(withoutFraction(rss?.payload), withoutFraction(atom?.payload));
      assert.deepEqual(rss?.sms?.account, atom?.sms?.account);
      assert.deepEqual([rss?.sms?.format, rss?.sms?.title], ['RSS', atom?.sms?.title]);
      assert.deepEqual(requestedParams()[1], { format: 'RSS', size: '8' });
    });

    it('sends one copy of the input per entry if `output` is `each`', async () => {
      await fill();
      const flow = await start({ output: 'each' });
      const parts = { id: 'outer', index: 3 };
      await trigger(flow, { topic: 'kept', deep: { a: 1 }, parts, sms: { ackId: '1.1', body: 'balance?' } });
      const got = await flow.messages('got', 2);
      const id = got[0]?.parts?.id;
      assert.deepEqual(
        got.map(({ topic, parts, sms }) => [topic, parts, sms?.account, sms?.ackId, sms?.body]),
        [0, 1].map((index) => [
          'kept',
          { id, type: 'array', count: 2, index, parts },
          { ...accountDetails, balance: sim.balance },
          '1.1',
          undefined,
        ]),
      );
      assert.notEqual(got[0]?.deep, got[1]?.deep);
      assert.notEqual(got[0]?.sms, got[1]?.sms);
      assert.equal(typeof ((got[0]?.payload ?? []) as { id: string }).id, 'string');
    });

    it('sends an empty list only if `output` is `list`', async () => {
      const flow = await start({}, [feedNode({ id: 'each', output: 'each', wires: [['got2']] }), sink('got2')]);
      flow.send('each');
      await flow.done('each', 1);
      await trigger(flow);
      assert.deepEqual((await flow.messages('got', 1))[0]?.payload, []);
      assert.deepEqual(flow.received('got2'), []);
    });
  });

  describe('when it reads', () => {
    for (const [what, properties, params] of [
      ['only sent messages if `messages` is `out`', { messages: 'out' }, { size: '8', type: 'out' }],
      ['only replies if `messages` is `reply`', { messages: 'reply' }, { size: '8', type: 'reply' }],
      ['one entry if `size` is 1', { size: '1', sizeType: 'num' }, { size: '1' }],
      ['8 entries if `size` is blank', { size: '', sizeType: 'num' }, { size: '8' }],
      ['the number of entries in a property of `msg`', { size: 'wanted', sizeType: 'msg' }, { size: '17' }],
      ['20 entries if `size` is 20 and has no type', { size: '20' }, { size: '20' }],
    ] as const) {
      it(`requests ${what}`, async () => {
        const flow = await start(properties);
        await trigger(flow, { wanted: 17 });
        assert.deepEqual(requestedParams(), [{ format: 'ATOM', ...params }]);
      });
    }

    it('refuses a `size` that is out of range', async () => {
      const flow = await start({ size: 'wanted', sizeType: 'msg' });
      const sizes = [0, 301, 1.5, 'many'];
      for (const wanted of sizes) await trigger(flow, { wanted });
      assert.deepEqual(
        flow.received('caught').map(({ sms, wanted }) => [sms?.error?.code, sms?.error?.field, wanted]),
        sizes.map((size) => ['SMS_INPUT', 'size', size]),
      );
      assert.deepEqual(requestedParams(), []);
      assert.deepEqual(flow.status('feed'), { fill: 'red', shape: 'ring', text: 'invalid input' });
    });
  });

  describe('when a read fails', () => {
    for (const [what, fault, code] of [
      ['the status 401', { status: 401 }, 'SMS_UNAUTHORIZED'],
      ['the status 204', { status: 204 }, 'SMS_SERVICE'],
      ['an incomplete answer', { half: true }, 'SMS_RESPONSE'],
    ] as const) {
      it(`raises ${code} once for ${what}`, async () => {
        sim.fault('feed', fault);
        const flow = await start();
        await trigger(flow, { topic: 'kept', payload: 'kept' });
        const caught = await flow.messages('caught', 1);
        assert.deepEqual(
          caught.map(({ sms, topic, payload, error }) => [sms?.error?.code, error?.code, topic, payload]),
          [[code, code, 'kept', 'kept']],
        );
        assert.deepEqual(flow.received('got'), []);
        assert.equal(flow.completions.length, 1);
        const { fill, shape } = flow.status('feed') ?? {};
        assert.deepEqual([fill, shape], ['red', 'ring']);
      });
    }

    it('shows no error badge if a deploy ends the read', async () => {
      sim.fault('feed', { hang: true });
      const flow = await start();
      flow.send('feed');
      await sim.until(() => sim.polling('feed') === 1);
      await flow.deploy([]);
      await sim.until(() => sim.polling('feed') === 0);
      assert.equal((await flow.done('feed', 1)).length, 1);
      assert.ok(flow.statuses('feed').every(({ fill }) => fill !== 'red'));
    });
  });

  describe('with an interval', () => {
    for (const interval of ['0', '']) {
      it(`reads only on input if \`interval\` is ${interval || 'blank'}`, async () => {
        const flow = await start({ interval });
        await flow.testConnection({ id: 'account', baseUrl: sim.baseUrl });
        assert.equal(requestedParams().length, 1);
      });
    }

    it('also reads when an input arrives', async () => {
      await fill();
      const flow = await start({ interval: '0.05' });
      const got = await flow.messages('got', 3);
      assert.equal(((got[0]?.payload ?? []) as unknown[]).length, 2);
      flow.send('feed', { topic: 'asked' });
      await until(() => flow.received('got').some(({ topic }) => topic === 'asked'));
    });

    it('raises SMS_CONFIG for each input if `interval` is not a number', async () => {
      const flow = await start({ interval: 'soon' });
      const badge = { fill: 'red', shape: 'ring', text: 'not configured' };
      await flow.badge('feed', badge);
      flow.send('feed', {});
      assert.deepEqual(await flow.codes(2), ['SMS_CONFIG', 'SMS_CONFIG']);
      assert.deepEqual([requestedParams(), flow.received('got'), flow.status('feed')], [[], [], badge]);
    });

    it('raises one error for several failed reads', async () => {
      sim.fault('feed', { status: 500 }, 2);
      const flow = await start({ interval: '0.05' });
      await flow.messages('got', 3);
      assert.deepEqual([await flow.codes(1), flow.recoveries()], [['SMS_SERVICE'], ['feed']]);
      const shown = flow.badgeTexts('feed').slice(0, 4);
      assert.deepEqual(shown, ['reading', 'service error', 'reading', 'service error']);
    });
  });
});
