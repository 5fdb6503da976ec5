import assert from 'node:assert/strict';
import { Tally } from '../../../src/account/tally';
import { VirtualClock } from '../../virtual-clock';

describe('what an account counts', () => {
  it('is counted since the process started, and since midnight', async () => {
    const clock = new VirtualClock(new Date(2026, 5, 1, 22).getTime());
    const tally = new Tally(clock);
    tally.sends.sent += 3;
    tally.redelivered();
    assert.deepEqual(tally.countsToday, tally.counts);
    await clock.advance(2 * 3_600_000);
    assert.deepEqual([tally.counts.sent, tally.counts.redelivered], [3, 1]);
    assert.deepEqual([tally.countsToday.sent, tally.countsToday.redelivered], [0, 0]);
    tally.sends.sent += 2;
    tally.setAside();
    assert.deepEqual([tally.counts.sent, tally.countsToday.sent, tally.countsToday.setAside], [5, 2, 1]);
    await clock.advance(24 * 3_600_000);
    assert.deepEqual([tally.counts.sent, tally.countsToday.sent], [5, 0]);
  });
});
