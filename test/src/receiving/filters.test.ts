import assert from 'node:assert/strict';
import type { InboxRecord, IncomingRecord } from '../../../src/model';
import type { RecordingNode } from '../delivery/recording-node';
import { incoming } from '../inbox/arrivals';
import { useInbox } from '../inbox/use-inbox';

/** The filter `new` of `sms-in`. */
const isNew = (record: InboxRecord) => !(record as IncomingRecord).isReply;
const isAny = () => true;

const createReply = (messageId?: string) => incoming(messageId, { body: 'yes', isReply: true, query: { id: '7' } });

describe('a message excluded by a filter', () => {
  /**
   * Reports the outcome of a sent message. Until then, the account delays the record with the messageId `held back`,
   * because it might be a reply to that message.
   */
  let settleOutcome = () => {};
  const bench = useInbox(() => {
    const outcome = new Promise<void>((resolve) => {
      settleOutcome = resolve;
    });
    return {
      correlator: ({ record }) => ({
        mayAnswer: false,
        keys: [],
        ...(record.messageId === 'held back' && { outcome }),
        correlate: () => ({ record, effect() {} }),
      }),
    };
  });
  const { attach, pass } = bench;

  const listen = (wants: (record: InboxRecord) => boolean, id = 'in') => attach({ id, wants, acknowledge: 'auto' });
  const attachCallback = () => attach({ channel: 'callback', id: 'callback', path: '/sms', acknowledge: 'auto' });
  const poll = (messageId?: string) => bench.receive(createReply(messageId));
  const callBack = (messageId?: string) => bench.callBack(createReply(messageId));
  /** Removes the listening node, and then polls a message. Returns the removed node. */
  const pollAfterRemoval = async (wants: (record: InboxRecord) => boolean) => {
    const removedNode = listen(wants);
    await pass();
    removedNode.detach();
    await poll('m1');
    return removedNode;
  };
  const bodiesOf = (...nodes: RecordingNode[]) => nodes.map(({ bodies }) => bodies);

  for (const [how, messageId] of [
    ['have a messageId', 'm1'],
    ['have no messageId', undefined],
  ] as const) {
    it(`goes to the callback node once if its callbacks ${how}`, async () => {
      const [polling, called] = [listen(isNew), attachCallback()];
      assert.deepEqual(await poll('m1'), ['new']);
      await callBack(messageId);
      await callBack(messageId);
      assert.deepEqual(bodiesOf(polling, called), [[], ['yes']]);
      assert.notDeepEqual(await poll('m1'), ['new']);
      assert.equal(bench.state.undelivered, 0);
    });
  }

  it('goes to the callback node if polled and called back at the same time', async () => {
    const [polling, called] = [listen(isNew), attachCallback()];
    await Promise.all([poll('m1'), callBack('m1')]);
    assert.deepEqual(bodiesOf(polling, called), [[], ['yes']]);
  });

  it('counts as repeated when it is polled again', async () => {
    listen(isNew);
    assert.deepEqual(await poll('m1'), ['new']);
    for (const _ of [1, 2]) assert.deepEqual(await poll('m1'), ['repeated']);
  });

  for (const [how, id] of [
    ['with a different filter', 'in'],
    ['with a different id', 'other'],
  ] as const) {
    it(`goes to a node ${how} after a redeploy`, async () => {
      const before = await pollAfterRemoval(isNew);
      const after = listen(isAny, id);
      await pass();
      assert.deepEqual([...bodiesOf(before, after), bench.state.undelivered], [[], ['yes'], 0]);
    });
  }

  it('goes to the callback node if its callback comes after a redeploy', async () => {
    const called = attachCallback();
    const before = await pollAfterRemoval(isAny);
    const after = listen(isNew);
    await pass();
    assert.equal(bench.state.undelivered, 0);
    await callBack('m1');
    assert.notDeepEqual(await poll('m1'), ['new']);
    assert.deepEqual(bodiesOf(before, after, called), [[], [], ['yes']]);
  });

  it('goes to the polling node if a callback comes during a redeploy', async () => {
    const called = attachCallback();
    await pollAfterRemoval(isAny);
    await callBack('m1');
    const after = listen(isAny);
    await pass();
    await callBack('m1');
    assert.deepEqual(bodiesOf(after, called), [['yes'], []]);
  });

  for (const [what, addNode] of [
    ['a filter change', () => listen(isNew)],
    ['a node removal', () => attach({ channel: 'status' })],
  ] as const) {
    it(`goes to the callback node if its callback came before ${what}`, async () => {
      const called = attachCallback();
      const before = listen(isAny);
      before.isFlowRunning = false;
      await poll('m1');
      await callBack('m1');
      assert.deepEqual(bodiesOf(before, called), [['yes'], []]);
      before.detach();
      addNode();
      await pass();
      assert.deepEqual(
        called.sent.map(({ record }) => [record.body, record.query]),
        [['yes', { id: '7' }]],
      );
      assert.deepEqual(bench.state, { undelivered: 0, unhandled: 0 });
    });
  }

  it('goes to the callback node although it was held back for an outcome', async () => {
    const called = attachCallback();
    const before = listen(isAny);
    await poll('held back');
    await callBack('held back');
    before.detach();
    listen(isNew);
    await pass();
    assert.deepEqual(bodiesOf(before, called), [[], []]);
    settleOutcome();
    await pass();
    assert.deepEqual(bodiesOf(before, called), [[], ['yes']]);
    assert.deepEqual(bench.state, { undelivered: 0, unhandled: 0 });
  });

  it('goes only to the polling node that accepts it', async () => {
    const [some, all, called] = [listen(isNew), listen(isAny, 'all'), attachCallback()];
    await poll('m1');
    await callBack('m1');
    assert.deepEqual(bodiesOf(some, all, called), [[], ['yes'], []]);
  });
});
