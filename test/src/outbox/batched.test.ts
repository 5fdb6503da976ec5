import assert from 'node:assert/strict';
import type { Absences } from '../../../src/outbox/absences';
import { Batched } from '../../../src/outbox/batched';
import { Expiries } from '../../../src/outbox/expiry';
import type { Ledger } from '../../../src/outbox/ledger';
import type { Text } from '../../../src/outbox/outgoing';
import { SendQueue } from '../../../src/outbox/queue';
import type { Question } from '../../../src/questions/question';
import { Questions } from '../../../src/questions/questions';
import { VirtualClock } from '../../virtual-clock';

/** How much of it has been done after each turn of the event loop, from the first on, until all is. */
function countPerTurn(clock: VirtualClock, all: number, done: () => number): number[] {
  const counts: number[] = [];
  const count = () => {
    counts.push(done());
    if (done() < all) clock.nextTurn(count);
  };
  clock.nextTurn(count);
  return counts;
}

describe('Batched', () => {
  it('does a few hundred at once and as many in each turn that follows, in order', async () => {
    const clock = new VirtualClock();
    const batched = new Batched(clock);
    const done: number[] = [];
    for (let index = 0; index < 1_000; index++) batched.run(() => done.push(index));
    assert.equal(done.length, 250);
    batched.run(() => done.push(1_000));
    const perTurn = countPerTurn(clock, 1_001, () => done.length);
    await clock.advance(1);
    assert.deepEqual(
      done,
      Array.from({ length: 1_001 }, (_, index) => index),
    );
    assert.deepEqual(perTurn, [500, 750, 1_000, 1_001]);
  });

  it('does what comes by itself at once, in whatever turn', async () => {
    const clock = new VirtualClock();
    const batched = new Batched(clock);
    const done: number[] = [];
    for (let index = 0; index < 300; index++) {
      batched.run(() => done.push(index));
      assert.equal(done.length, index + 1);
      await clock.advance(1);
    }
  });

  it('has kept texts whose time is over in one moment end a few hundred in a turn, unless they have left meanwhile', async () => {
    const clock = new VirtualClock();
    const absences = { patience: () => undefined } as unknown as Absences;
    const expired: string[] = [];
    const expiries = new Expiries({ clock, absences, quietHours: () => [] }, (id) => expired.push(id));
    const ids = Array.from({ length: 1_000 }, (_, index) => String(index));
    for (const id of ids) {
      expiries.watch({ id, node: 'n', arrivedAt: clock.now(), options: { keep: { expireMs: 60_000 } } } as Text);
    }
    let perTurn: number[] = [];
    clock.after(60_000, () => {
      perTurn = countPerTurn(clock, 999, () => expired.length);
      expiries.forget('999');
    });
    await clock.advance(60_001);
    assert.deepEqual(expired, ids.slice(0, -1));
    assert.deepEqual(perTurn, [500, 750, 999]);
  });

  it('has questions whose time is up in one moment end a few hundred in a turn', async () => {
    const clock = new VirtualClock();
    const ended: string[] = [];
    const asked = Array.from(
      { length: 1_000 },
      (_, index) => ({ id: String(index), text: 't', askedAt: clock.now(), waitMs: 60_000 }) as Question,
    );
    const ledger = {
      questions: { size: asked.length, of: () => asked },
      endQuestion: (id: string) => Promise.resolve(void ended.push(id)),
    } as unknown as Ledger;
    const questions = new Questions({
      clock,
      ledger,
      handlerOf: () => undefined,
      isOutcomeComing: () => false,
      origin: () => undefined,
      onAllAnswered: () => {},
      onFault: (error) => assert.ifError(error),
    });
    questions.begin('t');
    let perTurn: number[] = [];
    clock.after(60_000, () => {
      perTurn = countPerTurn(clock, 1_000, () => ended.length);
    });
    await clock.advance(60_001);
    assert.deepEqual(
      ended,
      asked.map(({ id }) => id),
    );
    assert.deepEqual(perTurn, [500, 750, 1_000]);
  });

  it('has turns of the queue that come to nothing follow each other a few hundred in a turn of the event loop', async () => {
    const clock = new VirtualClock();
    const queue = new SendQueue({ clock, settings: () => ({ concurrency: 8, queueLimit: 10_000 }) });
    let given = 0;
    const runs = Array.from({ length: 1_000 }, () =>
      queue.run(async ({ giveBack }) => {
        given++;
        giveBack();
      }, {}),
    );
    const perTurn = countPerTurn(clock, 1_000, () => given);
    await clock.advance(1);
    await Promise.all(runs);
    assert.equal(queue.inFlight, 0);
    assert.ok(perTurn.length >= 4 && perTurn.every((count, turn) => count <= 260 * (turn + 2)), perTurn.join());
  });
});
