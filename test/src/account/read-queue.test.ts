import assert from 'node:assert/strict';
import { ReadQueue } from '../../../src/account/read-queue';

describe('ReadQueue', () => {
  const limits = { concurrency: 2, queueLimit: 3 };
  const { signal } = new AbortController();

  /** Starts a read that stays open until the test calls `finish`. */
  function begin(queue: ReadQueue, started: string[], name: string, abort: AbortSignal = signal) {
    let finish = (_error?: Error) => {};
    const read = () => {
      started.push(name);
      return new Promise<string>((resolve, reject) => {
        finish = (error) => (error ? reject(error) : resolve(name));
      });
    };
    return { result: queue.run(read, abort), finish: (error?: Error) => finish(error) };
  }

  const settle = () => new Promise((resolve) => setImmediate(resolve));

  it('runs a limited number of reads, and starts the others in order', async () => {
    const queue = new ReadQueue(() => limits);
    const started: string[] = [];
    const reads = ['a', 'b', 'c', 'd', 'e'].map((name) => begin(queue, started, name));
    assert.deepEqual(started, ['a', 'b']);
    reads[1]?.finish(new Error('fails'));
    await assert.rejects(reads[1]?.result ?? assert.fail(), /fails/);
    const late = begin(queue, started, 'f');
    await settle();
    assert.deepEqual(started, ['a', 'b', 'c']);
    for (const read of [reads[0], reads[2], reads[3], reads[4], late]) {
      read?.finish();
      await read?.result;
      await settle();
    }
    assert.deepEqual(started, ['a', 'b', 'c', 'd', 'e', 'f']);
  });

  it('refuses a read with SMS_BUSY if the queue is full', async () => {
    const queue = new ReadQueue(() => limits);
    for (const name of ['a', 'b', 'c', 'd', 'e']) begin(queue, [], name);
    await assert.rejects(begin(queue, [], 'f').result, { code: 'SMS_BUSY', params: { limit: 3 } });
  });

  it('ends waiting reads with SMS_CLOSED if the signal aborts', async () => {
    const queue = new ReadQueue(() => limits);
    const started: string[] = [];
    const stop = new AbortController();
    const running = [begin(queue, started, 'a'), begin(queue, started, 'b')];
    const waiting = begin(queue, started, 'c', stop.signal);
    stop.abort();
    await assert.rejects(waiting.result, { code: 'SMS_CLOSED' });
    await assert.rejects(begin(queue, started, 'd', stop.signal).result, { code: 'SMS_CLOSED' });
    for (const read of running) read.finish();
    await settle();
    assert.deepEqual(started, ['a', 'b']);
  });
});
