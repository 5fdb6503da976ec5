import assert from 'node:assert/strict';
import { mock } from 'node:test';
import fc from 'fast-check';
import type { IncomingRecord, RecordsOfKind } from '../../../src/model';
import type { Channel, Entry } from '../../../src/receiving/entry';
import type { Acceptance, Inbox } from '../../../src/receiving/inbox';
import type { Taker } from '../../../src/receiving/taker';
import { FailingStore, Platter } from '../store/failing-store';
import { createInboxOn } from './inbox-on';

/** What the world knows of one message. */
interface Message {
  name: string;
  record: IncomingRecord;
  /** The service has given it away for good (§3), and has been told of no failure. */
  isPolled: boolean;
  /** The service has been answered 200 to its callback (§6.1), or 503 and will call again. */
  callback: 'none' | 'pending' | 'accepted' | 'refused';
  /** The node that it called last. */
  called: string;
  /** How often each node was given it, and how often with the mark of a repetition. */
  given: Map<string, { attempts: number[] }>;
  /** A node was given it again without a mark. */
  repeatedTo: string | undefined;
  done: Set<string>;
  /** It was judged, or may have been, without the store: nobody could know it as a duplicate. */
  isJudgedBlind: boolean;
  /** The flow refused it, so that it may come again as if it were new. */
  isReleased: boolean;
  /** The process ended between an attempt and the count of it. */
  isUncounted: boolean;
  /** It was polled while the store was not open, which an account does not do. */
  isUnheld: boolean;
  /** The process ended while it was in memory alone. */
  isExcused: boolean;
}

const ids = ['a', 'b', 'callback', 'other'];

function channelOf(id: string): Channel {
  return id === 'a' || id === 'b' ? 'incoming' : 'callback';
}

function pathOf(id: string): string {
  return `/${id}`;
}

/** So few that there are often more. */
const pageSize = 2;

class World {
  readonly platter = new Platter();
  readonly messages: Message[] = [];
  store = new FailingStore(this.platter, pageSize);
  inbox = this.createInbox();
  /** By id: those of the running process. */
  readonly nodes = new Map<string, ModelNode>();
  readonly problems: string[] = [];
  pending = new Set<Promise<unknown>>();
  isFailing = false;
  #generation = 0;

  createInbox(): Inbox {
    return createInboxOn({
      store: this.store,
      dedupe: () => true,
      dedupeMs: () => 72 * 3_600_000,
      onStore: () => {},
    });
  }

  get generation(): number {
    return this.#generation;
  }

  createMessage(): Message {
    const name = `m${this.messages.length}`;
    const message: Message = {
      name,
      // Few texts and seconds, so that messages resemble each other; the instant tells them apart.
      record: {
        messageId: name,
        from: '6421555001',
        body: `text ${this.messages.length % 5}`,
        messageDate: new Date(Date.UTC(2026, 0, 1) + this.messages.length).toISOString(),
        isReply: false,
        via: 'poll',
      },
      isPolled: false,
      callback: 'none',
      called: 'callback',
      given: new Map(),
      repeatedTo: undefined,
      done: new Set(),
      isJudgedBlind: false,
      isReleased: false,
      isUncounted: false,
      isUnheld: false,
      isExcused: false,
    };
    this.messages.push(message);
    return message;
  }

  find(entry: Entry): Message {
    const found = this.messages.find(({ record }) => record.messageDate === entry.record.messageDate);
    assert.ok(found);
    return found;
  }

  poll(message: Message): void {
    message.isPolled = true;
    if (!this.store.isOpen) message.isUnheld = true;
    this.follow(message, async () => {
      await this.inbox.accept({ kind: 'incoming', via: 'poll', records: [message.record] });
    });
  }

  callBack(message: Message, node = message.called): void {
    message.called = node;
    if (message.callback === 'accepted' || message.callback === 'pending') return;
    message.callback = 'pending';
    const { generation } = this;
    const { messageId: _, ...record } = message.record;
    this.follow(message, async () => {
      const { inbox } = this;
      try {
        const [acceptance]: Acceptance[] = await inbox.accept({
          kind: 'incoming',
          via: 'callback',
          records: [{ ...record, via: 'callback' }],
          address: { node, path: pathOf(node) },
        });
        if (generation !== this.generation) return;
        const delivered = acceptance?.entry ? await this.#ended(inbox, acceptance.entry) : true;
        if (generation !== this.generation) return;
        message.callback = delivered ? 'accepted' : 'refused';
      } catch {
        if (generation === this.generation) message.callback = 'refused';
      }
    });
  }

