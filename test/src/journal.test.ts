import assert from 'node:assert/strict';
import type { SmsError } from '../../src/errors';
import { Journal, type Participant, type Step } from '../../src/journal/journal';
import {
  type Changes,
  type Item,
  type ItemKind,
  type ReadKey,
  type Store,
  type StoreEvents,
  StoreLapse,
} from '../../src/store/store';
import { settle, VirtualClock } from '../virtual-clock';
import { FailingServer, FailingStore, FakeDisk } from './store/failing-store';

function item(id: string, part: ItemKind = 'outgoing'): Item {
  return { id, part, subscribers: [`node ${id}`], attempts: 0 };
}

/** Creates a step that reads no keys. */
function step(change: (changes: Changes, readKey: ReadKey) => void, more: Partial<Step<void>> = {}): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    decide: (readKey, changes) => {
      change(changes, readKey);
      return () => {};
    },
    ...more,
  };
}

const keep = (id: string, more: Partial<Step<void>> = {}) =>
  step((changes) => void changes.keep.set(id, item(id)), more);
const refuse = { whileFailing: 'refuse' } as const;
const drop = (id: string) => step((changes) => void changes.drop.set(id, 'outgoing'));

/** Creates a step that appends x to the value of a key. */
const append = (key: string) =>
  step((changes, readKey) => changes.remember.set(key, { at: 1, forMs: 1, value: `${readKey(key)?.value ?? ''}x` }), {
    keys: [key],
  });

/** Creates a step that returns the values of keys. */
const look = (...keys: string[]): Step<(string | undefined)[]> => ({
  keys,
  whileFailing: 'apply',
  decide: (readKey) => () => keys.map((key) => readKey(key)?.value),
});

/** For each step: `fulfilled`, or the reason for which the step rejected. */
const outcomesOf = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.map((result) => (result.status === 'rejected' ? result.reason : result.status));

/** A participant that records its events. */
class Notes implements Participant {
  readonly items: string[][] = [];
  readonly openings: boolean[] = [];
  /** Items that the journal has passed to this participant, by id. */
  readonly had = new Map<string, Item>();

  receiveItems(items: readonly Item[], isOpening: boolean): void {
    this.items.push(items.map(({ id }) => id));
    this.openings.push(isOpening);
    for (const one of items) this.had.set(one.id, one);
  }

  wantedNames(): string[] {
    return ['node 1'];
  }

  itemOf(id: string): Item | undefined {
    return this.had.get(id);
  }

  forget(id: string): void {
    this.had.delete(id);
  }
}

