import assert from 'node:assert/strict';
import type { Inbox } from '../../../src/inbox/inbox';
import { RedisStore } from '../../../src/store/redis';
import { RedisServer } from '../../redis-server';
import { settle, VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
import { RecordingSubscriber } from '../delivery/recording-subscriber';
import { polled } from '../inbox/arrivals';
import { createInboxOn } from '../inbox/inbox-on';

const messages = 20;

/** Commands of clients other than the test. A script counts as one. */
class Commands {
  readonly #server: RedisServer;
  readonly #names: string[];

  private constructor(server: RedisServer, names: string[]) {
    this.#server = server;
    this.#names = names;
  }

  static async watch(server: RedisServer, closing: Closing): Promise<Commands> {
    const names: string[] = [];
    const monitor = await server.client.duplicate().monitor();
    closing.add(monitor, (it) => it.disconnect());
    monitor.on('monitor', (_time: string, [name = '', mark = '']: string[], source: string) => {
      if (source !== 'lua') names.push(name.toLowerCase() === 'echo' ? mark : name.toLowerCase());
    });
    return new Commands(server, names);
  }

  /** Commands since the last call. */
  async take(): Promise<string[]> {
    const mark = `mark ${Math.random()}`;
    await this.#server.client.echo(mark);
    while (!this.#names.includes(mark)) await settle();
    return this.#names.splice(0).slice(0, -1);
  }
}

/** The store waits for the answer to each command before it sends the next, so each command is a round trip. */
describe('Redis', () => {
  const closing = new Closing();
  const clock = new VirtualClock(Date.UTC(2026, 10, 22));
  let commands: Commands;
  let inbox: Inbox;
  let node: RecordingSubscriber;

  beforeEach(async () => {
    const server = closing.add(await RedisServer.start(), (it) => it.stop());
    const store = new RedisStore({ url: server.url, key: '0123456789abcdef', clock });
    inbox = closing.add(createInboxOn({ store, clock, dedupeMs: () => 60_000 }), (it) => it.journal.close());
    node = new RecordingSubscriber(inbox);
    // Acknowledges one turn after the delivery, as a node does.
    node.onReceive = (entries) => setImmediate(() => node.acknowledge(entries));
    await inbox.journal.ready();
    await inbox.accept(polled('first'));
    await settle();
    await inbox.journal.flush();
    commands = await Commands.watch(server, closing);
  });
  afterEach(() => closing.run());

  async function accept(...ids: string[]) {
    const accepted = await inbox.accept(polled(...ids));
    await settle();
    return accepted;
  }

  it('needs two round trips for one message, and one more in the background', async () => {
    for (let index = 0; index < messages; index++) await accept(`message ${index}`);
    await inbox.journal.flush();
    const names = await commands.take();
    assert.deepEqual(names, Array.from({ length: messages }, () => ['mget', 'evalsha', 'evalsha']).flat());
    assert.equal(node.received.length, messages + 1);
  });

  it('needs as many round trips for several messages together as for one', async () => {
    await accept(...Array.from({ length: messages }, (_, index) => `message ${index}`));
    await inbox.journal.flush();
    assert.deepEqual(await commands.take(), ['mget', 'evalsha', 'evalsha']);
    assert.equal(node.received.length, messages + 1);
  });

  it('needs one round trip for a known message', async () => {
    await accept('message');
    await inbox.journal.flush();
    await commands.take();
    assert.deepEqual(await accept('message'), ['repeated']);
    assert.deepEqual(await commands.take(), ['mget']);
  });
});
