import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../until';
import { askNode, handset, RunningFlow, sendNode, sink, smsNode, useService } from './running-flow';

describe('a copy of a message', () => {
  const sim = useService();

  it('does not change when a node changes another copy', async () => {
    const acknowledging = { acknowledge: 'flow', inputs: 1, ackTimeout: 0.2, wires: [['got']] };
    const flow = await RunningFlow.start([
      ...askNode(sim, { remember: '{"step":1}', rememberType: 'json' }),
      smsNode('in', acknowledging),
      sink('got'),
    ]);
    flow.node('answer').on('input', (message) => {
      const { sent } = (message as { sms?: unknown }).sms as { sent: { to: string[]; remembered: object } };
      sent.to.push('changed');
      Object.assign(sent.remembered, { step: 2 });
    });
    flow.send('ask', { topic: handset, payload: 'Come?' });
    await flow.done('ask', 1);
    sim.reply({ from: handset, body: 'yes' });
    await flow.messages('answer', 1);
    for (const { sms } of await flow.messages('got', 2)) {
      const { to, remembered } = (sms?.sent ?? {}) as Record<string, unknown>;
      assert.deepEqual([to, remembered], [[handset], { step: 1 }]);
    }
  });
});

describe('sms-send with 950 failed recipients', () => {
  const sim = useService();
  const many = 950;
  const recipients = Array.from({ length: many + 1 }, (_, index) => String(64_210_000_000 + index));
  const toMany = { to: 'recipients', toType: 'msg' };
  const limited = { perDay: '1' };
  const topics = recipients.slice(1);

  const failedOf = (flow: RunningFlow) => flow.received('failed').map(({ topic }) => topic);

  for (const keep of [false, true]) {
    it(`makes copies in small batches if \`keep\` is ${keep ? 'on' : 'off'}`, async () => {
      const flow = await RunningFlow.start(sendNode(sim, { ...toMany, keep }, limited));
      const { util } = flow.red;
      const { cloneMessage } = util;
      let copied = 0;
      let most = 0;
      util.cloneMessage = (message) => {
        if (copied++ === 0) setImmediate(() => (copied = 0));
        most = Math.max(most, copied);
        return cloneMessage(message);
      };
      try {
        // Changes each copy as soon as it arrives, which can be before the last copy is made.
        flow.node('sent').on('input', (message) => Object.assign(message, { recipients: 'changed', parts: 'changed' }));
        flow.send('send', { recipients, payload: 'hello', parts: { id: 'before' }, sms: { ackId: '1' } });
        await flow.done('send', 1);
        await until(() => flow.received('failed').length === many);
      } finally {
        util.cloneMessage = cloneMessage;
      }
      assert.ok(most < 250, `${most} copies in one turn`);
      const failed = flow.received('failed');
      assert.deepEqual(failedOf(flow), topics);
      assert.ok(failed.every((message) => (message.recipients as string[]).length === many + 1));
      const [{ parts } = { parts: undefined }] = failed;
      assert.deepEqual(
        failed.map((message) => [message.parts, message.sms?.ackId]),
        topics.map((_, index) => [{ id: parts?.id, type: 'array', count: many, index, parts: { id: 'before' } }, '1']),
      );
      assert.deepEqual([flow.received('sent').length, flow.completions.length], [1, 1]);
    });

    for (const type of ['full', 'nodes'] as const) {
      it(`sends all copies despite a \`${type}\` deploy if \`keep\` is ${keep ? 'on' : 'off'}`, async () => {
        const flow = await RunningFlow.start(sendNode(sim, { ...toMany, keep }, limited));
        let deployed: Promise<void> | undefined;
        flow.node('failed').on('input', () => {
          if (flow.received('failed').length < 250) return;
          deployed ??= flow.deploy(sendNode(sim, { ...toMany, keep, name: 'again' }, limited), type);
        });
        flow.send('send', { recipients, payload: 'hello' });
        await until(() => deployed !== undefined);
        await deployed;
        await until(() => failedOf(flow).includes(topics.at(-1)));
        await sleep(50);
        // Ignores repetitions: if the deploy interrupts a part of the copies, the node sends that part again.
        const isKnown = (topic: unknown, index: number) => failedOf(flow).indexOf(topic) === index;
        assert.deepEqual(failedOf(flow).filter(isKnown), topics);
        assert.ok(failedOf(flow).length <= many + 100, String(failedOf(flow).length));
        assert.equal(new Set(flow.received('failed').map(({ parts }) => parts?.id)).size, 1);
        assert.equal(flow.received('sent').length, 1);
        assert.deepEqual(
          flow.completions.map(({ error }) => error),
          [undefined],
        );
      });
    }
  }
});
