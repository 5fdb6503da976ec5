import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { systemClock, waitRunning } from '../../src/clock';
import { VirtualClock } from '../virtual-clock';

/** 60 days, in delays that a timer of Node can take. */
const delaysMs = [2 ** 31 - 1, 2 ** 31 - 1, 889_032_705, 1];
const sixtyDaysMs = 60 * 24 * 3_600_000;

describe('systemClock', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('calls back after 60 days, though no timer of Node takes so long, and only then', () => {
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
    it(`ends a delay of 60 days ${['at once', 'after 24.8 days', 'after 49.7 days'][parts]}`, () => {
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

describe('waitRunning', () => {
  it('counts a second of the time for which the process is suspended', async () => {
    const clock = new VirtualClock();
    let isOver = false;
    void waitRunning(clock, 10, new AbortController().signal).then(() => {
      isOver = true;
    });
    clock.stall(39_000);
    await clock.advance(0);
    await clock.advance(8_999);
    assert.equal(isOver, false);
    await clock.advance(1);
    assert.equal(isOver, true);
  });
});
