import assert from 'node:assert/strict';
import { createAccounts } from '../../../src/account/accounts';
import { type ImportOptions, type ImportSource, Imports, importStore } from '../../../src/account/import';
import type { AccountSettings, StoreChoice } from '../../../src/account/settings';
import { systemClock } from '../../../src/clock';
import { parseConsentWords } from '../../../src/consent/words';
import type { SmsError } from '../../../src/errors';
import { parseRemembered, type Remembered, type Store } from '../../../src/store/store';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { forever, sendText } from '../sending/sending-side';
import { createItem, events, keepItems } from '../store/driver-suite';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';
import { attachSender, Listener, onDisk, useJoining } from './joining';

const weekMs = 7 * 24 * 3_600_000;

function remembered(value: string, at = 1): Remembered {
  return { at, forMs: weekMs, value };
}

async function fill(store: Store, ids: readonly string[], values: Record<string, Remembered>): Promise<void> {
  await store.open(events);
  const changes = keepItems(...ids.map((id) => createItem(id)));
  for (const [key, value] of Object.entries(values)) changes.remember.set(key, value);
  await store.commit(changes, new Map());
  await store.close();
}

/** Returns the ids of the items of a store, and its values by key. Leaves out the keys that record imports. */
async function read(store: Store): Promise<{ ids: string[]; values: Record<string, string> }> {
  await store.open(events);
  const ids: string[] = [];
  const values: Record<string, string> = {};
  for await (const page of store.pages()) {
    for (const { id } of page.items) ids.push(id);
    for (const [key, { value }] of page.remembered) if (!key.startsWith('imported:')) values[key] = value;
  }
  await store.close();
  return { ids: ids.sort(), values };
}

function importing(from: Store, to: Store, changes: Partial<ImportOptions> = {}): Promise<void> {
  return importStore({
    id: 'an import',
    from,
    to,
    clock: systemClock,
    events,
    merge: (_key, own, former) => (former.at > own.at ? former : own),
    hasAllItems: true,
    signal: new AbortController().signal,
    onCopying: () => {},
    ...changes,
  });
}

const nothing = { ids: [], values: {} };

describe('importStore', () => {
  it('keeps the newer of two values for a key', async () => {
    const [from, to] = [new FailingStore(), new FailingStore()];
    await fill(from, ['1', '2'], { a: remembered('former', 1), b: remembered('former', 3) });
    await fill(to, ['2', '3'], { a: remembered('own', 2), b: remembered('own', 2) });
    await importing(from, to);
    assert.deepEqual(await read(to), { ids: ['1', '2', '3'], values: { a: 'own', b: 'former' } });
  });

  it('imports uncommitted poll answers first', async () => {
    const disk = new FakeDisk();
    const from = new FailingStore(disk);
    await fill(from, ['1'], {});
    await from.open(events);
    const answer = { kind: 'incoming', records: [{ body: 'an answer' }] };
    from.saveAhead(JSON.stringify(answer));
    from.kill();
    const to = new FailingStore();
    await importing(new FailingStore(disk), to);
    const [held, item] = to.disk.items;
    const { id: _, ...saved } = held ?? {};
    assert.deepEqual(saved, { part: 'inbox', subscribers: ['incoming'], attempts: 0, ...answer });
    assert.equal(item?.id, '1');
    assert.equal(disk.pendingWrites.size, 0);
  });

  for (const [what, isPowerCut] of [
    ['the process', false],
    ['the power', true],
  ] as const) {
    it(`loses and duplicates nothing if ${what} fails at any step`, async () => {
      const ids = ['1', '2', '3'];
      const values = { a: remembered('a') };
      for (let killedAt = 1, isKilled = true; isKilled; killedAt++) {
        const disks = [new FakeDisk(), new FakeDisk()] as const;
        await fill(new FailingStore(disks[0]), ids, values);
        const [from, to] = [new FailingStore(disks[0]), new FailingStore(disks[1])];
        let calls = 0;
        isKilled = false;
        let onKilled = () => {};
        const killing = new Promise<void>((resolve) => (onKilled = resolve));
        for (const store of [from, to]) {
          store.onCall = () => {
            if (++calls !== killedAt) return;
            isKilled = true;
            for (const one of [from, to]) one.kill();
            onKilled();
          };
        }
        await Promise.race([importing(from, to), killing]);
        for (const store of [from, to]) store.kill();
        if (isPowerCut) for (const disk of disks) disk.loseUnflushed();
        const [again, into] = [new FailingStore(disks[0]), new FailingStore(disks[1])];
        await importing(again, into);
        assert.deepEqual(await read(into), { ids, values: { a: 'a' } }, `killed at step ${killedAt}`);
        assert.deepEqual(await read(again), nothing, `killed at step ${killedAt}`);
      }
    });
  }

  it('does not import items that another instance has claimed', async () => {
    const disks = [new FakeDisk(), new FakeDisk()] as const;
    await fill(new FailingStore(disks[0]), ['1', '2'], {});
    const [from, to] = [new FailingStore(disks[0]), new FailingStore(disks[1])];
    const killing = new Promise<void>((resolve) => {
      from.onCall = (step) => {
        if (step !== 'clear') return;
        for (const store of [from, to]) store.kill();
        resolve();
      };
    });
    await Promise.race([importing(from, to), killing]);
    disks[0].entries.delete('1');
    const into = new FailingStore(disks[1]);
    await importing(new FailingStore(disks[0]), into);
    assert.deepEqual((await read(into)).ids, ['2']);
  });
});

