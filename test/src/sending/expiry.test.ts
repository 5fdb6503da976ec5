import assert from 'node:assert/strict';
import type { Patience } from '../../../src/outbox/expiry';
import { Expiry } from '../../../src/outbox/expiry';
import type { Text } from '../../../src/outbox/text';
import { VirtualClock } from '../../virtual-clock';

const minuteMs = 60_000;

/** As a machine's, it is later each time that it is looked at. */
class FineClock extends VirtualClock {
  override elapsed(): number {
    this.stall(0.001);
    return super.elapsed();
  }
}

/** Notes which texts are over, and after how many minutes. */
class Watch {
  readonly over: string[] = [];
  /** Until when, in minutes, texts of a node wait at least and at most that is not here. */
  readonly away = new Map<string, [least: number, most: number]>();
  readonly expiry: Expiry;
  onExpired = (id: string) => this.expiry.forget(id);

  constructor(readonly clock = new VirtualClock()) {
    const absences = { patience: (node: string) => this.#patience(node) };
    this.expiry = new Expiry({ clock: this.clock, absences, rules: { quietHours: [] } }, (id) => {
      this.over.push(`${id} ${this.clock.elapsed() / minuteMs}`);
      this.onExpired(id);
    });
  }

  /** @param minutes absent: its time does not end */
  add(id: string, minutes?: number, node = 'n'): void {
    const keep = minutes === undefined ? {} : { expireMs: minutes * minuteMs };
    this.expiry.watch({ id, node, arrivedAt: this.clock.now(), options: { keep } } as Text);
  }

  pass(minutes: number): Promise<void> {
    return this.clock.advance(minutes * minuteMs);
  }

  #patience(node: string): Patience | undefined {
    const [leastMs, mostMs] = (this.away.get(node) ?? []).map((minute) =>
      Math.max(0, minute * minuteMs - this.clock.elapsed()),
    );
    return leastMs === undefined || mostMs === undefined ? undefined : { leastMs, mostMs };
  }
}

describe('Expiry', () => {
  it('says of each when it is over, in whatever order they came', async () => {
    const watch = new Watch();
    watch.add('c', 3);
    watch.add('a', 1);
    watch.add('never');
    watch.add('b', 2);
    watch.add('of another', 2.5, 'm');
    await watch.pass(10);
    assert.deepEqual(watch.over, ['a 1', 'b 2', 'of another 2.5', 'c 3']);
  });

  it('says nothing of one that is forgotten, be it the next or not, and leaves no timer when all are', async () => {
    const watch = new Watch();
    for (const [id, minutes] of Object.entries({ a: 1, b: 2, c: 3, d: 4 })) watch.add(id, minutes);
    watch.expiry.forget('a');
    watch.expiry.forget('c');
    await watch.pass(3);
    assert.deepEqual(watch.over, ['b 2']);
    watch.expiry.forget('d');
    assert.equal(watch.clock.timers, 0);
  });

  it('needs one timer, however many texts there are, as they come and as their nodes do', () => {
    const watch = new Watch();
    for (let index = 0; index < 10_000; index++) watch.add(String(index), 1 + (index % 100));
    assert.equal(watch.clock.timers, 1);
    watch.away.set('n', [0, 1]);
    watch.expiry.nodeChanged('n');
    watch.away.clear();
    watch.expiry.nodeChanged('n');
    assert.equal(watch.clock.timers, 1);
    watch.expiry.clear();
    assert.equal(watch.clock.timers, 0);
  });

  it('has texts of a node that is away wait for at least so long, and at most', async () => {
    const watch = new Watch();
    watch.away.set('n', [2, 5]);
    watch.add('soon', 1);
    watch.add('late', 9);
    watch.add('never');
    assert.ok(!watch.expiry.isOver('soon'));
    await watch.pass(3);
    assert.deepEqual(watch.over, ['soon 2']);
    // It is known by now that it has been away for longer.
    watch.away.set('n', [2, 3.5]);
    watch.expiry.nodeChanged('n');
    await watch.pass(3);
    assert.deepEqual(watch.over, ['soon 2', 'late 3.5', 'never 3.5']);
  });

  it('does not find that those of a node that has been away for long enough end a moment later, each time it looks', async () => {
    const watch = new Watch(new FineClock());
    watch.away.set('n', [0, 1]);
    watch.add('a');
    await watch.pass(2);
    assert.equal(watch.over.length, 1);
  });

  it('has them wait for their own time again when the node is back', async () => {
    const watch = new Watch();
    watch.add('own', 9);
    watch.add('never');
    watch.away.set('n', [0, 5]);
    watch.expiry.nodeChanged('n');
    await watch.pass(4);
    watch.away.clear();
    watch.expiry.nodeChanged('n');
    await watch.pass(60);
    assert.deepEqual(watch.over, ['own 9']);
  });

  it('says again within a second of those that cannot end yet, with one timer for all', async () => {
    const watch = new Watch();
    const asked = new Map<string, number>();
    watch.onExpired = (id) => {
      const times = (asked.get(id) ?? 0) + 1;
      asked.set(id, times);
      if (times < 3) watch.expiry.postpone(id);
      else watch.expiry.forget(id);
    };
    for (let index = 0; index < 100; index++) watch.add(String(index), 1);
    await watch.clock.advance(minuteMs + 500);
    assert.equal(watch.clock.timers, 1);
    await watch.clock.advance(500);
    assert.deepEqual(new Set(asked.values()), new Set([2]));
    await watch.clock.advance(1_000);
    assert.deepEqual(new Set(asked.values()), new Set([3]));
    assert.equal(watch.clock.timers, 0);
  });

  it('says nothing again of one that is forgotten meanwhile', async () => {
    const watch = new Watch();
    watch.onExpired = (id) => watch.expiry.postpone(id);
    watch.add('a', 1);
    await watch.pass(1);
    watch.expiry.forget('a');
    await watch.pass(1);
    assert.equal(watch.over.length, 1);
  });
});
