import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import { VirtualClock } from '../../virtual-clock';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { beginOutage, beginSending, copyDisk, forever, SendingSide, sendText } from './sending-side';

const hourMs = 3_600_000;
const once = { once: 'a' };
const stored = { once: 'a', keep: forever };

describe('the `once` option', () => {
  it('repeats the first outcome instead of sending a duplicate', async () => {
    const { side, node } = beginSending();
    await side.send(node, 'hello', { once: 'a', to: ['6421555123', '6421555124'] });
    await side.send(node, 'hello', { once: 'a', to: ['6421555124', '6421555123'] });
    assert.deepEqual(node.ends, ['to 6421555123 6421555124', 'to 6421555123 6421555124 duplicate']);
    assert.deepEqual(node.outcomes[1]?.outcome, node.outcomes[0]?.outcome);
    assert.equal(side.service.bodies.length, 1);
  });

  it('yields to the event loop between duplicates', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    for (let index = 0; index < 100; index++) sendText(node, 'hello', once);
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

  it('repeats the outcome for a duplicate although the queue is full', async () => {
    const { side, node } = beginSending({ queueLimit: 1 });
    await side.send(node, 'hello', stored);
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'waits', { once: 'b', keep: forever });
    for (const [body, once] of [
      ['hello', 'a'],
      ['too many', 'c'],
    ] as const) {
      await side.send(node, body, { once, keep: forever });
    }
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123 duplicate', 'SMS_BUSY']);
    await side.recover(60_000);
    await side.send(node, 'too many', { once: 'c', keep: forever });
    assert.deepEqual(node.ends.slice(3), ['to 6421555123', 'to 6421555123']);
    assert.deepEqual(side.service.bodies, ['hello', 'waits', 'too many']);
    await side.close();
    assert.equal(side.outbox.isSettled, true);
  });

  it('refuses a key that was used with a different body or recipient', async () => {
    const { side, node } = beginSending();
    await side.send(node, 'hello', once);
    sendText(node, 'other', once);
    await side.send(node, 'hello', { once: 'a', to: ['6421555999'] });
    assert.deepEqual(node.ends, ['to 6421555123', 'SMS_INPUT', 'SMS_INPUT']);
    const [, refused] = node.outcomes;
    assert.ok(refused?.outcome instanceof Error && refused.outcome.field === 'once');
  });

  for (const at of ['when the input arrives', 'before the send']) {
    it(`raises SMS_STORE if the store fails ${at}`, async () => {
      const { store, side, node } = beginSending();
      await side.pass(10);
      const connect = side.service.holdConnection();
      if (at === 'when the input arrives') store.failing.add('commit');
      await side.send(node, 'hello', once);
      store.failing.add('commit');
      connect();
      await side.pass(100);
      const { outcome } = node.outcomes[0] ?? {};
      assert.ok(outcome instanceof SmsError && outcome.code === 'SMS_STORE');
      assert.match(outcome.message, /Nothing was sent/);
      assert.deepEqual(side.service.bodies, []);
    });
  }

  it('forgets the key of a message that was not sent', async () => {
    for (const options of [once, stored]) {
      const { store, side, node } = beginSending();
      await side.pass(10);
      side.service.script.push({ error: createError('forbidden') });
      await side.send(node, 'hello', options, 1_000);
      assert.deepEqual(node.ends, ['SMS_FORBIDDEN']);
      assert.deepEqual(
        [...store.disk.remembered.keys()].filter((key) => key.startsWith('once:')),
        [],
      );
    }
  });

  it('treats equal keys of two nodes as different', async () => {
    const side = new SendingSide();
    const [one, two] = [side.attach('one'), side.attach('two')];
    sendText(one, 'hello', once);
    await side.send(two, 'other', once);
    assert.equal(side.service.bodies.length, 2);
  });

  describe('while duplicates wait', () => {
    it('runs fewer than 8 journal steps per duplicate', async () => {
      const { side, node } = beginSending();
      side.service.otherwise = { error: createError('forbidden') };
      let steps = 0;
      const run = side.journal.run.bind(side.journal);
      side.journal.run = (step) => {
        steps++;
        return run(step);
      };
      for (let index = 0; index < 200; index++) sendText(node, 'hello', stored);
      await side.pass(10_000);
      assert.deepEqual([node.ends.length, side.service.tries], [200, 200]);
      assert.ok(steps < 200 * 8, `${steps}`);
    });

    for (const [what, options] of Object.entries({ without: once, with: stored })) {
      it(`sends the next duplicate after a message ${what} \`keep\` fails`, async () => {
        for (const [turn, end] of [
          [{ takes: true }, 'to 6421555123'],
          [{ takes: true, error: createError('uncertain') }, 'SMS_UNCERTAIN'],
        ] as const) {
          const { side, node } = beginSending();
          side.service.script.push({ error: createError('forbidden') }, { failed: [{ msisdn: '6421555123' }] }, turn);
          for (let index = 0; index < 5; index++) sendText(node, 'hello', options);
          await side.pass(1_000);
          const duplicates = Array<string>(2).fill(`${end} duplicate`);
          assert.deepEqual(node.ends, ['SMS_FORBIDDEN', 'to ', end, ...duplicates]);
          assert.equal(side.service.tries, 3);
        }
      });
    }
  });

  it('repeats an unknown outcome, unless retryUncertain is set', async () => {
    for (const first of [
      createError('serverErrorUncertain').with({ statusCode: 500 }),
      createError('responseUncertain').with({ statusCode: 200 }),
    ]) {
      const { side, node } = beginSending();
      side.service.script.push({ takes: true, error: first });
      sendText(node, 'hello', once);
      await side.send(node, 'hello', once, 1_000);
      await side.send(node, 'hello', once, 1_000);
      assert.deepEqual(node.ends, [first.code, 'SMS_UNCERTAIN duplicate', 'SMS_UNCERTAIN duplicate']);
      const { outcome } = node.outcomes[2] ?? {};
      assert.ok(outcome instanceof SmsError);
      assert.equal(outcome.statusCode, first.statusCode);
      assert.match(outcome.message, new RegExp(first.code));
      assert.equal(side.service.tries, 1);
      await side.send(node, 'hello', { ...once, retryUncertain: true });
      assert.deepEqual([node.ends[3], side.service.tries], ['to 6421555123', 2]);
    }
  });

  it('remembers a key for its full time if the clock moves forward', async () => {
    const { store, side, node } = beginSending({ dedupeMs: hourMs });
    const other = side.attach('other');
    for (const one of [node, other]) sendText(one, 'hello', once);
    await side.pass(1_800_000);
    side.clock.set(10 * 24 * hourMs);
    await side.send(node, 'hello', once, 1_799_000);
    await side.send(other, 'hello', once);
    for (const { ends } of [node, other]) assert.deepEqual(ends, ['to 6421555123', 'to 6421555123 duplicate']);
    // Starts the next process, which has only the stored data.
    const clock = new VirtualClock(side.clock.now());
    const next = new SendingSide({ ...side.options, clock, store: new FailingStore(copyDisk(store.disk)) });
    const back = next.attach();
    await next.send(back, 'hello', once, 1_000);
    assert.deepEqual(back.ends, ['to 6421555123 duplicate']);
    await side.pass(1_000);
    await side.send(node, 'hello', once);
    assert.equal(node.ends.at(-1), 'to 6421555123');
  });

  for (const isRestarted of [false, true]) {
    it(`forgets a key after 1 h if the clock moves back ${isRestarted ? 'during a restart' : '5 years'}`, async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store, dedupeMs: hourMs });
      side.clock.set(5 * 365 * 24 * hourMs);
      await side.send(side.attach(), 'hello', once);
      if (!isRestarted) side.clock.set(-5 * 365 * 24 * hourMs);
      const next = isRestarted
        ? new SendingSide({ ...side.options, store: new FailingStore(copyDisk(store.disk)) })
        : side;
      const node = next.attach('send');
      await next.send(node, 'hello', once, 3_599_000);
      assert.deepEqual(node.ends, ['to 6421555123 duplicate']);
      await next.pass(1_000);
      await next.send(node, 'hello', once);
      assert.deepEqual(node.ends, ['to 6421555123 duplicate', 'to 6421555123']);
    });
  }

  describe('after dedupeHours', () => {
    const dedupeMs = 600_000;
    const longMs = 3 * dedupeMs;

    it('delays a duplicate until the first message has an outcome', async () => {
      const { side, node: first } = beginOutage({ dedupeMs });
      await side.send(first, 'hello', stored, 1_000);
      const disk = copyDisk((side.store as FailingStore).disk);
      await Promise.all([side.close(), side.pass(longMs)]);
      const next = side.restart(disk);
      const node = next.attach();
      sendText(node, 'something else', stored);
      await next.send(node, 'hello', stored, 1_000);
      assert.deepEqual(node.ends, ['SMS_INPUT']);
      await next.recover();
      assert.deepEqual(node.ends, ['SMS_INPUT', 'to 6421555123', 'to 6421555123 duplicate']);
      assert.equal(next.service.bodies.length, 1);
    });

    for (const had of ['may have been', 'was not']) {
      it(`${had === 'was not' ? 'frees' : 'keeps'} the key of a discarded message that ${had} sent`, async () => {
        const { side, node } = beginOutage({ dedupeMs });
        if (had === 'may have been') side.service.script.push({ error: createError('uncertain') });
        await side.send(node, 'hello', { ...stored, retryUncertain: true }, longMs);
        assert.equal(await side.act('kept', 'discard'), 'done');
        side.service.otherwise = { takes: true };
        await side.send(node, 'hello', once, 1_000);
        assert.deepEqual(node.ends, had === 'may have been' ? ['SMS_UNCERTAIN duplicate'] : ['to 6421555123']);
        await side.pass(dedupeMs);
        await side.send(node, 'hello', once, 1_000);
        assert.equal(node.ends[1], 'to 6421555123');
      });
    }
  });

  it('sends a duplicate after a crash only if the first send had not begun', async () => {
    for (const [commits, end] of [
      [1, 'to 6421555123'],
      [2, 'SMS_UNCERTAIN duplicate'],
    ] as const) {
      const { store, side, node } = beginSending();
      store.unansweredCommit = commits;
      await side.send(node, 'hello', once);
      const { next, back } = side.crash();
      await next.pass(100);
      const before = back.ends.length;
      await next.send(back, 'hello', once);
      assert.deepEqual(back.ends.slice(before), [end]);
    }
  });

  describe('while the first message waits', () => {
    const twins = () => {
      const { store, side, node } = beginOutage();
      for (let count = 0; count < 2; count++) sendText(node, 'hello', stored);
      return { store, side, node };
    };

    it('does not store a duplicate', async () => {
      const { side, store } = twins();
      await side.pass(1_000);
      assert.deepEqual([store.disk.entries.size, side.outbox.admin.state.kept], [1, 1]);
    });

    it('ends a duplicate with SMS_CLOSED when its node closes', async () => {
      const { side, node } = twins();
      await side.pass(1_000);
      await Promise.all([node.node.close(), side.pass(100)]);
      assert.deepEqual(node.ends, ['SMS_CLOSED']);
      const back = side.attach();
      await side.recover();
      assert.deepEqual(back.ends, ['to 6421555123']);
    });

    it('sends the duplicate if a user discards the first message', async () => {
      const { side, node, store } = twins();
      await side.pass(100);
      assert.equal(await side.act('kept', 'discard'), 'done');
      await side.recover();
      assert.deepEqual(node.ends, ['to 6421555123']);
      assert.deepEqual([side.service.bodies.length, store.disk.entries.size], [1, 0]);
    });

    it('counts waiting duplicates towards queueLimit', async () => {
      const { side, node } = beginOutage({ queueLimit: 3 });
      for (let count = 0; count < 4; count++) {
        await side.send(node, 'hello', stored);
      }
      assert.deepEqual(node.ends, ['SMS_BUSY']);
    });
  });
});
