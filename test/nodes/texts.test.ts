import assert from 'node:assert/strict';
import type { NodeAPI } from 'node-red';
import { badges } from '../../nodes/runtime/texts';
import { SmsError } from '../../src';

describe('badges', () => {
  it('are looked up once, also after thousands of numbers and times', () => {
    let lookUps = 0;
    const RED = { _: (key: string) => `${++lookUps} ${key}` } as unknown as NodeAPI;
    for (let n = 0; n < 1_000; n++) {
      const until = new Date(Date.UTC(2026, 0, 1) + n * 60_000).toISOString();
      badges.error(RED, new SmsError('limitDay', { params: { limit: 1, until } }));
      badges.paused(RED, n);
    }
    const before = lookUps;
    for (let round = 0; round < 3; round++) {
      badges.waitingTexts(RED, 1_234_567);
      badges.paused(RED, 999);
    }
    assert.equal(lookUps, before + 1);
  });

  it('of waits, of which each names another time, are looked up once, too', () => {
    let lookUps = 0;
    const RED = { _: (_: string, { time }: { time: string }) => `${++lookUps}. poll at ${time}` } as unknown as NodeAPI;
    const noon = new Date(2026, 0, 1, 12).getTime();
    const texts = [0, 1, 2].map((second) => badges.waiting(RED, noon + second * 1_000).text);
    assert.deepEqual(texts, ['1. poll at 12:00:00', '1. poll at 12:00:01', '1. poll at 12:00:02']);
  });
});
