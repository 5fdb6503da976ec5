import assert from 'node:assert/strict';
import { identify, isSameMessage, judge, mergeSeen, noteLeftOut, recallLeftOut } from '../../../src/inbox/identity';
import type { IncomingRecord, StatusRecord, Via } from '../../../src/model';
import { createChanges, type Remembered } from '../../../src/store/store';
import { incoming as createIncoming } from './arrivals';

const incoming = (fields: Partial<IncomingRecord> = {}) => createIncoming(undefined, fields);

function status(fields: Partial<StatusRecord> = {}): StatusRecord {
  return { messageId: 's1', from: '6421555001', statusCode: 'RCV', via: 'poll', ...fields };
}

const identifyIncoming = (fields: Partial<IncomingRecord> = {}) =>
  identify({ kind: 'incoming', record: incoming(fields) });

/** Remembers identifiers, and judges whether records are new, repeated or duplicates. */
class Memory {
  readonly seen = new Map<string, Remembered>();
  now = 1_000_000;
  isShared = false;

  readonly readKey = (key: string) => this.seen.get(key);

  judge(record: IncomingRecord, via: Via = 'poll'): string {
    const changes = createChanges();
    const memory = { clock: { now: () => this.now }, journal: { isShared: this.isShared }, dedupeMs: () => 1_000 };
    const identity = identify({ kind: 'incoming', record });
    const verdict = judge(memory, { identity, via }, this.readKey, changes);
    for (const [key, value] of changes.remember) if (value) this.seen.set(key, value);
    return verdict;
  }

  poll(messageId: string, fields: Partial<IncomingRecord> = {}): string {
    return this.judge(incoming({ messageId, ...fields }));
  }

  /** Judges an XMLv3 callback (§6.4). */
  call(fields: Partial<IncomingRecord> = {}): string {
    return this.judge(incoming(fields), 'callback');
  }
}

