import assert from 'node:assert/strict';
import type { SmsError, SmsErrorReason } from '../../../src/errors';
import { type PollEvents, PollLoop, type PollOutcome, type PollState } from '../../../src/polling/poll-loop';
import { settle, VirtualClock } from '../../virtual-clock';
import { createError } from '../some-error';

/** A poll whose answer the test chooses. */
interface PendingPoll extends Pick<PollEvents, 'onSaved'> {
  resolve(outcome: PollOutcome): void;
  reject(error: SmsError): void;
}

/** Test bench of a poll loop: the test answers the polls. */
class Bench {
  readonly states: PollState[] = [];
  /** Polls in flight, oldest first. */
  readonly pending: PendingPoll[] = [];
  /** Polls whose answers are saved but not delivered yet, oldest first. */
  readonly held: PendingPoll[] = [];
  /** The `onSent` callbacks of polls whose requests have not been sent, because there is no connection. */
  readonly unsent: (() => void)[] = [];
  isConnected = true;
  polls = 0;
  maxAtOnce = 0;
  pauseMs = 30_000;
  ahead = 3;
  parallelPolls = 1;
  readonly loop: PollLoop;

  constructor(readonly clock: VirtualClock) {
    this.loop = new PollLoop(
      {
        poll: ({ onSent, onSaved }) => {
          this.polls++;
          if (this.isConnected) onSent();
          else this.unsent.push(onSent);
          return new Promise((resolve, reject) => {
            this.pending.push({ resolve, reject, onSaved });
            this.maxAtOnce = Math.max(this.maxAtOnce, this.pending.length);
          });
        },
        maxUnderWay: () => this.parallelPolls + this.ahead,
        pauseMs: () => this.pauseMs,
        parallelPolls: () => this.parallelPolls,
      },
      (state) => this.states.push(state),
      clock,
    );
  }

  get names(): string[] {
    return this.states.map(({ name }) => name);
  }

  async answer(...outcomes: PollOutcome[]): Promise<void> {
    for (const outcome of outcomes) {
      this.#oldest().resolve(outcome);
      await settle();
    }
  }

  async fail(reason: SmsErrorReason = 'serverError', facts = {}): Promise<void> {
    this.#oldest().reject(createError(reason).with(facts));
    await settle();
  }

  /** Answers the oldest polls in flight. The answers are saved, but not delivered yet. */
  async hold(count = 1): Promise<void> {
    for (let index = 0; index < count; index++) {
      const poll = this.#oldest();
      this.held.push(poll);
      poll.onSaved();
      await settle();
    }
  }

  #oldest(): PendingPoll {
    return this.pending.shift() ?? assert.fail('no poll is in flight');
  }

  /** Ends the oldest polls whose answers are saved, each with one of these outcomes. */
  async handOver(...outcomes: PollOutcome[]): Promise<void> {
    for (const outcome of outcomes) this.held.shift()?.resolve(outcome);
    await settle();
  }

  /** Asserts that the next poll begins after exactly this time. */
  async waits(ms: number): Promise<void> {
    const { polls } = this;
    await this.clock.advance(ms - 1);
    assert.equal(this.polls, polls, `polled again within ${ms} ms`);
    await this.clock.advance(1);
    assert.equal(this.polls, polls + 1, `did not poll again within ${ms} ms`);
  }
}

