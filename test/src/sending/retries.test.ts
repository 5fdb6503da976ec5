import assert from 'node:assert/strict';
import { startSimulator } from '../../../simulator';
import { SmsError, type SmsErrorReason } from '../../../src/errors';
import { Client } from '../../../src/http/client';
import { createConnections } from '../../../src/http/connections';
import type { Delivery, OutboundMessage } from '../../../src/model';
import type { SendingNode } from '../../../src/outbox/sender-registrations';
import type { SendOptions, Sent } from '../../../src/outbox/text';
import { VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
import { createError } from '../some-error';
import { FakeNode, SendingSide, type SendingSideOptions, sendText } from './sending-side';

const delivery: Delivery = { statusCode: 200, recipients: [], accepted: ['6421555123'], failed: [] };

/** Lets everything happen that needs no timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
}

/** A client whose sends end with the scripted errors, one after another. Later sends succeed. */
class ScriptedClient extends Client {
  readonly sent: OutboundMessage[] = [];
  readonly #script: (SmsErrorReason | SmsError)[];

  constructor(...script: (SmsErrorReason | SmsError)[]) {
    super({
      baseUrl: 'http://127.0.0.1',
      authentication: { type: 'bearer', apiKey: 'x' },
      connections: createConnections({ baseUrl: 'http://127.0.0.1' }),
      method: 'POST',
      timeoutMs: 1,
    });
    this.#script = script;
  }

  override send(sent: OutboundMessage, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<Delivery> {
    if (signal?.aborted) return Promise.reject(new SmsError('closed'));
    this.sent.push(sent);
    const reason = this.#script.shift();
    if (!reason) return Promise.resolve(delivery);
    return Promise.reject(reason instanceof SmsError ? reason : createError(reason));
  }
}

/** Closes the node, as the stop of a flow does. */
function close(node: SendingNode): void {
  void node.close();
}

/** Attaches a node with its own client to an account that sends one message at a time and lets none wait. */
function attach(client: Client, options: SendingSideOptions) {
  const side = new SendingSide({ concurrency: 1, queueLimit: 0, ...options });
  const handler = new FakeNode('send', client, false);
  return { side, node: Object.assign(handler, { node: side.outbox.attach(handler) }) };
}

function send(node: FakeNode & { node: SendingNode }, options: Partial<SendOptions> = {}): void {
  sendText(node, 'hello', { messageId: 'fixed-id', retries: 3, ...options });
}

describe('send (retries, retryUncertain)', () => {
  const closing = new Closing();
  let clock: VirtualClock;
  beforeEach(() => {
    clock = new VirtualClock();
  });
  afterEach(() => closing.run());

  async function run(
    client: Client,
    options: Partial<SendOptions> = {},
    onWait: (node: SendingNode) => unknown = () => clock.advance(30_000),
  ): Promise<Sent | string> {
    const { node } = attach(client, { clock });
    send(node, options);
    for (let round = 0; node.outcomes.length === 0 && round < 20; round++) {
      await settle();
      if (node.outcomes.length === 0) await onWait(node.node);
    }
    const [{ outcome } = assert.fail('never ended')] = node.outcomes;
    return outcome instanceof SmsError ? outcome.code : outcome;
  }

  it('tries three times more with the same messageId if it was not sent', async () => {
    const client = new ScriptedClient('unreachable', 'unreachable', 'unreachable');
    assert.equal(await run(client), delivery);
    assert.deepEqual(
      client.sent.map(({ messageId }) => messageId),
      Array.from({ length: 4 }, () => 'fixed-id'),
    );
    const hopeless = new ScriptedClient(...Array.from({ length: 9 }, () => 'unreachable' as const));
    assert.equal(await run(hopeless), 'SMS_UNREACHABLE');
    assert.equal(hopeless.sent.length, 4);
  });

  it('waits 0.2 s, then twice as long each time, at most 30 s', async () => {
    const client = new ScriptedClient(...Array.from({ length: 12 }, () => 'unreachable' as const));
    const { node } = attach(client, { clock });
    send(node, { retries: 11 });
    await settle();
    const waits: number[] = [];
    for (let tries = 1; tries < 12; tries++) {
      let waitedMs = 0;
      while (client.sent.length === tries) {
        assert.ok(waitedMs < 30_000, 'waited too long');
        await clock.advance(100);
        waitedMs += 100;
        await settle();
      }
      waits.push(waitedMs);
    }
    assert.deepEqual(node.ends, ['SMS_UNREACHABLE']);
    assert.deepEqual(waits, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000]);
  });

  for (const reason of ['badRequestBare', 'unauthorized', 'forbidden', 'redirect'] as const) {
    it(`never tries again after ${reason}`, async () => {
      const client = new ScriptedClient(reason);
      assert.equal(await run(client, { retryUncertain: true }), createError(reason).code);
      assert.equal(client.sent.length, 1);
    });
  }

  it('tries again after an unknown outcome only with retryUncertain', async () => {
    const careful = new ScriptedClient('uncertain');
    assert.equal(await run(careful), 'SMS_UNCERTAIN');
    assert.equal(careful.sent.length, 1);
    const bold = new ScriptedClient('uncertain', 'unreachable', 'uncertain');
    assert.equal(await run(bold, { retryUncertain: true }), delivery);
    assert.equal(bold.sent.length, 4);
  });

  it('treats unreadable answers and 5xx except 503 as unknown outcomes', async () => {
    for (const [error, tries] of [
      [createError('responseTooLarge'), 2],
      [createError('serverError').with({ statusCode: 500 }), 2],
      [createError('serverError').with({ statusCode: 503 }), 1],
    ] as const) {
      const bold = new ScriptedClient(error);
      await run(bold, { retryUncertain: true });
      assert.equal(bold.sent.length, tries);
      const careful = new ScriptedClient(error);
      assert.equal(await run(careful), error.code);
      assert.equal(careful.sent.length, 1);
    }
  });

  it('keeps an unknown outcome if no later try arrives', async () => {
    const client = new ScriptedClient('uncertain', 'unreachable', 'unreachable', 'unreachable');
    assert.equal(await run(client, { retryUncertain: true }), 'SMS_UNCERTAIN');
    assert.equal(client.sent.length, 4);
  });

  it('does not report it as unsent if a limit stops the next try', async () => {
    for (const reason of ['storeUnavailable', 'limitDay'] as const) {
      const client = new ScriptedClient('uncertain', reason);
      assert.equal(await run(client, { retryUncertain: true }), 'SMS_UNCERTAIN');
      assert.equal(client.sent.length, 2);
    }
  });

  it('raises SMS_CLOSED if it is stopped between tries', async () => {
    const client = new ScriptedClient('unreachable');
    assert.equal(await run(client, {}, close), 'SMS_CLOSED');
    assert.equal(client.sent.length, 1);
  });

  it('raises SMS_UNCERTAIN if it is stopped after an unknown outcome', async () => {
    const policy = { retryUncertain: true };
    assert.equal(await run(new ScriptedClient('uncertain'), policy, close), 'SMS_UNCERTAIN');
    let waits = 0;
    const waitThenClose = (node: SendingNode) => (waits++ === 0 ? clock.advance(200) : close(node));
    assert.equal(await run(new ScriptedClient('uncertain', 'unreachable'), policy, waitThenClose), 'SMS_UNCERTAIN');
  });

  describe('with the queue (perSecond, concurrency, queueLimit)', () => {
    /** Sends messages that end as scripted and then succeed. Returns the time of each try. */
    async function times(script: SmsErrorReason[], texts: number, perSecond: number): Promise<number[]> {
      const client = new ScriptedClient(...script);
      const tries: number[] = [];
      const { sent } = client;
      sent.push = (...messages) => {
        tries.push(clock.elapsed());
        return messages.length;
      };
      const { node } = attach(client, { clock, concurrency: 8, queueLimit: 10, perSecond });
      for (let text = 0; text < texts; text++) send(node, { retryUncertain: true });
      await clock.advance(60_000);
      assert.equal(node.outcomes.length, texts);
      return tries;
    }

    it('keeps the pace for a try after an unknown outcome', async () => {
      const script = Array.from({ length: 3 }, () => 'uncertain' as const);
      assert.deepEqual(await times(script, 2, 0.5), [0, 2_000, 4_000, 6_000, 8_000]);
    });

    it('keeps the place of a message that is tried again', async () => {
      const side = new SendingSide({ clock, concurrency: 1, queueLimit: 2 });
      const node = side.attach('send', false);
      side.service.script.push({ takes: true, error: createError('uncertain') });
      const answer = side.service.holdNext();
      sendText(node, 'again', { retries: 3, retryUncertain: true });
      sendText(node, 'one');
      await side.send(node, 'two', {}, 0);
      await side.send(node, 'three', {}, 1_000);
      assert.deepEqual([side.service.bodies, side.outbox.admin.state.waiting], [['again', 'one'], 3]);
      answer();
      await side.pass(0);
      assert.deepEqual(side.service.bodies, ['again', 'one', 'again', 'two', 'three']);
    });

    it('takes no place in the queue between tries', async () => {
      const { side, node } = attach(new ScriptedClient('uncertain'), { clock });
      send(node, { retryUncertain: true });
      await side.pass(0);
      assert.equal(side.outbox.admin.state.inFlight, 0);
      await side.pass(200);
      assert.deepEqual(node.ends, ['to 6421555123']);
    });
  });

  describe('against the service', () => {
    it('does not abort a request that has left if the node stops', async () => {
      const simulator = closing.add(await startSimulator(), (it) => it.close());
      simulator.fault('send', { delayMs: 100 });
      const connections = closing.add(createConnections({ baseUrl: 'http://127.0.0.1' }), (it) => it.destroy());
      const client = new Client({
        baseUrl: simulator.baseUrl,
        authentication: { type: 'bearer', apiKey: simulator.credentials.apiKey },
        connections,
        method: 'POST',
        timeoutMs: 5_000,
      });
      const { node } = attach(client, { clock });
      send(node);
      await simulator.until(() => simulator.polling('send') === 1);
      await node.node.close();
      assert.deepEqual(node.ends, ['to 6421555123']);
    });
  });
});
