import assert from 'node:assert/strict';
import type { NodeAPI } from 'node-red';
import { ChangeNotifier } from '../../nodes/runtime/account-node';
import { VirtualClock } from '../virtual-clock';

describe('ChangeNotifier', () => {
  let clock: VirtualClock;
  let news: ChangeNotifier;
  let told: unknown[][];

  beforeEach(() => {
    clock = new VirtualClock();
    told = [];
    const comms = { publish: (...news: unknown[]) => told.push(news) } as unknown as NodeAPI['comms'];
    news = new ChangeNotifier({ comms }, clock);
  });

  it('sends at most one event per second to editors', async () => {
    for (let ms = 0; ms < 10_000; ms++) {
      news.notify();
      await clock.advance(1);
    }
    assert.equal(told.length, 10);
    await clock.advance(2_000);
    assert.equal(told.length, 11);
    await clock.advance(60_000);
    assert.deepEqual(told, Array(11).fill(['sms-account/changed', {}, false]));
    assert.equal(clock.timers, 0);
  });
});
