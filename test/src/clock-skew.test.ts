import assert from 'node:assert/strict';
import { ClockSkew } from '../../src/journal/clock-skew';
import { VirtualClock } from '../virtual-clock';

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

describe('ClockSkew', () => {
  function begin() {
    const clock = new VirtualClock();
    const times = new ClockSkew(clock);
    const note = (at = clock.now()) => ({ at, forMs: dayMs, value: 'x' });
    return {
      clock,
      times,
      note,
      /** Returns the age that a noted value has when it is read, in ms. */
      age: (noted: { at: number; forMs: number; value: string }) => clock.now() - times.read(noted).at,
    };
  }

  it('ignores a clock change of less than a minute', async () => {
    const { clock, times, note } = begin();
    const [before, now] = [note(clock.now() - 3 * dayMs), note()];
    await clock.advance(hourMs);
    clock.set(minuteMs - 1);
    for (const noted of [before, now]) {
      assert.equal(times.read(noted), noted);
      assert.equal(times.correct(noted), noted);
    }
  });

  it('measures the true age of a value after the clock moved forward', async () => {
    const { clock, note, age } = begin();
    const first = note();
    await clock.advance(hourMs);
    clock.set(10 * dayMs);
    const second = note();
    assert.deepEqual([age(first), age(second)], [hourMs, 0]);
    await clock.advance(hourMs);
    clock.set(365 * dayMs);
    await clock.advance(hourMs);
    assert.deepEqual([age(first), age(second)], [3 * hourMs, 2 * hourMs]);
  });

  it('measures the true age of a value that it corrected earlier', async () => {
    for (const [firstMs, secondMs] of [
      [dayMs, 5 * dayMs],
      [3 * hourMs, 2 * 365 * dayMs],
    ] as const) {
      const { clock, times, note, age } = begin();
      const first = note();
      await clock.advance(hourMs);
      clock.set(firstMs);
      const written = times.correct(first);
      await clock.advance(hourMs);
      clock.set(secondMs);
      assert.deepEqual([age(first), age(written)], [2 * hourMs, 2 * hourMs]);
    }
  });

  it('does not correct a time from before the process started', async () => {
    const { clock, times, note } = begin();
    const before = note(clock.now() - minuteMs);
    await clock.advance(hourMs);
    clock.set(10 * dayMs);
    assert.equal(times.read(before), before);
  });

  it('replaces a future time with the time of the last clock change', async () => {
    const { clock, note, age } = begin();
    const other = note(clock.now() + 1_000 * dayMs);
    const own = note();
    await clock.advance(hourMs);
    assert.equal(age(other), hourMs);
    clock.set(-30 * dayMs);
    assert.equal(age(own), 0);
    await clock.advance(hourMs);
    assert.equal(age(own), hourMs);
  });

  it('corrects a future time in the store only after an hour', async () => {
    const { clock, times, note } = begin();
    const startedAt = clock.now();
    const ahead = note(startedAt + 1_000 * dayMs);
    await clock.advance(hourMs - 1);
    assert.equal(times.correct(ahead), ahead);
    await clock.advance(1);
    assert.equal(times.correct(ahead).at, startedAt);
  });

  it('does not correct times of other processes on a shared store', async () => {
    const { clock, times, note } = begin();
    await clock.advance(5 * hourMs);
    const [own, others] = [note(), note(clock.now() + 2 * hourMs)];
    assert.equal(times.read(others, true), others);
    assert.equal(times.correct(others, true), others);
    clock.set(10 * dayMs);
    assert.equal(times.read(own, true).at, clock.now());
  });

  it('shares detected clock changes between users of one clock', async () => {
    const { clock, note } = begin();
    const times = ClockSkew.of(clock);
    const noted = note();
    clock.set(10 * dayMs);
    times.read(noted);
    assert.equal(ClockSkew.of(clock).read(noted).at, clock.now());
  });
});