describe('PollLoop', () => {
  let clock: VirtualClock;
  let bench: Bench;
  beforeEach(() => {
    clock = new VirtualClock(1_000);
    bench = new Bench(clock);
    bench.loop.start();
  });
  afterEach(async () => {
    bench.loop.stop();
    for (const poll of [...bench.pending.splice(0), ...bench.held.splice(0)]) poll.resolve('empty');
    await settle();
  });

  describe('between two polls', () => {
    it('pauses after a 204 unless `nudge` is called (§8)', async () => {
      await bench.answer('empty');
      await bench.waits(30_000);
      await bench.answer('empty');
      bench.loop.nudge();
      await settle();
      assert.equal(bench.polls, 3);
    });

    it('waits up to 250 ms after a quick 204 if the pause is 0', async () => {
      bench.pauseMs = 0;
      for (const delayMs of [20, 60, 140, 250, 250]) {
        await bench.answer('empty');
        await bench.waits(delayMs);
      }
    });

    it('polls immediately after a slow 204 if the pause is 0', async () => {
      bench.pauseMs = 0;
      clock.stall(30_000);
      await bench.answer('empty');
      assert.equal(bench.polls, 2);
    });

    it('doubles its delay after each error, from 1 s to 60 s', async () => {
      for (const [random, delayMs] of [
        [0, 1_000],
        [0.8, 2_400],
        [0, 4_000],
        [0.8, 9_600],
        [0, 16_000],
        [0.8, 38_400],
        [0, 48_000],
        [1 - 2 ** -32, 60_000],
      ] as const) {
        clock.random = () => random;
        await bench.fail();
        await bench.waits(delayMs);
      }
    });

    for (const reason of ['unauthorized', 'forbidden'] as const) {
      it(`doubles its delay from 30 s to 5 min after ${reason} errors`, async () => {
        for (const delayMs of [33_750, 67_500, 135_000, 270_000, 270_000]) {
          await bench.fail(reason);
          await bench.waits(delayMs);
        }
      });
    }

    it('resets its error delay to 1 s after a success', async () => {
      for (let index = 0; index < 5; index++) {
        await bench.fail();
        await clock.advance(60_000);
      }
      await bench.answer('new');
      await bench.fail();
      await bench.waits(1_125);
    });

    it('backs off after duplicates until a new message arrives', async () => {
      await bench.answer('repeated');
      await bench.waits(1_125);
      await bench.answer('repeated');
      await bench.waits(2_250);
      await bench.answer('new');
      assert.equal(bench.polls, 4);
      await bench.answer('repeated');
      await bench.waits(1_125);
    });

    for (const [statusCode, retryAfter, waitMs] of [
      [429, '90', 90_000],
      [503, 'Thu, 01 Jan 1970 00:02:01 GMT', 120_000],
      [503, '86400', 3_600_000],
    ] as const) {
      it(`waits ${waitMs / 1_000} s on a ${statusCode} with "Retry-After: ${retryAfter}"`, async () => {
        await bench.fail('serverError', { statusCode, retryAfter });
        assert.equal(bench.loop.state.name, 'failing');
        bench.loop.nudge();
        await bench.waits(waitMs);
        await bench.fail('serverError', { statusCode, retryAfter: '0' });
        await bench.waits(2_250);
      });
    }

    it('ignores Retry-After of a 500', async () => {
      await bench.fail('serverError', { statusCode: 500, retryAfter: '90' });
      await bench.waits(1_125);
    });

    it('still polls after 500 failures in a row', async () => {
      for (let index = 0; index < 500; index++) {
        await bench.fail(index % 3 === 0 ? 'unauthorized' : 'responseUnreadable');
        await clock.advance(300_000);
      }
      assert.equal(bench.polls, 501);
    });
  });

  describe('when its state changes', () => {
    it('reports each change once', async () => {
      await bench.answer('new', 'new', 'empty');
      await clock.advance(30_000);
      await bench.fail();
      await clock.advance(2_000);
      await bench.fail();
      await clock.advance(3_000);
      await bench.answer('empty');
      assert.deepEqual(bench.names, ['listening', 'waiting', 'listening', 'failing', 'listening', 'waiting']);
      assert.deepEqual(bench.states[1], { name: 'waiting', seconds: 30 });
    });

    it('reports `listening` only after the request has left', async () => {
      bench = new Bench(clock);
      bench.isConnected = false;
      bench.loop.start();
      assert.deepEqual([bench.names, bench.loop.state.name], [[], 'connecting']);
      bench.unsent[0]?.();
      assert.deepEqual(bench.names, ['listening']);
      await bench.fail();
      await clock.advance(2_000);
      bench.unsent[1]?.();
      assert.deepEqual(bench.names, ['listening', 'failing']);
      await bench.answer('new');
      assert.deepEqual(bench.names, ['listening', 'failing', 'listening']);
    });

    it('reports a new error reason even if the code is unchanged', async () => {
      await bench.fail('notFound');
      await clock.advance(2_000);
      await bench.fail('serverError');
      await clock.advance(3_000);
      await bench.fail('serverError');
      assert.deepEqual(
        bench.states.map((state) => (state.name === 'failing' ? state.error.reason : state.name)),
        ['listening', 'notFound', 'serverError'],
      );
    });
  });

  describe('with `pause` and `resume`', () => {
    it('does not poll between `pause` and `resume`', async () => {
      bench.loop.pause({ name: 'paused', unacknowledged: 100 });
      await bench.answer('new');
      await clock.advance(600_000);
      assert.equal(bench.polls, 1);
      assert.deepEqual(bench.loop.state, { name: 'paused', unacknowledged: 100 });
      bench.loop.resume();
      await settle();
      assert.equal(bench.polls, 2);
      assert.equal(bench.loop.state.name, 'listening');
    });

    it('still reports its pause after the poll in flight ends', async () => {
      for (const end of [() => bench.answer('empty'), () => bench.fail()]) {
        bench.loop.pause({ name: 'paused', unacknowledged: 100 });
        await end();
        assert.deepEqual(bench.loop.state, { name: 'paused', unacknowledged: 100 });
        bench.loop.resume();
        await settle();
        assert.equal(bench.pending.length, 1);
      }
    });

    it('does not poll after `start` if it is still paused', async () => {
      const error = createError('storeUnavailable');
      bench = new Bench(clock);
      bench.loop.pause({ name: 'failing', error });
      bench.loop.start();
      await settle();
      assert.equal(bench.polls, 0);
      assert.deepEqual(bench.states, [{ name: 'failing', error }]);
      bench.loop.resume();
      await settle();
      assert.equal(bench.polls, 1);
    });

    it('ignores `resume` unless it is paused', async () => {
      await bench.answer('empty');
      bench.loop.resume();
      await bench.waits(30_000);
    });
  });

  describe('with `stop` and `start`', () => {
    it('polls immediately after `start` instead of finishing its pause', async () => {
      await bench.answer('empty');
      bench.loop.stop();
      await settle();
      bench.loop.start();
      await settle();
      assert.equal(bench.polls, 2);
      assert.equal(bench.pending.length, 1);
    });

    it('waits for a poll in flight instead of making another poll', async () => {
      for (let index = 0; index < 5; index++) {
        bench.loop.stop();
        if (index % 2) await settle();
        bench.loop.start();
        await settle();
      }
      assert.equal(bench.polls, 1);
      assert.equal(bench.loop.state.name, 'listening');
      await bench.answer('new');
      assert.equal(bench.polls, 2);
      assert.equal(bench.maxAtOnce, 1);
    });

    it('keeps polling if it restarts while the last poll ends', async () => {
      bench.loop.stop();
      bench.pending.shift()?.resolve('empty');
      for (let turn = 0; turn < 10; turn++) {
        bench.loop.start();
        await Promise.resolve();
        bench.loop.stop();
        await Promise.resolve();
      }
      bench.loop.start();
      await settle();
      assert.equal(bench.pending.length, 1);
      assert.equal(bench.maxAtOnce, 1);
    });

    it('forgets earlier failures when it restarts', async () => {
      for (let index = 0; index < 5; index++) {
        await bench.fail();
        await clock.advance(60_000);
      }
      await bench.fail();
      bench.loop.stop();
      bench.loop.start();
      await settle();
      await bench.fail();
      await bench.waits(1_125);
    });
  });

  describe('with undelivered answers', () => {
    it('stops polling at the maximum number of undelivered answers', async () => {
      await bench.hold(3);
      assert.equal(bench.polls, 4);
      await bench.hold();
      await clock.advance(600_000);
      assert.deepEqual([bench.polls, bench.pending.length, bench.maxAtOnce], [4, 0, 1]);
      await bench.handOver('new');
      assert.equal(bench.polls, 5);
    });

    it('does not poll while no node can receive more messages', async () => {
      bench.parallelPolls = 4;
      await bench.hold();
      bench.ahead = -3;
      await bench.hold(2);
      assert.equal(bench.pending.length, 0);
      await bench.handOver('new', 'new', 'new');
      assert.equal(bench.pending.length, 1);
    });

    it('takes only one back-off step for four answers with duplicates', async () => {
      await bench.hold(4);
      await bench.handOver('repeated', 'repeated', 'repeated', 'repeated');
      assert.equal(bench.polls, 4);
      await bench.waits(1_125);
      await bench.hold();
      await clock.advance(600_000);
      assert.equal(bench.polls, 5);
      await bench.handOver('repeated');
      await bench.waits(2_250);
    });

    it('does not back off if a new message follows a duplicate', async () => {
      await bench.hold(2);
      await bench.handOver('repeated', 'new');
      await bench.hold();
      assert.equal(bench.pending.length, 1);
    });

    it('reports `failing` if an answer cannot be stored', async () => {
      await bench.hold();
      bench.held.shift()?.reject(createError('storeUnavailable'));
      await settle();
      await bench.hold();
      assert.equal(bench.loop.state.name, 'failing');
      await bench.handOver('new');
      await bench.waits(1_125);
    });

    it('reports the state of the latest poll', async () => {
      await bench.hold();
      await bench.answer('empty');
      await bench.handOver('new');
      assert.equal(bench.loop.state.name, 'waiting');
      await bench.waits(30_000);
      await bench.hold();
      await bench.fail();
      await bench.handOver('new');
      assert.equal(bench.loop.state.name, 'failing');
      await bench.waits(1_125);
    });
  });

  describe('with parallelPolls', () => {
    async function startThree(): Promise<void> {
      bench.parallelPolls = 3;
      await bench.answer('new', 'new', 'new');
    }

    it('starts one more poll after each 200, up to the limit', async () => {
      bench.parallelPolls = 4;
      for (const pending of [2, 3, 4, 4, 4]) {
        await bench.answer('new');
        assert.equal(bench.pending.length, pending);
      }
      assert.equal(bench.maxAtOnce, 4);
    });

    it('ends each additional poll at its first 204', async () => {
      await startThree();
      for (const pending of [2, 1, 0]) {
        await bench.answer('empty');
        assert.equal(bench.pending.length, pending);
      }
      await bench.waits(30_000);
    });

    for (const [what, end, delayMs] of [
      ['pauses if all polls return a 204', (poll: PendingPoll) => poll.resolve('empty'), 30_000],
      ['backs off if all polls fail', (poll: PendingPoll) => poll.reject(createError('serverError')), 1_125],
    ] as const) {
      it(`${what} at the same time`, async () => {
        await startThree();
        for (const poll of bench.pending.splice(0)) end(poll);
        await settle();
        await bench.waits(delayMs);
      });
    }

    it('makes fewer polls after parallelPolls is lowered', async () => {
      await startThree();
      bench.parallelPolls = 1;
      await bench.answer('empty', 'empty');
      await bench.answer('new', 'new', 'new');
      assert.equal(bench.pending.length, 1);
    });

    it('makes no further poll after `stop`', async () => {
      await startThree();
      bench.loop.stop();
      const { polls } = bench;
      await bench.answer('new', 'empty', 'new');
      await clock.advance(600_000);
      assert.equal(bench.polls, polls);
    });
  });
});
