import assert from 'node:assert/strict';
import { DispatchOrder, type Waiting, WaitingTexts } from '../../../src/outbox/dispatch-order';
import { VirtualClock } from '../../virtual-clock';

/** A room of so many texts, of which every other has a higher priority. */
function createOrder(count: number) {
  const clock = new VirtualClock();
  const room = new WaitingTexts();
  const all = Array.from(
    { length: count },
    (_, order): Waiting => ({
      id: String(order),
      node: 'n',
      priority: order % 2,
      order,
      abort: undefined,
      isQueued: false,
    }),
  );
  for (const waiting of all) room.add(waiting);
  const queued: Waiting[] = [];
  const queueUp = (waiting: Waiting) => {
    waiting.isQueued = true;
    queued.push(waiting);
  };
  const expected = [...all.filter(({ priority }) => priority === 1), ...all.filter(({ priority }) => priority === 0)];
  return { clock, room, queued, expected, dispatchOrder: new DispatchOrder({ clock, room, queueUp }) };
}

describe('DispatchOrder', () => {
  it('has all queue up by priority and arrival, however many: a thousand in each turn of the event loop', async () => {
    const { clock, queued, expected, dispatchOrder } = createOrder(2_500);
    const perTurn: number[] = [];
    const count = () => {
      perTurn.push(queued.length);
      if (queued.length < expected.length) clock.nextTurn(count);
    };
    dispatchOrder.hold();
    count();
    await clock.advance(1);
    assert.deepEqual(queued, expected);
    assert.deepEqual(perTurn, [1_000, 2_000, 2_500]);
  });

  it('goes on with those that are left when another is held meanwhile', async () => {
    const { clock, queued, expected, dispatchOrder } = createOrder(2_500);
    dispatchOrder.hold();
    dispatchOrder.call();
    assert.ok(dispatchOrder.isCalled);
    await clock.advance(1);
    assert.ok(!dispatchOrder.isCalled);
    assert.deepEqual(queued, expected);
  });

  it('has nobody queue up any more once it is cancelled', async () => {
    const { clock, queued, dispatchOrder } = createOrder(2_500);
    dispatchOrder.hold();
    dispatchOrder.call();
    dispatchOrder.cancel();
    await clock.advance(1);
    assert.equal(queued.length, 1_000);
  });
});
