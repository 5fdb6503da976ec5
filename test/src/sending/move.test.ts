import assert from 'node:assert/strict';
import { isOptedOut, keyOfOptOut, listOptOuts, optOutPrefix } from '../../../src/consent/opt-outs';
import type { ConsentChange } from '../../../src/consent/words';
import { createOptOutStep } from '../../../src/inbox/correlator';
import { abandon, adopt, Copies } from '../../../src/journal/move';
import { createReading, type Participant } from '../../../src/journal/step';
import type { IncomingRecord } from '../../../src/model';
import { outboxValues } from '../../../src/outbox/outbox';
import type { Text } from '../../../src/outbox/text';
import type { ReplyRequest } from '../../../src/replies/reply-request';
import { leaveResult, replyKey } from '../../../src/replies/reply-steps';
import { match, recordKeysOf, remember, sentKeysOf } from '../../../src/replies/sent-index';
import { type Changes, createChanges, type Item, type Look, type Remembered } from '../../../src/store/store';
import { VirtualClock } from '../../virtual-clock';
import { createError } from '../some-error';
import { FailingServer, FailingStore, type FakeDisk } from '../store/failing-store';
import { answersOf, copyDisk, FakeService, forever, SendingSide, sendText } from './sending-side';

const ledgerPrefixes = outboxValues.map(({ prefix }) => prefix);

/** The participants of a journal, as far as steps look at them. */
const participants = new Map([['ledger', { values: outboxValues } as Participant]] as const);

/** Takes over at a time. */
const adoptAt = (now: number, items: readonly Item[], memory: [string, Remembered][]) =>
  adopt({ participants, clock: new VirtualClock(now) }, items, memory);

/** What is remembered under a key of `once` by a text, before or after its end. */
function guarded(id: string, outcome?: string): Remembered {
  return {
    at: 1_000,
    forMs: 1_000,
    value: JSON.stringify({ fingerprint: 'x', id, ...(outcome && { outcome: { [outcome]: {} } }) }),
  };
}

