import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { Abort, onceAborted } from '../../src/abort-watch';
import { wait } from '../../src/clock';
import { VirtualClock } from '../virtual-clock';

describe('onceAborted', () => {
  it('listens to a signal once, however many wait on it, and warns of no leak', async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    const waits = Array.from({ length: 1_000 }, (_, index) => wait(clock, index % 7, signal));
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    await clock.advance(7);
    await Promise.all(waits);
    assert.equal(getEventListeners(signal, 'abort').length, 1);
  });

  for (const [name, create] of [
    ['an AbortController', () => new AbortController()],
    ['an Abort', () => new Abort()],
  ] as const) {
    describe(`on ${name}`, () => {
      it('calls each who has not left, once', () => {
        const stop = create();
        const called: string[] = [];
        const leaves = ['a', 'b', 'c'].map((name) => onceAborted(stop.signal, () => called.push(name)));
        leaves[1]?.();
        onceAborted(stop.signal, () => called.push('d'));
        stop.abort();
        stop.abort();
        assert.deepEqual(called.sort(), ['a', 'c', 'd']);
      });

      it('does not call one who leaves on account of another', () => {
        const stop = create();
        const called: string[] = [];
        onceAborted(stop.signal, () => {
          called.push('first');
          leave();
        });
        const leave = onceAborted(stop.signal, () => called.push('second'));
        stop.abort();
        assert.deepEqual(called, ['first']);
      });
    });
  }

  it('calls nobody on a signal that has aborted already, as a signal does', () => {
    const abort = new Abort();
    assert.equal(abort.aborted, false);
    abort.abort();
    assert.equal(abort.aborted, true);
    let called = 0;
    for (const signal of [AbortSignal.abort(), abort]) onceAborted(signal, () => called++);
    assert.equal(called, 0);
  });
});