  /** The connection of the callback ends with the process or the deployment; the service calls again. */
  #ended(inbox: Inbox, entry: Entry): Promise<boolean> {
    return Promise.race([inbox.ended(entry), new Promise<boolean>((resolve) => this.#closing.add(resolve))]);
  }

  readonly #closing = new Set<(delivered: boolean) => void>();

  #endCallbacks(): void {
    for (const end of this.#closing) end(false);
    this.#closing.clear();
  }

  /** Notes of a call of the inbox whether it had to do without the store, and that it ends. */
  follow(message: Message, call: () => Promise<void>): void {
    if (this.isFailing || this.inbox.failure) this.judgeBlind(message);
    const calling: Promise<void> = call().finally(() => {
      if (this.inbox.failure) this.judgeBlind(message);
      this.pending.delete(calling);
    });
    this.pending.add(calling);
  }

  /** Texts of one sender and second are remembered together, and so forgotten together. */
  judgeBlind({ record: { body } }: Message): void {
    for (const message of this.messages) if (message.record.body === body) message.isJudgedBlind = true;
  }

  attach(id: string): void {
    const node = new ModelNode(this, id, this.generation);
    this.nodes.set(id, node);
    this.inbox.attach(channelOf(id), node);
  }

  detach(id: string): void {
    const node = this.nodes.get(id);
    if (!node) return;
    this.nodes.delete(id);
    this.inbox.detach(channelOf(id), node);
  }

  fail(isFailing: boolean): void {
    this.isFailing = isFailing;
    for (const step of ['open', 'read', 'recall', 'commit', 'sweep'] as const) {
      if (isFailing) this.store.failing.add(step);
      else this.store.failing.delete(step);
    }
  }

  /** The process ends without notice and starts again. */
  crash(): void {
    this.#generation++;
    this.#endCallbacks();
    this.pending.clear();
    this.store.kill();
    const entries = [...this.platter.entries.values()].map((text) => JSON.parse(text) as Entry);
    const kept = new Set(entries.map(({ record }) => record.messageDate));
    // An attempt is counted as it is made, where that is possible: the count may go with the process.
    for (const entry of entries) if (entry.attempts === 0) this.find(entry).isUncounted = true;
    for (const text of this.platter.held.values()) {
      const { records = [] } = JSON.parse(text) as Partial<RecordsOfKind>;
      for (const { messageDate } of records) kept.add(messageDate);
    }
    if (this.isFailing || this.inbox.failure) for (const message of this.messages) message.isUncounted = true;
    for (const message of this.messages) {
      if (message.callback === 'pending') message.callback = 'refused';
      // Only what was read while the disk refused it may go with the process.
      if ((message.isJudgedBlind || message.isUnheld) && !kept.has(message.record.messageDate))
        message.isExcused = true;
    }
    // A start takes its time.
    mock.timers.tick(100);
    this.store = new FailingStore(this.platter, pageSize);
    this.fail(this.isFailing);
    this.inbox = this.createInbox();
    this.#reattach();
  }

  /** A redeployment: everything is closed and comes again. */
  async redeploy(): Promise<void> {
    this.#endCallbacks();
    const ids = [...this.nodes.keys()];
    for (const id of ids) this.detach(id);
    const closed = this.inbox.close();
    await closed;
    this.#reattach(ids);
  }

  #reattach(ids = [...this.nodes.keys()]): void {
    this.nodes.clear();
    for (const id of ids) this.attach(id);
  }
}

/** A node of the running flows. */
class ModelNode implements Taker {
  readonly path: string;
  readonly hand: Entry[] = [];

  constructor(
    readonly world: World,
    readonly id: string,
    readonly generation: number,
  ) {
    this.path = pathOf(id);
  }

  take(entries: readonly Entry[]): void {
    const { world, id } = this;
    if (world.generation !== this.generation) return;
    if (world.nodes.get(id) !== this) world.problems.push(`${id} was given something after it had been taken away`);
    for (const entry of entries) {
      const message = world.find(entry);
      // What an earlier process held is judged without the store, too.
      if (world.inbox.failure) world.judgeBlind(message);
      const given = message.given.get(id) ?? { attempts: [] };
      const isMarked = entry.attempts > 1 || message.isReleased || message.isUncounted;
      if (given.attempts.length > 0 && !isMarked) message.repeatedTo = id;
      given.attempts.push(entry.attempts);
      message.given.set(id, given);
      this.hand.push(entry);
    }
  }

  done(index: number): void {
    const [entry] = this.hand.splice(index % Math.max(1, this.hand.length), 1);
    if (!entry) return;
    this.world.find(entry).done.add(this.id);
    this.world.inbox.done(entry, this);
  }

