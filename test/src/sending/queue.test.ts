import assert from 'node:assert/strict';
import { type QueueSettings, SendQueue } from '../../../src/outbox/queue';
import fc from '../../fast-check';
import { settle, VirtualClock } from '../../virtual-clock';

/** Creates a task that the test ends. */
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

describe('SendQueue', () => {
  const { signal } = new AbortController();

  /** Creates a queue that records the start of each task. Tasks end immediately. */
  function createPacedQueue(settings: Partial<QueueSettings>) {
    const clock = new VirtualClock();
    const current: QueueSettings = { concurrency: 8, queueLimit: 10_000, ...settings };
    const queue = new SendQueue({ clock, settings: () => current });
    const starts: [name: string, at: number][] = [];
    const add = (name: string, priority = 0, stop: AbortSignal = signal) =>
      queue.run(
        () => {
          starts.push([name, clock.elapsed()]);
          return Promise.resolve();
        },
        { signal: stop, priority },
      );
    return { clock, current, queue, starts, add, times: () => starts.map(([, at]) => at) };
  }

  it('starts tasks at even intervals with perSecond', async () => {
    const { clock, add, times } = createPacedQueue({ perSecond: 20 });
    const runs = Array.from({ length: 101 }, (_, index) => add(`${index}`));
    await clock.advance(5_000);
    await Promise.all(runs);
    assert.deepEqual(
      times(),
      Array.from({ length: 101 }, (_, index) => index * 50),
    );
    assert.equal(clock.timers, 0);
  });

  it('applies new settings when `nudge` is called', async () => {
    const { clock, current, queue, add, times } = createPacedQueue({ perSecond: 0.001 });
    for (let index = 0; index < 4; index++) void add(`${index}`);
    await clock.advance(10_000);
    current.perSecond = 1;
    queue.nudge();
    await clock.advance(1_000);
    assert.deepEqual(times(), [0, 10_000, 11_000]);
    delete current.perSecond;
    queue.nudge();
    await settle();
    assert.deepEqual(times(), [0, 10_000, 11_000, 11_000]);
    assert.equal(clock.timers, 0);
  });

  it('gives a refunded perSecond slot to the next task', async () => {
    const { clock, queue, add, times } = createPacedQueue({ perSecond: 1 });
    const late = createTask();
    let refundLate = () => {};
    void queue.run(
      (refund) => {
        refundLate = refund;
        return late.run();
      },
      { signal },
    );
    void queue.run(async (refund) => refund(), { signal });
    for (const name of ['1', '2', '3']) void add(name);
    await clock.advance(1_500);
    assert.deepEqual(times(), [1_000]);
    refundLate();
    await clock.advance(1_500);
    assert.deepEqual(times(), [1_000, 2_000, 3_000]);
    late.resolve('end');
  });

  it('yields to the event loop between 1,000 tasks that send nothing', async () => {
    const clock = new VirtualClock();
    const queue = new SendQueue({ clock, settings: () => ({ concurrency: 8, queueLimit: 10_000 }) });
    let startCount = 0;
    const runs = Array.from({ length: 1_000 }, () =>
      queue.run(
        async (refund) => {
          startCount++;
          refund();
        },
        { signal },
      ),
    );
    const perTurn: number[] = [];
    const count = () => {
      perTurn.push(startCount);
      if (startCount < 1_000) clock.nextTurn(count);
    };
    clock.nextTurn(count);
    await clock.advance(1);
    await Promise.all(runs);
    assert.equal(queue.inFlight, 0);
    assert.ok(perTurn.length >= 4 && perTurn.every((count, turn) => count <= 260 * (turn + 2)), perTurn.join());
  });

  it('starts the same tasks as a simple model in random scenarios', async () => {
    const action = fc.oneof(
      fc.record({ do: fc.constant('add' as const), priority: fc.integer({ min: -2, max: 2 }), flow: fc.nat(2) }),
      fc.record({ do: fc.constant('end' as const), which: fc.nat(), fails: fc.boolean() }),
      fc.record({ do: fc.constant('stop' as const), flow: fc.nat(2) }),
      fc.record({
        do: fc.constantFrom('wait' as const, 'stall' as const, 'set' as const),
        ms: fc.integer({ min: 1, max: 250 }),
      }),
    );
    const pace = fc.option(fc.constantFrom(3, 10, 100), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 60 }),
        fc.record({ concurrency: fc.integer({ min: 1, max: 4 }), queueLimit: fc.nat(6) }),
        pace,
        (actions, settings, perSecond) =>
          compareWithList(actions, { ...settings, ...(perSecond === undefined ? undefined : { perSecond }) }),
      ),
      { numRuns: 2_000, examples: [[startsLate, { concurrency: 2, queueLimit: 1 }, 3]] },
    );
  });
});

