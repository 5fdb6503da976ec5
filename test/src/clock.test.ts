import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { createSystemClock, systemClock } from '../../src/clock';

/** 60 days, split into delays that a timer of Node.js accepts. */
const delaysMs = [2 ** 31 - 1, 2 ** 31 - 1, 889_032_705, 1];
const sixtyDaysMs = 60 * 24 * 3_600_000;

describe('systemClock', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('calls back once after a delay of 60 days', () => {
    const calls: number[] = [];
    systemClock.after(sixtyDaysMs, () => calls.push(1));
    const called = delaysMs.map((delayMs) => {
      mock.timers.tick(delayMs);
      return calls.length;
    });
    assert.deepEqual(called, [0, 0, 0, 1]);
    for (const delayMs of delaysMs) mock.timers.tick(delayMs);
    assert.equal(calls.length, 1);
  });

  for (const parts of [0, 1, 2]) {
    it(`cancels a delay of 60 days ${['immediately', 'after 24.8 days', 'after 49.7 days'][parts]}`, () => {
      const calls: number[] = [];
      const timer = systemClock.after(sixtyDaysMs, () => calls.push(1), true);
      for (const delayMs of delaysMs.slice(0, parts)) mock.timers.tick(delayMs);
      timer.cancel();
      timer.cancel();
      for (const delayMs of delaysMs) mock.timers.tick(delayMs);
      assert.deepEqual(calls, []);
    });
  }
});

describe('createSystemClock', () => {
  const hourMs = 3_600_000;
  let sleptMs: number;
  let setMs: number;

  beforeEach(() => {
    [sleptMs, setMs] = [0, 0];
    const { now } = Date;
    mock.method(Date, 'now', () => now() + sleptMs + setMs);
  });
  afterEach(() => mock.restoreAll());

  const create = () => createSystemClock(() => performance.now() + sleptMs);
  const hoursOf = (ms: number) => Math.round(ms / hourMs);

  it('counts the time while the computer sleeps', () => {
    const clock = create();
    const begin = clock.elapsed();
    sleptMs = 8 * hourMs;
    assert.equal(hoursOf(clock.elapsed() - begin), 8);
    assert.equal(hoursOf(clock.elapsed() - begin), 8);
  });

  it('ignores changes of the wall clock', () => {
    const clock = create();
    const begin = clock.elapsed();
    for (const hours of [5, -7]) {
      setMs = hours * hourMs;
      assert.equal(hoursOf(clock.elapsed() - begin), 0);
    }
  });

  it('ends a delay of one hour when the computer wakes after two hours', async () => {
    const clock = create();
    await new Promise<void>((resolve) => {
      clock.after(hourMs, resolve);
      sleptMs = 2 * hourMs;
      clock.elapsed();
    });
  });
});
