import assert from 'node:assert/strict';
import type { Taker } from '../../../src/delivery/taker';
import type { Entry } from '../../../src/inbox/entry';
import type { Acceptance, Arrival, Inbox } from '../../../src/inbox/inbox';
import type { Kind, RecordOfKind, Via } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { FailingStore, Platter } from '../store/failing-store';
import { createInboxOn } from './inbox-on';

const pageSize = 4;
/** A page, and the next when half of it is delivered. */
const mostInMemory = pageSize * 1.5;

/** Has in hand what it was given until it is told to be done with it. */
class Node implements Taker {
  readonly hand: Entry[] = [];
  readonly taken: string[] = [];
  /** What was marked as sent before. */
  readonly again: string[] = [];
  mostInHand = 0;

  constructor(
    readonly inbox: Inbox,
    readonly id = 'node',
    readonly path = '/sms',
  ) {}

  take(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.hand.push(entry);
      this.taken.push(String(entry.record.messageId ?? entry.record.body));
      if (this.inbox.attemptOf(entry, this) > 1) this.again.push(String(entry.record.messageId));
    }
    this.mostInHand = Math.max(this.mostInHand, this.hand.length);
  }

  done(count: number): void {
    for (const entry of this.hand.splice(0, count)) this.inbox.done(entry, this);
  }
}

function createRecord(kind: Kind, name: string, via: Via = 'poll'): RecordOfKind {
  const common = { messageId: name, from: '6421555001', via };
  if (kind === 'status') return { kind, record: { ...common, statusCode: 'RCV' } };
  return {
    kind: 'incoming',
    record: { ...common, body: name, messageDate: '2026-03-01T10:00:00Z', isReply: false },
  };
}

function polled(name: string, kind: 'incoming' | 'status' = 'incoming'): Arrival {
  const { record } = createRecord(kind, name);
  return { kind, records: [record], via: 'poll' } as Arrival;
}

function called(name: string): Arrival {
  const { record } = createRecord('incoming', name, 'callback');
  return { kind: 'incoming', records: [record], via: 'callback', address: { node: 'called', path: '/sms' } } as Arrival;
}

const names = (count: number, start = 0) => Array.from({ length: count }, (_, index) => `m${start + index}`);

