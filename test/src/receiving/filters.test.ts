import assert from 'node:assert/strict';
import type { Inbox } from '../../../src/inbox/inbox';
import type { InboxRecord, IncomingRecord } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { RecordingNode } from '../delivery/recording-node';
import { calledBack, incoming, polled } from '../inbox/arrivals';
import { Inboxes } from '../inbox/inbox-on';
import { FailingStore } from '../store/failing-store';

/** The filter `new` of `sms-in`. */
const isNew = (record: InboxRecord) => !(record as IncomingRecord).isReply;
const isAny = () => true;

const createReply = (messageId?: string) => incoming(messageId, { body: 'yes', isReply: true });

describe('a message that every filter leaves out', () => {
  let clock: VirtualClock;
  let inbox: Inbox;
  /** Makes the outcome known for which the message "held back" waits. The message might answer another message. */
  let settleOutcome = () => {};
  const inboxes = new Inboxes();

  beforeEach(() => {
    clock = new VirtualClock();
    const outcome = new Promise<void>((resolve) => {
      settleOutcome = resolve;
    });
    inbox = inboxes.create({
      store: new FailingStore(),
      clock,
      correlator: ({ record }) => ({
        mayAnswer: false,
        keys: [],
        ...(record.messageId === 'held back' && { outcome }),
        correlate: () => ({ record, effect() {} }),
      }),
    });
  });
  afterEach(() => inboxes.close());

  const listen = (wants: (record: InboxRecord) => boolean, id = 'in') =>
    new RecordingNode(inbox, { id, wants, acknowledge: 'auto' });
  const attachCallback = () =>
    new RecordingNode(inbox, { channel: 'callback', id: 'callback', path: '/sms', acknowledge: 'auto' });

  async function poll(messageId?: string): Promise<string[]> {
    const accepting = inbox.accept(polled(createReply(messageId)));
    await clock.advance(30);
    return accepting;
  }

  async function callBack(messageId?: string): Promise<void> {
    const accepting = inbox.accept(calledBack({ ...createReply(messageId), query: { id: '7' } }));
    await Promise.all([accepting, clock.advance(30)]);
  }

  const bodiesOf = (...nodes: RecordingNode[]) => nodes.map(({ bodies }) => bodies);

  for (const [how, messageId] of [
    ['by its messageId', 'm1'],
    ['by sender, body and date', undefined],
  ] as const) {
    it(`goes to the callback node once, recognised ${how}`, async () => {
      const [polling, called] = [listen(isNew), attachCallback()];
      assert.deepEqual(await poll('m1'), ['new']);
      await callBack(messageId);
      await callBack(messageId);
      assert.deepEqual(bodiesOf(polling, called), [[], ['yes']]);
      assert.notDeepEqual(await poll('m1'), ['new']);
      assert.equal(inbox.state.undelivered, 0);
    });
  }

  it('goes to a callback node that receives it at the same moment', async () => {
    const [polling, called] = [listen(isNew), attachCallback()];
    await Promise.all([poll('m1'), callBack('m1')]);
    assert.deepEqual(bodiesOf(polling, called), [[], ['yes']]);
  });

  it('counts as repeated if the service returns it again', async () => {
    listen(isNew);
    assert.deepEqual(await poll('m1'), ['new']);
    for (const _ of [1, 2]) assert.deepEqual(await poll('m1'), ['repeated']);
  });

  for (const [how, id] of [
    ['with another filter', 'in'],
    ['with another id', 'other'],
  ] as const) {
    it(`goes to a node ${how} that a deployment adds`, async () => {
      const before = listen(isNew);
      await clock.advance(30);
      before.detach();
      await poll('m1');
      const after = listen(isAny, id);
      await clock.advance(30);
      assert.deepEqual([...bodiesOf(before, after), inbox.state.undelivered], [[], ['yes'], 0]);
    });
  }

  it('goes to the callback node if the deployment adds the filter', async () => {
    const called = attachCallback();
    const before = listen(isAny);
    await clock.advance(30);
    before.detach();
    await poll('m1');
    const after = listen(isNew);
    await clock.advance(30);
    assert.equal(inbox.state.undelivered, 0);
    await callBack('m1');
    assert.notDeepEqual(await poll('m1'), ['new']);
    assert.deepEqual(bodiesOf(before, after, called), [[], [], ['yes']]);
  });

  it('goes to the polling node if the service calls back during its redeploy', async () => {
    const called = attachCallback();
    const before = listen(isAny);
    await clock.advance(30);
    before.detach();
    await poll('m1');
    await callBack('m1');
    const after = listen(isAny);
    await clock.advance(30);
    await callBack('m1');
    assert.deepEqual(bodiesOf(after, called), [['yes'], []]);
  });

  for (const [what, addNode] of [
    ['adds a filter', () => listen(isNew)],
    ['removes the polling node', () => new RecordingNode(inbox, { channel: 'status' })],
  ] as const) {
    it(`goes to the callback node called before a deployment ${what}`, async () => {
      const called = attachCallback();
      const before = listen(isAny);
      before.isFlowRunning = false;
      await poll('m1');
      await callBack('m1');
      assert.deepEqual(bodiesOf(before, called), [['yes'], []]);
      before.detach();
      addNode();
      await clock.advance(30);
      assert.deepEqual(
        called.sent.map(({ record }) => [record.body, record.query]),
        [['yes', { id: '7' }]],
      );
      assert.deepEqual(inbox.state, { undelivered: 0, unhandled: 0 });
    });
  }

  it('goes to the callback node called before the awaited outcome was known', async () => {
    const called = attachCallback();
    const before = listen(isAny);
    await poll('held back');
    await callBack('held back');
    before.detach();
    listen(isNew);
    await clock.advance(30);
    assert.deepEqual(bodiesOf(before, called), [[], []]);
    settleOutcome();
    await clock.advance(30);
    assert.deepEqual(bodiesOf(before, called), [[], ['yes']]);
    assert.deepEqual(inbox.state, { undelivered: 0, unhandled: 0 });
  });

  it('goes only to a polling node whose filter accepts it', async () => {
    const [some, all, called] = [listen(isNew), listen(isAny, 'all'), attachCallback()];
    await poll('m1');
    await callBack('m1');
    assert.deepEqual(bodiesOf(some, all, called), [[], ['yes'], []]);
  });
});