describe('Journal', () => {
  let clock: VirtualClock;
  let store: FailingStore;
  let states: (string | undefined)[];
  let unreadable: string[];
  let journal: Journal;
  /** The participant of the journal. */
  let notes: Notes;

  beforeEach(() => {
    clock = new VirtualClock();
    store = new FailingStore();
    states = [];
    unreadable = [];
    notes = new Notes();
    create();
  });
  /** Creates the journal of this process, or of the next one. */
  function create(keptIn: Store = store, participants: Partial<Record<ItemKind, Participant>> = {}): void {
    journal = new Journal({
      store: keptIn,
      clock,
      onStore: (error: SmsError | undefined) => states.push(error?.code),
      onDamaged: ({ params }) => unreadable.push(String(params.place)),
    });
    for (const [part, participant] of Object.entries({ outgoing: notes, ...participants })) {
      journal.join(part as ItemKind, participant);
    }
  }

  const kept = () => [...store.disk.entries.keys()].sort();

  describe('with a disconnected store', () => {
    let server: FailingServer;

    beforeEach(async () => {
      server = new FailingServer();
      create(server);
      await journal.ready();
    });

    it('reconnects the store immediately', async () => {
      server.disconnect();
      await clock.advance(0);
      assert.deepEqual([journal.isOpen, states], [true, ['SMS_STORE', undefined]]);
    });

    it('delays a step for up to 2 s until the store reconnects', async () => {
      server.failing.add('open');
      server.disconnect();
      const written = journal.run(keep('1', refuse));
      await clock.advance(1_000);
      server.failing.clear();
      await clock.advance(999);
      await written;
      assert.deepEqual([...server.disk.entries.keys()], ['1']);
    });

    it('refuses a step that has waited for 2 s', async () => {
      server.failing.add('open');
      server.disconnect();
      let isRefused = false;
      const refused = assert.rejects(journal.run(keep('1', refuse)), { code: 'SMS_STORE' });
      void refused.then(() => {
        isRefused = true;
      });
      await clock.advance(1_999);
      assert.equal(isRefused, false);
      await clock.advance(1);
      await refused;
      await assert.rejects(journal.run(keep('2', refuse)), { code: 'SMS_STORE' });
    });
  });

  describe('with several steps', () => {
    it('commits all steps of an event loop turn together', async () => {
      await journal.ready();
      await Promise.all([journal.run(append('key')), journal.run(append('key')), journal.run(append('key'))]);
      await journal.run(append('key'));
      assert.deepEqual(await journal.run(look('key')), ['xxxx']);
      assert.equal(store.commits, 2);
    });

    it('continues with the other steps if one step throws', async () => {
      const fault = new RangeError('a fault');
      const fail = () => {
        throw fault;
      };
      const undecided = step((changes) => {
        changes.keep.set('never', item('never'));
        fail();
      });
      const { decide } = keep('2');
      const failsLater: Step<void>['decide'] = (...call) => {
        decide(...call);
        return fail;
      };
      for (const expectedStates of [[], ['SMS_STORE']]) {
        await journal.ready();
        if (expectedStates.length > 0) store.failing.add('commit');
        const steps = [keep('1'), undecided, { ...keep('2'), decide: failsLater }, keep('3')];
        const results = await Promise.allSettled(steps.map((one) => journal.run(one)));
        assert.deepEqual(outcomesOf(results), ['fulfilled', fault, fault, 'fulfilled']);
        assert.deepEqual(states, expectedStates);
        store.failing.clear();
        await clock.advance(5_000);
        assert.deepEqual(kept(), ['1', '2', '3']);
        await journal.close();
      }
    });

    for (const [size, count, bytes, maxPerTurn] of [
      ['256 steps', 1_000, 0, 256],
      ['about 1 MB', 20, 250_000, 5],
    ] as const) {
      it(`commits at most ${size} per turn of the event loop`, async () => {
        await journal.ready();
        const steps = Array.from({ length: count }, (_, index) => keep(String(index), { bytes }));
        const all = Promise.all(steps.map((one) => journal.run(one)));
        for (let turn = 1; store.disk.entries.size < count; turn++) {
          await settle();
          assert.ok(store.disk.entries.size <= turn * maxPerTurn, `${store.disk.entries.size} in ${turn} turns`);
          await clock.advance(0);
        }
        await all;
        assert.equal(store.commits, 4);
      });
    }
  });

  for (const failing of ['open', 'recall', 'commit'] as const) {
    it(`obeys \`whileFailing\` while \`store.${failing}\` fails`, async () => {
      if (failing !== 'open') await journal.ready();
      store.failing.add(failing);
      const did = new Set<string>();
      const run = (id: string, whileFailing: Step<void>['whileFailing']) =>
        journal
          .run({
            keys: ['key'],
            whileFailing,
            decide: (_, changes) => {
              changes.keep.set(id, item(id));
              return (isWritten) => void did.add(`${id} ${isWritten ? 'written' : 'applied'}`);
            },
          })
          .catch((error: SmsError) => void did.add(`${id} ${error.code}`));
      const all = [run('1', 'refuse'), run('2', 'postpone'), run('3', 'apply')];
      await settle();
      assert.deepEqual([...did].sort(), ['1 SMS_STORE', '3 applied']);
      assert.deepEqual([journal.mode, journal.failure?.code, states], ['failed', 'SMS_STORE', ['SMS_STORE']]);
      assert.equal(journal.isWritten, false);
      await assert.rejects(journal.ready(), { code: 'SMS_STORE' });
      await clock.advance(20_000);
      assert.deepEqual([kept(), states], [[], ['SMS_STORE']]);
      store.failing.clear();
      await clock.advance(5_000);
      await Promise.all(all);
      assert.deepEqual(
        [kept(), states],
        [
          ['2', '3'],
          ['SMS_STORE', undefined],
        ],
      );
      assert.deepEqual([...did].sort(), ['1 SMS_STORE', '2 written', '3 applied']);
      assert.deepEqual([journal.mode, journal.failure, journal.isWritten], ['open', undefined, true]);
    });
  }

  it('reopens a failed store immediately when a caller needs it', async () => {
    store.failing.add('open');
    await assert.rejects(journal.ready(), { code: 'SMS_STORE' });
    await assert.rejects(journal.ready(), { code: 'SMS_STORE' });
    store.failing.clear();
    await journal.ready();
    assert.deepEqual([journal.mode, states, clock.timers], ['open', ['SMS_STORE', undefined], 0]);
  });

  it('reads changes that the store has not written yet', async () => {
    await journal.run(keep('1'));
    await journal.run(keep('2'));
    notes.had.set('2', item('2'));
    store.failing.add('commit');
    await journal.run(drop('1'));
    await journal.run(append('key'));
    assert.deepEqual(await journal.run(look('key')), ['x']);
    store.failing.clear();
    await clock.advance(5_000);
    assert.deepEqual(notes.items, [[], ['2']]);
    assert.deepEqual([kept(), store.disk.remembered.size], [['2'], 1]);
  });

  /** Stores item 1, and makes the store fail before item 2 is written. */
  async function failAfterItem(): Promise<void> {
    await journal.run(keep('1'));
    store.failing.add('commit');
    await journal.run(keep('2'));
  }

  for (const [how, reopen] of [
    ['after a failure', () => clock.advance(5_000)],
    ['after a close', () => journal.open()],
  ] as const) {
    it(`drops an item while the store reopens ${how}`, async () => {
      await failAfterItem();
      if (how === 'after a close') await journal.close();
      store.failing.clear();
      store.turns = 3;
      const reopened = reopen();
      await settle();
      await journal.run(drop('1'));
      await reopened;
      await journal.flush();
      assert.deepEqual([notes.items, kept()], [[[], []], ['2']]);
    });
  }

  it('keeps an item that was dropped and stored again', async () => {
    await journal.run(keep('1'));
    store.failing.add('commit');
    await journal.run(drop('1'));
    await journal.run(keep('1'));
    store.failing.clear();
    await clock.advance(5_000);
    assert.deepEqual(kept(), ['1']);
  });

  it('sweeps the store when it opens and after many writes', async () => {
    await journal.ready();
    assert.equal(store.sweeps, 1);
    store.failing.add('sweep');
    const remember = step(({ remember: seen }) => {
      for (let index = 0; index < 500; index++) seen.set(String(index), { at: 1, forMs: 1, value: '' });
    });
    await journal.run(remember);
    await journal.flush();
    assert.deepEqual([store.sweeps, states], [2, ['SMS_STORE']]);
    store.failing.clear();
    await clock.advance(5_000);
    assert.deepEqual(states, ['SMS_STORE', undefined]);
  });

  it('keeps values although the clock moves back during a sweep', async () => {
    await journal.ready();
    const sweep = store.sweep.bind(store);
    store.sweep = (...call) => {
      const sweeping = sweep(...call);
      clock.set(-100 * 3_600_000);
      store.sweep = sweep;
      return sweeping;
    };
    const remember = step(({ remember: seen }) => {
      for (let index = 0; index < 500; index++) {
        seen.set(String(index), { at: clock.now(), forMs: 72 * 3_600_000, value: '' });
      }
    });
    for (const sweeps of [2, 3]) {
      await journal.run(remember);
      await journal.flush();
      assert.deepEqual([store.sweeps, store.disk.remembered.size], [sweeps, 500]);
    }
  });

  it('reopens a store without an error if its heartbeat expired', async () => {
    await journal.run(keep('1'));
    notes.had.set('1', item('1'));
    let lapses = 1;
    store.beforeCommit = () => {
      if (lapses-- > 0) throw new StoreLapse('lapsed');
    };
    await journal.run(keep('2', refuse));
    assert.deepEqual([kept(), notes.items, states, clock.timers], [['1', '2'], [[], ['1']], [], 0]);
    lapses = 2;
    await assert.rejects(journal.run(keep('3', refuse)), { code: 'SMS_STORE' });
    assert.deepEqual([states, journal.mode], [['SMS_STORE'], 'failed']);
  });

  for (const isHeardFirst of [true, false]) {
    it(`reopens the store once if ${isHeardFirst ? 'an event' : 'a commit'} reports the expired heartbeat first`, async () => {
      await journal.run(keep('1'));
      const commit = store.commit.bind(store);
      store.commit = () => {
        store.commit = commit;
        const hear = () => store.events?.onFailure?.(new StoreLapse('lapsed'));
        if (isHeardFirst) hear();
        else queueMicrotask(hear);
        throw new StoreLapse('lapsed');
      };
      await journal.run(keep('2', refuse));
      assert.deepEqual([kept(), states, clock.timers], [['1', '2'], [], 0]);
    });
  }

  it('reports a failure that occurs while the store opens', async () => {
    const open = store.open.bind(store);
    store.open = (events?: StoreEvents) => {
      store.open = open;
      events?.onFailure(new Error('again'));
      return open();
    };
    await assert.rejects(journal.ready(), { code: 'SMS_STORE' });
    assert.deepEqual([journal.mode, states], ['failed', ['SMS_STORE']]);
    await clock.advance(5_000);
    assert.deepEqual([journal.mode, states], ['open', ['SMS_STORE', undefined]]);
  });

  describe('with stored items', () => {
    it('passes each item to the participant for its kind', async () => {
      await journal.run(
        step(({ keep: items }) => {
          items.set('1', item('1', 'outgoing')).set('2', item('2', 'inbox')).set('3', item('3', 'outgoing'));
        }),
      );
      await journal.close();
      notes = new Notes();
      create();
      await journal.ready();
      assert.deepEqual(notes.items, [['1', '3']]);
      assert.deepEqual(notes.openings, [true]);
      await journal.close();
      assert.deepEqual(kept(), ['1', '2', '3']);
    });

    it('passes on all items before it runs a step', async () => {
      let finish = () => {};
      const order: string[] = [];
      const found = async () => {
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        order.push('found');
      };
      create(store, { outgoing: { receiveItems: found, wantedNames: () => [] } });
      const step1 = journal.run(keep('1')).then(() => order.push('step'));
      await settle();
      assert.deepEqual(order, []);
      finish();
      await step1;
      assert.deepEqual(order, ['found', 'step']);
    });

    it('replays saved answers before it runs waiting steps', async () => {
      const disk = new FakeDisk();
      for (const text of ['one', 'bad', 'two']) disk.hold(text);
      store = new FailingStore(disk);
      create(store, {
        inbox: {
          receiveItems: () => {},
          wantedNames: () => [],
          replay({ text, remove }) {
            if (text === 'bad') return false;
            void journal.run(keep(text)).then(remove);
            return true;
          },
        },
      });
      await journal.run(keep('waited'));
      assert.deepEqual([...store.disk.entries.keys()], ['one', 'two', 'waited']);
      assert.deepEqual([unreadable.length, disk.quarantined, states], [1, ['bad'], []]);
      await settle();
      assert.equal(disk.pendingWrites.size, 0);
    });

    it('asks the participant if an item is readable', async () => {
      const participant: Participant = {
        receiveItems: () => {},
        wantedNames: () => ['incoming'],
        isReadable: ({ id }) => id !== 'bad',
      };
      create(store, { inbox: participant });
      await journal.ready();
      const readable = [item('1', 'inbox'), item('bad', 'inbox'), item('bad', 'outgoing')].map((one) =>
        store.events?.isReadable?.(one),
      );
      assert.deepEqual(readable, [true, false, true]);
      assert.deepEqual(store.events?.wantedNames?.(), ['node 1', 'incoming']);
      store.events?.onUnreadable?.('an entry');
      assert.deepEqual(unreadable, ['an entry']);
    });

    it('passes on items that the store claims after it opens', async () => {
      const found = [[], [item('2')]];
      store.open = async (events) => {
        store.events = events;
        store.isOpen = true;
        store.disk.owner = store;
        return { items: found.shift() ?? [], pendingWrites: [], isReset: found.length === 0 };
      };
      await journal.ready();
      store.events?.onTakenOver?.([item('1')]);
      await journal.flush();
      store.turns = 3;
      const slow = journal.run(keep('slow'));
      await settle();
      store.events?.onFailure?.(new Error('gone'));
      await slow;
      await clock.advance(5_000);
      assert.deepEqual(notes.items, [[], ['1'], ['2']]);
      assert.deepEqual(notes.openings, [true, false, true]);
    });

    for (const isReset of [true, false])
      it(`${isReset ? 'stores lost items again' : 'forgets items that another process claimed'}`, async () => {
        const server = new FailingServer();
        const open = server.open.bind(server);
        server.open = async (events) => ({ ...(await open(events)), isReset });
        create(server);
        await journal.ready();
        for (const id of ['stays', 'goes']) {
          notes.had.set(id, item(id));
          await journal.run(keep(id));
        }
        notes.had.set('new', item('new'));
        server.disk.entries.delete('goes');
        server.failing.add('commit');
        const change = journal.run(keep('goes'));
        await clock.advance(0);
        await change;
        server.failing.clear();
        await clock.advance(5_000);
        assert.deepEqual([...server.disk.entries.keys()].sort(), isReset ? ['goes', 'stays'] : ['stays']);
        assert.deepEqual([...notes.had.keys()].sort(), isReset ? ['goes', 'new', 'stays'] : ['new', 'stays']);
      });
  });

  describe('after `close`', () => {
    it('opens again if a caller needs the store before `close` ends', async () => {
      await journal.ready();
      store.turns = 2;
      void journal.run(keep('1'));
      const closed = journal.close();
      await journal.ready();
      await journal.run(keep('2', refuse));
      await closed;
      assert.deepEqual([kept(), journal.mode, store.isOpen], [['1', '2'], 'open', true]);
    });

    it('stops retrying a failed store', async () => {
      store.failing.add('open');
      await journal.run(keep('1'));
      await journal.close();
      assert.deepEqual([journal.mode, states, clock.timers], ['closed', ['SMS_STORE', undefined], 0]);
      store.failing.clear();
      journal.open();
      await journal.flush();
      assert.deepEqual([kept(), journal.isWritten], [['1'], true]);
    });

    it('closes the store even right after a failure', async () => {
      for (let moments = 0; moments < 30; moments++) {
        store = new FailingStore();
        create();
        await journal.ready();
        store.failing.add('recall');
        await assert.rejects(journal.run({ ...append('key'), ...refuse }), { code: 'SMS_STORE' });
        for (let moment = 0; moment < moments; moment++) await undefined;
        await journal.close();
        assert.deepEqual([moments, store.isOpen], [moments, false]);
      }
    });

    it('stays closed if the store fails later', async () => {
      await journal.ready();
      await journal.close();
      store.events?.onFailure?.(new Error('late'));
      assert.deepEqual([journal.mode, states, clock.timers], ['closed', [], 0]);
    });
  });

  describe('for new items', () => {
    it('creates ascending ids although the clock moves back', async () => {
      const ids = [journal.nextId(), journal.nextId()];
      clock.set(-1_000_000);
      ids.push(journal.nextId());
      const last = ids.at(-1) ?? '';
      await journal.run(keep(last));
      await journal.close();
      create();
      await journal.ready();
      ids.push(journal.nextId(), journal.nextId());
      assert.deepEqual(ids, [...new Set(ids)].sort());
    });
  });
});
