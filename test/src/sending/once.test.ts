import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import { VirtualClock } from '../../virtual-clock';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { copyDisk, type FakeNode, forever, SendingSide, sendText } from './sending-side';

describe('once', () => {
  it('sends a message once per key, and repeats its outcome', async () => {
    const side = new SendingSide();
    const node = side.attach();
    sendText(node, 'hello', { once: 'a', to: ['6421555123', '6421555124'] });
    await side.pass(100);
    sendText(node, 'hello', { once: 'a', to: ['6421555124', '6421555123'] });
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123 6421555124', 'to 6421555123 6421555124 duplicate']);
    assert.deepEqual(node.outcomes[1]?.outcome, node.outcomes[0]?.outcome);
    assert.equal(side.service.bodies.length, 1);
  });

  it('does not count a duplicate as waiting after its outcome', async () => {
    const side = new SendingSide();
    const node = side.attach();
    const answer = side.service.holdNext();
    for (let time = 0; time < 2; time++) sendText(node, 'hello', { once: 'a', keep: forever });
    await side.pass(100);
    answer();
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123 duplicate']);
    assert.equal(node.state?.waiting, 0);
  });

  it('ends a stored duplicate although the queue is full', async () => {
    const side = new SendingSide({ queueLimit: 1 });
    const node = side.attach();
    sendText(node, 'hello', { once: 'a', keep: forever });
    await side.pass(100);
    side.service.otherwise = { unreachable: true };
    sendText(node, 'waits', { once: 'b', keep: forever });
    await side.pass(100);
    for (const [body, once] of [
      ['hello', 'a'],
      ['too many', 'c'],
    ] as const) {
      sendText(node, body, { once, keep: forever });
      await side.pass(100);
    }
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123 duplicate', 'SMS_BUSY']);
    side.service.otherwise = { takes: true };
    await side.pass(60_000);
    sendText(node, 'too many', { once: 'c', keep: forever });
    await side.pass(100);
    assert.deepEqual(node.ends.slice(3), ['to 6421555123', 'to 6421555123']);
    assert.deepEqual(side.service.bodies, ['hello', 'waits', 'too many']);
    await side.close();
    assert.equal(side.outbox.isSettled, true);
  });

  it('refuses another body and other recipients under the same key', async () => {
    const side = new SendingSide();
    const node = side.attach();
    sendText(node, 'hello', { once: 'a' });
    await side.pass(100);
    sendText(node, 'other', { once: 'a' });
    sendText(node, 'hello', { once: 'a', to: ['6421555999'] });
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123', 'SMS_INPUT', 'SMS_INPUT']);
    const [, refused] = node.outcomes;
    assert.ok(refused?.outcome instanceof Error && refused.outcome.field === 'once');
  });

  for (const [what, keep] of [
    ['', undefined],
    [', stored', forever],
  ] as const) {
    it(`omits the messageId from the error for a key of another message${what}`, async () => {
      const side = new SendingSide();
      const node = side.attach();
      for (const [index, body] of ['hello', 'other'].entries()) {
        sendText(node, body, { once: 'a', messageId: `m${index}`, ...(keep && { keep }) });
        await side.pass(100);
      }
      const refused = node.outcomes[1]?.outcome;
      assert.ok(refused instanceof SmsError);
      assert.deepEqual([refused.code, refused.messageId], ['SMS_INPUT', undefined]);
    });
  }

  it('does not block the event loop with thousands of duplicates', async () => {
    const side = new SendingSide();
    const node = side.attach();
    const answer = side.service.holdNext({ takes: true });
    for (let index = 0; index < 100; index++) sendText(node, 'hello', { once: 'a' });
    await side.pass(100);
    const { clock } = side;
    const nextTurn = clock.nextTurn.bind(clock);
    let turns = 0;
    clock.nextTurn = (callback) => {
      turns++;
      return nextTurn(callback);
    };
    answer();
    await side.pass(1_000);
    assert.deepEqual([node.ends.length, side.service.tries], [100, 1]);
    assert.ok(turns >= 90, `${turns} turns`);
  });

  for (const at of ['when the input arrives', 'when the message leaves']) {
    it(`raises SMS_STORE if the store cannot be written ${at}`, async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store });
      const node = side.attach();
      await side.pass(10);
      let connect = () => {};
      side.service.script.push({ takes: true, connects: new Promise<void>((resolve) => (connect = resolve)) });
      if (at === 'when the input arrives') store.failing.add('commit');
      sendText(node, 'hello', { once: 'a' });
      await side.pass(100);
      store.failing.add('commit');
      connect();
      await side.pass(100);
      const { outcome } = node.outcomes[0] ?? {};
      assert.ok(outcome instanceof SmsError && outcome.code === 'SMS_STORE');
      assert.match(outcome.message, /Nothing was sent/);
      assert.deepEqual(side.service.bodies, []);
    });
  }

  it('keeps the keys of nodes apart', async () => {
    const side = new SendingSide();
    const [one, two] = [side.attach('one'), side.attach('two')];
    sendText(one, 'hello', { once: 'a' });
    sendText(two, 'other', { once: 'a' });
    await side.pass(100);
    assert.equal(side.service.bodies.length, 2);
  });

  it('sends one message for a hundred equal inputs at the same time', async () => {
    const side = new SendingSide();
    const node = side.attach();
    for (let index = 0; index < 100; index++) sendText(node, 'hello', { once: 'a' });
    await side.pass(1_000);
    assert.equal(side.service.bodies.length, 1);
    assert.equal(node.ends.filter((end) => end === 'to 6421555123 duplicate').length, 99);
  });

  it('sends a duplicate if nothing of the first message was sent', async () => {
    const side = new SendingSide();
    const node = side.attach();
    side.service.script.push({ error: createError('forbidden') }, { failed: [{ msisdn: '6421555123' }] });
    for (let index = 0; index < 3; index++) sendText(node, 'hello', { once: 'a' });
    await side.pass(1_000);
    assert.deepEqual(node.ends, ['SMS_FORBIDDEN', 'to ', 'to 6421555123']);
    assert.equal(side.service.tries, 3);
  });

  for (const options of [{}, { keep: forever }]) {
    const what = options.keep ? 'stored messages' : 'messages';
    it(`compares hundreds of waiting ${what} a few times each`, async () => {
      const side = new SendingSide();
      const node = side.attach();
      side.service.otherwise = { error: createError('forbidden') };
      let steps = 0;
      const run = side.journal.run.bind(side.journal);
      side.journal.run = (step) => {
        steps++;
        return run(step);
      };
      for (let index = 0; index < 200; index++) sendText(node, 'hello', { once: 'a', ...options });
      await side.pass(10_000);
      assert.deepEqual([node.ends.length, side.service.tries], [200, 200]);
      assert.ok(steps < 200 * 8, `${steps}`);
    });

    it(`ends waiting ${what} if the next one cannot be compared`, async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store });
      const node = side.attach();
      const answer = side.service.holdNext({ error: createError('forbidden') });
      for (let index = 0; index < 10; index++) sendText(node, 'hello', { once: 'a', ...options });
      await side.pass(100);
      store.failing.add('commit').add('open');
      answer();
      await side.pass(100);
      assert.deepEqual(node.ends, ['SMS_FORBIDDEN', ...Array(9).fill('SMS_STORE')]);
      store.failing.clear();
      await side.pass(60_000);
      assert.equal(node.ends.length, 10);
      assert.equal(side.service.tries, 1);
    });

    it(`gives waiting ${what} the outcome of the first message`, async () => {
      for (const [turn, end] of [
        [{ takes: true }, 'to 6421555123'],
        [{ takes: true, error: createError('uncertain') }, 'SMS_UNCERTAIN'],
      ] as const) {
        const side = new SendingSide();
        const node = side.attach();
        side.service.script.push({ error: createError('forbidden') }, { error: createError('forbidden') }, turn);
        for (let index = 0; index < 10; index++) sendText(node, 'hello', { once: 'a', ...options });
        await side.pass(1_000);
        const duplicates = Array<string>(7).fill(`${end} duplicate`);
        assert.deepEqual(node.ends, ['SMS_FORBIDDEN', 'SMS_FORBIDDEN', end, ...duplicates]);
        assert.equal(side.service.tries, 3);
      }
    });
  }

  for (const keep of [undefined, forever]) {
    const options = { once: 'a', ...(keep && { keep }) };

    it(`repeats each unknown outcome as SMS_UNCERTAIN${keep ? ', stored' : ''}`, async () => {
      for (const first of [
        createError('serverErrorUncertain').with({ statusCode: 500 }),
        createError('responseUncertain').with({ statusCode: 200 }),
      ]) {
        const side = new SendingSide();
        const node = side.attach();
        side.service.script.push({ takes: true, error: first });
        sendText(node, 'hello', options);
        sendText(node, 'hello', options);
        await side.pass(1_000);
        sendText(node, 'hello', options);
        await side.pass(1_000);
        assert.deepEqual(node.ends, [first.code, 'SMS_UNCERTAIN duplicate', 'SMS_UNCERTAIN duplicate']);
        const { outcome } = node.outcomes[2] ?? {};
        assert.ok(outcome instanceof SmsError);
        assert.equal(outcome.statusCode, first.statusCode);
        assert.match(outcome.message, new RegExp(first.code));
        assert.equal(side.service.tries, 1);
      }
    });
  }

  it('repeats an unknown outcome, and sends with retryUncertain', async () => {
    const side = new SendingSide();
    const node = side.attach();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    sendText(node, 'hello', { once: 'a' });
    await side.pass(100);
    sendText(node, 'hello', { once: 'a' });
    await side.pass(100);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'SMS_UNCERTAIN duplicate']);
    sendText(node, 'hello', { once: 'a', retryUncertain: true });
    await side.pass(100);
    assert.deepEqual(node.ends.slice(2), ['to 6421555123']);
    assert.equal(side.service.bodies.length, 2);
  });

  it('applies across restarts while the key is remembered', async () => {
    const store = new FailingStore();
    const side = new SendingSide({ store, dedupeMs: 3_600_000 });
    sendText(side.attach(), 'hello', { once: 'a' });
    await side.pass(100);
    const next = side.restart(copyDisk(store.disk));
    const back = next.attach();
    sendText(back, 'hello', { once: 'a' });
    await next.pass(100);
    assert.deepEqual(back.ends, ['to 6421555123 duplicate']);
    await next.pass(3_600_000);
    sendText(back, 'hello', { once: 'a' });
    await next.pass(100);
    assert.equal(side.service.bodies.length, 2);
  });

  it('holds for its whole time although the clock is set forward', async () => {
    const store = new FailingStore();
    const side = new SendingSide({ store, dedupeMs: 3_600_000 });
    const node = side.attach();
    const other = side.attach('other');
    for (const one of [node, other]) sendText(one, 'hello', { once: 'a' });
    await side.pass(1_800_000);
    side.clock.set(10 * 24 * 3_600_000);
    sendText(node, 'hello', { once: 'a' });
    await side.pass(1_799_000);
    sendText(other, 'hello', { once: 'a' });
    await side.pass(100);
    for (const { ends } of [node, other]) assert.deepEqual(ends, ['to 6421555123', 'to 6421555123 duplicate']);
    // Another process knows only the written data.
    const clock = new VirtualClock(side.clock.now());
    const next = new SendingSide({ ...side.options, clock, store: new FailingStore(copyDisk(store.disk)) });
    const back = next.attach();
    sendText(back, 'hello', { once: 'a' });
    await next.pass(1_000);
    assert.deepEqual(back.ends, ['to 6421555123 duplicate']);
    await side.pass(1_000);
    sendText(node, 'hello', { once: 'a' });
    await side.pass(100);
    assert.equal(node.ends.at(-1), 'to 6421555123');
  });

  it('applies although the clock is set back during the lookup', async () => {
    const store = new FailingStore();
    const side = new SendingSide({ store, dedupeMs: 3_600_000 });
    const node = side.attach();
    side.clock.set(10 * 3_600_000);
    sendText(node, 'hello', { once: 'a', keep: forever });
    await side.pass(100);
    store.turns = 1;
    sendText(node, 'hello', { once: 'a', keep: forever });
    side.clock.set(-5 * 3_600_000);
    for (let turn = 0; turn < 20; turn++) await side.pass(100);
    assert.deepEqual([side.service.bodies, node.ends], [['hello'], ['to 6421555123', 'to 6421555123 duplicate']]);
  });

  for (const isBack of [false, true])
    it(`applies after an outcome between two clock changes${isBack ? ' back' : ''}`, async () => {
      const { store, side, node, answer } = await leaveOneUnanswered();
      store.failing.add('commit');
      sendText(node, 'other', { keep: forever });
      await side.pass(100);
      side.clock.set(96 * 3_600_000);
      answer();
      await side.pass(600);
      side.clock.set(96 * 3_600_000);
      store.failing.clear();
      await side.pass(10_000);
      if (isBack) side.clock.set(-96 * 3_600_000);
      sendText(node, 'hello', { once: 'a', keep: forever });
      await side.pass(1_000);
      assert.deepEqual([side.service.bodies, side.faults], [['hello'], []]);
    });

  for (const isBack of [false, true])
    it(`applies after an outcome during a clock change${isBack ? ' back' : ''}`, async () => {
      const { store, side, node, answer } = await leaveOneUnanswered();
      side.clock.set(96 * 3_600_000);
      const commit = store.commit.bind(store);
      store.commit = async (changes) => {
        store.commit = commit;
        await side.clock.advance(600);
        side.clock.set(96 * 3_600_000);
        return commit(changes);
      };
      answer();
      await side.pass(1_600);
      if (isBack) side.clock.set(-96 * 3_600_000);
      sendText(node, 'hello', { once: 'a', keep: forever });
      await side.pass(1_000);
      assert.deepEqual(side.service.bodies, ['hello']);
    });

  it('holds for its whole time though the clock is set forward twice', async () => {
    const side = new SendingSide({ store: new FailingStore(), dedupeMs: 3_600_000 });
    const node = side.attach();
    sendText(node, 'hello', { once: 'a' });
    await side.pass(1_000_000);
    for (const days of [1, 5]) {
      side.clock.set(days * 24 * 3_600_000);
      sendText(node, 'hello', { once: 'a' });
      await side.pass(1_000_000);
    }
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123 duplicate', 'to 6421555123 duplicate']);
  });

  for (const isRestarted of [false, true]) {
    it(`lasts its full time if the clock goes back years, ${isRestarted ? 'restarted' : 'running'}`, async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store, dedupeMs: 3_600_000 });
      side.clock.set(5 * 365 * 24 * 3_600_000);
      sendText(side.attach(), 'hello', { once: 'a' });
      await side.pass(100);
      if (!isRestarted) side.clock.set(-5 * 365 * 24 * 3_600_000);
      const next = isRestarted
        ? new SendingSide({ ...side.options, store: new FailingStore(copyDisk(store.disk)) })
        : side;
      const node = next.attach('send');
      sendText(node, 'hello', { once: 'a' });
      await next.pass(3_599_000);
      assert.deepEqual(node.ends, ['to 6421555123 duplicate']);
      await next.pass(1_000);
      sendText(node, 'hello', { once: 'a' });
      await next.pass(100);
      assert.deepEqual(node.ends, ['to 6421555123 duplicate', 'to 6421555123']);
    });
  }

  describe('with a message that waits longer than its key is remembered', () => {
    const dedupeMs = 600_000;
    const longMs = 3 * dedupeMs;
    const once = { once: 'a', keep: forever };

    it('lets duplicates wait for its outcome', async () => {
      const side = new SendingSide({ dedupeMs });
      const node = side.attach();
      side.service.otherwise = { unreachable: true };
      sendText(node, 'hello', once);
      await side.pass(longMs);
      sendText(node, 'hello', once);
      sendText(node, 'hello', { once: 'a' });
      await side.pass(1_000);
      assert.equal(side.outbox.admin.state.kept, 1);
      side.service.otherwise = { takes: true };
      await side.pass(120_000);
      assert.deepEqual(node.ends.sort(), ['to 6421555123', 'to 6421555123 duplicate', 'to 6421555123 duplicate']);
      assert.equal(side.service.bodies.length, 1);
    });

    it('lets them wait also after a crash', async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store, dedupeMs });
      side.service.otherwise = { unreachable: true };
      sendText(side.attach(), 'hello', once);
      await side.pass(1_000);
      const disk = copyDisk(store.disk);
      await Promise.all([side.close(), side.pass(100)]);
      await side.clock.advance(longMs);
      const next = side.restart(disk);
      const node = next.attach();
      sendText(node, 'something else', once);
      sendText(node, 'hello', once);
      await next.pass(1_000);
      assert.deepEqual(node.ends, ['SMS_INPUT']);
      next.service.otherwise = { takes: true };
      await next.pass(120_000);
      assert.deepEqual(node.ends, ['SMS_INPUT', 'to 6421555123', 'to 6421555123 duplicate']);
      assert.equal(next.service.bodies.length, 1);
    });

    it('lets them wait even if a user sends it again', async () => {
      const side = new SendingSide({ dedupeMs });
      const node = side.attach();
      side.service.script.push({ error: createError('uncertain') });
      sendText(node, 'hello', { once: 'a' });
      await side.pass(1_000);
      side.service.otherwise = { unreachable: true };
      const { entries } = side.outbox.admin.entries('uncertain', 1);
      void side.outbox.admin.act(entries[0]?.id ?? '', 'send');
      await side.pass(longMs);
      sendText(node, 'hello', { once: 'a' });
      await side.pass(1_000);
      side.service.otherwise = { takes: true };
      await side.pass(120_000);
      assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'to 6421555123 again', 'to 6421555123 duplicate']);
      assert.equal(side.service.bodies.length, 1);
    });

    for (const had of ['left', 'not left']) {
      it(`forgets the key of a discarded message in its time, if it had ${had}`, async () => {
        const side = new SendingSide({ dedupeMs });
        const node = side.attach();
        if (had === 'left') side.service.script.push({ error: createError('uncertain') });
        side.service.otherwise = { unreachable: true };
        sendText(node, 'hello', { ...once, retryUncertain: true });
        await side.pass(longMs);
        const { entries } = side.outbox.admin.entries('kept', 1);
        const discarded = side.outbox.admin.act(entries[0]?.id ?? '', 'discard');
        await side.pass(0);
        assert.equal(await discarded, 'done');
        side.service.otherwise = { takes: true };
        sendText(node, 'hello', { once: 'a' });
        await side.pass(1_000);
        assert.deepEqual(node.ends, had === 'left' ? ['SMS_UNCERTAIN duplicate'] : ['to 6421555123']);
        await side.pass(dedupeMs);
        sendText(node, 'hello', { once: 'a' });
        await side.pass(1_000);
        assert.equal(node.ends[1], 'to 6421555123');
      });
    }
  });

  it('sends an unsent message after a crash, and reports a sent one as unknown', async () => {
    for (const [commits, end] of [
      [1, 'to 6421555123'],
      [2, 'SMS_UNCERTAIN duplicate'],
    ] as const) {
      const store = new FailingStore();
      const side = new SendingSide({ store });
      const commit = store.commit.bind(store);
      let count = 0;
      store.commit = async (...step) => {
        await commit(...step);
        if (++count === commits) await new Promise(() => {});
      };
      sendText(side.attach(), 'hello', { once: 'a' });
      await side.pass(100);
      const next = side.restart(copyDisk(store.disk));
      const back = next.attach();
      await next.pass(100);
      const before = back.ends.length;
      sendText(back, 'hello', { once: 'a' });
      await next.pass(100);
      assert.deepEqual(back.ends.slice(before), [end]);
    }
  });

  it('lets a duplicate wait for the first message across an outage', async () => {
    const side = new SendingSide();
    const node = side.attach();
    side.service.otherwise = { unreachable: true };
    sendText(node, 'hello', { once: 'a', keep: forever });
    sendText(node, 'hello', { once: 'a', keep: forever });
    await side.pass(10_000);
    side.service.otherwise = { takes: true };
    await side.pass(60_000);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123 duplicate']);
    assert.equal(side.service.bodies.length, 1);
  });

  it('ends waiting duplicates when their node closes', async () => {
    const side = new SendingSide();
    const node = side.attach();
    side.service.otherwise = { connects: new Promise(() => {}) };
    sendText(node, 'hello', { once: 'a' });
    sendText(node, 'hello', { once: 'a' });
    await side.pass(1_000);
    await Promise.all([node.node.close(), side.pass(11_000)]);
    assert.deepEqual(node.ends, ['SMS_CLOSED']);
  });

  for (const keep of [undefined, { expireMs: 60_000 }]) {
    it(`ends a ${keep ? 'stored' : 'plain'} duplicate in the commit of the first`, async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store });
      const node = side.attach();
      let answer = () => {};
      const after = new Promise<void>((resolve) => (answer = resolve));
      side.service.script.push({ takes: true, after });
      sendText(node, 'hello', { once: 'a', keep });
      await side.pass(100);
      const tell = node.onOutcome.bind(node);
      node.onOutcome = async (news) => {
        await new Promise(setImmediate);
        return tell(news);
      };
      const commit = store.commit.bind(store);
      store.commit = async (changes) => {
        store.commit = commit;
        sendText(node, 'hello', { once: 'a', keep });
        answer();
        await side.clock.advance(10);
        await commit(changes);
      };
      sendText(node, 'another', { once: 'b' });
      for (let time = 0; time < 2; time++) await side.pass(10_000);
      assert.deepEqual(node.ends.sort(), ['to 6421555123', 'to 6421555123', 'to 6421555123 duplicate']);
    });
  }

  describe('with a duplicate of a stored message that has no outcome yet', () => {
    const twins = () => {
      const store = new FailingStore();
      const side = new SendingSide({ store });
      const node = side.attach();
      side.service.otherwise = { unreachable: true };
      for (let count = 0; count < 2; count++) sendText(node, 'hello', { once: 'a', keep: forever });
      return { store, side, node };
    };

    it('stores the first message only', async () => {
      const { side, store } = twins();
      await side.pass(1_000);
      assert.deepEqual([store.disk.entries.size, side.outbox.admin.state.kept], [1, 1]);
    });

    it('ends the duplicate with SMS_CLOSED if its node is redeployed', async () => {
      const { side, node } = twins();
      await side.pass(1_000);
      await Promise.all([node.node.close(), side.pass(100)]);
      assert.deepEqual(node.ends, ['SMS_CLOSED']);
      side.service.otherwise = { takes: true };
      const back = side.attach();
      await side.pass(120_000);
      assert.deepEqual(back.ends, ['to 6421555123']);
    });

    it('restores only the first message after a crash', async () => {
      const { side, store } = twins();
      await side.pass(1_000);
      const next = side.restart(copyDisk(store.disk));
      side.service.otherwise = { takes: true };
      const back = next.attach();
      await next.pass(120_000);
      assert.deepEqual(back.ends, ['to 6421555123']);
      assert.equal(next.outbox.isSettled, true);
    });

    it('sends the duplicate if nothing was sent of the first message', async () => {
      const { side, node } = twins();
      await side.pass(100);
      side.service.otherwise = { takes: true };
      side.service.script.push({ error: createError('forbidden') });
      await side.pass(120_000);
      assert.deepEqual(node.ends, ['SMS_FORBIDDEN', 'to 6421555123']);
      assert.equal(side.outbox.admin.state.kept, 0);
    });

    it('sends the duplicate if a user discards the first message', async () => {
      const { side, node, store } = twins();
      await side.pass(100);
      const [entry] = side.outbox.admin.entries('kept', 2).entries;
      const acted = side.outbox.admin.act(entry?.id ?? '', 'discard');
      side.service.otherwise = { takes: true };
      await side.pass(120_000);
      assert.deepEqual([await acted, node.ends], ['done', ['to 6421555123']]);
      assert.deepEqual([side.service.bodies.length, store.disk.entries.size], [1, 0]);
    });

    it('ends the duplicate with SMS_STORE if the store fails', async () => {
      const { side, node, store } = twins();
      await side.pass(100);
      const answer = side.service.holdNext();
      await side.pass(60_000);
      store.failing.add('commit').add('open').add('recall');
      answer();
      await side.pass(120_000);
      store.failing.clear();
      await side.pass(120_000);
      assert.deepEqual(node.ends.sort(), ['SMS_STORE', 'to 6421555123']);
      assert.equal(side.service.bodies.length, 1);
    });

    it('counts waiting duplicates for the limit of the queue', async () => {
      const side = new SendingSide({ queueLimit: 3 });
      const node = side.attach();
      side.service.otherwise = { unreachable: true };
      for (let count = 0; count < 4; count++) {
        sendText(node, 'hello', { once: 'a', keep: forever });
        await side.pass(100);
      }
      assert.deepEqual(node.ends, ['SMS_BUSY']);
    });
  });

  describe('when the store is closed by a redeploy before the outcome is known', () => {
    async function redeploy(
      prepare: (side: SendingSide, node: FakeNode, until: Promise<void>) => void,
    ): Promise<string[]> {
      const side = new SendingSide();
      const node = side.attach();
      let goOn = () => {};
      prepare(
        side,
        node,
        new Promise((resolve) => {
          goOn = resolve;
        }),
      );
      sendText(node, 'hello', { once: 'a' });
      await side.pass(10);
      const closed = node.node.close();
      void side.outbox.close();
      await side.journal.close();
      goOn();
      await side.pass(100);
      await closed;
      const back = side.attach();
      await side.pass(1_000);
      return [...node.ends, ...back.ends];
    }

    it('delivers the outcome of a message that has left', async () => {
      const ends = await redeploy(({ service }, _node, after) => service.script.push({ takes: true, after }));
      assert.deepEqual(ends, ['to 6421555123']);
    });

    it('delivers the outcome of a message that has not left', async () => {
      const ends = await redeploy((_side, { client }, until) => {
        client.send = () => until.then(() => Promise.reject(createError('forbidden')));
      });
      assert.deepEqual(ends, ['SMS_FORBIDDEN']);
    });
  });
});

/** Sends a message with the deduplication key `a`, which the service has not answered yet. */
async function leaveOneUnanswered() {
  const store = new FailingStore();
  const side = new SendingSide({ store });
  const node = side.attach();
  await side.pass(100);
  const answer = side.service.holdNext();
  sendText(node, 'hello', { once: 'a', keep: forever });
  await side.pass(100);
  return { store, side, node, answer };
}
