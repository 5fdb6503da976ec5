import assert from 'node:assert/strict';
import {
  applyLimits,
  type CountTime,
  type Limited,
  type LimitSettings,
  releaseCounts,
} from '../../../src/outbox/limits';
import { parseCounts, sumAfter } from '../../../src/store/counts';
import { applyCounts, type Changes, createChanges, parseRemembered, type Remembered } from '../../../src/store/store';
import fc from '../../fast-check';
import { VirtualClock } from '../../virtual-clock';
import { FailingServer } from '../store/failing-store';
import { beginSending } from './sending-side';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const handsetLimit = { limit: 'handset', max: 1, lengthMs: hourMs } as const;
const dayLimit = { limit: 'day', max: 3, lengthMs: dayMs } as const;

/** Creates a process that counts messages in a store, which other processes can share. */
function createProcess(
  own: Partial<LimitSettings> | readonly Partial<LimitSettings>[],
  { clock = new VirtualClock(), store = new Map<string, Remembered>() } = {},
) {
  const limits = [own].flat().map((limit): LimitSettings => ({ perHandsetMs: hourMs, ...limit }));
  const origin = String(Math.random());
  /** Reads the clock as the outbox does. */
  const readTime = (): CountTime => {
    const now = clock.now();
    return { now, clock: `${origin}/${Math.round(now - clock.elapsed())}` };
  };
  const messageTo = (recipients: readonly string[], time: CountTime, unlimited = false) => ({
    recipients,
    rules: { limits },
    time,
    item: { options: { unlimited } },
  });
  const readKey = (key: string) => store.get(key);
  const write = (changes: Changes) => {
    const counted = applyCounts(changes, readKey);
    for (const [key, value] of [...changes.remember, ...counted]) {
      if (value) store.set(key, value);
      else store.delete(key);
    }
  };
  return {
    clock,
    store,
    limits,
    /** Splits recipients into allowed and limited ones. Counts the allowed ones. */
    take(recipients: readonly string[], isUnlimited = false) {
      const time = readTime();
      const changes = createChanges();
      const limited = applyLimits(messageTo(recipients, time, isUnlimited), readKey, changes, true);
      const allowed = [...recipients];
      for (const { msisdn } of limited) allowed.splice(allowed.lastIndexOf(msisdn), 1);
      write(changes);
      return { allowed, limited, time };
    },
    release(recipients: readonly string[], countedAt: CountTime) {
      const changes = createChanges();
      releaseCounts(messageTo(recipients, readTime()), countedAt, readKey, changes);
      write(changes);
    },
  };
}

/** Counts how many of `texts` messages to one number the limits allow now. */
function countAllowed(process: ReturnType<typeof createProcess>, texts: number, number = '6421555001'): number {
  let allowed = 0;
  for (let text = 0; text < texts; text++) allowed += process.take([number]).allowed.length;
  return allowed;
}