describe('Imports', () => {
  let clock: VirtualClock;
  let reopened: number;
  let imports: Imports;
  let done: string[];
  let failures: SmsError[];

  beforeEach(() => {
    clock = new VirtualClock();
    [reopened, done, failures] = [0, [], []];
    const to = new FailingStore();
    imports = new Imports({ to, clock, merge: (_key, own) => own, isUsed: () => true, reopen: () => reopened++ });
  });

  function former(changes: Partial<ImportSource> = {}): ImportSource {
    return {
      id: 'an import',
      kind: 'redis',
      whenStarted: Promise.resolve(),
      isWanted: () => true,
      isUsed: () => false,
      importInto: async () => {},
      onDone: (how) => void done.push(how),
      onFailure: (error) => void failures.push(error),
      ...changes,
    };
  }

  const failing = (message: () => string) => () => Promise.reject(new Error(message()));

  it('skips stores that are in use or no longer needed', async () => {
    const imported: string[] = [];
    const add = (id: string, changes: Partial<ImportSource> = {}) =>
      former({ id, importInto: async () => void imported.push(id), ...changes });
    imports.add([add('a'), add('used', { isUsed: () => true }), add('unwanted', { isWanted: () => false }), add('b')]);
    await imports.finish(events);
    assert.deepEqual([imported, done, reopened], [['a', 'b'], ['imported', 'skipped', 'imported'], 1]);
  });

  it('retries a failed import after 10 s', async () => {
    let [tries, reason] = [0, 'ECONNREFUSED'];
    const importInto = () => {
      tries++;
      return reason === '' ? Promise.resolve() : Promise.reject(new Error(reason));
    };
    imports.add([former({ importInto })]);
    const finish = () => assert.rejects(imports.finish(events), { reason: 'formerUnread' });
    await finish();
    await finish();
    await clock.advance(9_999);
    await finish();
    assert.deepEqual([tries, failures.length], [1, 1]);
    assert.deepEqual(
      [imports.waitingImport?.kind, imports.waitingImport?.error.params.detail],
      ['redis', 'ECONNREFUSED'],
    );
    await clock.advance(1);
    await finish();
    assert.deepEqual([tries, failures.length], [2, 1]);
    reason = '';
    await clock.advance(10_000);
    await imports.finish(events);
    assert.deepEqual([tries, done, imports.waitingImport], [3, ['imported'], undefined]);
  });

  it('reports a failure after 2 s if the former store does not answer', async () => {
    let answer = () => {};
    const importInto = () => new Promise<void>((resolve) => (answer = resolve));
    imports.add([former({ importInto })]);
    const finishing = assert.rejects(imports.finish(events), { reason: 'formerUnread' });
    await clock.advance(2_000);
    await finishing;
    answer();
    await clock.advance(0);
    assert.equal(reopened, 2);
    await imports.finish(events);
    assert.deepEqual(done, ['imported']);
  });

  it('does not time out while it copies data from the former store', async () => {
    let answer = () => {};
    const importInto: ImportSource['importInto'] = ({ onCopying }) => {
      onCopying();
      return new Promise<void>((resolve) => (answer = resolve));
    };
    imports.add([former({ importInto })]);
    const finishing = imports.finish(events);
    await clock.advance(60_000);
    answer();
    await finishing;
  });

  it('starts the next import after a user abandons an import', async () => {
    imports.add([former({ importInto: failing(() => 'ETIMEDOUT') }), former({ id: 'another' })]);
    await assert.rejects(imports.finish(events));
    assert.equal(await imports.forget(), true);
    await imports.finish(events);
    assert.deepEqual([done, await imports.forget()], [['forgotten', 'imported'], false]);
  });
});