describe('what is left undelivered in a store', () => {
  let clock: VirtualClock;
  let platter: Platter;
  let store: FailingStore;
  let inboxes: Inbox[];
  let states: (string | undefined)[];

  beforeEach(() => {
    clock = new VirtualClock();
    platter = new Platter();
    inboxes = [];
    states = [];
  });
  afterEach(async () => {
    store.failing.clear();
    const closing = Promise.all(inboxes.map((inbox) => inbox.close()));
    await clock.advance(100);
    await closing;
  });

  /** Starts a process that finds what the last one has left. */
  function start(): Inbox {
    store?.kill();
    inboxes = [];
    store = new FailingStore(platter, pageSize);
    return createInbox(store);
  }

  function createInbox(on: FailingStore): Inbox {
    const inbox = createInboxOn({
      store: on,
      clock,
      dedupe: () => true,
      dedupeMs: () => 1e9,
      onStore: (error) => states.push(error?.code),
    });
    inboxes.push(inbox);
    return inbox;
  }

  /** What a process polled for nobody, and left as it died. */
  async function leave(list: readonly string[], kind: 'incoming' | 'status' = 'incoming'): Promise<void> {
    const inbox = start();
    for (const name of list) {
      const accepting = inbox.accept(polled(name, kind));
      await clock.advance(1);
      await accepting;
    }
  }

  async function open(inbox: Inbox): Promise<void> {
    inbox.open();
    await clock.advance(1);
  }

  function attach(inbox: Inbox, node = new Node(inbox), channel: Entry['channel'] = 'incoming'): Node {
    inbox.attach(channel, node);
    return node;
  }

  async function accept(inbox: Inbox, arrival: Arrival): Promise<Acceptance | undefined> {
    const accepting = inbox.accept(arrival);
    await clock.advance(1);
    const [acceptance] = await accepting;
    return acceptance;
  }

  /** Has the nodes be done with all that they get, one after the other, until they get nothing more. */
  async function takeAll(...nodes: Node[]): Promise<void> {
    do {
      for (const node of nodes) node.done(1);
      await clock.advance(30);
    } while (nodes.some(({ hand }) => hand.length > 0));
  }

  it('is read page by page as it is delivered, in order, and counted from the first moment', async () => {
    await leave(names(50));
    const inbox = start();
    await open(inbox);
    assert.equal(inbox.state.undelivered, 50);
    const node = attach(inbox);
    for (let left = 50; left > 0; left--) {
      await clock.advance(30);
      assert.equal(inbox.state.undelivered, left);
      node.done(1);
    }
    await clock.advance(30);
    assert.deepEqual(node.taken, names(50));
    assert.ok(node.mostInHand <= mostInMemory, `${node.mostInHand} in memory at once`);
    assert.deepEqual([inbox.state.undelivered, inbox.isSettled, platter.entries.size], [0, true, 0]);
  });

  it('stays where it is, but for a page, while nobody is there to take it', async () => {
    await leave(names(50));
    const inbox = start();
    const other = attach(inbox, new Node(inbox, 'other'), 'status');
    await clock.advance(60_000);
    assert.deepEqual([store.reads, inbox.state.undelivered, other.taken], [0, 50, []]);
    assert.equal(inbox.isSettled, false);
    const node = attach(inbox);
    await takeAll(node);
    assert.deepEqual(node.taken, names(50));
  });

  it('says since when the oldest of it waits', async () => {
    const leftAt = clock.now();
    await leave(names(20));
    await clock.advance(3_600_000);
    const inbox = start();
    await open(inbox);
    assert.equal(Math.floor((inbox.state.oldestAt ?? 0) / 1_000), Math.floor(leftAt / 1_000));
    const node = attach(inbox);
    await accept(inbox, polled('new'));
    store.failing.add('read');
    await clock.advance(30);
    node.done(pageSize);
    await clock.advance(30);
    assert.equal(Math.floor((inbox.state.oldestAt ?? 0) / 1_000), Math.floor(leftAt / 1_000), 'none of it in memory');
    store.failing.delete('read');
    await clock.advance(6_000);
    for (let delivered = pageSize; delivered < 19; delivered++) {
      node.done(1);
      await clock.advance(30);
    }
    assert.deepEqual([node.hand.length, inbox.state.undelivered], [2, 2]);
    assert.equal(Math.floor((inbox.state.oldestAt ?? 0) / 1_000), Math.floor(leftAt / 1_000), 'the last of it');
    node.done(1);
    await clock.advance(30);
    assert.ok((inbox.state.oldestAt ?? 0) > leftAt + 3_000_000);
  });

  it('is delivered before what comes meanwhile, which is not marked as sent before', async () => {
    await leave(names(20));
    const inbox = start();
    await open(inbox);
    await accept(inbox, polled('before the node'));
    const node = attach(inbox);
    await clock.advance(30);
    await accept(inbox, polled('behind the page'));
    node.done(3);
    await clock.advance(30);
    await accept(inbox, polled('behind the rest'));
    await takeAll(node);
    const late = ['before the node', 'behind the page', 'behind the rest'];
    assert.deepEqual(node.taken, [...names(20), ...late]);
    assert.deepEqual(
      node.again.filter((name) => late.includes(name)),
      [],
    );
    assert.deepEqual([inbox.state.undelivered, platter.entries.size], [0, 0]);
  });

  it('comes before what came behind it after a kill as well, though the clock was set back, and that is not marked', async () => {
    await leave(names(20));
    clock.set(-3_600_000);
    const inbox = start();
    attach(inbox);
    await clock.advance(30);
    await accept(inbox, polled('new'));
    const node = attach(start());
    await takeAll(node);
    assert.deepEqual([node.taken, node.again], [[...names(20), 'new'], names(pageSize)]);
  });

  it('of callbacks is all in memory, so that the service hears of each when it calls again', async () => {
    const calledBack = start();
    for (const name of names(10)) await accept(calledBack, called(name));
    const inbox = start();
    await open(inbox);
    const acceptances = [];
    for (const name of names(10)) acceptances.push(await accept(inbox, called(name)));
    const polledAgain = await accept(inbox, polled('m9'));
    assert.deepEqual(
      [...acceptances, polledAgain].map((acceptance) => acceptance?.entry?.record.body),
      [...names(10), 'm9'],
    );
    const node = attach(inbox, new Node(inbox, 'called'), 'callback');
    await takeAll(node);
    assert.deepEqual([node.taken, inbox.state.undelivered], [[...names(9), 'm9'], 0]);
  });

  it('of one kind keeps neither another kind nor a callback waiting', async () => {
    await leave(names(20));
    const inbox = start();
    const statuses = attach(inbox, new Node(inbox, 'statuses'), 'status');
    const calledBack = attach(inbox, new Node(inbox, 'called'), 'callback');
    attach(inbox);
    await clock.advance(30);
    await accept(inbox, polled('s', 'status'));
    await accept(inbox, called('c'));
    assert.deepEqual([statuses.taken, calledBack.taken], [['s'], ['c']]);
  });

  it('is found among much that is of another kind, for which nobody is there', async () => {
    await leave(names(30), 'status');
    await leave(names(30, 30));
    await leave(names(30, 60), 'status');
    await leave(names(10, 90));
    const inbox = start();
    const node = attach(inbox);
    await takeAll(node);
    assert.deepEqual(node.taken, [...names(30, 30), ...names(10, 90)]);
    assert.equal(inbox.state.undelivered, 60);
    const statuses = attach(inbox, new Node(inbox, 'statuses'), 'status');
    await takeAll(statuses);
    assert.deepEqual(statuses.taken, [...names(30), ...names(30, 60)]);
  });

  it('reaches each of several nodes, and one that is redeployed meanwhile, once', async () => {
    await leave(names(30));
    const inbox = start();
    const stays = attach(inbox, new Node(inbox, 'stays'));
    const leaves = attach(inbox, new Node(inbox, 'leaves'));
    for (let round = 0; round < 10; round++) {
      stays.done(1);
      leaves.done(1);
      await clock.advance(30);
    }
    leaves.done(Number.POSITIVE_INFINITY);
    inbox.detach('incoming', leaves);
    for (let round = 0; round < 10; round++) {
      stays.done(1);
      await clock.advance(30);
    }
    const returns = attach(inbox, new Node(inbox, 'leaves'));
    await takeAll(stays, returns);
    assert.deepEqual(stays.taken, names(30));
    assert.deepEqual([...leaves.taken, ...returns.taken], names(30));
  });

  for (const failsAfter of [0, 1, 2]) {
    it(`is all delivered, once, when the store fails before page ${failsAfter + 2} is read, and counted meanwhile`, async () => {
      await leave(names(30));
      const inbox = start();
      const node = attach(inbox);
      await clock.advance(30);
      for (let page = 0; page < failsAfter; page++) {
        node.done(pageSize);
        await clock.advance(30);
      }
      store.failing.add('read');
      const delivered = failsAfter * pageSize + 2;
      node.done(2);
      await clock.advance(30);
      assert.deepEqual([states, inbox.state.undelivered], [['SMS_STORE'], 30 - delivered]);
      await clock.advance(12_000);
      assert.equal(inbox.state.undelivered, 30 - delivered);
      store.failing.delete('read');
      await takeAll(node);
      await clock.advance(6_000);
      await takeAll(node);
      assert.deepEqual(node.taken, names(30));
      assert.deepEqual([inbox.failure, inbox.state.undelivered, platter.entries.size], [undefined, 0, 0]);
      assert.ok(node.mostInHand <= mostInMemory, `${node.mostInHand} in memory at once`);
    });
  }

  it('is not read into memory again and again by a store that fails again and again', async () => {
    await leave(names(40));
    const inbox = start();
    const node = attach(inbox);
    await clock.advance(30);
    for (let round = 0; round < 10; round++) {
      store.failing.add('commit');
      await accept(inbox, polled(`new ${round}`));
      store.failing.delete('commit');
      await clock.advance(6_000);
    }
    assert.ok(node.mostInHand <= mostInMemory, `${node.mostInHand} in memory at once`);
    assert.equal(inbox.state.undelivered, 50);
    await takeAll(node);
    assert.deepEqual(node.taken, [...names(40), ...Array.from({ length: 10 }, (_, round) => `new ${round}`)]);
  });

  it('is not delivered twice where a commit seemed to fail and had not', async () => {
    await leave(names(10));
    const inbox = start();
    await open(inbox);
    store.failsAfterwards = true;
    store.failing.add('commit');
    await accept(inbox, polled('uncertain'));
    store.failing.delete('commit');
    await clock.advance(6_000);
    const node = attach(inbox);
    await takeAll(node);
    assert.deepEqual(node.taken, [...names(10), 'uncertain']);
    assert.deepEqual([inbox.state.undelivered, platter.entries.size], [0, 0]);
  });

  it('is delivered by the next process when this one is killed in the midst of it, and nothing twice that was written', async () => {
    await leave(names(30));
    const first = attach(start());
    await clock.advance(30);
    for (let round = 0; round < 9; round++) {
      first.done(1);
      await clock.advance(30);
    }
    const inbox = start();
    await open(inbox);
    assert.equal(inbox.state.undelivered, 21);
    const second = attach(inbox);
    await takeAll(second);
    assert.deepEqual(second.taken, names(21, 9));
    // What the first had in hand may have been sent.
    assert.deepEqual(second.again, first.taken.slice(9));
  });

  it('is not counted where the process that delivered it was killed before that was written', async () => {
    await leave(names(20));
    const inbox = start();
    await open(inbox);
    const ids = [...platter.entries.keys()].sort();
    const node = attach(inbox);
    await clock.advance(30);
    // Far behind the page that the next process reads first.
    store.kill();
    platter.hold(JSON.stringify({ delivered: ids.slice(10, 13) }));
    const next = start();
    await open(next);
    await clock.advance(30);
    assert.equal(next.state.undelivered, 17);
    const second = attach(next);
    await takeAll(second);
    assert.deepEqual(second.taken, [...names(10), ...names(7, 13)]);
    assert.deepEqual([node.taken.length, next.state.undelivered, platter.held.size], [pageSize, 0, 0]);
  });

  it('stays where it is when the inbox is closed in the midst of reading it, and goes on when it is opened again', async () => {
    await leave(names(30));
    const inbox = start();
    const node = attach(inbox);
    await clock.advance(30);
    // Reading takes turns of the event loop that no clock gives.
    store.turns = 3;
    node.done(2);
    while (store.reads === 0) await clock.advance(0);
    assert.equal(node.taken.length, pageSize);
    inbox.detach('incoming', node);
    await inbox.close();
    await clock.advance(60_000);
    assert.deepEqual([store.isOpen, store.reads, inbox.isDisposable], [false, 1, true]);
    store.turns = 0;
    const delivered = node.taken.length - node.hand.length;
    const again = attach(inbox);
    await clock.advance(60);
    assert.equal(inbox.state.undelivered, 30 - delivered);
    await takeAll(again);
    assert.deepEqual(again.taken, names(30 - delivered, delivered));
  });

  it('does not keep a store from being closed while somebody takes it', async () => {
    await leave(names(50));
    const inbox = start();
    const node = attach(inbox);
    await clock.advance(30);
    node.done(pageSize);
    const closing = inbox.close();
    await clock.advance(30);
    await closing;
    assert.deepEqual([store.isOpen, store.reads, platter.entries.size], [false, 0, 50 - pageSize]);
  });

  it('is read on when the inbox is opened again before it was closed', async () => {
    await leave(names(20));
    const inbox = start();
    const node = attach(inbox);
    await clock.advance(30);
    node.done(pageSize);
    inbox.detach('incoming', node);
    const closing = inbox.close();
    await clock.advance(0);
    const back = attach(inbox);
    await clock.advance(30);
    await closing;
    await takeAll(back);
    assert.deepEqual([...node.taken, ...back.taken], names(20));
  });

  describe('that the service calls back as well, when nobody polls any more', () => {
    it('is looked for, and goes to the called node when the service calls again', async () => {
      await leave(names(30));
      const inbox = start();
      const node = attach(inbox, new Node(inbox, 'called'), 'callback');
      await clock.advance(30);
      const first = await accept(inbox, called('m25'));
      assert.deepEqual([first?.heldElsewhere, node.taken], [true, []]);
      await clock.advance(60);
      const second = await accept(inbox, called('m25'));
      assert.deepEqual([second?.heldElsewhere, second?.entry, node.taken], [undefined, node.hand[0], ['m25']]);
      await takeAll(node);
      const late = attach(inbox);
      await takeAll(late);
      assert.deepEqual(late.taken, [...names(25), ...names(4, 26)]);
    });

    it('is left to a node that is being redeployed', async () => {
      await leave(names(30));
      const inbox = start();
      const node = attach(inbox);
      const calledBack = attach(inbox, new Node(inbox, 'called'), 'callback');
      await clock.advance(30);
      inbox.detach('incoming', node);
      const acceptance = await accept(inbox, called('m25'));
      assert.deepEqual([acceptance?.heldElsewhere, store.reads, calledBack.taken], [true, 0, []]);
      const back = attach(inbox);
      await takeAll(back);
      assert.deepEqual(back.taken, names(30));
    });

    it('keeps nothing from being known as delivered', async () => {
      await leave(['delivered']);
      await takeAll(attach(start()));
      await leave(names(30));
      const inbox = start();
      const node = attach(inbox, new Node(inbox, 'called'), 'callback');
      await clock.advance(30);
      assert.equal((await accept(inbox, called('delivered')))?.heldElsewhere, true);
      await clock.advance(60);
      assert.deepEqual(await accept(inbox, called('delivered')), { outcome: 'duplicate' });
      assert.deepEqual(node.taken, []);
    });
  });

  describe('when another inbox takes over', () => {
    async function handOver(from: Inbox, heir: Inbox): Promise<void> {
      const handing = from.handOver(heir);
      await clock.advance(200);
      await handing;
    }

    /** Leaves some in one place, and in another what came later, which an inbox has begun to hand out. */
    async function leaveInTwo(earlier: readonly string[]) {
      await leave(earlier);
      const older = platter;
      platter = new Platter();
      await leave(names(30, 100));
      const heir = start();
      const node = attach(heir);
      await clock.advance(30);
      return { older, heir, node };
    }

    it('is read and handed over, in order, and no more of it is in memory there', async () => {
      await leave(names(30));
      const inbox = start();
      const heirStore = new FailingStore(new Platter(), pageSize);
      const heir = createInbox(heirStore);
      await handOver(inbox, heir);
      assert.deepEqual([inbox.state.undelivered, platter.entries.size], [0, 0]);
      assert.deepEqual([heir.state.undelivered, heirStore.platter.entries.size], [30, 30]);
      const node = attach(heir);
      await takeAll(node);
      assert.deepEqual(node.taken, names(30));
      assert.ok(node.mostInHand <= mostInMemory, `${node.mostInHand} in memory at once`);
      assert.equal(heirStore.platter.entries.size, 0);
    });

    it('is handed over though the other has read on in its own that came later', async () => {
      const { older, heir, node } = await leaveInTwo(names(30));
      for (let round = 0; round < 10; round++) {
        node.done(1);
        await clock.advance(30);
      }
      await handOver(createInbox(new FailingStore(older, pageSize)), heir);
      assert.equal(heir.state.undelivered, 50);
      await takeAll(node);
      assert.deepEqual([...node.taken].sort(), [...names(30), ...names(30, 100)].sort());
      assert.deepEqual([heir.state.undelivered, platter.entries.size], [0, 0]);
    });

    it('is delivered once though the process was killed before it was forgotten in its former place', async () => {
      await leave(names(10));
      const former = new Platter();
      for (const [id, text] of platter.entries) former.entries.set(id, text);
      const heirStore = new FailingStore(new Platter(), pageSize);
      await handOver(start(), createInbox(heirStore));
      heirStore.kill();
      platter = heirStore.platter;
      const heir = start();
      const node = attach(heir);
      await clock.advance(30);
      node.done(6);
      await clock.advance(30);
      const inbox = createInbox(new FailingStore(former, pageSize));
      await handOver(inbox, heir);
      await takeAll(node);
      assert.deepEqual(node.taken, names(10));
      assert.deepEqual([former.entries.size, platter.entries.size, heir.state.undelivered], [0, 0, 0]);
    });

    it('comes back with its login, and once more', async () => {
      await leave(names(10));
      const one = start();
      const other = createInbox(new FailingStore(new Platter(), pageSize));
      await handOver(one, other);
      await handOver(other, one);
      await handOver(one, other);
      const node = attach(other);
      await takeAll(node);
      assert.deepEqual([node.taken, one.state.undelivered, other.state.undelivered], [names(10), 0, 0]);
    });

    it('is not counted there any more once the former comes back and keeps it', async () => {
      // Each was in memory as it was left, which is handed over in one go.
      const inbox = start();
      for (const name of names(10)) await accept(inbox, polled(name));
      const heirStore = new FailingStore(new Platter(), pageSize);
      const heir = createInbox(heirStore);
      const handing = inbox.handOver(heir, { isWanted: () => heirStore.platter.entries.size === 0 });
      await clock.advance(200);
      await handing;
      assert.deepEqual([heir.state.undelivered, heirStore.platter.entries.size], [0, 0]);
      const node = attach(inbox);
      await takeAll(node);
      assert.deepEqual(node.taken, names(10));
    });

    it('goes by no other way, nor does what waits behind it', async () => {
      await leave(names(20));
      const inbox = start();
      const node = attach(inbox);
      await clock.advance(30);
      await accept(inbox, polled('new'));
      const heir = createInbox(new FailingStore(new Platter(), pageSize));
      await handOver(inbox, heir);
      await clock.advance(1_000);
      assert.deepEqual(node.taken, names(pageSize));
      const other = attach(heir);
      await takeAll(other);
      assert.deepEqual([...other.taken].sort(), [...names(20), 'new'].sort());
    });

    it('is given once what the other has in hand, or was done with a moment ago', async () => {
      const { older, heir, node } = await leaveInTwo(names(2));
      await handOver(createInbox(new FailingStore(older, pageSize)), heir);
      const [kept] = node.hand.splice(0, 1);
      assert.ok(kept);
      // Of the next page that is read, these are the last.
      node.done(1);
      await clock.advance(1);
      await takeAll(node);
      heir.done(kept, node);
      await clock.advance(30);
      assert.deepEqual([...node.taken].sort(), [...names(2), ...names(30, 100)].sort());
      assert.deepEqual([heir.state.undelivered, platter.entries.size], [0, 0]);
    });

    it('stays where it is, as far as the other cannot keep it', async () => {
      await leave(names(30));
      const inbox = start();
      const heirStore = new FailingStore(new Platter(), pageSize);
      heirStore.failing.add('commit');
      const heir = createInbox(heirStore);
      await handOver(inbox, heir);
      assert.deepEqual([platter.entries.size, inbox.state.undelivered], [30, 30]);
      assert.equal(heir.state.undelivered, pageSize);
      heirStore.failing.clear();
      await clock.advance(6_000);
      await handOver(inbox, heir);
      const node = attach(heir);
      await takeAll(node);
      assert.deepEqual([...node.taken].sort(), names(30).sort());
      assert.equal(platter.entries.size, 0);
    });
  });
});
