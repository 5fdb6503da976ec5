import assert from 'node:assert/strict';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { beginSending, copyDisk, FakeService, forever, SendingSide, sendText } from './sending-side';

const replaceKey = 'booking 1';
const order = { keep: forever, replaceKey };
const hourMs = 3_600_000;

/** Creates a sending side whose service is unreachable, so that messages wait. */
function createOutage(options: ConstructorParameters<typeof SendingSide>[0] = {}) {
  const { side, node } = beginSending(options);
  side.service.otherwise = { unreachable: true };
  return { side, node };
}

describe('replacing a stored message', () => {
  it('ends the older message with SMS_REPLACED and sends the newer one', async () => {
    const { side, node } = createOutage();
    await side.send(node, 'at nine', order, 1_000);
    await side.send(node, 'at ten', { ...order, messageId: 'm2' }, 1_000);
    assert.deepEqual([node.ends, node.outcomes[0]?.message.body], [['SMS_REPLACED'], 'at nine']);
    assert.deepEqual(
      side.outbox.admin.entries('kept', { limit: 5 }).entries.map(({ body, key }) => [body, key]),
      [['at ten', replaceKey]],
    );
    side.service.otherwise = { takes: true };
    await side.pass(120_000);
    assert.deepEqual([node.ends.slice(1), side.service.bodies], [['to 6421555123'], ['at ten']]);
    assert.deepEqual([side.outbox.admin.counts.replaced, side.outbox.admin.counts.refused], [1, 0]);
    await side.close();
    assert.equal(side.outbox.isSettled, true);
  });

  it('replaces a scheduled message by a message with a past time, sent now', async () => {
    const { side, node } = beginSending();
    const at = (time: number) => ({ at: { time, keep: forever }, replaceKey });
    await side.send(node, 'later', at(side.clock.now() + hourMs), 1_000);
    await side.send(node, 'now', at(side.clock.now() - hourMs), 1_000);
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_REPLACED', 'to 6421555123'], ['now']]);
  });

  it('sends both messages if the older one has started to leave', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    await side.send(node, 'first', order);
    await side.send(node, 'second', order);
    answer();
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123']);
    assert.deepEqual(side.service.bodies, ['first', 'second']);
  });

  it('does not refuse a replacement because the queue is full', async () => {
    const { side, node } = createOutage({ queueLimit: 1 });
    await side.send(node, 'one', order, 1_000);
    sendText(node, 'two', order);
    await side.send(node, 'other', { keep: forever }, 1_000);
    assert.deepEqual(node.ends.sort(), ['SMS_BUSY', 'SMS_REPLACED']);
  });

  it('leaves the older message waiting if the newer one cannot be stored', async () => {
    const store = new FailingStore();
    const { side, node } = createOutage({ store });
    await side.send(node, 'one', order, 1_000);
    store.failing.add('commit').add('open');
    await side.send(node, 'two', order, 1_000);
    store.failing.clear();
    side.service.otherwise = { takes: true };
    await side.pass(120_000);
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_STORE', 'to 6421555123'], ['one']]);
  });

  it('works across a restart', async () => {
    const store = new FailingStore();
    const { side, node } = createOutage({ store });
    await side.send(node, 'one', order, 1_000);
    const { clock } = side;
    const service = new FakeService();
    const next = new SendingSide({ clock, service, store: new FailingStore(copyDisk(store.disk)) });
    const back = next.attach();
    service.otherwise = { unreachable: true };
    await next.pass(100);
    await next.send(back, 'two', order, 1_000);
    service.otherwise = { takes: true };
    await next.pass(120_000);
    assert.deepEqual(back.ends, ['SMS_REPLACED', 'to 6421555123']);
    assert.deepEqual(service.bodies, ['two']);
  });

  it('reports an unknown earlier try as SMS_UNCERTAIN, not as replaced', async () => {
    const { side, node } = createOutage();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'one', { ...order, retryUncertain: true }, 1_000);
    await side.send(node, 'two', order, 1_000);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
  });

  it('ends waiting duplicates as replaced, and frees their deduplication key', async () => {
    const { side, node } = createOutage();
    const once = { ...order, once: 'a' };
    for (let count = 0; count < 3; count++) sendText(node, 'one', once);
    await side.pass(1_000);
    assert.deepEqual(node.ends, []);
    await side.send(node, 'two', { ...order, once: 'b' }, 1_000);
    assert.deepEqual(node.ends, ['SMS_REPLACED', 'SMS_REPLACED duplicate', 'SMS_REPLACED duplicate']);
    side.service.otherwise = { takes: true };
    await side.pass(120_000);
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
  it('ends the message with SMS_WITHDRAWN, also directly after its input', async () => {
    const { side, node } = createOutage();
    sendText(node, 'one', order);
    const withdrawn = node.node.withdraw(replaceKey);
    await side.pass(1_000);
    await withdrawn;
    assert.deepEqual(node.ends, ['SMS_WITHDRAWN']);
    assert.deepEqual([side.outbox.admin.counts.withdrawn, side.outbox.admin.state.kept], [1, 0]);
    side.service.otherwise = { takes: true };
    await side.pass(120_000);
    assert.deepEqual(side.service.bodies, []);
    await side.close();
    assert.equal(side.outbox.isSettled, true);
  });

  it('frees the deduplication key for a different body', async () => {
    const { side, node } = createOutage();
    await side.send(node, 'one', { ...order, once: 'a' }, 1_000);
    const withdrawn = node.node.withdraw(replaceKey);
    await side.pass(1_000);
    await withdrawn;
    side.service.otherwise = { takes: true };
    await side.pass(120_000);
    await side.send(node, 'two', { ...order, once: 'a' }, 1_000);
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_WITHDRAWN', 'to 6421555123'], ['two']]);
  });

  it('does nothing if no message waits, or if the message has begun to leave', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    const none = node.node.withdraw(replaceKey);
    await side.pass(100);
    await none;
    await side.send(node, 'one', order);
    const late = node.node.withdraw(replaceKey);
    await side.pass(100);
    await late;
    answer();
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123']);
    await side.send(node, 'two', order);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123']);
  });

  it('ends a message that has started to leave and waits again', async () => {
    const { side, node } = beginSending();
    let refuse = () => {};
    const after = new Promise<void>((resolve) => (refuse = resolve));
    side.service.script.push({ error: createError('serverError').with({ statusCode: 503 }), after });
    await side.send(node, 'one', order);
    const withdrawn = node.node.withdraw(replaceKey);
    await side.pass(10);
    refuse();
    await side.pass(120_000);
    await withdrawn;
    assert.deepEqual([node.ends, side.service.bodies], [['SMS_WITHDRAWN'], []]);
  });
});
