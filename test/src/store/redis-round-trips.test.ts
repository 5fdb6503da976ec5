import assert from 'node:assert/strict';
import type { Inbox } from '../../../src/inbox/inbox';
import { RedisStore } from '../../../src/store/redis';
import { settle, VirtualClock } from '../../virtual-clock';
import { RecordingSubscriber } from '../delivery/recording-subscriber';
import { polled } from '../inbox/arrivals';
import { createInboxOn } from '../inbox/inbox-on';
import { key, RedisBench } from './redis-bench';

const ids = Array.from({ length: 20 }, (_, index) => `message ${index}`);

/** The store waits for the answer to each command before it sends the next, so each command is a round trip. */
describe('receiving with a Redis store', () => {
  const bench = new RedisBench();
  const { closing } = bench;
  const clock = new VirtualClock(Date.UTC(2026, 10, 22));
  /** Commands that the server has received from the store, not from the test. A script counts as one command. */
  let commands: string[];
  let inbox: Inbox;
  let node: RecordingSubscriber;

  beforeEach(async () => {
    const { server } = bench;
    const store = new RedisStore({ url: server.url, key, clock });
    inbox = closing.add(createInboxOn({ store, clock, dedupeMs: () => 60_000 }), (it) => it.journal.close());
    node = new RecordingSubscriber(inbox);
    // Acknowledges one turn after the delivery, as a node does.
    node.onReceive = (entries) => setImmediate(() => node.acknowledge(entries));
    await inbox.journal.ready();
    await accept('first');
    await inbox.journal.flush();
    commands = [];
    const monitor = closing.add(await server.client.duplicate().monitor(), (it) => it.disconnect());
    monitor.on('monitor', (_time: string, [name = '', mark = '']: string[], source: string) => {
      if (source !== 'lua') commands.push(name.toLowerCase() === 'echo' ? mark : name.toLowerCase());
    });
  });

  async function accept(...messageIds: string[]) {
    const verdicts = await inbox.accept(polled(...messageIds));
    await settle();
    return verdicts;
  }

  /** Writes all changes. Returns the commands since the last call. */
  async function takeCommands(): Promise<string[]> {
    await inbox.journal.flush();
    const mark = `mark ${Math.random()}`;
    await bench.server.client.echo(mark);
    while (!commands.includes(mark)) await settle();
    return commands.splice(0).slice(0, -1);
  }

  it('needs three round trips per poll answer', async () => {
    for (const id of ids) await accept(id);
    const alone = ids.flatMap(() => ['mget', 'evalsha', 'evalsha']);
    assert.deepEqual(await takeCommands(), alone);
    await accept(...ids.map((id) => `${id} again`));
    assert.deepEqual(await takeCommands(), alone.slice(0, 3));
    assert.equal(node.received.length, 2 * ids.length + 1);
  });

  it('needs one round trip for a repeated message', async () => {
    assert.deepEqual(await accept('first'), ['repeated']);
    assert.deepEqual(await takeCommands(), ['mget']);
  });
});