describe('an account with two former stores', () => {
  const joining = useJoining();

  it('imports the newer data regardless of the import order', async () => {
    const onServer = (disk: FakeDisk) => ({ storeName: 'redis', createStore: () => new FailingServer(disk) });
    const at = Date.now();
    const sent = { at, until: at + weekMs };
    const sentMessages = [
      { ...sent, sent: 'a', asks: true },
      { ...sent, sent: 'b' },
    ];
    const newer = {
      'statuses:a': '[["1","RCV"],["2","RCV"]]',
      'request:a': '[]',
      'request:b': '{"aliasOf":"request:a"}',
      'handset:a': JSON.stringify(sentMessages),
    };
    const older = {
      ...newer,
      'statuses:a': '[["1","RCV"]]',
      'request:a': '[{"id":"q"}]',
      'handset:a': JSON.stringify([{ at: at - 1, until: at - 1, sent: 'a' }]),
    };
    // The time and the duration of a merged list come from its messages, not from the two lists.
    const durationOf = (key: string, values: object) =>
      key === 'handset:a' && values === older ? `${at - 1} ${2 * weekMs}` : `${at} ${weekMs}`;
    for (const [first, second] of [
      [newer, older],
      [older, newer],
    ] as const) {
      const disk = new FakeDisk();
      const member = joining.enter(onServer(disk));
      let imported = 0;
      const formerPlaces = [first, second].map((values, index) => {
        const former = new FakeDisk();
        for (const [key, value] of Object.entries(values))
          former.remembered.set(key, `${durationOf(key, values)} ${value}`);
        const onFailure = (error: SmsError) => assert.fail(error);
        const place = { id: `${index}`, key: `login ${index}`, kind: 'redis', store: onServer(former) };
        return { ...place, onDone: () => imported++, onFailure };
      });
      member.importFrom(formerPlaces);
      await until(() => imported === 2);
      await member.leave();
      for (const [key, value] of Object.entries(newer)) {
        assert.equal(disk.remembered.get(key), `${at} ${weekMs} ${value}`);
      }
    }
  });
});

