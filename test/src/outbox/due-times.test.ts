import assert from 'node:assert/strict';
import type { Step } from '../../../src/journal/journal';
import { DueTimes } from '../../../src/outbox/due-times';
import type { MessageRepository } from '../../../src/outbox/message-repository';
import type { ReplyRequest } from '../../../src/replies/follow-ups';
import { Replies } from '../../../src/replies/replies';
import { createChanges } from '../../../src/store/store';
import { VirtualClock } from '../../virtual-clock';

describe('DueTimes', () => {
  it('handles due items a few hundred per turn, without removed ones', async () => {
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

  it('handles items in order of their latest time and id', async () => {
    const clock = new VirtualClock();
    const done: string[] = [];
    const dueTimes = new DueTimes(clock);
    const onDue = (id: string) => done.push(`${id} ${clock.elapsed()}`);
    for (const [id, at] of [
      ['c', 3_000],
      ['b2', 2_000],
      ['b1', 2_000],
      ['b1 too', 2_000],
      ['a', 9_000],
    ] as const) {
      dueTimes.set(id, at, onDue);
    }
    dueTimes.set('a', 1_000, onDue);
    dueTimes.set('never', Number.POSITIVE_INFINITY, onDue);
    assert.equal(clock.timers, 1);
    await clock.advance(5_000);
    assert.deepEqual(done, ['a 1000', 'b1 2000', 'b1 too 2000', 'b2 2000', 'c 3000']);
    assert.equal(clock.timers, 0);
  });

  it('handles times by either clock in order, with one timer', async () => {
    const clock = new VirtualClock();
    const done: string[] = [];
    const dueTimes = new DueTimes(clock);
    const onDue = (id: string) => done.push(`${id} ${clock.elapsed()}`);
    dueTimes.set('by elapsed time', 2_000, onDue);
    dueTimes.set('by the wall clock', clock.now() + 1_000, onDue, 'now');
    dueTimes.set('by elapsed time again', 3_000, onDue);
    assert.equal(clock.timers, 1);
    await clock.advance(5_000);
    assert.deepEqual(done, ['by the wall clock 1000', 'by elapsed time 2000', 'by elapsed time again 3000']);
    assert.equal(clock.timers, 0);
  });

  it('checks once a minute whether the clock was set', async () => {
    const clock = new VirtualClock();
    const done: number[] = [];
    const dueTimes = new DueTimes(clock);
    dueTimes.set('a', clock.now() + 3_600_000, () => done.push(clock.elapsed()), 'now');
    await clock.advance(1_000);
    clock.set(2 * 3_600_000);
    await clock.advance(59_000);
    assert.deepEqual(done, [60_000]);
  });

  it('ends reply requests that are due together in parts', async () => {
    const clock = new VirtualClock();
    const ended: string[] = [];
    const asked = Array.from(
      { length: 1_000 },
      (_, index) =>
        ({
          ...{
            id: String(index).padStart(3, '0'),
            kind: 'replyRequest',
            messageItemId: 't',
            reference: String(index),
            recipient: '64',
          },
          ...{ askedAt: clock.now(), waitMs: 60_000 },
        }) as ReplyRequest,
    );
    const run = ({ decide }: Step<void>) => {
      decide((key) => void (key.startsWith('request:') && ended.push(key)), createChanges());
      return Promise.resolve([]);
    };
    const repository = {
      dueTimes: new DueTimes(clock),
      followUps: { size: asked.length, get: (id: string) => asked[Number(id)], of: () => asked },
      journal: { run },
    } as unknown as MessageRepository;
    const questions = new Replies({
      clock,
      repository,
      registrations: { handlerOf: () => undefined },
      reconciliations: { observe() {}, wants: () => false },
      onAbandoned: () => {},
      onFault: (error) => assert.ifError(error),
    });
    questions.begin('t');
    const perTurn: number[] = [];
    const count = () => {
      perTurn.push(ended.length);
      if (ended.length < 1_000) clock.nextTurn(count);
    };
    clock.after(60_000, count);
    await clock.advance(60_001);
    assert.deepEqual(
      ended.map((key) => key.split(':')[1]),
      asked.map(({ reference }) => reference),
    );
    assert.deepEqual(perTurn, [250, 500, 750, 1_000]);
  });
});
