import assert from 'node:assert/strict';
import { startSimulator } from '../../../simulator';
import { isSmsError, SmsError, type SmsErrorReason } from '../../../src/errors';
import { Client } from '../../../src/http/client';
import { createConnections } from '../../../src/http/connections';
import type { Delivery, OutboundMessage } from '../../../src/model';
import { type RetryPolicy, send } from '../../../src/sending/send';
import { VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
import { findClosedPort } from '../raw-service';
import { createError } from '../some-error';

const message: OutboundMessage = { to: ['6421555123'], body: 'hello', messageId: 'fixed-id' };
const delivery: Delivery = { statusCode: 200, recipients: [], accepted: ['6421555123'], failed: [] };

/** Lets everything happen that needs no timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
}

/** A client whose sends end as told, one after the other; then they succeed. */
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

const attempt = (client: Client) => (signal: AbortSignal) => client.send(message, { signal });

describe('send (retries, retryUncertain)', () => {
  const closing = new Closing();
  let clock: VirtualClock;
  beforeEach(() => {
    clock = new VirtualClock();
  });
  afterEach(() => closing.run());

  async function run(
    client: Client,
    policy: Partial<RetryPolicy> = {},
    onWait: (stop: AbortController, giveUp: AbortController) => unknown = () => clock.advance(30_000),
  ): Promise<Delivery | string> {
    const [stop, giveUp] = [new AbortController(), new AbortController()];
    let outcome: Delivery | string | undefined;
    void send(
      attempt(client),
      { retries: 3, retryUncertain: false, ...policy },
      {
        signal: stop.signal,
        giveUp: giveUp.signal,
        clock,
      },
    ).then(
      (done) => {
        outcome = done;
      },
      (error: unknown) => {
        outcome = isSmsError(error) ? error.code : String(error);
      },
    );
    for (let round = 0; outcome === undefined && round < 20; round++) {
      await settle();
      if (outcome === undefined) await onWait(stop, giveUp);
    }
    assert.ok(outcome !== undefined, 'never ended');
    return outcome;
  }

  it('tries three times more what never reached the service, with the same messageId', async () => {
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
    const { signal } = new AbortController();
    const sending = send(attempt(client), { retries: 11, retryUncertain: false }, { signal, giveUp: signal, clock });
    const rejected = assert.rejects(sending, { code: 'SMS_UNREACHABLE' });
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
    await rejected;
    assert.deepEqual(waits, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000]);
  });

  it('with 0 tries once', async () => {
    const client = new ScriptedClient('unreachable');
    assert.equal(await run(client, { retries: 0 }), 'SMS_UNREACHABLE');
    assert.equal(client.sent.length, 1);
  });

  for (const reason of ['badRequestBare', 'unauthorized', 'forbidden', 'redirect'] as const) {
    it(`never tries again after ${reason}`, async () => {
      const client = new ScriptedClient(reason);
      assert.equal(await run(client, { retryUncertain: true }), createError(reason).code);
      assert.equal(client.sent.length, 1);
    });
  }

  it('does not try again when the outcome is unknown, unless told to', async () => {
    const careful = new ScriptedClient('uncertain');
    assert.equal(await run(careful), 'SMS_UNCERTAIN');
    assert.equal(careful.sent.length, 1);
    const bold = new ScriptedClient('uncertain', 'unreachable', 'uncertain');
    assert.equal(await run(bold, { retryUncertain: true }), delivery);
    assert.equal(bold.sent.length, 4);
  });

  it('an answer that cannot be read, and a status of 500 or above but 503, are unknown outcomes too', async () => {
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

  it('an outcome that was unknown once stays so when no later try arrives', async () => {
    const client = new ScriptedClient('uncertain', 'unreachable', 'unreachable', 'unreachable');
    assert.equal(await run(client, { retryUncertain: true }), 'SMS_UNCERTAIN');
    assert.equal(client.sent.length, 4);
  });

  it('nor is it called unsent when the store, or a limit, keeps the next one back', async () => {
    for (const reason of ['storeUnavailable', 'limitDay'] as const) {
      const client = new ScriptedClient('uncertain', reason);
      assert.equal(await run(client, { retryUncertain: true }), 'SMS_UNCERTAIN');
      assert.equal(client.sent.length, 2);
    }
  });

  it('stopped between tries is SMS_CLOSED, and nothing is sent any more', async () => {
    const client = new ScriptedClient('unreachable');
    assert.equal(await run(client, {}, (stop) => stop.abort()), 'SMS_CLOSED');
    assert.equal(client.sent.length, 1);
  });

  it('stopped between tries whose outcome is unknown is SMS_UNCERTAIN', async () => {
    const policy = { retryUncertain: true };
    assert.equal(await run(new ScriptedClient('uncertain'), policy, (stop) => stop.abort()), 'SMS_UNCERTAIN');
    let waits = 0;
    const wait = (stop: AbortController) => {
      if (waits++ === 0) return clock.advance(200);
      stop.abort();
      return undefined;
    };
    assert.equal(await run(new ScriptedClient('uncertain', 'unreachable'), policy, wait), 'SMS_UNCERTAIN');
  });

  it('given up between tries is never called unsent when it may have been sent', async () => {
    const policy = { retryUncertain: true };
    const giveUpThenWait = (_stop: AbortController, giveUp: AbortController) => {
      giveUp.abort();
      return clock.advance(30_000);
    };
    assert.equal(await run(new ScriptedClient('uncertain'), policy, giveUpThenWait), 'SMS_UNCERTAIN');
    assert.equal(await run(new ScriptedClient('unreachable'), policy, giveUpThenWait), 'SMS_CLOSED');
  });

  describe('against the service', () => {
    it('gets through as soon as the service is there again', async () => {
      const simulator = closing.add(await startSimulator(), (it) => it.close());
      await simulator.setOnline(false);
      const connections = closing.add(createConnections({ baseUrl: 'http://127.0.0.1' }), (it) => it.destroy());
      const client = new Client({
        baseUrl: simulator.baseUrl,
        authentication: { type: 'bearer', apiKey: simulator.credentials.apiKey },
        connections,
        method: 'POST',
        timeoutMs: 5_000,
      });
      const { signal } = new AbortController();
      const sending = send(attempt(client), { retries: 9, retryUncertain: false }, { signal, giveUp: signal });
      await settle();
      await simulator.setOnline(true);
      assert.deepEqual((await sending).accepted, ['6421555123']);
      assert.deepEqual(
        simulator.messages.map(({ messageId }) => messageId),
        ['fixed-id'],
      );
    });

    it('a stop does not abort what has left', async () => {
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
      const [stop, giveUp] = [new AbortController(), new AbortController()];
      const policy = { retries: 3, retryUncertain: false };
      const sending = send(attempt(client), policy, { signal: stop.signal, giveUp: giveUp.signal });
      await simulator.until(() => simulator.polling('send') === 1);
      stop.abort();
      assert.equal((await sending).statusCode, 200);
    });

    it('is SMS_UNREACHABLE when nobody is there', async () => {
      const connections = closing.add(createConnections({ baseUrl: 'http://127.0.0.1' }), (it) => it.destroy());
      const client = new Client({
        baseUrl: `http://127.0.0.1:${await findClosedPort()}`,
        authentication: { type: 'bearer', apiKey: 'key' },
        connections,
        method: 'POST',
        timeoutMs: 5_000,
      });
      const { signal } = new AbortController();
      await assert.rejects(send(attempt(client), { retries: 1, retryUncertain: true }, { signal, giveUp: signal }), {
        code: 'SMS_UNREACHABLE',
      });
    });
  });
});
