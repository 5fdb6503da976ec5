import assert from 'node:assert/strict';
import { FailingStore } from '../store/failing-store';
import { type FakeNode, forever, SendingSide, sendText } from './sending-side';

const keep = forever;
const minuteMs = 60_000;

const outagesOf = ({ outages }: FakeNode) => outages.map(({ code, waiting }) => `${code} ${waiting}`);

describe('a store failure during sending', () => {
  let store: FailingStore;
  let side: SendingSide;

  beforeEach(() => {
    store = new FailingStore();
    // Makes the store look as if it had data of an earlier process, so that the account opens it before any message is
    // sent.
    Object.defineProperty(store, 'mayHold', { value: true, writable: true });
    side = new SendingSide({ store });
  });

  const fail = () => void store.failing.add('open').add('recall').add('commit');
  const recover = async () => {
    store.failing.clear();
    await side.pass(10_000);
  };

  it('is reported once by each sending node', async () => {
    fail();
    const nodes = [side.attach('a'), side.attach('b')];
    await side.pass(minuteMs);
    const late = side.attach('late');
    await side.pass(minuteMs);
    for (const node of [...nodes, late]) {
      assert.deepEqual([outagesOf(node), node.state?.outage?.code], [['SMS_STORE 0'], 'SMS_STORE']);
    }
    await recover();
    for (const node of [...nodes, late]) assert.equal(node.state?.outage, undefined);
    assert.deepEqual([nodes[0]?.recoveries, nodes[1]?.recoveries, late.recoveries], [['store'], [], []]);
  });

  it('raises no error until a message needs the store', async () => {
    Object.assign(store, { mayHold: false });
    fail();
    const node = side.attach();
    await side.pass(minuteMs);
    assert.deepEqual([outagesOf(node), node.state?.outage?.code], [[], 'SMS_STORE']);
    await side.send(node, 'hello', { keep }, minuteMs);
    assert.deepEqual([node.ends, outagesOf(node)], [['SMS_STORE'], []]);
  });

  it('is not reported by a node that stores nothing', async () => {
    const leaving = side.attach('leaving', false);
    const plain = side.attach('plain', false);
    sendText(leaving, 'from before', { keep: { expireMs: undefined } });
    side.service.otherwise = { unreachable: true };
    await side.pass(minuteMs);
    store.failing.add('commit');
    side.service.otherwise = { takes: true };
    await side.send(plain, 'hello', {}, minuteMs);
    assert.deepEqual([plain.ends, outagesOf(plain), plain.state?.outage], [['to 6421555123'], [], undefined]);
    assert.deepEqual(outagesOf(leaving), ['SMS_UNREACHABLE 1', 'SMS_STORE 1']);
    await recover();
    assert.deepEqual([leaving.recoveries, plain.recoveries], [['store'], []]);
  });

  it('is not reported again after a redeploy', async () => {
    fail();
    const first = side.attach();
    await side.pass(minuteMs);
    await first.node.close();
    const second = side.attach();
    await side.close();
    const third = side.attach();
    await side.pass(minuteMs);
    assert.deepEqual([outagesOf(first), outagesOf(second), outagesOf(third)], [['SMS_STORE 0'], [], []]);
    assert.deepEqual([second.state?.outage?.code, third.state?.outage?.code], ['SMS_STORE', 'SMS_STORE']);
    await recover();
    assert.deepEqual([third.recoveries, third.state?.outage], [['store'], undefined]);
    fail();
    await side.send(third, 'refused', { once: 'x' }, minuteMs);
    assert.deepEqual([third.ends, outagesOf(third)], [['SMS_STORE'], []]);
    await recover();
    assert.deepEqual(third.recoveries, ['store', 'store']);
  });
});