describe('duplicate detection', () => {
  let memory: Memory;
  beforeEach(() => {
    memory = new Memory();
  });

  describe('by messageId', () => {
    it('recognises a repeated poll and a duplicate callback', () => {
      assert.equal(memory.poll('1'), 'new');
      assert.equal(memory.poll('1', { body: 'other', messageDate: '2027-01-01T00:00:00Z' }), 'repeated');
      assert.equal(memory.call({ messageId: '1' }), 'duplicate');
      assert.equal(memory.call({ messageId: '2', body: 'two' }), 'new');
      assert.equal(memory.poll('2', { body: 'two' }), 'duplicate');
      assert.equal(memory.poll('2', { body: 'two' }), 'repeated');
    });

    it('distinguishes two messages with equal bodies and dates', () => {
      assert.equal(memory.poll('1'), 'new');
      assert.equal(memory.poll('2'), 'new');
      assert.equal(memory.call(), 'duplicate');
    });

    it('distinguishes records of different kinds with equal messageIds', () => {
      const messageId = 's1';
      const identities = [
        identifyIncoming({ messageId }),
        identify({ kind: 'status', record: status({ messageId }) }),
        identify({ kind: 'outbox', record: { messageId, body: 'hello', recipientsList: [] } }),
      ];
      assert.equal(new Set(identities.map(({ id }) => id)).size, 3);
    });

    it('ignores a blank messageId', () => {
      for (const messageId of ['', '  ']) assert.equal(identifyIncoming({ messageId }).id, undefined);
    });
  });

  describe('for an XMLv3 reply', () => {
    for (const [title, fields] of [
      ['the same fields', {}],
      ['a + before the sender', { from: '+6421555001' }],
      ['a date without fraction', { messageDate: '2026-03-01T10:00:00Z' }],
      ['a date in another zone', { messageDate: '2026-03-01T23:00:00.123+13:00' }],
      ['a date in another zone and without fraction', { messageDate: '2026-03-01T05:30:00-04:30' }],
      ['a comma in the date', { messageDate: '2026-03-01T10:00:00,123Z' }],
      ['white space around the date', { messageDate: ' 2026-03-01T10:00:00.123Z ' }],
      ['white space around the body', { body: ' hello\n' }],
    ] as const) {
      it(`recognises a copy with ${title}`, () => {
        assert.deepEqual(
          [memory.poll('1'), memory.call(fields), memory.call(fields)],
          ['new', 'duplicate', 'duplicate'],
        );
        memory = new Memory();
        assert.deepEqual([memory.call(fields), memory.poll('1'), memory.poll('1')], ['new', 'duplicate', 'repeated']);
      });
    }

    it('reads a date without zone as UTC', () => {
      const before = process.env.TZ;
      process.env.TZ = 'Pacific/Auckland';
      try {
        assert.notEqual(new Date(0).getTimezoneOffset(), 0);
        assert.deepEqual([memory.poll('1'), memory.call({ messageDate: '2026-03-01T10:00:00' })], ['new', 'duplicate']);
      } finally {
        if (before === undefined) delete process.env.TZ;
        else process.env.TZ = before;
      }
    });

    it('recognises a copy with different line ends', () => {
      for (const body of ['a\r\nb\r\nc', 'a\rb\rc', 'a\nb\nc']) {
        memory = new Memory();
        assert.deepEqual([memory.poll('1', { body: 'a\r\nb\nc' }), memory.call({ body })], ['new', 'duplicate']);
      }
    });

    for (const [title, fields] of [
      ['its body differs', { body: 'Hello' }],
      ['its sender differs', { from: '6421555002' }],
      ['its date is 1 ms later', { messageDate: '2026-03-01T10:00:00.124Z' }],
      ['its date is 1 s later', { messageDate: '2026-03-01T10:00:01Z' }],
      ['its body begins with the sender', { from: '', body: '6421555001hello' }],
    ] as const) {
      it(`treats a message as new if ${title}`, () => {
        assert.deepEqual([memory.poll('1'), memory.call(fields)], ['new', 'new']);
        memory = new Memory();
        assert.deepEqual([memory.call(fields), memory.poll('1')], ['new', 'new']);
      });
    }

    it('recognises the polled copy of a callback without date', () => {
      const { messageDate: _, ...form } = incoming({ messageId: '1', via: 'callback' });
      assert.deepEqual([memory.judge(form, 'callback'), memory.poll('1')], ['new', 'duplicate']);
      assert.deepEqual([memory.call(), memory.poll('1'), memory.poll('2')], ['duplicate', 'repeated', 'new']);
    });

    it('distinguishes two messages with different dates', () => {
      const later = { messageDate: '2026-03-01T10:00:00.900Z' };
      assert.deepEqual([memory.call(), memory.call(later)], ['new', 'new']);
      assert.deepEqual([memory.call(), memory.call(later)], ['duplicate', 'duplicate']);
      assert.deepEqual([memory.poll('2', later), memory.poll('1')], ['duplicate', 'duplicate']);
      assert.equal(memory.poll('3'), 'new');
    });

    it('matches a callback with only one of two polled messages', () => {
      assert.deepEqual([memory.call(), memory.poll('1'), memory.poll('2')], ['new', 'duplicate', 'new']);
    });

    it('distinguishes two messages with different unreadable dates', () => {
      const [one, two] = [{ messageDate: 'yesterday' }, { messageDate: 'today' }];
      assert.deepEqual([memory.call(one), memory.call(two), memory.call(one)], ['new', 'new', 'duplicate']);
      assert.equal(memory.poll('1', one), 'duplicate');
    });

    it('treats a message as new if it has no date', () => {
      for (const messageDate of [undefined, '', '  ']) {
        const { messageDate: _, ...record } = incoming();
        const undated = messageDate === undefined ? record : { ...record, messageDate };
        assert.deepEqual([memory.judge(undated, 'callback'), memory.judge(undated, 'callback')], ['new', 'new']);
      }
      assert.equal(memory.seen.size, 0);
    });
  });

  describe('with a time limit', () => {
    it('forgets an identifier after dedupeHours', () => {
      memory.poll('1');
      memory.call({ body: 'called' });
      memory.now += 1_000;
      assert.equal(memory.poll('1'), 'repeated');
      assert.equal(memory.call({ body: 'called' }), 'duplicate');
      memory.now += 1;
      assert.equal(memory.poll('1'), 'new');
      assert.equal(memory.call({ body: 'called' }), 'new');
    });

    it('leaves it to a shared store to forget identifiers', () => {
      memory.isShared = true;
      memory.poll('1');
      memory.now += 1_000_000;
      assert.equal(memory.poll('1'), 'repeated');
    });
  });

  it('remembers at most 100 of 1,000 equal messages', () => {
    for (let index = 0; index < 1_000; index++) assert.equal(memory.poll(String(index)), 'new');
    assert.ok([...memory.seen.values()].every(({ value }) => value.length < 20_000));
    assert.deepEqual(
      [memory.poll('0'), memory.call({ messageId: '0' }), memory.call()],
      ['repeated', 'duplicate', 'duplicate'],
    );
  });

  describe('with unreadable stored values', () => {
    for (const value of ['', 'null', '{', '{}', '{"polled":1}', '{"messages":{}}', '{"messages":[null]}']) {
      it(`treats a message as new if the stored value is ${value || 'empty'}`, () => {
        memory.poll('1');
        for (const remembered of memory.seen.values()) remembered.value = value;
        assert.deepEqual([memory.poll('1'), memory.poll('1')], ['new', 'repeated']);
      });
    }
  });

  describe('without a messageId', () => {
    it('reports a message as repeated if it is polled twice', () => {
      const poll = () => memory.judge(incoming());
      assert.deepEqual([poll(), poll(), memory.call(), poll()], ['new', 'repeated', 'duplicate', 'repeated']);
    });

    it('reports a message as a duplicate if it is polled after a callback', () => {
      const poll = () => memory.judge(incoming());
      assert.deepEqual([memory.call(), poll(), poll()], ['new', 'duplicate', 'repeated']);
      const other = { messageDate: '2026-03-02T10:00:00.123Z' };
      const pollOther = () => memory.judge(incoming(other));
      assert.deepEqual([memory.poll('1', other), pollOther(), pollOther()], ['new', 'duplicate', 'repeated']);
      assert.equal(memory.poll('1', other), 'repeated');
    });
  });

  describe('for a status', () => {
    it('compares the content if messageId is blank', () => {
      const blank = { messageId: '', inReplyToId: 'm' };
      const { id } = identify({ kind: 'status', record: status(blank) });
      assert.equal(identify({ kind: 'status', record: status(blank) }).id, id);
      for (const other of [{ statusCode: 'SNT' }, { from: '6421555002' }, { inReplyToId: 'n' }]) {
        assert.notEqual(identify({ kind: 'status', record: status({ ...blank, ...other }) }).id, id);
      }
    });

    it('compares the date if messageId and inReplyToId are blank', () => {
      for (const nothing of [{ messageId: '' }, { messageId: '', inReplyToId: ' ', statusDate: ' ' }]) {
        assert.deepEqual(identify({ kind: 'status', record: status(nothing) }), { keys: [] });
        const { id } = identify({ kind: 'status', record: status({ ...nothing, statusDate: 'd' }) });
        assert.equal(typeof id, 'string');
        assert.notEqual(identify({ kind: 'status', record: status({ ...nothing, statusDate: 'e' }) }).id, id);
      }
    });
  });

  describe('for two processes', () => {
    const early = { messageDate: '2026-03-01T10:00:00.100Z' };
    let theirs: Memory;
    beforeEach(() => {
      theirs = new Memory();
    });

    /** Merges both memories, so that the test can judge further records. */
    function merge(): Memory {
      const merged = new Memory();
      for (const [key, mine] of memory.seen) {
        const other = theirs.seen.get(key);
        merged.seen.set(key, other ? mergeSeen(key, { storeVersion: other, ownVersion: mine }) : mine);
      }
      return merged;
    }

    it('matches a poll of one process with a callback of the other', () => {
      for (const isPolledHere of [true, false]) {
        [memory, theirs] = [new Memory(), new Memory()];
        (isPolledHere ? memory : theirs).poll('1', early);
        (isPolledHere ? theirs : memory).call(early);
        assert.equal(merge().poll('2', early), 'new');
      }
    });

    it('counts a callback once although both processes received it', () => {
      memory.call(early);
      theirs.call(early);
      const merged = merge();
      assert.deepEqual([merged.poll('1', early), merged.poll('2', early)], ['duplicate', 'new']);
    });
  });

  it('remembers that a polled message reached no node', () => {
    const changes = createChanges();
    memory.poll('1');
    const polled = identifyIncoming({ messageId: '1' });
    const called = identifyIncoming();
    const other = identifyIncoming({ messageDate: '2026-03-01T10:00:00.900Z' });
    noteLeftOut(polled, { awaited: true }, memory.readKey, changes);
    const readKey = (key: string) => changes.remember.get(key) ?? memory.readKey(key);
    const recall = (identity: typeof polled) => recallLeftOut(identity, readKey);
    assert.deepEqual(
      [recall(polled), recall(called), recall(other)],
      [{ awaited: true }, { awaited: true }, undefined],
    );
    noteLeftOut(called, undefined, readKey, changes);
    assert.equal(recall(called), undefined);
  });

  it('recognises two copies of a message although one copy has no id', () => {
    const of = identifyIncoming;
    assert.equal(isSameMessage(of({}), of({ messageId: '1' })), true);
    assert.equal(isSameMessage(of({ messageId: '1' }), of({ messageId: '1', body: 'x' })), true);
    assert.equal(isSameMessage(of({ messageId: '1' }), of({ messageId: '2' })), false);
    assert.equal(isSameMessage(of({}), of({ messageDate: '2026-03-01T10:00:00.900Z' })), false);
    assert.equal(isSameMessage(of({}), of({ messageDate: '2026-03-01T10:00:00Z' })), true);
    assert.equal(isSameMessage({ keys: [] }, { keys: [] }), false);
  });

  it('stores no body and no phone number', () => {
    const identity = identifyIncoming({ messageId: 'id-4711' });
    memory.judge(incoming({ messageId: 'id-4711' }));
    const kept = JSON.stringify([identity.keys, [...memory.seen]]);
    for (const secret of ['hello', '6421555001', 'id-4711']) assert.ok(!kept.includes(secret));
    assert.equal(identity.keys.length, 2);
  });
});
