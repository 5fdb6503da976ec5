import assert from 'node:assert/strict';
import { DueTimes } from '../../../src/outbox/due-times';
import { VirtualClock } from '../../virtual-clock';

describe('DueTimes', () => {
  it('handles at most 250 due items per turn of the event loop', async () => {
    const clock = new VirtualClock();
    const done: string[] = [];
    const dueTimes = new DueTimes(clock);
    const ids = Array.from({ length: 1_000 }, (_, index) => String(index).padStart(3, '0'));
    for (const id of ids) dueTimes.set(id, 60_000, () => done.push(id));
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

  it('handles items by due time, then by id', async () => {
    const clock = new VirtualClock();
    const done: string[] = [];
    const dueTimes = new DueTimes(clock);
    const onDue = (id: string) => done.push(`${id} ${clock.elapsed()}`);
    for (const [id, at] of Object.entries({ c: 3_000, b2: 2_000, b1: 2_000, 'b1 too': 2_000, a: 9_000 })) {
      dueTimes.set(id, at, onDue);
    }
    dueTimes.set('a', 1_000, onDue);
    dueTimes.set('never', Number.POSITIVE_INFINITY, onDue);
    dueTimes.set('now', clock.now() + 1_500, onDue, 'now');
    dueTimes.set('later', clock.now() + 4_000, onDue, 'now');
    assert.equal(clock.timers, 1);
    await clock.advance(5_000);
    assert.deepEqual(done, ['a 1000', 'now 1500', 'b1 2000', 'b1 too 2000', 'b2 2000', 'c 3000', 'later 4000']);
    assert.equal(clock.timers, 0);
  });
});
