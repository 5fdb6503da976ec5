import assert from 'node:assert/strict';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { account, catcher, type FlowMessage, handset, RunningFlow, sink, smsNode, useService } from './running-flow';
import { toCallbackNode } from './sending';

const path = '/sms/callback';

describe('a flow with all six nodes', () => {
  const sim = useService();

  function nodes(publicUrl: string): FlowNode[] {
    return [
      account(sim),
      smsNode('send', {
        messageIdType: 'uuid',
        ...toCallbackNode,
        wires: [['sent'], ['failed']],
      }),
      smsNode('in', { wires: [['replies']] }),
      smsNode('status', { wires: [['statuses']] }),
      smsNode('outbox', { interval: '0.05', wires: [['records']] }),
      smsNode('feed', { wires: [['feeds']] }),
      smsNode('callback-in', {
        id: 'callback',
        path,
        publicUrl,
        wires: [['replies'], ['statuses']],
        credentials: { token: 'let me in' },
      }),
      ...['sent', 'failed', 'replies', 'statuses', 'records', 'feeds'].map(sink),
      ...catcher(),
    ];
  }

  for (const callbackFormat of ['XMLv3', 'FORMv1'] as const) {
    it(`receives each status and reply once by polling and ${callbackFormat} callbacks`, async () => {
      sim.setOrganisation({ callbackFormat });
      const flow = await RunningFlow.start(nodes(''));
      await flow.deploy(nodes(await flow.serve()));

      flow.send('send', { topic: handset, payload: 'Can you come?' });
      const [sent] = await flow.messages('sent', 1);
      const messageId = String(sent?.sms?.messageId);
      const [message] = sim.messages;
      assert.equal(message?.messageId, messageId);
      assert.equal(message?.callbackUrl, `${await flow.serve()}${path}?token=let%20me%20in`);
      assert.equal(message?.callbackStatusUrl, message?.callbackUrl);

      for (const statusCode of ['SNT', 'RCV']) sim.status({ messageId, msisdn: handset, statusCode });
      const reply = sim.reply({ from: handset, body: 'Yes <&> I’m on my way' });
      await sim.until(() => sim.callbackLog.length === 3);
      await until(
        () => sim.statuses.every(({ read }) => read) && sim.incoming.every(({ read }) => read),
        'all is polled',
      );
      // Sends a last status and a last reply. When they have arrived, all earlier ones have arrived too.
      sim.status({ messageId, msisdn: handset, statusCode: 'LAST' });
      sim.reply({ from: handset, body: 'last' });
      await until(() => flow.received('statuses').some(({ payload }) => payload === 'LAST'));
      await until(() => flow.received('replies').some(({ payload }) => payload === 'last'));
      await sim.until(() => sim.callbackLog.length === 5);

      assert.deepEqual(
        sim.callbackLog.map(({ status }) => status),
        [200, 200, 200, 200, 200],
      );
      assert.deepEqual(flow.payloads('statuses').sort(), ['LAST', 'RCV', 'SNT']);
      assert.deepEqual(flow.payloads('replies').sort(), ['Yes <&> I’m on my way', 'last']);
      for (const { topic, sms } of [...flow.received('statuses'), ...flow.received('replies')]) {
        assert.deepEqual([topic, sms?.inReplyToId], [handset, messageId]);
      }
      const [received] = flow.received('replies').filter(({ payload }) => payload !== 'last');
      // The flow receives the copy that arrives first. Only a callback in FORMv1 has no date.
      const isDated = callbackFormat === 'XMLv3' || received?.sms?.via === 'poll';
      assert.equal(received?.sms?.messageDate, isDated ? reply.messageDate : undefined);

      const [record] = await flow.messages('records', 1);
      assert.deepEqual([record?.sms?.messageId, record?.payload, record?.topic], [messageId, 'Can you come?', handset]);
      flow.send('feed');
      const [feed] = await flow.messages('feeds', 1);
      assert.deepEqual(feed?.sms?.account, { balance: sim.balance, type: 'Prepaid', currency: 'EUR' });
      const bodies = ((feed?.payload ?? []) as { body: string }[]).map(({ body }) => body);
      assert.deepEqual(bodies.sort(), ['Can you come?', 'Yes <&> I’m on my way', 'last']);
      assert.equal(flow.received('records').length, 1);
      assert.deepEqual([flow.received('caught'), flow.received('failed')], [[], []]);
    });
  }

  it('receives equal records by polling, XMLv3 and FORMv1', async () => {
    /** Receives one reply and one status in one of the three ways. */
    async function receive(way: 'poll' | 'XMLv3' | 'FORMv1'): Promise<FlowMessage[]> {
      const flow = await RunningFlow.start(
        nodes('').filter(({ id }) => way === 'poll' || !['in', 'status'].includes(id)),
      );
      const url = `${await flow.serve()}${path}?token=let%20me%20in`;
      if (way !== 'poll') sim.setOrganisation({ callbackUrl: url, callbackStatusUrl: url, callbackFormat: way });
      sim.reply({ from: handset, body: 'Yes & <no>', inReplyTo: 'order-7' });
      sim.status({ messageId: 'order-7', msisdn: handset, statusCode: 'EXP', error: 'Too late' });
      const received = [...(await flow.messages('replies', 1)), ...(await flow.messages('statuses', 1))];
      await flow.stop();
      // Waits until no poll is in flight, because such a poll would receive the next messages.
      await sim.until(() => sim.polling('incoming') + sim.polling('status') === 0);
      return received;
    }

    sim.addContact('Anna', handset);
    for (const [index, way] of (['poll', 'XMLv3', 'FORMv1'] as const).entries()) {
      const origin = way === 'poll' ? { via: 'poll' } : { via: 'callback', query: {} };
      const [reply, status] = (await receive(way)).map(({ _msgid, ...message }) => message);
      const { messageId, messageDate } = sim.incoming[index] ?? assert.fail();
      // Expects different optional fields for each way, because the ways do not have the same ones.
      const fields = {
        poll: { messageId, messageDate, contentType: 'text/plain' },
        XMLv3: { messageDate, displayName: 'Anna' },
        FORMv1: { messageId, to: '642100000001' },
      };
      assert.deepEqual(reply, {
        payload: 'Yes & <no>',
        topic: handset,
        sms: { from: handset, inReplyToId: 'order-7', isReply: true, body: 'Yes & <no>', ...fields[way], ...origin },
      });
      const { messageId: statusId, statusDate } = sim.statuses[index] ?? assert.fail();
      assert.deepEqual(status, {
        payload: 'EXP',
        topic: handset,
        sms: {
          messageId: statusId,
          from: handset,
          to: '642100000001',
          inReplyToId: 'order-7',
          statusCode: 'EXP',
          description: 'not delivered within the allowed time',
          final: true,
          error: 'Too late',
          ...(way === 'XMLv3' && { statusDate }),
          ...origin,
        },
      });
    }
  });
});