describe('an account with a new store', () => {
  const joining = useJoining();
  let clock: VirtualClock;
  /** Whether the servers let an import claim the items of a dead instance. */
  let isClaimable: boolean;

  beforeEach(() => {
    clock = new VirtualClock();
    isClaimable = true;
  });

  /**
   * A server whose `clear` keeps the remembered values, because other instances can use the values. It deletes expired
   * values, as Redis does.
   */
  class SharedServer extends FailingServer {
    awaitsClaims(): Promise<boolean> {
      return Promise.resolve(!isClaimable);
    }

    override pages(): ReturnType<FailingServer['pages']> {
      const { remembered } = this.disk;
      for (const [key, text] of remembered) {
        const { at, forMs } = parseRemembered(text);
        if (at + forMs <= clock.now()) remembered.delete(key);
      }
      return super.pages();
    }

    override async clear(key: string, mark: Remembered): Promise<void> {
      const values = [...this.disk.remembered];
      await super.clear(key, mark);
      for (const [name, value] of values) this.disk.remembered.set(name, value);
    }
  }

  function onServer(storeName: string): StoreChoice & { disk: FakeDisk } {
    const disk = new FakeDisk();
    return { storeName, disk, createStore: () => new SharedServer(disk) };
  }

  /** Advances the clock in steps until a condition holds. With 0 ms, no request in flight can time out. */
  function passUntil(stepMs: number, isTrue: () => boolean): Promise<void> {
    return until(async () => {
      if (!isTrue()) await clock.advance(stepMs);
      return isTrue();
    });
  }

  /** Deploys a sending node, and a node that receives statuses and replies. */
  function deploy(store: StoreChoice, former?: StoreChoice, settings: Partial<AccountSettings> = {}) {
    const member = joining.enter({ ...settings, ...store, clock });
    const [sender, listener] = [attachSender(member), new Listener('a node')];
    const kinds = ['status', 'incoming'] as const;
    const subscriptions = kinds.map((kind) => joining.subscribe(member, listener, kind));
    const [onDone, onFailure] = [() => {}, () => {}];
    if (former) member.importFrom([{ id: former.storeName, kind: 'a store', store: former, onDone, onFailure }]);
    const remove = async (stepMs: number) => {
      for (const one of subscriptions) one.close();
      let isRemoved = false;
      void Promise.all([sender.node.close(), member.leave()]).then(() => (isRemoved = true));
      await passUntil(stepMs, () => isRemoved);
    };
    const hasPolled = () => member.state().polls.every(({ lastAnswerAt }) => lastAnswerAt !== undefined);
    return { member, sender, listener, hasPolled, remove };
  }

  for (const [title, waitMs, isBack, isKilled] of [
    ['matches an undelivered reply with its message if the store changes back', 0, true, false],
    ['matches a delivered reply with its message if the store changes back', 61_000, true, false],
    ['matches an undelivered reply with its message after the import', 0, false, false],
    ['matches a delivered reply with its message after the import', 61_000, false, false],
    ['matches an undelivered reply with its message after a kill', 0, false, true],
  ] as const) {
    it(title, async () => {
      const { simulator } = joining;
      const [redis, { changes: disk }] = [onServer('redis'), onDisk()];
      const first = deploy(redis);
      sendText(first.sender, 'hello', { messageId: 'with report', reportMs: 3_600_000 });
      sendText(first.sender, 'hello?', { messageId: 'with reply', waitMs: 3_600_000 });
      const polls = () => simulator.polling('status') + simulator.polling('incoming');
      await passUntil(0, () => first.sender.ends.length === 2 && polls() === 2);
      await first.remove(0);
      isClaimable = false;
      const second = deploy(disk, redis);
      simulator.status({ messageId: 'with report', msisdn: '6421555123', statusCode: 'RCV' });
      simulator.reply({ from: '6421555123', body: 'yes', inReplyTo: 'with reply' });
      await until(second.hasPolled);
      await clock.advance(waitMs);
      assert.equal(second.listener.deliveries.length, waitMs === 0 ? 0 : 2);
      if (isKilled) {
        // Simulates the kill: the clock of the killed process stops, and the new process gets a new clock.
        clock = new VirtualClock(clock.now());
        joining.accounts = createAccounts();
        redis.disk.owner = undefined;
      } else await second.remove(1_000);
      isClaimable = true;
      const third = isBack ? deploy(redis, disk) : deploy(disk, redis);
      await passUntil(100, () => third.sender.reports.length + third.sender.answers.length === 2);
      assert.deepEqual([third.sender.reports[0]?.report.result, third.sender.replies], ['delivered', ['yes']]);
      assert.equal(second.listener.deliveries.length + third.listener.deliveries.length, 2);
    });
  }

  it('matches a status with its message if the store reverts during an import', async () => {
    const { simulator } = joining;
    const [{ changes: disk, stores }, redis] = [onDisk(), onServer('redis')];
    const first = deploy(disk);
    sendText(first.sender, 'hello', { messageId: 'with report', reportMs: 3_600_000 });
    await passUntil(0, () => first.sender.ends.length === 1 && simulator.polling('status') === 1);
    const [store = assert.fail()] = stores;
    for (const step of ['open', 'commit'] as const) store.failing.add(step);
    simulator.status({ messageId: 'with report', msisdn: '6421555123', statusCode: 'RCV' });
    await until(() => first.member.state().polls.some(({ lastAnswerAt }) => lastAnswerAt !== undefined));
    await clock.advance(61_000);
    assert.equal(first.listener.deliveries.length, 1);
    await first.remove(1_000);
    store.failing.clear();
    let failImport: (() => void) | undefined;
    store.clear = () => new Promise((_, reject) => (failImport = () => reject(new Error('cut off'))));
    const second = deploy(redis, disk);
    await passUntil(0, () => failImport !== undefined);
    void second.remove(0);
    const third = deploy(disk, redis);
    failImport?.();
    await passUntil(100, () => third.sender.reports.length === 1);
    const [{ report, origin } = assert.fail()] = third.sender.reports;
    assert.deepEqual([report.result, origin], ['delivered', { body: 'hello' }]);
  });

  it('closes the former store after a failed import', async () => {
    const data = new FakeDisk();
    const [{ changes: disk, stores }, redis] = [onDisk(data), onServer('redis')];
    const first = deploy(disk);
    await passUntil(0, joining.isPolling);
    const [store = assert.fail()] = stores;
    store.failing.add('commit');
    joining.receive('hello');
    await passUntil(1_000, () => first.listener.deliveries.length === 1);
    await first.remove(1_000);
    store.failing.clear();
    let failOpening: (() => void) | undefined;
    const open = store.open.bind(store);
    store.open = () => new Promise((_, reject) => (failOpening = () => reject(new Error('cut off'))));
    const second = deploy(redis, disk);
    await passUntil(0, () => failOpening !== undefined);
    void second.remove(0);
    const third = deploy(disk, redis);
    store.open = open;
    failOpening?.();
    await passUntil(100, () => third.member.state().store.ok);
    await third.remove(1_000);
    await clock.advance(60_000);
    assert.equal(data.owner, undefined);
  });

  it('keeps the store open if a node joins while the last node leaves', async () => {
    const data = new FakeDisk();
    const [{ changes: disk }, redis] = [onDisk(data), onServer('redis')];
    let failOpening: (() => void) | undefined;
    const open = () => new Promise<never>((_, reject) => (failOpening = () => reject(new Error('cut off'))));
    const first = deploy(disk, { ...redis, createStore: () => Object.assign(redis.createStore(''), { open }) });
    await passUntil(1_000, () => !first.member.state().store.ok);
    void first.remove(0);
    // Gives the account time to begin its wait for the end of the import.
    for (let time = 0; time < 10; time++) await clock.advance(0);
    const second = joining.enter({ ...disk, clock });
    attachSender(second);
    failOpening?.();
    await passUntil(0, () => second.state().store.ok);
    await clock.advance(1_000);
    assert.equal(typeof data.owner, 'object');
  });

  for (const [when, isBack] of [
    ['the store changes back', true],
    ['the former store is imported again', false],
  ] as const) {
    it(`keeps an opt-in if ${when}`, async () => {
      const settings = { optOut: parseConsentWords(undefined, undefined) };
      const [one, other] = [onServer('redis 1'), onServer('redis 2')];
      const write = (body: string) => joining.simulator.receive({ from: '6421555123', to: '642100000001', body });
      let { listener, member, remove } = deploy(one, undefined, settings);
      write('STOP');
      await passUntil(0, () => listener.deliveries.length === 1);
      await remove(0);
      ({ listener, member, remove } = deploy(other, one, settings));
      write('START');
      await passUntil(0, () => listener.deliveries.length === 1);
      await remove(0);
      ({ member } = isBack ? deploy(one, other, settings) : deploy(other, one, settings));
      const reading = member.optOuts();
      await passUntil(0, () => member.state().store.ok);
      assert.deepEqual(await reading, { optouts: [], total: 0 });
    });
  }

  for (const [how, ends] of [
    ['a refused message', ['to ']],
    ['a message refused twice', ['to ', 'to ']],
    ['a withdrawn message', ['SMS_WITHDRAWN']],
    ['a message sent long ago', ['to 6421555123']],
  ] as const) {
    it(`frees the deduplication key of ${how}`, async () => {
      const { simulator } = joining;
      const settings = { dedupeMs: 60_000 };
      const [one, other] = [onServer('redis 1'), onServer('redis 2')];
      const options = { once: 'a key', replaceKey: 'a message', keep: forever };
      simulator.fault('send', { status: 503 });
      const first = deploy(one, undefined, settings);
      sendText(first.sender, 'hello', options);
      await passUntil(0, () => first.sender.outages.length === 1);
      await first.remove(0);
      const second = deploy(other, one, settings);
      if (how !== 'a message sent long ago') simulator.setOutcome('6421555123', 'BLOCKED');
      if (how !== 'a withdrawn message') simulator.fault('send', null);
      await passUntil(100, () => second.sender.state?.waiting === 1 || second.sender.ends.length === 1);
      if (how === 'a withdrawn message') void second.sender.node.withdraw('a message');
      await passUntil(100, () => second.sender.ends.length === 1);
      if (how === 'a message refused twice') sendText(second.sender, 'hello', options);
      await passUntil(100, () => second.sender.ends.length === ends.length);
      await clock.advance(61_000);
      await second.remove(0);
      simulator.fault('send', null);
      simulator.setOutcome('6421555123', undefined);
      const third = deploy(one, other, settings);
      sendText(third.sender, 'hello', options);
      await passUntil(0, () => third.sender.ends.length === 1);
      assert.deepEqual([second.sender.ends, third.sender.ends], [ends, ['to 6421555123']]);
    });
  }
});
