import assert from 'node:assert/strict';
import type { InboxSubscriber } from '../../../src/delivery/subscribers';
import type { Inbox } from '../../../src/inbox/inbox';
import { RedisStore } from '../../../src/store/redis';
import { RedisServer } from '../../redis-server';
import { VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
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
    while (!this.#names.includes(mark)) await new Promise((turn) => setImmediate(turn));
    return this.#names.splice(0).slice(0, -1);
  }
}

/** The store waits for the answer to each command before it sends the next, so each command is a round trip. */
describe('Redis', () => {
  const closing = new Closing();
  const clock = new VirtualClock(Date.UTC(2026, 10, 22));
  let commands: Commands;
  let inbox: Inbox;
  let taken: string[];

  beforeEach(async () => {
    const server = closing.add(await RedisServer.start(), (it) => it.stop());
    const store = new RedisStore({ url: server.url, key: '0123456789abcdef', clock });
    const create = () => createInboxOn({ store, clock, dedupe: () => true, dedupeMs: () => 60_000 });
    inbox = closing.add(create(), (it) => it.journal.close());
    taken = [];
    const node: InboxSubscriber = {
      id: 'node',
      receive: (given) => {
        const entries = given.map(({ entry }) => entry);
        taken.push(...entries.map(({ record }) => record.messageId ?? ''));
        // Acknowledges one turn after the delivery, as a node does.
        setImmediate(() => {
          for (const entry of entries) inbox.acknowledge(entry, node);
        });
      },
    };
    inbox.attach('incoming', node);
    await inbox.journal.ready();
    await inbox.accept(polled('first'));
    await new Promise((turn) => setImmediate(turn));
    await inbox.journal.flush();
    commands = await Commands.watch(server, closing);
  });
  afterEach(() => closing.run());

  async function accept(...ids: string[]) {
    const accepted = await inbox.accept(polled(...ids));
    await new Promise((turn) => setImmediate(turn));
    return accepted;
  }

  it('needs two round trips for one message, and one more in the background', async () => {
    for (let index = 0; index < messages; index++) await accept(`message ${index}`);
    await inbox.journal.flush();
    const names = await commands.take();
    assert.deepEqual(names, Array.from({ length: messages }, () => ['mget', 'evalsha', 'evalsha']).flat());
    assert.equal(taken.length, messages + 1);
  });

  it('needs as many round trips for several messages together as for one', async () => {
    await accept(...Array.from({ length: messages }, (_, index) => `message ${index}`));
    await inbox.journal.flush();
    assert.deepEqual(await commands.take(), ['mget', 'evalsha', 'evalsha']);
    assert.equal(taken.length, messages + 1);
  });

  it('needs one round trip for a known message', async () => {
    await accept('message');
    await inbox.journal.flush();
    await commands.take();
    assert.deepEqual(await accept('message'), ['repeated']);
    assert.deepEqual(await commands.take(), ['mget']);
  });
});