  release(index: number): void {
    const [entry] = this.hand.splice(index % Math.max(1, this.hand.length), 1);
    if (!entry) return;
    const message = this.world.find(entry);
    message.isReleased = true;
    this.world.follow(message, () => this.world.inbox.release(entry));
  }
}

const weights: readonly (readonly [string, number])[] = [
  ['poll', 5],
  ['pollAgain', 2],
  ['callBack', 4],
  ['retry', 3],
  ['bothAtOnce', 2],
  ['done', 8],
  ['release', 3],
  ['detach', 2],
  ['leave', 1],
  ['attach', 3],
  ['redeploy', 1],
  ['fail', 1],
  ['heal', 2],
  ['tick', 2],
  ['crash', 1],
  ['slow', 1],
  ['quick', 1],
  ['turn', 6],
];

interface Move {
  what: string;
  which: number;
  /** Turns of the event loop before the next move: none, one, or until nothing moves. */
  after: number;
}

const moves = fc.array(
  fc.record<Move>({
    what: fc.oneof(...weights.map(([name, weight]) => ({ weight, arbitrary: fc.constant(name) }))),
    which: fc.nat(50),
    after: fc.constantFrom(0, 0, 0, 1, 1, 3, 12),
  }),
  { minLength: 10, maxLength: 80 },
);

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

async function play(world: World, { what, which, after }: Move): Promise<void> {
  const { messages } = world;
  const any = messages[which % Math.max(1, messages.length)];
  const called = which % 3 ? 'callback' : 'other';
  const id = ids[which % ids.length] ?? '';
  const node = world.nodes.get(id);
  if (what === 'poll') world.poll(world.createMessage());
  else if (what === 'pollAgain' && any) world.poll(any);
  else if (what === 'callBack') world.callBack(world.createMessage(), called);
  else if (what === 'retry' && any) world.callBack(any, called);
  else if (what === 'bothAtOnce') {
    const message = world.createMessage();
    if (which % 2) world.poll(message);
    world.callBack(message, called);
    if (!(which % 2)) world.poll(message);
  } else if (what === 'done') node?.done(which);
  else if (what === 'release' && channelOf(id) === 'callback') node?.release(which);
  else if (what === 'detach' && id !== 'b') world.detach(id);
  else if (what === 'leave' && id !== 'b') {
    world.detach(id);
    // It is not being redeployed.
    mock.timers.tick(20_000);
  } else if (what === 'attach' && !node) world.attach(id);
  else if (what === 'redeploy') await world.redeploy();
  else if (what === 'fail') world.fail(true);
  else if (what === 'heal') world.fail(false);
  else if (what === 'tick') mock.timers.tick(5_000);
  else if (what === 'crash') world.crash();
  else if (what === 'slow') world.store.turns = 1 + (which % 4);
  else if (what === 'quick') world.store.turns = 0;
  await turns(after);
}

/** Lets the store work, every node be there, the service call again, and everything be taken. */
async function comeToRest(world: World): Promise<void> {
  world.fail(false);
  world.store.turns = 0;
  for (const id of ids) if (!world.nodes.has(id)) world.attach(id);
  const hasMore = () => world.platter.entries.size > 0;
  // What is left is read a page at a time, each when the one before it is taken.
  for (let round = 0; round < 4 || (hasMore() && round < 100); round++) {
    mock.timers.tick(5_000);
    await turns(15);
    for (const node of world.nodes.values()) while (node.hand.length > 0) node.done(0);
    await turns(15);
    for (const message of world.messages) if (message.callback === 'refused') world.callBack(message);
    await turns(15);
  }
}

function examine(world: World): void {
  const problems = [...world.problems];
  for (const message of world.messages) {
    const { name, isPolled, callback, done, isExcused, repeatedTo, isJudgedBlind } = message;
    if (repeatedTo && !isJudgedBlind) problems.push(`${repeatedTo} was given ${name} again without a mark`);
    if (!isPolled && callback === 'none') continue;
    if (done.size === 0 && !isExcused) problems.push(`${name} was lost`);
    if (callback !== 'none' && callback !== 'accepted' && !isExcused) problems.push(`${name} is called back for ever`);
    // Node b is never taken away for good: what was polled and not called back has to reach it.
    if (isPolled && callback === 'none' && !done.has('b') && !isExcused) problems.push(`${name} did not reach b`);
  }
  if (world.pending.size > 0) problems.push(`${world.pending.size} calls of the inbox never ended`);
  if (world.platter.entries.size > 0) problems.push(`${world.platter.entries.size} entries stay in the store`);
  assert.deepEqual(problems, []);
}

describe('Inbox against a model', () => {
  before(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2026, 0, 2) }));
  after(() => mock.timers.reset());

  it('loses nothing and repeats nothing without a mark, whatever happens in whatever order', async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(moves, async (list) => {
        const world = new World();
        for (const id of ids) world.attach(id);
        for (const move of list) await play(world, move);
        await comeToRest(world);
        examine(world);
        await world.inbox.close();
      }),
      {
        numRuns: Number(process.env.MODEL_RUNS ?? 400),
        interruptAfterTimeLimit: Number(process.env.MODEL_MS ?? 60_000),
        markInterruptAsFailure: false,
      },
    );
  });
});
