import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { createAccount, createNode, createReceiver } from './flows';
import { type Machine, receive, useMachine } from './machine';
import { crash, inject, readCounts, waitForCounts, waitUntil } from './recorder';

const waiting = 5;

describe('Node-RED during a shutdown', function () {
  this.timeout(180_000);
  const machine = useMachine({ waitMs: 200 });

  it('delivers each message once despite SIGINT', async () => {
    const { simulator, nodeRed, observed } = machine;
    await nodeRed.start({ flows: createReceiver(simulator, observed) });
    let sent = 0;
    const feeding = setInterval(() => receive(machine, `m${sent++}`), 2);
    await waitUntil(() => readCounts(observed).size > 50, 'messages flow');
    process.kill(nodeRed.pid, 'SIGINT');
    const { code } = await nodeRed.exited;
    clearInterval(feeding);
    assert.equal(code, 0);
    assert.doesNotMatch(nodeRed.log, crash);
    await simulator.until(() => simulator.polling('incoming') === 0);
    // Leaves out the last polled message, because the process might have ended before the poll answer arrived.
    const inTransit = simulator.incoming.filter(({ read }) => read).at(-1)?.body;
    const expected = simulator.incoming.map(({ body }) => body).filter((body) => body !== inTransit);
    await nodeRed.start();
    const missing = () => expected.filter((body) => !readCounts(observed).has(body));
    await waitUntil(
      () => missing().length === 0,
      () => `all of ${sent} messages; missing: ${missing()}`,
    );
    const counts = readCounts(observed);
    assert.deepEqual(
      [...counts].filter(([, count]) => count > 1),
      [],
      'delivered twice',
    );
  });

  it('loses no message if SIGTERM arrives in the middle of a poll answer', async () => {
    const { simulator, nodeRed, observed } = machine;
    await nodeRed.start({ flows: createReceiver(simulator, observed) });
    simulator.fault('incoming', { dripMs: 8 });
    await waitForNextPoll(simulator);
    const message = receive(machine, 'half');
    await waitUntil(() => message.read, 'the message is read');
    // Waits until the head of the answer has arrived. The body takes many times as long.
    await sleep(200);
    const poll = simulator.requests.filter(({ status }) => status === 200).at(-1);
    assert.ok(poll && !poll.ended, 'the whole answer had already arrived');
    process.kill(nodeRed.pid, 'SIGTERM');
    assert.equal((await nodeRed.exited).code, 0);
    assert.deepEqual([...readCounts(observed)], [], 'it was delivered before the process ended');
    simulator.fault('incoming', null);
    await nodeRed.start();
    assert.deepEqual([...(await waitForCounts(observed, 1))], [['half', 1]]);
  });

  it('finishes only the current send after SIGTERM', async () => {
    const { simulator, nodeRed } = machine;
    await nodeRed.start({ flows: createSendingFlow(machine) });
    await pressWhileOneIsInFlight(machine);
    await nodeRed.stop();
    assert.deepEqual(await nodeRed.exited, { code: 0, signal: null });
    assert.deepEqual(
      simulator.messages.map(({ body }) => body),
      ['text 0'],
    );
    const [request] = simulator.requests;
    assert.ok(request?.ended, 'the send in flight was cut off');
    assert.match(
      nodeRed.log,
      new RegExp(`\\[warn\\] \\[sms-send:send\\] ${waiting} × .*stopped before the message was sent`),
    );
    assert.doesNotMatch(nodeRed.log, crash);
  });

  it('exits in time although the service never answers its requests', async () => {
    const { simulator, nodeRed } = machine;
    for (const endpoint of ['incoming', 'send'] as const) simulator.fault(endpoint, { hang: true });
    await nodeRed.start({ flows: [...createSendingFlow(machine), createNode('in', 'sms-in', [[]])] });
    await inject(nodeRed, 'press', { payload: 'hangs' });
    for (const endpoint of ['incoming', 'send'] as const)
      await waitUntil(() => simulator.polling(endpoint) === 1, `a request to ${endpoint}`);
    await nodeRed.stop();
    assert.equal((await nodeRed.exited).code, 0);
    assert.match(nodeRed.log, /\[warn\] \[sms-send:send\] 1 × .*might have been sent/);
    assert.doesNotMatch(nodeRed.log, /Close timed out|timed out after \d+ms/i);
    assert.equal(simulator.requests.length, 2);
    assert.deepEqual(new Set(simulator.requests.map(({ status }) => status)), new Set([undefined]));
  });
});

/** Creates a flow that sends one message at a time. */
function createSendingFlow({ simulator }: Machine): FlowNode[] {
  return [
    createAccount(simulator, { concurrency: 1 }),
    { id: 'tab', type: 'tab', label: 'flow' },
    createNode('press', 'inject', [['send']], { props: [], repeat: '', once: false }),
    // Has no name, so that the log shows the id of the node.
    createNode('send', 'sms-send', [[], []], { to: '64215550001', toType: 'str' }),
  ];
}

/** Waits for a poll that starts after this call. */
async function waitForNextPoll(simulator: Simulator): Promise<void> {
  const before = simulator.requests.length;
  await simulator.until(() => simulator.requests.length > before, 60_000);
}

/** Delays the answer to one send while further messages wait for their turn. */
async function pressWhileOneIsInFlight({ simulator, nodeRed }: Machine): Promise<void> {
  simulator.fault('send', { delayMs: 4_000 });
  for (let n = 0; n <= waiting; n++) await inject(nodeRed, 'press', { payload: `text ${n}` });
  assert.equal(simulator.messages.length, 0, 'the first text was sent before the others waited');
}