describe('what a login takes over of another', () => {
  it('is all that is remembered of texts', async () => {
    const store = new FailingStore();
    const side = new SendingSide({ store, limits: { perHandset: 1_000, perHandsetMs: 60_000, perDay: 1_000 } });
    const [node, gone] = [side.attach(), side.attach('gone')];
    const asks = {
      keep: forever,
      once: 'key',
      remember: { value: 1 },
      waitMs: 60_000,
      reportMs: 60_000,
      messageId: 'mine',
    };
    sendText(node, 'Come?', asks);
    await side.pass(100);
    for (let index = 0; index < 201; index++) sendText(node, 'Come?', { waitMs: 60_000, messageId: `m${index}` });
    await side.pass(1_000);
    side.service.otherwise = { unreachable: true };
    sendText(gone, 'hello', { keep: forever });
    await side.pass(100);
    void gone.node.close();
    await side.pass(30_000);
    const { remembered } = store.disk;
    const strays = [...remembered.keys()].filter((key) => !ledgerPrefixes.some((prefix) => key.startsWith(prefix)));
    assert.deepEqual(strays, []);
    const unused = ledgerPrefixes.filter((prefix) => ![...remembered.keys()].some((key) => key.startsWith(prefix)));
    // Of who wrote STOP, and only where several instances share a store.
    assert.deepEqual(unused, [optOutPrefix, replyKey(''), 'answers:']);
  });

  it('is who opted out, each once, though both have the number, and nobody who has written START since', async () => {
    const former = new SendingSide();
    const heir = new SendingSide({ clock: former.clock, store: new FailingStore() });
    /** Changes who is on the list of one of them, and results in who is by then. */
    const change = async ({ journal }: SendingSide, wish: ConsentChange, msisdns: readonly string[]) => {
      journal.open();
      const changing = journal
        .run(createOptOutStep({ msisdns, wish, at: former.clock.now(), via: 'person' }, 'refuse'))
        .then(() => journal.run(createReading('refuse', (look) => listOptOuts(look))));
      await former.pass(1_000);
      const { optouts, total } = await changing;
      return [...optouts.map(({ msisdn }) => msisdn).sort(), total];
    };
    const [both, theirs, mine] = ['6421555001', '6422555001', '6423555001'];
    await change(former, 'out', [both, theirs]);
    await change(heir, 'out', [mine, both]);
    const moving = former.handOverTo(heir, { isLast: true });
    await former.pass(11_000);
    await moving;
    assert.deepEqual(await change(heir, 'out', []), [both, theirs, mine, 3]);
    assert.deepEqual(await change(heir, 'in', [both]), [theirs, mine, 2]);
    assert.deepEqual(await change(heir, 'in', [theirs, mine]), [0]);
    assert.deepEqual(await change(former, 'out', []), [0]);
    assert.deepEqual(await change(former, 'out', [both]), [both, 1]);
  });

  it('is what the flow sent with a text before what was asked, for whoever goes on after a kill in between', async () => {
    const former = new SendingSide();
    sendText(former.attach(), 'Come?', { messageId: 'asked', waitMs: 60_000, keep: forever, remember: { value: 1 } });
    await former.pass(100);
    const disks: FakeDisk[] = [];
    const store = new FailingStore();
    const commit = store.commit.bind(store);
    store.commit = async (changes) => {
      await commit(changes);
      disks.push(copyDisk(store.disk));
    };
    const heir = new SendingSide({ clock: former.clock, service: former.service, store });
    await Promise.all([former.handOverTo(heir, { isLast: true }), heir.pass(11_000)]);
    const asking = disks.filter(({ entries }) => entries.size > 0);
    assert.ok(asking.length > 0);
    for (const disk of asking) assert.ok([...disk.remembered.keys()].some((key) => key.includes('flowMessage:')));
  });

  it('is no key of a text that has ended here unsent, where a kill left it with the former', async () => {
    const formerStore = new FailingStore();
    const heirStore = new FailingStore();
    const former = new SendingSide({ store: formerStore });
    former.service.otherwise = { unreachable: true };
    sendText(former.attach(), 'hello', { once: 'key', keep: forever });
    await former.pass(100);
    const disks: [FakeDisk, FakeDisk][] = [];
    const commit = heirStore.commit.bind(heirStore);
    heirStore.commit = async (changes) => {
      await commit(changes);
      disks.push([copyDisk(formerStore.disk), copyDisk(heirStore.disk)]);
    };
    const { clock, service } = former;
    const heir = new SendingSide({ clock, service, store: heirStore });
    await Promise.all([former.handOverTo(heir, { isLast: true }), heir.pass(11_000)]);
    const both = disks.find(([theirs, own]) => theirs.entries.size > 0 && own.entries.size > 0);
    assert.ok(both);
    const [again, next] = [former.restart(both[0]), heir.restart(both[1])];
    service.otherwise = { error: createError('badRequest') };
    const node = next.attach();
    await next.pass(61_000);
    assert.deepEqual(node.ends, ['SMS_BAD_REQUEST']);
    await Promise.all([again.handOverTo(next, { isLast: true }), next.pass(11_000)]);
    const left = both.flatMap((disk) => [...disk.remembered.keys()]);
    assert.deepEqual(
      left.filter((key) => key.startsWith('once:')),
      [],
    );
    service.otherwise = { takes: true };
    sendText(node, 'hello', { once: 'key' });
    await next.pass(100);
    assert.deepEqual(service.bodies, ['hello']);
  });

  it('is what the flow sent with a question, however often its login has come and gone', async () => {
    const first = new SendingSide();
    const { clock, service } = first;
    const secondStore = new FailingStore();
    const second = new SendingSide({ clock, service, store: secondStore });
    const move = (from: SendingSide, to: SendingSide) =>
      Promise.all([from.handOverTo(to, { isLast: true }), to.pass(11_000)]);
    service.otherwise = { unreachable: true };
    const gone = first.attach();
    sendText(gone, 'Come?', { messageId: 'asked', waitMs: 3_600_000, keep: forever });
    await first.pass(100);
    await Promise.all([gone.node.close(), first.pass(100)]);
    await move(first, second);
    service.otherwise = { takes: true };
    const sending = second.attach();
    await second.pass(61_000);
    assert.deepEqual(sending.ends, ['to 6421555123']);
    await Promise.all([sending.node.close(), second.pass(100)]);
    await move(second, first);
    await move(first, second);
    const later = second.restart(copyDisk(secondStore.disk));
    const node = later.attach();
    later.receive();
    await later.pass(100);
    await later.incoming('6421555123', 'yes', { inReplyToId: 'asked' });
    assert.deepEqual(
      node.answers.map(({ flowMessage }) => flowMessage),
      [JSON.stringify({ payload: 'Come?' })],
    );
  });

  it('is nothing where the store does not work, which is tried once each time', async () => {
    const store = new FailingStore();
    store.failing.add('open');
    let tries = 0;
    const open = store.open.bind(store);
    store.open = (events) => {
      tries++;
      return open(events);
    };
    const former = new SendingSide({ store });
    const heir = new SendingSide({ clock: former.clock, service: former.service, store: new FailingStore() });
    for (const all of [1, 2]) {
      const handing = former.handOverTo(heir, { isLast: true });
      await Promise.all([assert.rejects(handing, { code: 'SMS_STORE' }), heir.pass(100)]);
      assert.equal(tries, all);
    }
  });

  it('is waited for where a question is found without what the flow sent with its text, which another has taken along', async () => {
    const store = new FailingStore();
    const former = new SendingSide({ store });
    sendText(former.attach(), 'Come?', { messageId: 'asked', waitMs: 1_000, keep: forever });
    await former.pass(100);
    const disk = copyDisk(store.disk);
    const [[key, flowMessage] = []] = [...disk.remembered].filter(([name]) => name.includes('flowMessage:'));
    assert.ok(key !== undefined && flowMessage !== undefined);
    disk.remembered.delete(key);
    const back = former.restart(disk);
    let give = () => {};
    back.expected = new Promise((resolve) => {
      give = resolve;
    });
    const node = back.attach();
    await back.pass(61_000);
    assert.equal(node.answers.length, 0);
    disk.remembered.set(key, flowMessage);
    give();
    await back.pass(100);
    assert.deepEqual(
      node.answers.map((news) => news.flowMessage),
      ['{"payload":"Come?"}'],
    );
  });

  it('is how old the texts are of a node that is gone: they are given up after 7 days in all', async () => {
    const dayMs = 24 * 3_600_000;
    const former = new SendingSide();
    former.service.otherwise = { unreachable: true };
    const [gone] = [former.attach('gone'), former.attach('stays')];
    sendText(gone, 'hello', { keep: forever });
    await former.pass(100);
    void gone.node.close();
    await former.pass(6 * dayMs);
    const { clock, service } = former;
    const heir = new SendingSide({ clock, service, store: new FailingStore() });
    heir.attach('other');
    const handing = former.handOverTo(heir, { isLast: true });
    await heir.pass(11_000);
    await handing;
    await heir.pass(0.9 * dayMs);
    assert.deepEqual(heir.abandoned, []);
    await heir.pass(0.2 * dayMs);
    assert.deepEqual(heir.abandoned, ['gone']);
  });

  it('is what of a dead instance is found as the last of the rest is copied', async () => {
    const [deadStore, formerStore] = [new FailingStore(), new FailingStore()];
    const dead = new SendingSide({ store: deadStore });
    dead.service.otherwise = { unreachable: true };
    sendText(dead.attach('send'), 'hello', { keep: forever });
    await dead.pass(100);
    const { clock, service } = dead;
    const items = deadStore.disk.items;
    const former = new SendingSide({ clock, service, store: formerStore });
    const { journal } = former;
    const flush = journal.flush.bind(journal);
    let flushes = 0;
    journal.flush = async () => {
      await flush();
      flushes++;
      // As it closes, before it copies, and after.
      if (flushes === 3) await former.outbox.found(items, false);
    };
    const heir = new SendingSide({ clock, service: new FakeService(), store: new FailingStore() });
    const next = heir.attach('send');
    const handing = former.handOverTo(heir, { isLast: true });
    await heir.pass(1_000);
    await handing;
    await heir.pass(60_000);
    assert.deepEqual([heir.service.bodies, next.ends.length], [['hello'], 1]);
  });

  it('is what is asked, from the moment on when what comes goes there, however long the former store takes to forget it', async () => {
    const store = new FailingStore();
    const former = new SendingSide({ store });
    sendText(former.attach(), 'Come?', { messageId: 'asked', waitMs: 60_000, keep: forever });
    await former.pass(100);
    const { clock, service } = former;
    const heir = new SendingSide({ clock, service, store: new FailingStore() });
    const node = heir.attach();
    heir.receive();
    const given = new Promise<void>((resolve) => {
      const onMoved = () => {
        store.turns = 1_000;
        resolve();
      };
      void former.handOverTo(heir, { isLast: true, onMoved });
    });
    await Promise.all([given, heir.pass(11_000)]);
    await heir.incoming('6421555123', 'yes', { inReplyToId: 'asked' });
    assert.deepEqual(
      heir.received.map(({ awaited }) => awaited),
      [true],
    );
    store.turns = 0;
    await heir.pass(1_000);
    assert.deepEqual(answersOf(node), ['6421555123: yes']);
  });

  it('is what is asked, and every reply to that is awaited, however many questions there are', async () => {
    const former = new SendingSide();
    const asking = former.attach();
    for (let n = 0; n < 1_200; n++) sendText(asking, 'Come?', { messageId: `q${n}`, waitMs: 600_000, keep: forever });
    await former.pass(10_000);
    const heir = new SendingSide({ clock: former.clock, service: former.service, store: new FailingStore() });
    const node = heir.attach();
    heir.receive();
    const moved = new Promise<void>((resolve) => void former.handOverTo(heir, { isLast: true, onMoved: resolve }));
    const replying = moved.then(() => heir.incoming('6421555123', 'yes', { inReplyToId: 'q1199' }));
    await Promise.all([replying, heir.pass(11_000)]);
    await heir.pass(1_000);
    assert.deepEqual([heir.received.map(({ awaited }) => awaited), node.replies], [[true], ['yes']]);
  });

  for (const by of ['another', 'the one that takes over'] as const) {
    it(`is what a dead instance has asked, with the reply that ${by} has had before`, async () => {
      const deadStore = new FailingStore();
      const dead = new SendingSide({ store: deadStore });
      sendText(dead.attach(), 'Come?', { messageId: 'asked', waitMs: 60_000, keep: forever });
      await dead.pass(100);
      const { clock, service } = dead;
      const { items } = deadStore.disk;
      const server = new FailingServer(copyDisk(deadStore.disk));
      server.disk.entries.clear();
      const former = new SendingSide({ clock, service, store: server });
      const heir = new SendingSide({ clock, service, store: new FailingStore() });
      const node = heir.attach();
      const move = () => Promise.all([former.handOverTo(heir, { isLast: true }), heir.pass(11_000)]);
      former.journal.open();
      if (by !== 'another') await move();
      const receiver = by === 'another' ? former : heir;
      receiver.receive();
      await receiver.incoming('6421555123', 'yes', { inReplyToId: 'asked' });
      // Only where others may ask it is known that somebody does.
      const [{ awaited } = {}] = receiver.received as { awaited?: boolean }[];
      assert.equal(awaited, by === 'another' ? true : undefined);
      await move();
      server.takeOver(items);
      await move();
      assert.deepEqual(answersOf(node), ['6421555123: yes']);
    });
  }

  it('is for how long texts and questions have waited, by the time that has passed, though the clock was set', async () => {
    const hourMs = 3_600_000;
    const former = new SendingSide();
    const [asking, late] = [former.attach(), former.attach('late')];
    sendText(asking, 'Come?', { messageId: 'asked', waitMs: hourMs });
    await former.pass(100);
    former.service.otherwise = { unreachable: true };
    sendText(late, 'soon', { keep: { expireMs: hourMs } });
    await former.pass(hourMs / 4);
    former.clock.set(8 * 24 * hourMs);
    const { clock, service } = former;
    const heir = new SendingSide({ clock, service, store: new FailingStore() });
    const [next, waiting] = [heir.attach(), heir.attach('late')];
    await Promise.all([former.handOverTo(heir, { isLast: true }), heir.pass(11_000)]);
    await heir.pass(hourMs / 2);
    assert.deepEqual([answersOf(next), waiting.ends], [[], []]);
    await heir.pass(hourMs / 4);
    assert.deepEqual([answersOf(next), waiting.ends], [['6421555123: timeout'], ['SMS_EXPIRED']]);
  });

  it('is for how long a text has waited since somebody has sent it, though the clock was set', async () => {
    const hourMs = 3_600_000;
    const former = new SendingSide();
    former.service.otherwise = { unreachable: true };
    sendText(former.attach(), 'soon', { keep: { expireMs: hourMs } });
    await former.pass(hourMs / 4);
    const [{ id = '' } = {}] = former.outbox.admin.entries('kept', 1).entries;
    const [done] = await Promise.all([former.outbox.admin.act(id, 'send'), former.pass(0)]);
    assert.equal(done, 'done');
    former.clock.set(8 * 24 * hourMs);
    const { clock, service } = former;
    const heir = new SendingSide({ clock, service, store: new FailingStore() });
    const node = heir.attach();
    await Promise.all([former.handOverTo(heir, { isLast: true }), heir.pass(11_000)]);
    await heir.pass(hourMs / 2);
    assert.deepEqual(node.ends, []);
    await heir.pass(hourMs / 2);
    assert.deepEqual(node.ends, ['SMS_EXPIRED again']);
  });

  it('is what nobody knows the end of, listed for as long as before, though the clock was set', async () => {
    const dayMs = 24 * 3_600_000;
    const former = new SendingSide();
    former.service.otherwise = { error: createError('uncertain') };
    sendText(former.attach(), 'unknown', { keep: forever });
    await former.pass(100);
    assert.equal(former.outbox.admin.entries('uncertain', 1).total, 1);
    former.clock.set(8 * dayMs);
    const { clock, service } = former;
    const heir = new SendingSide({ clock, service, store: new FailingStore() });
    heir.attach();
    await Promise.all([former.handOverTo(heir, { isLast: true }), heir.pass(11_000)]);
    await heir.pass(6 * dayMs);
    assert.equal(heir.outbox.admin.entries('uncertain', 1).total, 1);
    await heir.pass(dayMs);
    assert.equal(heir.outbox.admin.entries('uncertain', 1).total, 0);
  });

  it('is for how long it has waited, also where the clock of the instance that has died was ahead', async () => {
    const [minuteMs, hourMs] = [60_000, 3_600_000];
    const deadStore = new FailingStore();
    const dead = new SendingSide({ store: deadStore });
    sendText(dead.attach(), 'Come?', { messageId: 'asked', waitMs: hourMs });
    await dead.pass(100);
    dead.service.otherwise = { unreachable: true };
    sendText(dead.attach('late'), 'soon', { keep: { expireMs: hourMs } });
    await dead.pass(100);
    const server = new FailingServer(new FailingStore().disk);
    const clock = new VirtualClock(dead.clock.now() - 6 * hourMs - 3 * minuteMs);
    const heir = new SendingSide({ clock, store: server });
    heir.service.otherwise = { unreachable: true };
    const [node, late] = [heir.attach(), heir.attach('late')];
    await heir.pass(6 * hourMs + minuteMs);
    server.takeOver(deadStore.disk.items);
    await heir.pass(hourMs - minuteMs);
    assert.deepEqual([answersOf(node), late.ends], [[], []]);
    await heir.pass(3 * minuteMs);
    assert.deepEqual([answersOf(node), late.ends], [['6421555123: timeout'], ['SMS_EXPIRED']]);
  });

  it('waits for what has left before, and not for what whoever has come back sends', async () => {
    const former = new SendingSide();
    const heir = new SendingSide({ clock: former.clock, store: new FailingStore() });
    const first = former.attach();
    let answer = former.service.holdNext({ takes: true });
    sendText(first, 'before');
    await former.pass(0);
    void first.node.close();
    let isWanted = true;
    let isOver = false;
    const move = former.handOverTo(heir, { isLast: true, isWanted: () => isWanted });
    void move.then(() => (isOver = true));
    await former.pass(0);
    isWanted = false;
    const next = former.attach();
    for (let n = 0; n < 10; n++) {
      const answerBefore = answer;
      answer = former.service.holdNext({ takes: true });
      sendText(next, `text ${n}`);
      await former.pass(100);
      answerBefore();
      await former.pass(100);
    }
    assert.ok(isOver);
    answer();
    await former.pass(0);
    assert.equal(next.ends.length, 10);
  });

  it('is nothing of a login that somebody has come back to while others were taken over from, and its texts go on', async () => {
    const former = new SendingSide();
    const [heir, other] = [0, 1].map(() => new SendingSide({ clock: former.clock })) as [SendingSide, SendingSide];
    let isWanted = true;
    const moving = [other.handOverTo(heir, {}), former.handOverTo(heir, { isWanted: () => isWanted })];
    const node = former.attach();
    isWanted = false;
    await Promise.all([...moving, former.pass(11_000)]);
    sendText(node, 'hello', { keep: forever });
    await former.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  it('is nothing of what was copied before somebody came back to the login', async () => {
    const former = new SendingSide();
    former.service.otherwise = { unreachable: true };
    sendText(former.attach(), 'hello', { once: 'key', keep: forever, flowMessage: 'x'.repeat(2_000) });
    await former.pass(100);
    const store = new FailingStore();
    const heir = new SendingSide({ clock: former.clock, store });
    const copied = () => [...store.disk.remembered.keys()].filter((key) => /once:|flowMessage:/.test(key)).length;
    let mostCopied = 0;
    const isWanted = () => {
      mostCopied = Math.max(mostCopied, copied());
      return mostCopied === 0;
    };
    await Promise.all([former.handOverTo(heir, { isLast: true, isWanted }), heir.pass(11_000)]);
    assert.deepEqual([mostCopied, copied()], [2, 0]);
  });

  it('is who opted out all the same, who writes that to the other, too, before somebody came back to the login', async () => {
    const store = new FailingStore();
    const [former, heir] = [new SendingSide(), new SendingSide({ store })];
    const [both, mine] = ['6421555001', '6421555002'] as const;
    const change = ({ journal }: SendingSide, ...msisdns: string[]) => {
      const at = former.clock.now();
      const optOut = { msisdns, wish: 'out', at, via: 'message' } as const;
      return journal.run(createOptOutStep(optOut, 'refuse'));
    };
    await change(former, both);
    await change(heir, mine);
    let writing: Promise<unknown> | undefined;
    const isWanted = () => {
      if (store.disk.remembered.has(keyOfOptOut(both))) writing ??= change(heir, both);
      return writing === undefined;
    };
    await Promise.all([former.handOverTo(heir, { isLast: true, isWanted }), former.pass(11_000), heir.pass(11_000)]);
    await writing;
    const isOut = (look: Look) => [both, mine].map((msisdn) => isOptedOut(msisdn, look));
    assert.deepEqual(await heir.journal.run(createReading('refuse', isOut)), [true, true]);
  });

  it('is once what stays in a store that others go on with: who has changed their mind since is taken at their word', async () => {
    const former = new SendingSide({ store: new FailingServer() });
    former.attach();
    await former.pass(100);
    const { clock, service } = former;
    const heir = new SendingSide({ clock, service, store: new FailingStore() });
    heir.attach();
    const [left, back] = ['6421555001', '6421555002'] as const;
    const change = ({ journal }: SendingSide, wish: 'out' | 'in', ...msisdns: string[]) => {
      const optOut = { msisdns, wish, at: clock.now(), via: 'message' } as const;
      return journal.run(createOptOutStep(optOut, 'refuse'));
    };
    const how = { isLast: true, keepsMemory: true, copies: new Copies() };
    const move = () => Promise.all([former.handOverTo(heir, how), heir.pass(11_000)]);
    await change(former, 'out', left, back);
    await move();
    await change(heir, 'in', back);
    await move();
    const isOut = (look: Look) => [left, back].map((msisdn) => isOptedOut(msisdn, look));
    assert.deepEqual(await heir.journal.run(createReading('refuse', isOut)), [true, false]);
  });

  it('is every reply that instances have left each other', () => {
    const left = createChanges();
    leaveResult('a', { reason: 'undelivered', statusCode: 'NUR' }, 1_000, left);
    const step = adoptAt(2_000, [], [...left.remember] as [string, Remembered][]);
    const changes = createChanges();
    step.decide(() => undefined, changes);
    assert.deepEqual([...changes.remember.keys()], [replyKey('a')]);
  });

  for (const [name, own, other, kept] of [
    ['how a text has ended that it knew to be under way', guarded('a'), guarded('a', 'sent'), 'other'],
    ['nothing of a text that it knows more of', guarded('a', 'sent'), guarded('a'), 'own'],
    ['nothing of another text with the key of one of its own', guarded('b'), guarded('a', 'sent'), 'own'],
  ] as const) {
    it(`is ${name}`, () => {
      const changes = createChanges();
      adoptAt(2_000, [], [['once:key', other]]).decide(() => own, changes);
      assert.deepEqual(changes.remember.get('once:key') ?? own, kept === 'own' ? own : other);
    });
  }

  it('is every open question to a handset, however many there are under either', () => {
    const ask = (from: number, look: Look, changes: Changes) => {
      for (let index = from; index < from + 150; index++) {
        const [recipient, messageId] = ['6421555123', `q${index}`];
        const message = { to: [recipient], body: 'Come?' };
        const text = { id: `text ${index}`, node: 'send', message, options: {} } as unknown as Text;
        const keys = sentKeysOf(text, messageId, [recipient]);
        const open = [{ id: `${index}`, recipient, reference: keys.reference } as ReplyRequest];
        const sent = { text, to: [recipient], keys, open, isAccepted: false };
        remember(sent, { now: 1_000 + index, sentMs: 600_000 }, look, changes);
      }
    };
    const [own, other] = [createChanges(), createChanges()];
    for (const [index, changes] of [other, own].entries())
      ask(150 * index, (key) => changes.remember.get(key), changes);
    const memories = [...other.remember].flatMap(([key, value]) =>
      value ? [[key, value] satisfies [string, Remembered]] : [],
    );
    adoptAt(2_000, [], memories).decide((key) => own.remember.get(key), own);
    const look: Look = (key) => own.remember.get(key);
    for (let index = 0; index < 300; index++) {
      const record = { from: '6421555123', body: 'yes', inReplyToId: `q${index}` } as IncomingRecord;
      assert.equal(match('incoming', record, recordKeysOf(record), look)?.request?.id, `${index}`);
    }
  });

  it('is kept that comes back in the commit in which it was let go of', () => {
    const item = { id: 'a', part: 'ledger', subscribers: [], attempts: 0 } as const;
    const changes = createChanges();
    const look: Look = (key) => changes.remember.get(key);
    abandon(participants, [item], []).decide(look, changes);
    adoptAt(1_000, [item], []).decide(look, changes);
    assert.deepEqual([[...changes.keep.keys()], [...changes.drop.keys()]], [['a'], []]);
  });
});
