import assert from 'node:assert/strict';
import { Stats } from '../../../src/account/stats';
import { VirtualClock } from '../../virtual-clock';

describe('Stats', () => {
  it('resets the counts of today at midnight', async () => {
    const clock = new VirtualClock(new Date(2026, 5, 1, 22).getTime());
    const stats = new Stats(clock);
    stats.sends.sent += 3;
    stats.receives.redelivered++;
    assert.deepEqual(stats.countsToday, stats.counts);
    await clock.advance(2 * 3_600_000);
    assert.deepEqual([stats.counts.sent, stats.counts.redelivered], [3, 1]);
    assert.deepEqual([stats.countsToday.sent, stats.countsToday.redelivered], [0, 0]);
    stats.sends.sent += 2;
    stats.receives.unhandled++;
    assert.deepEqual([stats.counts.sent, stats.countsToday.sent, stats.countsToday.unhandled], [5, 2, 1]);
    await clock.advance(24 * 3_600_000);
    assert.deepEqual([stats.counts.sent, stats.countsToday.sent], [5, 0]);
  });
});
