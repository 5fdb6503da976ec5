import assert from 'node:assert/strict';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { copyPlatter, forever, House, sendText } from './sending-house';

describe('once', () => {
  it('the same text under the same key is sent once, and its outcome comes again', async () => {
    const house = new House();
    const node = house.attach();
    sendText(node, 'hello', { once: 'a', to: ['6421555123', '6421555124'] });
    await house.pass(100);
    sendText(node, 'hello', { once: 'a', to: ['6421555124', '6421555123'] });
    await house.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123 6421555124', 'to 6421555123 6421555124 duplicate']);
    assert.deepEqual(node.outcomes[1]?.outcome, node.outcomes[0]?.outcome);
    assert.equal(house.service.bodies.length, 1);
  });

  it('refuses another text, and other recipients, under the same key', async () => {
    const house = new House();
    const node = house.attach();
    sendText(node, 'hello', { once: 'a' });
    await house.pass(100);
    sendText(node, 'other', { once: 'a' });
    sendText(node, 'hello', { once: 'a', to: ['6421555999'] });
    await house.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123', 'SMS_INPUT', 'SMS_INPUT']);
    const [, refused] = node.outcomes;
    assert.ok(refused?.outcome instanceof Error && refused.outcome.field === 'once');
  });

  it('keys are each node’s own', async () => {
    const house = new House();
    const [one, two] = [house.attach('one'), house.attach('two')];
    sendText(one, 'hello', { once: 'a' });
    sendText(two, 'other', { once: 'a' });
    await house.pass(100);
    assert.equal(house.service.bodies.length, 2);
  });

  it('a hundred at the same time are sent once', async () => {
    const house = new House();
    const node = house.attach();
    for (let index = 0; index < 100; index++) sendText(node, 'hello', { once: 'a' });
    await house.pass(1_000);
    assert.equal(house.service.bodies.length, 1);
    assert.equal(node.ends.filter((end) => end === 'to 6421555123 duplicate').length, 99);
  });

  it('is sent again when nothing was sent, whoever waited for it', async () => {
    const house = new House();
    const node = house.attach();
    house.service.script.push({ error: createError('forbidden') }, { failed: [{ msisdn: '6421555123' }] });
    for (let index = 0; index < 3; index++) sendText(node, 'hello', { once: 'a' });
    await house.pass(1_000);
    assert.deepEqual(node.ends, ['SMS_FORBIDDEN', 'to ', 'to 6421555123']);
    assert.equal(house.service.tries, 3);
  });

  it('an unknown outcome comes again, but with retryUncertain it is sent', async () => {
    const house = new House();
    const node = house.attach();
    house.service.script.push({ takes: true, error: createError('uncertain') });
    sendText(node, 'hello', { once: 'a' });
    await house.pass(100);
    sendText(node, 'hello', { once: 'a' });
    await house.pass(100);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'SMS_UNCERTAIN duplicate']);
    sendText(node, 'hello', { once: 'a', retryUncertain: true });
    await house.pass(100);
    assert.deepEqual(node.ends.slice(2), ['to 6421555123']);
    assert.equal(house.service.bodies.length, 2);
  });

  it('holds across restarts, for as long as it is remembered', async () => {
    const store = new FailingStore();
    const house = new House({ store, dedupeMs: 3_600_000 });
    sendText(house.attach(), 'hello', { once: 'a' });
    await house.pass(100);
    const next = house.restart(copyPlatter(store.platter));
    const back = next.attach();
    sendText(back, 'hello', { once: 'a' });
    await next.pass(100);
    assert.deepEqual(back.ends, ['to 6421555123 duplicate']);
    await next.pass(3_600_000);
    sendText(back, 'hello', { once: 'a' });
    await next.pass(100);
    assert.equal(house.service.bodies.length, 2);
  });

  it('after a crash on the way, what had not left is sent, and what had is unknown', async () => {
    for (const [commits, end] of [
      [1, 'to 6421555123'],
      [2, 'SMS_UNCERTAIN duplicate'],
    ] as const) {
      const store = new FailingStore();
      const house = new House({ store });
      const commit = store.commit.bind(store);
      let count = 0;
      store.commit = async (...step) => {
        await commit(...step);
        if (++count === commits) await new Promise(() => {});
      };
      sendText(house.attach(), 'hello', { once: 'a' });
      await house.pass(100);
      const next = house.restart(copyPlatter(store.platter));
      const back = next.attach();
      await next.pass(100);
      const before = back.ends.length;
      sendText(back, 'hello', { once: 'a' });
      await next.pass(100);
      assert.deepEqual(back.ends.slice(before), [end]);
    }
  });

  it('with keep the second waits for the first, across an outage', async () => {
    const house = new House();
    const node = house.attach();
    house.service.otherwise = { unreachable: true };
    sendText(node, 'hello', { once: 'a', keep: forever });
    sendText(node, 'hello', { once: 'a', keep: forever });
    await house.pass(10_000);
    house.service.otherwise = { takes: true };
    await house.pass(60_000);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123 duplicate']);
    assert.equal(house.service.bodies.length, 1);
  });

  it('a node that is closed has nobody wait for ever', async () => {
    const house = new House();
    const node = house.attach();
    house.service.otherwise = { unreachable: true };
    sendText(node, 'hello', { once: 'a', keep: forever });
    sendText(node, 'hello', { once: 'a', keep: forever });
    await house.pass(1_000);
    await Promise.all([node.node.close(), house.pass(100)]);
    assert.deepEqual(node.ends, ['SMS_CLOSED']);
  });
});
