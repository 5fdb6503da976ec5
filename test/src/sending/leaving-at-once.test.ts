import assert from 'node:assert/strict';
import { settle } from '../../virtual-clock';
import { FailingServer, FailingStore } from '../store/failing-store';
import { copyPlatter, forever, House, type HouseOptions, sendText } from './sending-house';

/** A kept text for which a connection stands. */
describe('a kept text that may leave at once', () => {
  const keep = forever;

  /** An account whose store is open. */
  async function begin(options: HouseOptions & { store?: FailingStore } = {}) {
    const { store = new FailingStore() } = options;
    const house = new House({ ...options, store });
    const node = house.attach();
    await house.pass(10);
    house.service.isFree = true;
    return { house, node, store };
  }

  /** How many commits there are as each text leaves, and what the store has of it by then. */
  function noteLeaving(house: House, store: FailingStore): [commits: number, states: unknown[]][] {
    const { taken } = house.service;
    const push = taken.push.bind(taken);
    const noted: [number, unknown[]][] = [];
    taken.push = (...messages) => {
      noted.push([store.commits, store.platter.items.map((item) => 'state' in item && item.state)]);
      return push(...messages);
    };
    return noted;
  }

  it('is written down together with that it leaves, and before it does', async () => {
    const { house, node, store } = await begin();
    const noted = noteLeaving(house, store);
    sendText(node, 'hello', { keep });
    await house.pass(100);
    assert.deepEqual(noted, [[1, ['leaving']]]);
    assert.deepEqual(node.ends, ['to 6421555123']);
    assert.equal(store.platter.entries.size, 0);
    assert.equal(house.sender.isSettled, true);
  });

  it('and so are a hundred that come together', async () => {
    const { house, node, store } = await begin({ concurrency: 100 });
    const noted = noteLeaving(house, store);
    for (let number = 0; number < 100; number++) sendText(node, `text ${number}`, { keep });
    await house.pass(100);
    assert.deepEqual(noted[0], [1, Array(100).fill('leaving')]);
    assert.equal(node.ends.length, 100);
  });

  it('a thousand of which few may leave at once are sent in order', async () => {
    const { house, node, store } = await begin({ concurrency: 3 });
    const bodies = Array.from({ length: 1_000 }, (_, number) => `text ${number}`);
    for (const body of bodies) sendText(node, body, { keep });
    await house.pass(1_000);
    assert.deepEqual(house.service.bodies, bodies);
    assert.equal(node.ends.length, 1_000);
    assert.equal(store.platter.entries.size, 0);
  });

  it('overtakes none that had to be written down first', async () => {
    const { house, store } = await begin({ concurrency: 1 });
    const node = house.attach('other');
    store.turns = 20;
    house.service.isFree = false;
    sendText(node, '1', { keep });
    await house.clock.advance(0);
    house.service.isFree = true;
    sendText(node, '2', { keep, once: 'key' });
    sendText(node, '3', { keep });
    for (let turn = 0; turn < 200; turn++) await house.pass(10);
    assert.deepEqual(house.service.bodies, ['1', '2', '3']);
  });

  it('where no connection stands it is written down before one is asked for', async () => {
    const { house, node, store } = await begin();
    house.service.isFree = false;
    const { script } = house.service;
    script.push({ takes: true });
    const shift = script.shift.bind(script);
    let written = -1;
    script.shift = () => {
      written = store.platter.entries.size;
      return shift();
    };
    sendText(node, 'hello', { keep });
    await house.pass(100);
    assert.equal(written, 1);
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  it('with a key it is compared before anything else', async () => {
    const { house, node, store } = await begin();
    const noted = noteLeaving(house, store);
    for (const _ of [1, 2]) sendText(node, 'hello', { keep, once: 'key' });
    await house.pass(100);
    assert.equal(noted[0]?.[0], 2);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123 duplicate']);
    assert.equal(house.service.tries, 1);
  });

  for (const isWritten of [false, true]) {
    it(`is refused when the store fails${isWritten ? ', though that has written it all the same' : ''}: one error, nothing sent`, async () => {
      const { house, node, store } = await begin();
      store.failing.add('commit');
      store.failsAfterwards = isWritten;
      for (const body of ['1', '2', '3']) sendText(node, body, { keep });
      await house.pass(100);
      assert.deepEqual(node.ends, ['SMS_STORE', 'SMS_STORE', 'SMS_STORE']);
      assert.deepEqual([node.outages, node.state?.waiting, node.state?.sending], [[], 0, 0]);
      store.failing.clear();
      await house.pass(60_000);
      assert.deepEqual([house.service.bodies, store.platter.entries.size], [[], 0]);
      assert.equal(house.sender.isSettled, true);
      sendText(node, '4', { keep });
      await house.pass(100);
      assert.deepEqual(house.service.bodies, ['4']);
      assert.equal(node.ends.length, 4);
    });
  }

  it('no connection is taken for it while the store is known to fail', async () => {
    const { house, node, store } = await begin();
    store.failing.add('commit').add('open');
    for (const body of ['1', '2']) {
      sendText(node, body, { keep });
      await house.pass(100);
    }
    assert.deepEqual(node.ends, ['SMS_STORE', 'SMS_STORE']);
    assert.equal(house.service.tries, 1);
  });

  it('is refused alone when the service is gone at the same time', async () => {
    const { house, node, store } = await begin();
    store.turns = 20;
    store.failing.add('commit');
    house.service.script.push({ unreachable: true });
    sendText(node, '1', { keep });
    for (let turn = 0; turn < 50; turn++) await house.pass(10);
    assert.deepEqual([node.ends, node.outages], [['SMS_STORE'], []]);
    store.failing.clear();
    for (let turn = 0; turn < 1_000; turn++) await house.pass(10);
    sendText(node, '2', { keep });
    for (let turn = 0; turn < 50; turn++) await house.pass(10);
    assert.deepEqual([node.ends, house.service.bodies], [['SMS_STORE', 'to 6421555123'], ['2']]);
  });

  it('that is refused is not counted by the pace', async () => {
    const { house, node, store } = await begin({ perSecond: 0.001 });
    store.failing.add('commit');
    sendText(node, '1', { keep });
    await house.pass(100);
    store.failing.clear();
    await house.pass(60_000);
    sendText(node, '2', { keep });
    await house.pass(100);
    assert.deepEqual([node.ends, house.service.bodies], [['SMS_STORE', 'to 6421555123'], ['2']]);
  });

  it('and that a limit keeps back has one end, whatever becomes of the store', async () => {
    for (const fails of [false, true]) {
      const { house, node, store } = await begin({ limits: { perHandset: 1, perHandsetMs: 60_000 } });
      for (const body of ['1', '2']) {
        sendText(node, body, { keep });
        await house.pass(100);
      }
      assert.deepEqual(node.ends, ['to 6421555123', 'SMS_LIMIT']);
      if (fails) store.failing.add('commit');
      sendText(node, '3', { keep });
      await house.pass(100);
      assert.deepEqual(node.ends.slice(2), [fails ? 'SMS_STORE' : 'SMS_LIMIT']);
      store.failing.clear();
      await house.pass(30_000);
      assert.deepEqual([node.ends.length, house.service.bodies, store.platter.entries.size], [3, ['1'], 0]);
    }
  });

  it('counts for the limit of the queue while it is being written down', async () => {
    const { house, node, store } = await begin({ concurrency: 1, queueLimit: 1 });
    store.turns = 20;
    for (const body of ['1', '2', '3']) sendText(node, body, { keep });
    await settle();
    assert.deepEqual(node.ends, ['SMS_BUSY']);
    for (let turn = 0; turn < 50; turn++) await house.pass(10);
    assert.deepEqual(house.service.bodies, ['1', '2']);
  });

  it('can be decided about by nobody while it is being written down', async () => {
    const { house, node, store } = await begin();
    store.turns = 20;
    sendText(node, 'hello', { keep });
    await house.clock.advance(0);
    const [entry] = house.sender.desk.entries('kept', 1).entries;
    assert.equal(await house.sender.desk.act(entry?.id ?? '', 'discard'), 'unfit');
    for (let turn = 0; turn < 50; turn++) await house.pass(10);
    assert.deepEqual([node.ends, house.service.bodies], [['to 6421555123'], ['hello']]);
  });

  /** Another is in flight, and has the only place, until what it returns is called. */
  async function occupy({ house, node }: Awaited<ReturnType<typeof begin>>): Promise<() => void> {
    const answer = house.service.holdNext();
    sendText(node, 'first', { keep });
    await house.pass(100);
    return answer;
  }

  it('that has not got its turn is not sent either when it is refused, whoever has decided about it', async () => {
    const surroundings = await begin({ concurrency: 1 });
    const { house, node, store } = surroundings;
    const answer = await occupy(surroundings);
    store.turns = 20;
    store.failing.add('commit');
    sendText(node, 'second', { keep });
    await house.clock.advance(0);
    const id = house.sender.desk.entries('kept', 2).entries.find(({ body }) => body === 'second')?.id ?? '';
    assert.equal(await house.sender.desk.act(id, 'discard'), 'unfit');
    for (let turn = 0; turn < 50; turn++) await house.pass(10);
    store.failing.clear();
    answer();
    for (let turn = 0; turn < 1_000; turn++) await house.pass(10);
    assert.deepEqual([node.ends, node.discarded], [['SMS_STORE', 'to 6421555123'], []]);
    assert.deepEqual([house.service.bodies, house.sender.isSettled], [['first'], true]);
  });

  it('that has not got its turn as the flows go has it when they are back', async () => {
    const surroundings = await begin({ concurrency: 1 });
    const { house, node, store } = surroundings;
    const answer = await occupy(surroundings);
    store.turns = 20;
    sendText(node, 'second', { keep });
    const closed = [node.node.close(), house.sender.close()];
    answer();
    // The first has ended, and the second is not written yet.
    for (let hop = 0; hop < 200; hop++) await undefined;
    const again = house.attach();
    for (let turn = 0; turn < 100; turn++) await house.pass(10);
    await Promise.all(closed);
    assert.deepEqual(house.service.bodies, ['first', 'second']);
    assert.equal(node.ends.length + again.ends.length, 2);
  });

  it('the service being gone all the same, it waits like any other', async () => {
    const { house, node, store } = await begin();
    house.service.script.push({ unreachable: true });
    sendText(node, 'hello', { keep });
    await house.pass(100);
    assert.deepEqual([node.ends, node.outages.length, store.platter.entries.size], [[], 1, 1]);
    assert.deepEqual(
      store.platter.items.map((item) => 'state' in item && item.state),
      ['waiting'],
    );
    await house.pass(60_000);
    assert.deepEqual([node.ends, house.service.bodies], [['to 6421555123'], ['hello']]);
  });

  for (const turns of [0, 3, 20]) {
    it(`the flows going and coming back as it is written down (in ${turns} turns), it is sent once and has one end`, async () => {
      const { house, node, store } = await begin();
      store.turns = turns;
      sendText(node, 'hello', { keep });
      const closed = [node.node.close(), house.sender.close()];
      const again = house.attach();
      for (let turn = 0; turn < 100; turn++) await house.pass(10);
      await Promise.all(closed);
      assert.deepEqual(house.service.bodies, ['hello']);
      assert.equal(node.ends.length + again.ends.length, 1);
      assert.equal(store.platter.entries.size, 0);
      assert.equal(house.sender.isSettled, true);
    });

    it(`the account going as it is written down (in ${turns} turns), it is sent or found again`, async () => {
      const { house, node, store } = await begin();
      store.turns = turns;
      sendText(node, 'hello', { keep });
      const closed = [node.node.close(), house.sender.close().then(() => house.journal.close())];
      for (let turn = 0; turn < 100; turn++) await house.pass(10);
      await Promise.all(closed);
      const next = house.restart(copyPlatter(store.platter));
      const again = next.attach();
      await next.pass(1_000);
      assert.deepEqual(house.service.bodies, ['hello']);
      assert.equal(node.ends.length + again.ends.length, 1);
    });
  }

  for (const fails of [false, true]) {
    it(`the login changing as it is written down${fails ? ', which fails' : ''}: sent once, or not at all`, async () => {
      const { house, node, store } = await begin();
      store.turns = 20;
      sendText(node, 'hello', { keep });
      await house.clock.advance(0);
      if (fails) store.failing.add('commit');
      const closed = node.node.close();
      const heir = new House({ clock: house.clock, service: house.service });
      const back = heir.attach();
      const handed = house.sender.handOver(heir.sender, { isLast: true });
      // It need not succeed at once.
      handed.catch(() => {});
      for (let turn = 0; turn < 3_000; turn++) await house.pass(10);
      await closed;
      const ends = [...node.ends, ...back.ends];
      assert.equal(ends.length, 1);
      assert.deepEqual([ends[0]?.split(' ')[0], house.service.bodies], fails ? ['SMS_STORE', []] : ['to', ['hello']]);
    });
  }

  it('is not taken for another’s when a shared store is opened again before it is written', async () => {
    const store = new FailingServer();
    const open = store.open.bind(store);
    let fail = (_error: Error) => {};
    store.open = (events?: Parameters<FailingStore['open']>[0] & { onFailure?: typeof fail }) => {
      fail = events?.onFailure ?? fail;
      return open(events);
    };
    const { house, node } = await begin({ store, concurrency: 1 });
    const commit = store.commit.bind(store);
    let goOn = () => {};
    store.commit = async (...changes) => {
      store.commit = commit;
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      return commit(...changes);
    };
    sendText(node, '1', { keep });
    await house.pass(10);
    sendText(node, '2', { keep });
    fail(new Error('gone'));
    await house.pass(10_000);
    goOn();
    await house.pass(60_000);
    assert.equal(node.ends.length, 2);
    assert.deepEqual(
      node.ends.filter((end) => end !== 'SMS_STORE').length,
      house.service.bodies.length,
      'each is sent, or refused',
    );
    assert.deepEqual([store.platter.entries.size, house.sender.isSettled], [0, true]);
  });
});
