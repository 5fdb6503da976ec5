import assert from 'node:assert/strict';
import type { Simulator } from '../../simulator';
import { Client } from '../../src';
import { until } from '../until';
import { account, catcher, coreNode, RunningFlow, sink, startService, stopEverything, stopLater } from './running-flow';

const secret = 's3cret';
const warnLevel = 30;

/** Lets every call of a method of the client throw what no error of the library is. */
function failWith(method: 'pollIncoming' | 'readFeed', thrown: unknown): void {
  const original = Client.prototype[method];
  Object.assign(Client.prototype, { [method]: () => Promise.reject(thrown) });
  stopLater(async () => {
    Object.assign(Client.prototype, { [method]: original });
  });
}

describe('an error that nobody has foreseen', () => {
  let sim: Simulator;

  beforeEach(async () => {
    sim = await startService();
  });

  afterEach(stopEverything);

  for (const [type, method, trigger] of [
    ['sms-in', 'pollIncoming', false],
    ['sms-feed', 'readFeed', true],
  ] as const) {
    it(`has a badge and an error of the service at ${type}, and its name and place in the log, without its message`, async () => {
      failWith(method, new RangeError(`a mistake with ${secret}\n    at ${secret} (x:1:1)`));
      const flow = await RunningFlow.start([
        account(sim),
        { id: 'node', type, account: 'account', wires: [['got']] },
        sink('got'),
        ...catcher(),
      ]);
      if (trigger) flow.send('node');
      await flow.badge('node', { fill: 'red', shape: 'ring', text: 'service error' });
      const [caught] = await flow.messages('caught', 1);
      assert.equal(caught?.sms?.error?.code, 'SMS_SERVICE');
      const warnings = flow.log.filter(({ id, level }) => id === 'node' && level === warnLevel);
      assert.equal(warnings.length, 1);
      assert.match(String(warnings[0]?.msg), /^The cause: RangeError at .*outcome\.test\.ts:\d+:\d+/);
      assert.equal(JSON.stringify([flow.log, caught]).includes(secret), false);
    });
  }

  it('is told from what is thrown and no error at all', async () => {
    failWith('readFeed', secret);
    const flow = await RunningFlow.start([
      account(sim),
      { id: 'node', type: 'sms-feed', account: 'account', wires: [[]] },
    ]);
    flow.send('node');
    await until(() => flow.log.some(({ msg }) => msg === 'The cause: string'));
    assert.equal(JSON.stringify(flow.log).includes(secret), false);
  });
});

