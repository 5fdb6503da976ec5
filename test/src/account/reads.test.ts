import assert from 'node:assert/strict';
import { Joining } from './joining';

describe('the reads of an account', () => {
  const joining = new Joining();
  const { signal } = new AbortController();

  beforeEach(() => joining.start(15_000));
  afterEach(() => joining.closing.run());

  /** Joins an account that allows 2 reads at the same time and 3 that wait. Returns a function that starts a read. */
  function enter() {
    const member = joining.enter({ concurrency: 2, queueLimit: 3 });
    const started: string[] = [];
    const begin = (name: string, abort: AbortSignal = signal) => {
      let finish = () => {};
      const read = () => {
        started.push(name);
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      };
      return { result: member.read(read, abort), finish: () => finish() };
    };
    return { begin, started };
  }

  const settle = () => new Promise((resolve) => setImmediate(resolve));

  it('refuses a read with SMS_BUSY if the queue is full', async () => {
    const { begin, started } = enter();
    const reads = ['a', 'b', 'c', 'd', 'e'].map((name) => begin(name));
    await assert.rejects(begin('f').result, { code: 'SMS_BUSY', reason: 'busyReads', params: { limit: 3 } });
    for (const read of reads) {
      read.finish();
      await read.result;
      await settle();
    }
    assert.deepEqual(started, ['a', 'b', 'c', 'd', 'e']);
  });

  it('ends waiting reads with SMS_CLOSED if their node stops', async () => {
    const { begin, started } = enter();
    const stop = new AbortController();
    const running = [begin('a'), begin('b')];
    const waiting = begin('c', stop.signal);
    stop.abort();
    const closed = { code: 'SMS_CLOSED', reason: 'closedRead' };
    await assert.rejects(waiting.result, closed);
    await assert.rejects(begin('d', stop.signal).result, closed);
    for (const read of running) read.finish();
    await settle();
    assert.deepEqual(started, ['a', 'b']);
  });
});
