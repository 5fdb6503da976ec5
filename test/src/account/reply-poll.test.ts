import assert from 'node:assert/strict';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { type AttachedNode, sendText } from '../sending/sending-side';
import { attachSender, onDisk, useJoining } from './joining';

describe('the poll for reply requests', () => {
  const joining = useJoining();
  let clock: VirtualClock;

  beforeEach(() => {
    clock = new VirtualClock();
  });

  /** Sends a message that waits for a reply of a handset. */
  async function ask(node: AttachedNode, handset: string): Promise<void> {
    const ended = node.ends.length + 1;
    sendText(node, 'Come?', { to: [handset], waitMs: 3_600_000, messageId: handset });
    await until(() => node.ends.length === ended);
  }

  const passUntil = (isTrue: () => boolean) => joining.passUntil(clock, isTrue);

  it('is shared by all nodes until the last request ends', async () => {
    let maxPolls = 0;
    joining.simulator.on('change', () => {
      maxPolls = Math.max(maxPolls, joining.simulator.polling('incoming'));
    });
    const member = joining.enter({ clock });
    const [a, b] = [attachSender(member, 'a'), attachSender(member, 'b')];
    await ask(a, '6421555011');
    await ask(b, '6421555012');
    await until(() => joining.isPolling());
    joining.simulator.reply({ from: '6421555011', body: 'yes' });
    await until(() => a.answers.length === 1 && joining.isPolling());
    joining.simulator.reply({ from: '6421555012', body: 'yes' });
    await until(() => b.answers.length === 1 && member.state().polls.length === 0);
    assert.equal(maxPolls, 1);
    for (const { node } of [a, b]) await node.close();
  });

  it('reports an ongoing failure to a redeployed node', async () => {
    const member = joining.enter({ clock });
    const [a, other] = [attachSender(member, 'a'), attachSender(member, 'other')];
    await ask(a, '6421555011');
    await until(() => joining.isPolling());
    await a.node.close();
    joining.simulator.fault('incoming', { status: 500 });
    joining.receive('ends the poll in flight');
    await passUntil(() => member.state().polls.some(({ state }) => state === 'failing'));
    const back = attachSender(member, 'a');
    assert.deepEqual([a.outages, back.outages.map(({ code }) => code), other.outages], [[], ['SMS_SERVICE'], []]);
    for (const { node } of [back, other]) await node.close();
  });

  it('reports a failure once to each node with a request', async () => {
    joining.simulator.fault('incoming', { status: 500 });
    const outages = (...nodes: AttachedNode[]) => nodes.map((node) => node.outages.map(({ code }) => code));
    const member = joining.enter({ clock });
    const [a, idle] = [attachSender(member, 'a'), attachSender(member, 'idle')];
    await ask(a, '6421555011');
    await passUntil(() => a.outages.length > 0);
    const late = attachSender(member, 'late');
    await ask(late, '6421555012');
    assert.deepEqual(outages(a, late, idle), [['SMS_SERVICE'], ['SMS_SERVICE'], []]);

    for (const { node } of [a, late, idle]) await node.close();
    await Promise.all([member.leave(), clock.advance(20_000)]);
    const failedPolls = () => joining.simulator.requests.filter(({ status }) => status === 500).length;
    const before = failedPolls();
    const next = attachSender(joining.enter({ clock }), 'a');
    await passUntil(() => failedPolls() > before && !joining.isPolling());
    joining.simulator.fault('incoming', null);
    joining.receive('proves that polling works');
    await passUntil(() => next.recoveries.length > 0);
    assert.deepEqual(outages(next), [[]]);
    joining.simulator.fault('incoming', { status: 500 });
    joining.receive('ends the poll in flight');
    await passUntil(() => next.outages.length > 0);
    assert.deepEqual([outages(next), next.recoveries], [[['SMS_SERVICE']], ['polling']]);
    await next.node.close();
  });

  it('raises only one error if the store fails', async () => {
    const { stores, changes } = onDisk();
    const member = joining.enter({ clock, ...changes });
    const node = attachSender(member);
    await ask(node, '6421555011');
    await until(() => joining.isPolling());
    stores[0]?.failing.add('commit');
    joining.receive('cannot be stored');
    await passUntil(() => member.state().polls.some(({ state }) => state === 'failing') && node.outages.length > 0);
    stores[0]?.failing.clear();
    await passUntil(joining.isPolling);
    const codes = node.outages.map(({ code }) => code);
    assert.deepEqual([codes, node.recoveries], [['SMS_STORE'], ['store']]);
    await node.node.close();
  });
});
