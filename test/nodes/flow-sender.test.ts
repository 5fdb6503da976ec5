import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mock } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Node, NodeAPI, NodeInitializer } from 'node-red';
import { FlowSender } from '../../nodes/runtime/flow-sender';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { account, handset, payloadsOf, RunningFlow, sink, smsNode, useService } from './running-flow';

/** Called when the node `slow` closes. It must call `end` to complete the close. If undefined, closes immediately. */
let onClose: ((end: () => void) => void) | undefined;

/** A node that closes slowly, like a node that waits for a server. */
const slow = ((RED: NodeAPI) => {
  RED.nodes.registerType('slow', function (this: Node, config) {
    RED.nodes.createNode(this, config);
    this.on('close', (end: () => void) => (onClose ? onClose(end) : end()));
  });
}) as NodeInitializer;

/** Deploys changed nodes, calls `during` while the node `slow` closes, and resolves when the flow runs. */
async function deploySlowly(flow: RunningFlow, nodes: FlowNode[], during: () => Promise<unknown>): Promise<void> {
  const closing = new Promise<() => void>((resolve) => {
    onClose = resolve;
  });
  const deployed = flow.deploy(nodes, 'nodes');
  const end = await closing;
  onClose = undefined;
  await during();
  end();
  await deployed;
}

const slowNode = (name: string): FlowNode => ({ id: 'slow', type: 'slow', name, wires: [] });

describe('a node during a deploy', () => {
  const sim = useService();

  const onTab = [smsNode('in', { wires: [['got', 'other']] })];
  const inSubflow: FlowNode[] = [
    { id: 'sub', type: 'subflow', name: '', in: [], out: [{ x: 1, y: 1, wires: [{ id: 'in', port: 0 }] }] },
    smsNode('in', { x: 1, y: 1, z: 'sub', wires: [] }),
    { id: 'one', type: 'subflow:sub', name: '', wires: [['got', 'other']] },
  ];
  for (const [next, receiver] of [
    ['the next node', onTab],
    ['the node after its subflow', inSubflow],
  ] as const) {
    it(`loses no message while ${next} restarts`, async () => {
      const nodes = (name: string) => [
        account(sim),
        ...receiver,
        { ...sink('got'), name },
        sink('other'),
        slowNode(name),
      ];
      const flow = await RunningFlow.start(nodes('a'), { nodes: [slow] });
      sim.reply({ from: handset, body: 'before' });
      await flow.messages('got', 1);
      await deploySlowly(flow, nodes('b'), async () => {
        for (const body of ['first', 'second']) sim.reply({ from: handset, body });
        await sim.until(() => sim.incoming.every(({ read }) => read));
      });
      sim.reply({ from: handset, body: 'after' });
      for (const id of ['got', 'other']) {
        assert.deepEqual(payloadsOf(await flow.messages(id, 4)), ['before', 'first', 'second', 'after']);
      }
      assert.ok(flow.received('got').every(({ sms }) => !('redelivered' in (sms ?? {}))));
    });
  }

  it('sends a message immediately if the next node is unchanged', async () => {
    const nodes = (name: string) => [account(sim), smsNode('in'), sink('got'), slowNode(name)];
    const flow = await RunningFlow.start(nodes('a'), { nodes: [slow] });
    await deploySlowly(flow, nodes('b'), async () => {
      sim.reply({ from: handset, body: 'hello' });
      await flow.messages('got', 1);
    });
  });

  it('holds an error until the Catch node has restarted', async () => {
    const nodes = (name: string) => [
      account(sim),
      smsNode('in'),
      smsNode('send'),
      smsNode('send', { id: 'keeping', keep: true }),
      { id: 'catch', type: 'catch', name, scope: null, uncaught: false, wires: [['caught']] },
      sink('caught'),
      slowNode(name),
    ];
    const flow = await RunningFlow.start(nodes('a'), { nodes: [slow] });
    await deploySlowly(flow, nodes('b'), async () => {
      sim.fault('send', { status: 400 });
      sim.fault('incoming', { status: 401 });
      flow.send('send', { topic: handset, payload: 'refused' });
      flow.send('send', { topic: 'no number+', payload: 'bad' });
      flow.send('keeping', { topic: handset, payload: 'refused as well' });
      const refused = () => sim.requests.filter(({ status, ended }) => ended && (status === 400 || status === 401));
      await sim.until(() => refused().length === 3);
      await sleep(20);
      assert.equal(flow.received('caught').length, 0);
    });
    await until(() => flow.received('caught').length >= 4);
    await sleep(50);
    const caught = flow.received('caught').map(({ error, payload }) => [error?.source.id, payload]);
    assert.deepEqual(caught.sort(), [
      ['in', undefined],
      ['keeping', 'refused as well'],
      ['send', 'bad'],
      ['send', 'refused'],
    ]);
    assert.deepEqual(flow.completions.map(({ id }) => id).sort(), ['keeping', 'send', 'send']);
  });
});