describe('a send limit', () => {
  it('stores no phone number', () => {
    const { take, store } = createProcess({ perHandset: 5, perDay: 100 });
    take(['6421555001', 'office']);
    assert.equal(store.size, 3);
    assert.doesNotMatch(JSON.stringify([...store]), /6421555001|office/);
  });

  it('has its own time window if there are several limits', () => {
    const process = createProcess([
      { perHandset: 3 },
      {},
      { perHandset: 1, perHandsetMs: minuteMs },
      { perHandset: 5 },
    ]);
    const { clock, take } = process;
    const startedAt = clock.now();
    assert.equal(countAllowed(process, 2), 1);
    assert.deepEqual(take(['6421555001']).limited, [
      { ...handsetLimit, lengthMs: minuteMs, msisdn: '6421555001', until: startedAt + minuteMs },
    ]);
    for (let text = 0; text < 2; text++) {
      clock.stall(minuteMs);
      assert.equal(countAllowed(process, 2), 1);
    }
    clock.stall(minuteMs);
    assert.deepEqual(take(['6421555001']).limited, [
      { ...handsetLimit, max: 3, msisdn: '6421555001', until: startedAt + hourMs },
    ]);
  });

  it('keeps its counts while it is missing from the settings', () => {
    const both = createProcess([{ perHandset: 1 }, { perHandset: 2, perHandsetMs: 2 * hourMs }]);
    const { clock, store } = both;
    both.take(['a']);
    clock.stall(hourMs);
    both.take(['a']);
    clock.stall(hourMs - minuteMs);
    createProcess({ perHandset: 1 }, { clock, store }).take(['b']);
    assert.deepEqual(both.take(['a']).allowed, []);
  });

  for (const value of ['', '{', 'server x:y']) {
    it(`counts from zero if the stored value is unreadable: ${JSON.stringify(value)}`, () => {
      const process = createProcess({ perHandset: 2 });
      process.take(['6421555001']);
      for (const remembered of process.store.values()) remembered.value = value;
      assert.equal(countAllowed(process, 5), 2);
    });
  }

  describe('when the clock changes', () => {
    it('blocks for only one time window after the clock moves back 10 years', () => {
      const first = createProcess({ perHandset: 2, perDay: 2 });
      assert.equal(countAllowed(first, 3), 2);
      first.clock.set(-10 * 365 * dayMs);
      const second = createProcess({ perHandset: 2, perDay: 2 }, first);
      const firstSeenAt = second.clock.now();
      assert.deepEqual(second.take(['6421555001']).limited, [
        { ...dayLimit, max: 2, msisdn: '6421555001', until: firstSeenAt + dayMs },
      ]);
      const third = createProcess({ perHandset: 2, perDay: 2 }, first);
      third.clock.stall(dayMs - 1);
      assert.equal(countAllowed(third, 3), 0);
      third.clock.stall(1);
      assert.equal(countAllowed(third, 3), 2);
    });

    it('refunds all messages although the clock jitters by 2 ms', () => {
      const process = createProcess({ perHandset: 100 });
      const { clock } = process;
      const now = clock.now.bind(clock);
      let readings = 0;
      clock.now = () => now() + (readings++ % 3);
      const counted = Array.from({ length: 40 }, () => {
        clock.stall(20_000);
        return process.take(['a']);
      });
      for (const { time } of counted.reverse()) process.release(['a'], time);
      assert.equal(process.store.size, 0);
    });

    it('counts messages of two machines although their clocks differ by 3 s', () => {
      const first = createProcess({ perHandset: 4 });
      const clock = new VirtualClock(first.clock.now() - 3_000);
      const second = createProcess({ perHandset: 4 }, { clock, store: first.store });
      const pass = (ms: number) => {
        first.clock.stall(ms);
        clock.stall(ms);
      };
      assert.equal(countAllowed(first, 2) + countAllowed(second, 3), 4);
      pass(hourMs - 1);
      assert.equal(countAllowed(first, 1) + countAllowed(second, 1), 0);
      pass(3_001);
      assert.equal(countAllowed(second, 9), 4);
    });
  });

  it('allows the same messages as a simple model in random scenarios', () => {
    const recipients = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 });
    const action = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('take' as const), recipients, isUnlimited: fc.boolean() }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(40 * minuteMs) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(dayMs) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat() }) },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant('set' as const),
          ms: fc.integer({ min: -1_440, max: 1_440 }).map((minutes) => minutes * minuteMs),
        }),
      },
    );
    const settings = fc.record(
      { perHandset: fc.integer({ min: 1, max: 4 }), perDay: fc.integer({ min: 1, max: 12 }) },
      { requiredKeys: [] },
    );
    fc.assert(fc.property(fc.array(action, { maxLength: 80 }), settings, compareWithList), { numRuns: 500 });
  });

  it('adds messages counted during a store outage to the shared count', async () => {
    const server = new FailingServer();
    const { side, node } = beginSending({ store: server, limits: { perHandsetMs: hourMs, perDay: 3 } });
    await side.send(node, 'one');
    server.failing.add('commit');
    server.failing.add('open');
    await side.send(node, 'two');
    // Another instance counts a message during the outage.
    const [key = '', stored = ''] = [...server.disk.remembered].find(([key]) => key.startsWith('limit:day')) ?? [];
    assert.match(stored, /:1$/);
    server.disk.remembered.set(key, stored.replace(/:1$/, ':2'));
    server.failing.clear();
    await side.pass(minuteMs);
    assert.equal(sumAfter(parseCounts(parseRemembered(server.disk.remembered.get(key) ?? '').value), 0), 3);
    await side.send(node, 'three');
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123', 'SMS_LIMIT']);
  });

  it('keeps its counts if its maximum or its window changes', () => {
    const before = createProcess({ perHandset: 1 });
    before.take(['6421555001']);
    const { clock, store } = before;
    for (const limit of [{ perHandset: 1, perHandsetMs: hourMs + minuteMs }, { perHandset: 2 }]) {
      const after = createProcess(limit, { clock, store });
      assert.deepEqual(
        [1, 2].map(() => after.take(['6421555001']).limited.length),
        limit.perHandset === 1 ? [1, 1] : [0, 1],
      );
    }
  });

  it('stores less than 20 KiB to enforce 500 messages a day', () => {
    const perDay = 500;
    const { clock, take, store } = createProcess({ perDay });
    const sentAt: number[] = [];
    let largest = 0;
    // Covers two and a half days, in which bursts and pauses alternate.
    for (let second = 0; second < 2.5 * 24 * 3_600; second += 68) {
      clock.stall(68_000);
      if (Math.floor(second / 4_000) % 3 === 0) continue;
      const sinceMs = clock.now() - (sentAt[sentAt.length - perDay] ?? Number.NEGATIVE_INFINITY);
      if (take(['a']).allowed.length > 0) {
        assert.ok(sinceMs >= dayMs, 'too many in a day');
        sentAt.push(clock.now());
      } else {
        assert.ok(sinceMs < dayMs + dayMs / 360, 'withheld for too long');
      }
      largest = Math.max(largest, store.get('limit:day')?.value.length ?? 0);
    }
    assert.ok(sentAt.length > 2 * perDay, `${sentAt.length} texts`);
    assert.ok(largest < 20_480, `${largest} characters`);
  });
});

