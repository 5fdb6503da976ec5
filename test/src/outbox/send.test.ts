import assert from 'node:assert/strict';
import { startSimulator } from '../../../simulator';
import { type Clock, systemClock } from '../../../src/clock';
import { SmsError, type SmsErrorReason } from '../../../src/errors';
import { Client } from '../../../src/http/client';
import { createConnections } from '../../../src/http/connections';
import type { Delivery, OutboundMessage } from '../../../src/model';
import { type QueueSettings, SendQueue } from '../../../src/outbox/queue';
import { type PlainOptions, sendPlain } from '../../../src/outbox/send-attempt';
import type { Outcome, Sent } from '../../../src/outbox/text';
import { VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
import { findClosedPort } from '../raw-service';
import { createError } from '../some-error';

const message: OutboundMessage = { to: ['6421555123'], body: 'hello', messageId: 'fixed-id' };
const delivery: Delivery = { statusCode: 200, recipients: [], accepted: ['6421555123'], failed: [] };

function codeOf(outcome: Outcome): string {
  return outcome instanceof SmsError ? outcome.code : 'sent';
}

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

interface Surroundings {
  signal: AbortSignal;
  giveUp?: AbortSignal;
  clock?: Clock;
  queue?: SendQueue;
}

/** Sends the message by a client, through a queue where no other waits unless one is given. */
async function send(
  client: Client,
  options: Partial<PlainOptions>,
  { signal, giveUp = signal, clock = systemClock, queue = createQueue(clock) }: Surroundings,
): Promise<Outcome> {
  return sendPlain(
    { retries: 3, retryUncertain: false, resolveMs: 0, priority: 0, ...options },
    {
      clock,
      queue,
      signals: { signal, giveUp },
      attempt: (given) => client.send(message, { signal: given }),
      evidence: undefined,
    },
  );
}

function createQueue(clock: Clock, settings: Partial<QueueSettings> = {}): SendQueue {
  return new SendQueue({ clock, settings: () => ({ concurrency: 1, queueLimit: 0, ...settings }) });
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
    options: Partial<PlainOptions> = {},
    onWait: (stop: AbortController, giveUp: AbortController) => unknown = () => clock.advance(30_000),
  ): Promise<Sent | string> {
    const [stop, giveUp] = [new AbortController(), new AbortController()];
    let outcome: Sent | string | undefined;
    void send(client, options, { signal: stop.signal, giveUp: giveUp.signal, clock }).then((end) => {
      outcome = end instanceof SmsError ? end.code : end;
    });
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
    const sending = send(client, { retries: 11 }, { signal, clock });
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
    assert.equal(codeOf(await sending), 'SMS_UNREACHABLE');
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

  describe('and the queue (perSecond, concurrency, queueLimit)', () => {
    const { signal } = new AbortController();

    /** When each try was made, of so many texts that end as told; then they succeed. */
    async function times(script: SmsErrorReason[], texts: number, settings: Partial<QueueSettings>): Promise<number[]> {
      const queue = createQueue(clock, { concurrency: 8, queueLimit: 10, ...settings });
      const client = new ScriptedClient(...script);
      const tries: number[] = [];
      const { sent } = client;
      sent.push = (...messages) => {
        tries.push(clock.elapsed());
        return messages.length;
      };
      const sending = Array.from({ length: texts }, () =>
        send(client, { retryUncertain: true }, { signal, clock, queue }),
      );
      await clock.advance(60_000);
      await Promise.all(sending);
      return tries;
    }

    it('a try after one that may have been sent keeps to the pace', async () => {
      const script = Array.from({ length: 3 }, () => 'uncertain' as const);
      assert.deepEqual(await times(script, 2, { perSecond: 0.5 }), [0, 2_000, 4_000, 6_000, 8_000]);
    });

    it('one after another that never left need not', async () => {
      assert.deepEqual(await times(['unreachable'], 2, { perSecond: 0.5 }), [0, 200, 2_000]);
    });

    it('a text that is to be tried again has its place before those that came later, and is not refused', async () => {
      const queue = createQueue(clock, { queueLimit: 2 });
      const client = new ScriptedClient('uncertain');
      const starts: string[] = [];
      const ends: (() => void)[] = [];
      const run = (name: string) =>
        queue.run(
          () => {
            starts.push(`${name} after ${client.sent.length} tries`);
            return new Promise<void>((resolve) => ends.push(resolve));
          },
          { signal },
        );
      const sending = send(client, { retryUncertain: true }, { signal, clock, queue });
      const others = [run('one'), run('two')];
      await settle();
      others.push(run('three'));
      await clock.advance(1_000);
      assert.equal(queue.waiting, 3);
      for (let end = ends.shift(); end; end = ends.shift()) {
        end();
        await settle();
      }
      await Promise.all([sending, ...others]);
      assert.deepEqual(starts, ['one after 1 tries', 'two after 2 tries', 'three after 2 tries']);
    });

    it('takes no place while it waits to be tried again', async () => {
      const queue = createQueue(clock);
      const client = new ScriptedClient('uncertain');
      const sending = send(client, { retryUncertain: true }, { signal, clock, queue });
      await settle();
      assert.equal(queue.inFlight, 0);
      await clock.advance(200);
      assert.equal(await sending, delivery);
    });
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
      const sending = send(client, { retries: 9 }, { signal });
      await settle();
      await simulator.setOnline(true);
      const sent = await sending;
      assert.ok(!(sent instanceof SmsError));
      assert.deepEqual(sent.accepted, ['6421555123']);
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
      const sending = send(client, {}, { signal: stop.signal, giveUp: giveUp.signal });
      await simulator.until(() => simulator.polling('send') === 1);
      stop.abort();
      const { statusCode } = await sending;
      assert.equal(statusCode, 200);
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
      const outcome = await send(client, { retries: 1, retryUncertain: true }, { signal });
      assert.equal(codeOf(outcome), 'SMS_UNREACHABLE');
    });
  });
});