describe('a message that cannot be written to, or not be read', () => {
  let sim: Simulator;

  beforeEach(async () => {
    sim = await startService();
  });

  afterEach(stopEverything);

  const wired = (type: string, properties: Record<string, unknown> = {}) => [
    { id: 'node', type, account: 'account', output: 'list', interval: '0', wires: [['got'], ['got']], ...properties },
    sink('got'),
    { id: 'complete', type: 'complete', scope: ['node'], uncaught: false, wires: [['completed']] },
    sink('completed'),
    ...catcher(),
  ];
  const start = (type: string, properties: Record<string, unknown> = {}) =>
    RunningFlow.start([account(sim), ...wired(type, properties)], { nodes: [coreNode('common/24-complete')] });

  const text = { _msgid: '1', topic: '64215551234', payload: 'hello' };
  const trap = () => {
    throw new Error('a trap');
  };
  const messages: [what: string, create: () => Record<string, unknown>][] = [
    ['is frozen', () => Object.freeze({ ...text })],
    [
      'is frozen and has a property that nobody can read',
      () => Object.freeze(Object.defineProperty({ ...text }, 'broken', { enumerable: true, get: trap })),
    ],
    ['has a read-only msg.sms', () => Object.defineProperty({ ...text }, 'sms', { value: {}, enumerable: true })],
    [
      'has a msg.sms without a setter',
      () => Object.defineProperty({ ...text }, 'sms', { get: () => ({}), enumerable: true }),
    ],
    [
      'inherits a msg.sms without a setter',
      () =>
        Object.assign(
          Object.create({
            get sms() {
              return {};
            },
          }),
          text,
        ),
    ],
  ];

  for (const type of ['sms-send', 'sms-feed', 'sms-outbox']) {
    for (const [what, create] of messages) {
      it(`passes through ${type} where it ${what}, and its failure is in the message that is raised`, async () => {
        const flow = await start(type);
        flow.send('node', create());
        const [got] = await flow.messages('got', 1);
        assert.deepEqual([got?.topic, got?._msgid], [text.topic, '1']);
        assert.deepEqual(await flow.done('node', 1), [{ id: 'node', error: undefined }]);
        await flow.deploy(wired(type, { account: 'gone' }));
        const raised = () => flow.received('caught').filter(({ _msgid }) => _msgid === '1');
        flow.send('node', create());
        await until(() => raised().length > 0);
        const [{ sms, error, topic } = {}] = raised();
        assert.deepEqual([sms?.error?.code, error?.code, topic], ['SMS_CONFIG', 'SMS_CONFIG', text.topic]);
        const [, failed] = await flow.done('node', 2);
        assert.equal((failed?.error as { code?: string } | undefined)?.code, 'SMS_CONFIG');
        assert.deepEqual([raised().length, flow.received('got').length], [1, 1]);
      });
    }

    it(`has one outcome at ${type} where a property of it cannot be read`, async () => {
      const create = () => Object.defineProperty({ ...text }, 'broken', { enumerable: true, get: trap });
      const flow = await start(type, type === 'sms-send' ? {} : { output: 'each' });
      flow.send('node', create());
      await flow.done('node', 1);
      flow.send('node', { ...text, _msgid: '2' });
      await flow.messages('completed', 1);
      await flow.done('node', 2);
      assert.equal(flow.received('got').length + flow.received('caught').length, type === 'sms-send' ? 2 : 0);
      assert.deepEqual(flow.received('caught'), []);
      await flow.deploy(wired(type, { account: 'gone' }));
      const raised = () => flow.received('caught').filter(({ _msgid }) => _msgid === '1');
      flow.send('node', create());
      await until(() => raised().length > 0);
      assert.deepEqual([raised()[0]?.sms?.error?.code, raised()[0]?.error?.code], ['SMS_CONFIG', 'SMS_CONFIG']);
    });
  }

  for (const [what, sms] of [
    ['throws as it is read', () => Object.defineProperty({}, 'ackId', { get: trap })],
    ['is one of which nothing can be read', () => new Proxy({}, { get: trap, getOwnPropertyDescriptor: trap })],
  ] as const) {
    it(`acknowledges nothing where what it acknowledges ${what}, and has one outcome`, async () => {
      const flow = await start('sms-send');
      flow.send('node', { ...text, sms: sms() });
      const [got] = await flow.messages('got', 1);
      assert.deepEqual([got?.sms?.accepted, got?.sms && 'ackId' in got.sms], [[text.topic], false]);
      flow.send('node', { ...text, topic: '', sms: sms() });
      const [caught] = await flow.messages('caught', 1);
      assert.deepEqual([caught?.sms?.error?.code, caught?.sms?.error?.field], ['SMS_INPUT', 'to']);
      assert.equal((await flow.done('node', 2)).length, 2);
      assert.deepEqual([flow.received('got').length, flow.received('caught').length], [1, 1]);
    });

    it(`acknowledges nothing at sms-in where what it acknowledges ${what}`, async () => {
      const flow = await start('sms-in', { ack: true });
      flow.send('node', { ...text, sms: sms() });
      assert.deepEqual(await flow.done('node', 1), [{ id: 'node', error: undefined }]);
      assert.deepEqual(flow.received('caught'), []);
    });
  }

  it('counts as failed and not as complete', async () => {
    const flow = await start('sms-send', { to: '12', toType: 'str' });
    flow.send('node', Object.freeze({ ...text }));
    await flow.messages('caught', 1);
    await flow.deploy([account(sim), ...wired('sms-send')]);
    flow.send('node', Object.freeze({ ...text, _msgid: '2' }));
    const [completed] = await flow.messages('completed', 1);
    assert.equal(completed?._msgid, '2');
  });
});
