import assert from 'node:assert/strict';
import type { Simulator } from '../../simulator';
import { account, catcher, RunningFlow, sink, startService, stopEverything } from './running-flow';

const trap = () => {
  throw new Error('a trap');
};
const trapped = () =>
  new Proxy({}, { get: trap, has: trap, ownKeys: trap, getPrototypeOf: trap, getOwnPropertyDescriptor: trap });

describe('a typed field', () => {
  let sim: Simulator;

  beforeEach(async () => {
    sim = await startService();
  });

  afterEach(stopEverything);

  const start = (properties: Record<string, unknown> = {}) =>
    RunningFlow.start([
      account(sim),
      { id: 'send', type: 'sms-send', account: 'account', wires: [['sent'], ['sent']], ...properties },
      { id: 'feed', type: 'sms-feed', account: 'account', size: 'value', sizeType: 'msg', wires: [['sent']] },
      sink('sent'),
      ...catcher(),
    ]);

  /** Sends a message, and checks that it is refused once, for this field. */
  async function refuses(flow: RunningFlow, value: unknown, field: string, id = 'send'): Promise<string> {
    flow.send(id, { topic: '64215551234', payload: 'hello', value });
    const completions = await flow.done(id, 1);
    const caught = await flow.messages('caught', 1);
    await new Promise(setImmediate);
    assert.deepEqual(
      caught.map(({ sms }) => [sms?.error?.code, sms?.error?.field]),
      [['SMS_INPUT', field]],
    );
    assert.deepEqual([completions.length, flow.completions.length, flow.received('sent').length], [1, 1, 0]);
    assert.equal(sim.requests.length, 0);
    return String(caught[0]?.sms?.error?.message);
  }

  const circular: Record<string, unknown> = { a: 1 };
  circular.self = circular;

  for (const [what, value] of [
    ['a bigint', 5n],
    ['a circular object', circular],
    ['an object that throws as it is written', { toJSON: trap }],
    ['an object in whose place nothing can be read', trapped()],
  ] as const) {
    it(`is refused where its expression fails on ${what}`, async () => {
      const flow = await start({ from: 'value * 2', fromType: 'jsonata' });
      await refuses(flow, value, 'from');
    });
  }

  it('says why its expression fails on a value that JSON cannot write', async () => {
    const flow = await start({ from: 'value * 2', fromType: 'jsonata' });
    assert.match(await refuses(flow, 5n, 'from'), /evaluated: The left side of the "\*" operator must .+ number\. Cor/);
  });

  const fields = {
    to: /^The recipients are neither /,
    body: /^The body is neither /,
    from: /is not text/,
    messageId: /is not text/,
    fragmentationLimit: /is not a whole number/,
    contentType: /text\/plain/,
    callbackUrl: /is not a usable/,
    callbackStatusUrl: /is not a usable/,
    once: /is not text/,
    remember: /cannot be stored as JSON/,
    wait: /is not a number from 0\.001 to 525600/,
    priority: /is not a whole number/,
    expire: /is not a number/,
  };
  for (const [field, reason] of Object.entries(fields)) {
    for (const [what, create] of [
      ['a promise of something', () => Promise.resolve('64215551234')],
      ['a promise of nothing', () => new Promise(() => {})],
      // biome-ignore lint/suspicious/noThenProperty: what is awaited by mistake
      ['what looks like a promise', () => ({ then: () => {} })],
      ['an object of which nothing can be read', trapped],
    ] as const) {
      it(`is refused in its own words where ${field} is ${what}`, async () => {
        const flow = await start({ keep: true, [field]: 'value', [`${field}Type`]: 'msg' });
        assert.match(await refuses(flow, create(), field), reason);
      });
    }
  }

  it('is refused where a promise stands in the context', async () => {
    const flow = await start({ body: 'text', bodyType: 'global' });
    flow
      .node('send')
      .context()
      .global.set('text', new Promise(() => {}));
    assert.match(await refuses(flow, undefined, 'body'), fields.body);
  });

  it('is refused where the size of a feed is a promise', async () => {
    await refuses(await start(), new Promise(() => {}), 'size', 'feed');
  });
});
