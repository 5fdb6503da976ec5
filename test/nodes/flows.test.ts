import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Node, NodeAPI } from 'node-red';
import { startWithFlows } from '../../nodes/runtime/failures';
import { Flows, startedTimeoutMs } from '../../nodes/runtime/flows';
import { account, RunningFlow, sink, startService, stopEverything } from './running-flow';

const types = ['sms-in', 'sms-status', 'sms-outbox', 'sms-feed', 'sms-callback-in'];

describe('Flows', () => {
  afterEach(stopEverything);

  it('causes no Node.js warning while 150 nodes wait for the flows', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const sim = await startService();
    const nodes = types.flatMap((type) =>
      Array.from({ length: 30 }, (_, index) => ({
        id: `${type}-${index}`,
        type,
        account: 'account',
        path: `/${index}`,
        wires: [['sink']],
      })),
    );
    const flow = await RunningFlow.start([account(sim), ...nodes, sink('sink')]);
    await flow.deploy([account(sim), ...nodes, sink('sink')]);
    await nextTurn();
    process.removeListener('warning', onWarning);
    assert.deepEqual(warnings, []);
  });

  it('calls each listener once, in order, unless it is cancelled', async () => {
    const flow = await RunningFlow.start([]);
    const calls: string[] = [];
    const wait = (name: string, then = () => {}) =>
      Flows.of(flow.red).onceStarted(() => {
        calls.push(name);
        then();
      });
    const cancelled = wait('cancelled');
    wait('first', () => cancelledByFirst());
    const cancelledByFirst = wait('cancelled by the first');
    wait('second', () => wait('at the next start'));
    cancelled();
    await flow.deploy([]);
    assert.deepEqual(calls, ['first', 'second']);
    await flow.deploy([]);
    await flow.deploy([]);
    assert.deepEqual(calls, ['first', 'second', 'at the next start']);
  });
});

describe('startWithFlows', () => {
  afterEach(() => mock.timers.reset());

  it('calls `start` only once, even if the flows start after the timeout', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    for (const isTimeUp of [false, true]) {
      const events = new EventEmitter();
      let starts = 0;
      startWithFlows({ events } as unknown as NodeAPI, {} as Node, () => starts++);
      assert.equal(starts, 0);
      if (isTimeUp) mock.timers.tick(startedTimeoutMs);
      else events.emit('flows:started');
      assert.equal(starts, 1);
      events.emit('flows:started');
      mock.timers.tick(startedTimeoutMs);
      assert.equal(starts, 1);
    }
  });
});