type Action =
  | { do: 'take'; recipients: string[]; isUnlimited: boolean }
  | { do: 'wait'; ms: number }
  | { do: 'release'; which: number }
  | { do: 'set'; ms: number };

/** Compares the counts with a list of every sent message and its elapsed time. */
function compareWithList(actions: readonly Action[], limits: Partial<LimitSettings>): void {
  const { clock, take, release } = createProcess(limits);
  const texts: { number: string; at: number }[] = [];
  const taken: { allowed: string[]; time: CountTime; at: number }[] = [];
  const untilOf = (list: { at: number }[], max: number | undefined, lengthMs: number) => {
    const inWindow = list.filter(({ at }) => clock.elapsed() - at < lengthMs);
    if (max === undefined || inWindow.length < max) return undefined;
    return (inWindow[inWindow.length - max]?.at ?? 0) + lengthMs - clock.elapsed() + clock.now();
  };
  for (const action of actions) {
    if (action.do === 'wait') {
      clock.stall(action.ms);
    } else if (action.do === 'set') {
      clock.set(action.ms);
    } else if (action.do === 'release') {
      const [one] = taken.splice(action.which % Math.max(1, taken.length), 1);
      if (!one) continue;
      release(one.allowed, one.time);
      for (const number of one.allowed) {
        texts.splice(
          texts.findIndex((text) => text.number === number && text.at === one.at),
          1,
        );
      }
    } else {
      const { recipients, isUnlimited } = action;
      const expected = { allowed: [] as string[], limited: [] as Limited[] };
      for (const number of recipients) {
        const handset = untilOf(
          texts.filter((text) => text.number === number),
          limits.perHandset,
          hourMs,
        );
        const day = untilOf(texts, limits.perDay, dayMs);
        const until = Math.max(handset ?? 0, day ?? 0);
        if (isUnlimited || until === 0) {
          expected.allowed.push(number);
          texts.push({ number, at: clock.elapsed() });
        } else {
          const limit = handset === until ? handsetLimit : dayLimit;
          const max = (handset === until ? limits.perHandset : limits.perDay) ?? 0;
          expected.limited.push({ ...limit, max, msisdn: number, until });
        }
      }
      const { allowed, limited, time } = take(recipients, isUnlimited);
      assert.deepEqual({ allowed, limited }, expected);
      if (allowed.length > 0) taken.push({ allowed, time, at: clock.elapsed() });
    }
  }
}