type Action =
  | { do: 'add'; priority: number; flow: number }
  | { do: 'end'; which: number; fails: boolean }
  | { do: 'stop'; flow: number }
  | { do: 'wait' | 'stall' | 'set'; ms: number };

/** The second task starts less than 1 ms late. This does not delay the third task. */
const startsLate: Action[] = [
  { do: 'add', priority: 0, flow: 0 },
  { do: 'wait', ms: 334 },
  { do: 'add', priority: 0, flow: 0 },
  { do: 'add', priority: 0, flow: 0 },
];

/** Compares a queue with a plain list of waiting tasks, which the test searches for the next task. */
async function compareWithList(actions: readonly Action[], settings: QueueSettings): Promise<void> {
  const clock = new VirtualClock();
  const queue = new SendQueue({ clock, settings: () => settings });
  const stops = [0, 1, 2].map(() => new AbortController());
  const list: { name: number; priority: number; flow: number }[] = [];
  const running = new Map<number, ReturnType<typeof createTask>>();
  const runs: Promise<unknown>[] = [];
  const intervalMs = settings.perSecond === undefined ? 0 : 1_000 / settings.perSecond;
  let dueAt = Number.NEGATIVE_INFINITY;
  const isDue = () => clock.elapsed() >= dueAt - 0.01;
  const begin = (name: number) => {
    const best = list.reduce((first, one) => (one.priority > first.priority ? one : first));
    assert.equal(name, best.name, 'another was first');
    assert.ok(isDue(), 'too early');
    list.splice(list.indexOf(best), 1);
    // A start up to 2 ms late counts as punctual, because late timers would otherwise slow the queue down.
    const isPunctual = clock.elapsed() - dueAt <= 2;
    dueAt = (isPunctual ? dueAt : clock.elapsed()) + intervalMs;
    const task = createTask();
    running.set(name, task);
    assert.ok(running.size <= settings.concurrency, 'too many at once');
    return task.run();
  };
  for (const [name, action] of actions.entries()) {
    if (action.do === 'add') {
      const { flow, priority } = action;
      const stop = stops[flow] as AbortController;
      const isFree = running.size < settings.concurrency && isDue();
      const expected = stop.signal.aborted
        ? 'SMS_CLOSED'
        : !isFree && list.length >= settings.queueLimit
          ? 'SMS_BUSY'
          : undefined;
      if (!expected) list.push({ name, priority, flow });
      const run = queue.run(() => begin(name), { signal: stop.signal, priority });
      runs.push(
        expected ? assert.rejects(run, { code: expected }) : run.catch((error) => assert.ok(isExpected(error), error)),
      );
    } else if (action.do === 'end') {
      const name = [...running.keys()][action.which % Math.max(1, running.size)];
      const task = running.get(name ?? -1);
      running.delete(name ?? -1);
      if (action.fails) task?.reject(new Error('failed'));
      else task?.resolve('x');
    } else if (action.do === 'stop') {
      stops[action.flow]?.abort();
      for (const one of [...list]) if (one.flow === action.flow) list.splice(list.indexOf(one), 1);
    } else if (action.do === 'set') {
      clock.set(action.ms * 1_000_000 - 125_000_000);
    } else {
      if (action.do === 'stall') clock.stall(action.ms);
      await clock.advance(action.do === 'wait' ? action.ms : 0);
    }
    await settle();
    assert.equal(queue.waiting, list.length);
    assert.equal(queue.inFlight, running.size);
    if (list.length > 0) assert.ok(running.size === settings.concurrency || !isDue(), 'nobody was let go');
  }
  for (let turn = 0; list.length + running.size > 0; turn++) {
    assert.ok(turn < 200, 'somebody waits for ever');
    for (const task of running.values()) task.resolve('x');
    running.clear();
    await clock.advance(400);
  }
  await Promise.all(runs);
  assert.equal(clock.timers, 0);
}

function isExpected(error: { code?: string; message?: string }): boolean {
  return error.code === 'SMS_CLOSED' || error.message === 'failed';
}
