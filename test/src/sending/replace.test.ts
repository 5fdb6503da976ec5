import assert from 'node:assert/strict';
import { createError } from '../some-error';
import { beginOutage, beginSending, copyDisk, forever, sendText } from './sending-side';

const replaceKey = 'booking 1';
const order = { keep: forever, replaceKey };
const hourMs = 3_600_000;

describe('replacing a stored message', () => {
  it('ends the older message with SMS_REPLACED', async () => {
    const { side, node } = beginOutage();
    await side.send(node, 'at nine', order, 1_000);
    await side.send(node, 'at ten', { ...order, messageId: 'm2' }, 1_000);
    assert.deepEqual([node.ends, node.outcomes[0]?.message.body], [['SMS_REPLACED'], 'at nine']);
    assert.deepEqual(
      side.outbox.admin.entries('kept', { limit: 5 }).entries.map(({ body, key }) => [body, key]),
      [['at ten', replaceKey]],
    );
    await side.recover();
    assert.deepEqual([node.ends.slice(1), side.service.bodies], [['to 6421555123'], ['at ten']]);
    assert.deepEqual([side.outbox.admin.counts.replaced, side.outbox.admin.counts.refused], [1, 0]);
    await side.close();
    assert.equal(side.outbox.isSettled, true);
  });

  it('replaces a scheduled message with a message due now', async () => {
    const { side, node } = beginSending();
    const at = (time: number) => ({ at: { time, keep: forever }, replaceKey });
    await side.send(node, 'later', at(side.clock.now() + hourMs), 1_000);
    await side.send(node, 'now', at(side.clock.now() - hourMs), 1_000);
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_REPLACED', 'to 6421555123'], ['now']]);
  });

  it('sends both messages if the older message is already in flight', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    await side.send(node, 'first', order);
    await side.send(node, 'second', order);
    answer();
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123']);
    assert.deepEqual(side.service.bodies, ['first', 'second']);
  });

  it('accepts a replacement although the queue is full', async () => {
    const { side, node } = beginOutage({ queueLimit: 1 });
    await side.send(node, 'one', order, 1_000);
    sendText(node, 'two', order);
    await side.send(node, 'other', { keep: forever }, 1_000);
    assert.deepEqual(node.ends.sort(), ['SMS_BUSY', 'SMS_REPLACED']);
  });

  it('keeps the older message if the newer message cannot be stored', async () => {
    const { store, side, node } = beginOutage();
    await side.send(node, 'one', order, 1_000);
    store.failing.add('commit').add('open');
    await side.send(node, 'two', order, 1_000);
    store.failing.clear();
    await side.recover();
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_STORE', 'to 6421555123'], ['one']]);
  });

  it('works after a restart', async () => {
    const { store, side, node } = beginOutage();
    await side.send(node, 'one', order, 1_000);
    const disk = copyDisk(store.disk);
    await side.detach(node);
    const next = side.restart(disk);
    const back = next.attach();
    await next.pass(100);
    await next.send(back, 'two', order, 1_000);
    await next.recover();
    assert.deepEqual(back.ends, ['SMS_REPLACED', 'to 6421555123']);
    assert.deepEqual(side.service.bodies, ['two']);
  });

  it('ends the older message with SMS_UNCERTAIN if it may have been sent', async () => {
    const { side, node } = beginOutage();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'one', { ...order, retryUncertain: true }, 1_000);
    await side.send(node, 'two', order, 1_000);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
  });

  it('ends waiting duplicates with SMS_REPLACED', async () => {
    const { side, node } = beginOutage();
    const once = { ...order, once: 'a' };
    for (let count = 0; count < 3; count++) sendText(node, 'one', once);
    await side.pass(1_000);
    assert.deepEqual(node.ends, []);
    await side.send(node, 'two', { ...order, once: 'b' }, 1_000);
    assert.deepEqual(node.ends, ['SMS_REPLACED', 'SMS_REPLACED duplicate', 'SMS_REPLACED duplicate']);
    await side.recover();
    await side.send(node, 'one', once, 1_000);
    assert.deepEqual(
      [node.ends.slice(3), side.service.bodies],
      [
        ['to 6421555123', 'to 6421555123'],
        ['two', 'one'],
      ],
    );
  });
});

describe('withdrawing a stored message', () => {
  it('ends the message with SMS_WITHDRAWN', async () => {
    const { side, node } = beginOutage();
    sendText(node, 'one', order);
    await Promise.all([node.node.withdraw(replaceKey), side.pass(1_000)]);
    assert.deepEqual(node.ends, ['SMS_WITHDRAWN']);
    assert.deepEqual([side.outbox.admin.counts.withdrawn, side.outbox.admin.state.kept], [1, 0]);
    await side.recover();
    assert.deepEqual(side.service.bodies, []);
    await side.close();
    assert.equal(side.outbox.isSettled, true);
  });

  it('frees the deduplication key of the message', async () => {
    const { side, node } = beginOutage();
    await side.send(node, 'one', { ...order, once: 'a' }, 1_000);
    await Promise.all([node.node.withdraw(replaceKey), side.pass(1_000)]);
    await side.recover();
    await side.send(node, 'two', { ...order, once: 'a' }, 1_000);
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_WITHDRAWN', 'to 6421555123'], ['two']]);
  });

  it('has no effect on a message in flight', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    await Promise.all([node.node.withdraw(replaceKey), side.pass(100)]);
    await side.send(node, 'one', order);
    await Promise.all([node.node.withdraw(replaceKey), side.pass(100)]);
    answer();
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123']);
    await side.send(node, 'two', order);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123']);
  });

  it('ends a message in flight if the service answers 503', async () => {
    const { side, node } = beginSending();
    const error = createError('serverError').with({ statusCode: 503 });
    const refuse = side.service.holdNext({ takes: false, error });
    await side.send(node, 'one', order);
    const withdrawn = node.node.withdraw(replaceKey);
    await side.pass(10);
    refuse();
    await side.pass(120_000);
    await withdrawn;
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_WITHDRAWN'], []]);
  });
});
