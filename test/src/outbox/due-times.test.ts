import assert from 'node:assert/strict';
import { DueTimes } from '../../../src/outbox/due-times';
import { VirtualClock } from '../../virtual-clock';

describe('DueTimes', () => {
  it('has what is due in one moment done a few hundred in a turn, unless it has gone meanwhile', async () => {
    const clock = new VirtualClock();
    const done: string[] = [];
    const dueTimes = new DueTimes(
      clock,
      () => clock.elapsed(),
      (id) => done.push(id),
    );
    const ids = Array.from({ length: 1_000 }, (_, index) => String(index));
    for (const id of ids) dueTimes.set(id, 60_000);
    const perTurn: number[] = [];
    const count = () => {
      perTurn.push(done.length);
      if (done.length < 999) clock.nextTurn(count);
    };
    clock.after(60_000, () => {
      dueTimes.delete('999');
      count();
    });
    await clock.advance(60_001);
    assert.deepEqual(done, ids.slice(0, -1));
    assert.deepEqual(perTurn, [250, 500, 750, 999]);
    assert.equal(clock.timers, 0);
  });

  it('has it done in order, by rank and arrival where that is one moment, and goes by the last time that was said', async () => {
    const clock = new VirtualClock();
    const done: string[] = [];
    const dueTimes = new DueTimes(
      clock,
      () => clock.elapsed(),
      (id) => done.push(`${id} ${clock.elapsed()}`),
    );
    for (const [id, at, rank] of [
      ['c', 3_000, ''],
      ['b2', 2_000, '2'],
      ['b1', 2_000, '1'],
      ['b1 too', 2_000, '1'],
      ['a', 9_000, ''],
    ] as const) {
      dueTimes.set(id, at, rank);
    }
    dueTimes.set('a', 1_000);
    assert.deepEqual([dueTimes.size, dueTimes.first, dueTimes.get('c'), clock.timers], [5, 1_000, 3_000, 1]);
    await clock.advance(5_000);
    assert.deepEqual(done, ['a 1000', 'b1 2000', 'b1 too 2000', 'b2 2000', 'c 3000']);
    assert.deepEqual([dueTimes.size, dueTimes.first], [0, undefined]);
  });

  it('looks once a minute whether the clock was set', async () => {
    const clock = new VirtualClock();
    const done: number[] = [];
    const dueTimes = new DueTimes(
      clock,
      () => clock.now(),
      () => done.push(clock.elapsed()),
    );
    dueTimes.set('a', clock.now() + 3_600_000);
    await clock.advance(1_000);
    clock.set(2 * 3_600_000);
    await clock.advance(59_000);
    assert.deepEqual(done, [60_000]);
  });
});
