import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { until } from '../until';
import { bodiesOf, handset, RunningFlow, requireFromNodeRed, sendNode, useService } from './running-flow';

type Callback = (error?: unknown, value?: unknown) => void;

/** A context store that answers when the test allows it. */
class SlowStore {
  readonly asked: Callback[] = [];

  /** For `contextStorage` in the settings of Node-RED. */
  readonly module = () => ({
    open: async () => {},
    close: async () => {},
    clean: async () => {},
    delete: async () => {},
    keys: (_scope: string, callback: Callback) => callback(undefined, []),
    set: (_scope: string, _key: string, _value: unknown, callback?: Callback) => callback?.(),
    get: (_scope: string, _key: string, callback: Callback) => void this.asked.push(callback),
  });

  async answer(error: unknown, value?: unknown): Promise<void> {
    await until(() => this.asked.length > 0, 'the context store is asked');
    this.asked.shift()?.(error, value);
  }
}

describe('sms-send with a body in a slow context store', () => {
  const sim = useService();
  let store: SlowStore;

  beforeEach(async () => {
    store = new SlowStore();
  });

  const nodes = (properties: Record<string, unknown> = {}, of?: Record<string, unknown>) =>
    sendNode(sim, { body: 'text', bodyType: 'flow', ...properties }, of);

  async function start(properties: Record<string, unknown> = {}): Promise<RunningFlow> {
    const settings = { contextStorage: { default: { module: store.module } } };
    const flow = await RunningFlow.start(nodes(properties), { settings });
    // Loads the context stores, because the test helper does not.
    const context = requireFromNodeRed('@node-red/runtime/lib/nodes/context') as { load(): Promise<void> };
    await context.load();
    return flow;
  }

  const codes = (flow: RunningFlow) =>
    flow.completions.map(({ error }) => (error as { code?: string } | undefined)?.code);

  for (const type of ['full', 'flows', 'nodes'] as const) {
    for (const keep of [false, true]) {
      it(`sends a body that it reads during a \`${type}\` deploy if \`keep\` is ${keep ? 'on' : 'off'}`, async () => {
        const flow = await start({ keep });
        flow.send('send', { topic: handset });
        await until(() => store.asked.length > 0);
        const deployed = flow.deploy(nodes({ keep, name: 'new' }, { name: 'new' }), type);
        await nextTurn();
        await store.answer(undefined, 'hello');
        await deployed;
        const [sent] = await flow.messages('sent', 1);
        assert.deepEqual(sent?.sms?.accepted, [handset]);
        assert.deepEqual(bodiesOf(sim), ['hello']);
        assert.deepEqual(codes(flow), [undefined]);
        assert.deepEqual([flow.received('caught').length, flow.logged('send')], [0, []]);
      });
    }
  }

  it('sends messages in order although it reads the second body first', async () => {
    const flow = await start({ keep: true });
    for (const topic of [handset, '64215551235']) flow.send('send', { topic });
    await until(() => store.asked.length === 2);
    store.asked.pop()?.(undefined, 'second');
    await nextTurn();
    await store.answer(undefined, 'first');
    await flow.messages('sent', 2);
    assert.deepEqual(bodiesOf(sim), ['first', 'second']);
  });

  it('sends the next message although it never receives the first body', async () => {
    const flow = await start();
    for (const topic of [handset, '64215551235']) flow.send('send', { topic });
    await until(() => store.asked.length === 2);
    store.asked.pop()?.(undefined, 'second');
    const [sent] = await flow.messages('sent', 1);
    assert.equal(sent?.topic, '64215551235');
  });

  for (const keep of [false, true]) {
    it(`logs SMS_CLOSED if a deploy interrupts the read and \`keep\` is ${keep ? 'on' : 'off'}`, async () => {
      const flow = await start({ keep });
      for (const topic of [handset, '64215551235']) flow.send('send', { topic });
      await until(() => store.asked.length === 2);
      await flow.deploy(nodes({ keep, name: 'new' }, { name: 'new' }));
      assert.deepEqual(codes(flow), ['SMS_CLOSED', 'SMS_CLOSED']);
      assert.equal(flow.logged('send').length, 1);
      assert.match(flow.logged('send')[0] ?? '', /^2 × The flow was stopped before the message was sent\./);
      for (const callback of store.asked.splice(0)) callback(undefined, 'late');
      flow.send('send', { topic: handset });
      await store.answer(undefined, 'hello');
      await flow.messages('sent', 1);
      assert.deepEqual(bodiesOf(sim), ['hello']);
      assert.deepEqual([flow.completions.length, flow.received('caught').length], [3, 0]);
    });
  }

  it('names the context store in the error if the store fails', async () => {
    const flow = await start();
    flow.send('send', { topic: handset });
    // Some context stores report an error as a string.
    await store.answer('no\nconnection.');
    const [caught] = await flow.messages('caught', 1);
    const { code, field, message } = caught?.sms?.error ?? {};
    assert.deepEqual([code, field], ['SMS_INPUT', 'body']);
    assert.match(String(message), /could not be read from its context store: no connection\. Check the store\.$/);
  });

  it('explains an invalid context key in the error', async () => {
    const flow = await start({ body: 'a[msg.' });
    flow.send('send', { topic: handset });
    const [caught] = await flow.messages('caught', 1);
    assert.match(String(caught?.sms?.error?.message), /could not be evaluated: Invalid property expression.* Correct/);
    assert.equal(store.asked.length, 0);
  });

  it('reports SMS_CLOSED to a Catch node that a deploy leaves unchanged', async () => {
    const flow = await start();
    flow.send('send', { topic: handset });
    await until(() => store.asked.length > 0);
    await flow.deploy(nodes({ name: 'new' }), 'nodes');
    const [caught] = await flow.messages('caught', 1);
    assert.equal(caught?.sms?.error?.code, 'SMS_CLOSED');
    assert.equal(flow.logged('send').length, 1);
  });
});
