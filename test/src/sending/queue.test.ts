import assert from 'node:assert/strict';
import { createStopSignal } from '../../../src/account/account';
import { SendQueue } from '../../../src/sending/queue';

/** A task that ends by hand. */
function createTask() {
  let resolve: (value: string) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const ended = new Promise<string>((...both) => {
    [resolve, reject] = both;
  });
  let started = false;
  const run = () => {
    started = true;
    return ended;
  };
  return { run, resolve, reject, isStarted: () => started };
}

const settle = () => new Promise(setImmediate);

describe('SendQueue (contract §3 concurrency, queueLimit)', () => {
  const { signal } = createStopSignal();

  it('runs so many at once and the others in order, whichever way the first ones end', async () => {
    const queue = new SendQueue(2, 10);
    const order: number[] = [];
    const tasks = Array.from({ length: 6 }, createTask);
    const runs = tasks.map(({ run }, index) =>
      queue
        .run(() => {
          order.push(index);
          return run();
        }, signal)
        .catch((error: Error) => error.message),
    );
    await settle();
    assert.deepEqual(order, [0, 1]);
    tasks[1]?.reject(new Error('failed'));
    await settle();
    assert.deepEqual(order, [0, 1, 2]);
    tasks[0]?.resolve('0');
    tasks[2]?.resolve('2');
    await settle();
    assert.deepEqual(order, [0, 1, 2, 3, 4]);
    for (const { resolve } of tasks) resolve('x');
    assert.deepEqual(await Promise.all(runs), ['0', 'failed', '2', 'x', 'x', 'x']);
    assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
  });

  it('hands a place on after a task that throws at once', async () => {
    const queue = new SendQueue(1, 10);
    const failing = queue.run(() => {
      throw new Error('at once');
    }, signal);
    const next = queue.run(() => Promise.resolve('next'), signal);
    await assert.rejects(failing, /at once/);
    assert.equal(await next, 'next');
    assert.equal(await queue.run(() => Promise.resolve('later'), signal), 'later');
  });

  it('lets none overtake, even one that comes as a place is handed on', async () => {
    const queue = new SendQueue(1, 10);
    const order: string[] = [];
    const first = createTask();
    const run = (name: string) =>
      queue.run(() => {
        order.push(name);
        return Promise.resolve(name);
      }, signal);
    const runs = [queue.run(first.run, signal), run('second')];
    first.resolve('first');
    for (let turn = 0; turn < 6; turn++) {
      runs.push(run(`late ${turn}`));
      await Promise.resolve();
    }
    await Promise.all(runs);
    assert.deepEqual(order, ['second', ...Array.from({ length: 6 }, (_, turn) => `late ${turn}`)]);
  });

  it('refuses one more than may wait, at once, with SMS_BUSY', async () => {
    const queue = new SendQueue(1, 2);
    const tasks = Array.from({ length: 3 }, createTask);
    const runs = tasks.map(({ run }) => queue.run(run, signal));
    await assert.rejects(
      queue.run(() => assert.fail('ran'), signal),
      { code: 'SMS_BUSY' },
    );
    for (const { resolve } of tasks) resolve('x');
    await Promise.all(runs);
    assert.equal(await queue.run(() => Promise.resolve('again'), signal), 'again');
  });

  it('with a limit of 0 lets none wait', async () => {
    const queue = new SendQueue(1, 0);
    const task = createTask();
    const run = queue.run(task.run, signal);
    await assert.rejects(
      queue.run(() => assert.fail('ran'), signal),
      { code: 'SMS_BUSY' },
    );
    task.resolve('x');
    assert.equal(await run, 'x');
  });

  it('lets go of those whose flow is stopped while they wait, with SMS_CLOSED', async () => {
    const queue = new SendQueue(1, 2);
    const task = createTask();
    const running = queue.run(task.run, signal);
    const stop = createStopSignal();
    const stopped = queue.run(() => assert.fail('ran'), stop.signal);
    const stays = queue.run(() => Promise.resolve('stays'), signal);
    stop.abort();
    await assert.rejects(stopped, { code: 'SMS_CLOSED' });
    const takesItsPlace = queue.run(() => Promise.resolve('takes its place'), signal);
    task.resolve('x');
    assert.deepEqual(await Promise.all([running, stays, takesItsPlace]), ['x', 'stays', 'takes its place']);
  });

  it('does not begin for a flow that is stopped already', async () => {
    const queue = new SendQueue(1, 2);
    await assert.rejects(
      queue.run(() => assert.fail('ran'), AbortSignal.abort()),
      { code: 'SMS_CLOSED' },
    );
    assert.equal(await queue.run(() => Promise.resolve('x'), signal), 'x');
  });

  it('keeps a task that runs from being stopped by the queue', async () => {
    const queue = new SendQueue(1, 2);
    const stop = createStopSignal();
    const task = createTask();
    const run = queue.run(task.run, stop.signal);
    await settle();
    stop.abort();
    task.resolve('x');
    assert.equal(await run, 'x');
  });

  it('lets 10,000 wait on one stop signal without a warning, and lets go of all of them', async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error) => warnings.push(warning);
    process.on('warning', listen);
    try {
      const queue = new SendQueue(1, 10_000);
      const stop = createStopSignal();
      const task = createTask();
      const running = queue.run(task.run, signal);
      const runs = Array.from({ length: 10_000 }, () =>
        queue
          .run(() => Promise.resolve(), stop.signal)
          .then(
            () => 'ran',
            (error: { code?: string }) => error.code,
          ),
      );
      await settle();
      stop.abort();
      assert.deepEqual(new Set(await Promise.all(runs)), new Set(['SMS_CLOSED']));
      task.resolve('x');
      await running;
      await settle();
      assert.deepEqual(
        warnings.filter(({ name }) => name === 'MaxListenersExceededWarning'),
        [],
      );
    } finally {
      process.off('warning', listen);
    }
  });

  it('works 10,000 off in order', async () => {
    const queue = new SendQueue(3, 10_000);
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 10_000 }, (_, index) =>
        queue.run(async () => {
          order.push(index);
          await Promise.resolve();
        }, signal),
      ),
    );
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    );
    assert.equal(order.length, 10_000);
  });
});