describe('FlowSender', () => {
  /**
   * Stands in for the parts of Node-RED that the sender uses: active nodes by id, and the messages that they receive.
   */
  class Stage {
    readonly events = new EventEmitter();
    readonly active = new Map<string, object>();
    /** The payloads that active nodes have received. */
    readonly received: unknown[] = [];
    readonly node: Node & { wires: string[][] };
    readonly sender: FlowSender;

    /** Creates a node that is wired to the active node `a` and to the nodes `others`, which do not exist. */
    constructor(...others: string[]) {
      const wires = [['a', ...others]];
      const send = (outputs: { payload: unknown }[]) => {
        const nexts = wires.flat().map((id) => [id, this.active.get(id)] as const);
        setImmediate(() => {
          for (const [id, next] of nexts) {
            if (next && this.active.get(id) === next) this.received.push(outputs[0]?.payload);
          }
        });
      };
      this.node = { id: 'node', wires, send } as never;
      const nodes = { getNode: (id: string) => this.active.get(id) ?? null };
      this.sender = new FlowSender({ events: this.events, nodes } as never, this.node);
      this.active.set('node', this.node);
      this.start('a');
    }

    start(...ids: string[]): void {
      for (const id of ids) this.active.set(id, { id });
      this.events.emit('flows:started');
    }

    stop(...ids: string[]): void {
      this.events.emit('flows:stopping');
      for (const id of ids) this.active.delete(id);
    }

    send(payload: unknown): Promise<boolean> {
      return this.sender.send(() => [{ payload }]);
    }
  }

  it('resends a message that a stopping node lost', async () => {
    const stage = new Stage();
    let sent: Promise<boolean> | undefined;
    stage.events.once('flows:stopping', () => {
      sent = stage.send(1);
    });
    stage.stop('a');
    setImmediate(() => setImmediate(() => stage.start('a')));
    assert.equal(await sent, true);
    assert.deepEqual(stage.received, [1]);
  });

  it('does not wait for a node that does not exist', async () => {
    const stage = new Stage('gone');
    stage.stop('other');
    assert.equal(await stage.send(1), true);
    assert.deepEqual(stage.received, [1]);
  });

  it('reports that it sent nothing if its node and the next node stop', async () => {
    for (const ids of [
      ['a', 'node'],
      ['node', 'a'],
    ]) {
      const stage = new Stage();
      const onItsWay = stage.send(1);
      stage.stop(...ids);
      assert.deepEqual(await Promise.all([onItsWay, stage.send(2)]), [false, false]);
      stage.sender.close();
      assert.equal(await stage.send(3), false);
      assert.deepEqual(stage.received, []);
    }
  });

  it('sends the rest of a list, in order, after its node starts again', async () => {
    const stage = new Stage();
    let isStopped = false;
    const left = [1, 2, 3].map((payload) => () => {
      if (payload === 3 && !isStopped) stage.stop('a', 'node');
      if (payload === 3) isStopped = true;
      return [{ payload }] as never;
    });
    assert.deepEqual([await stage.sender.sendEach(left), left.length], [false, 1]);
    stage.start('a');
    stage.active.set('node', stage.node);
    assert.deepEqual([await stage.sender.sendEach(left), left.length], [true, 0]);
    assert.deepEqual(stage.received, [1, 2, 3]);
  });

  it('stops waiting when its node closes', async () => {
    const stage = new Stage();
    stage.stop('a');
    const waiting = stage.send(1);
    await sleep(5);
    stage.sender.close();
    assert.equal(await waiting, false);
    stage.start('a');
    await sleep(5);
    assert.deepEqual(stage.received, []);
  });

  it('keeps the order of messages that wait until a deploy ends', async () => {
    const stage = new Stage();
    stage.stop('a');
    const sent = [stage.send(1)];
    await sleep(1);
    sent.push(stage.send(2));
    await sleep(1);
    stage.start('a');
    sent.push(stage.send(3));
    assert.deepEqual(await Promise.all(sent), [true, true, true]);
    assert.deepEqual(stage.received, [1, 2, 3]);
  });

  it('waits at most 10 s for stopped flows to start again', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const stage = new Stage();
      stage.stop('a');
      let told: boolean | undefined;
      void stage.send(1).then((isSent) => {
        told = isSent;
      });
      mock.timers.tick(60_000);
      await nextTurn();
      // The sender still waits, because slow nodes can delay the stop of the flows. The 10 s begin after the stop.
      assert.equal(told, undefined);
      stage.events.emit('flows:stopped');
      mock.timers.tick(9_999);
      await nextTurn();
      assert.equal(told, undefined);
      mock.timers.tick(1);
      for (let n = 0; n < 3; n++) await nextTurn();
      assert.equal(told, true);
    } finally {
      mock.timers.reset();
    }
  });
});
