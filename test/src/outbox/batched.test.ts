import assert from 'node:assert/strict';
import { Batched } from '../../../src/outbox/batched';
import type { Ledger } from '../../../src/outbox/ledger';
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

  it('has questions whose time is up in one moment end a few hundred in a turn', async () => {
    const clock = new VirtualClock();
    const ended: string[] = [];
    const asked = Array.from(
      { length: 1_000 },
      (_, index) => ({ id: String(index), text: 't', askedAt: clock.now(), waitMs: 60_000 }) as Question,
    );
    const ledger = {
      questions: { size: asked.length, get: () => undefined, of: () => asked },
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
});
