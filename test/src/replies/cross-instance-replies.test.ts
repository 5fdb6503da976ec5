import assert from 'node:assert/strict';
import type { IncomingRecord } from '../../../src/model';
import type { MessageItem, Sent } from '../../../src/outbox/message-item';
import { type StepContext, settle, markLeaving as textLeaves } from '../../../src/outbox/transitions';
import type { FollowUp, ReplyRequest } from '../../../src/replies/follow-ups';
import { FollowUpBook } from '../../../src/replies/follow-ups';
import { endFollowUps } from '../../../src/replies/replies';
import { forwardResult, readForwarded } from '../../../src/replies/reply-steps';
import {
  closeRequest,
  match,
  recordKeysOf,
  referenceOf,
  remember as rememberSent,
} from '../../../src/replies/sent-index';
import { type Changes, createChanges, formatRemembered, type ReadKey, type Remembered } from '../../../src/store/store';
import { answersOf, beginReceiving, forever } from '../sending/sending-side';
import { FailingServer } from '../store/failing-store';

const handset = '6421555123';
const text = {
  id: 'text',
  node: 'send',
  message: { to: [handset], body: 'Come?', messageId: 'q1' },
  options: { waitMs: 60_000 },
} as unknown as MessageItem;
const memory: Omit<StepContext, 'current'> = {
  now: 3_000,
  time: { now: 3_000, clock: 'clock/0' },
  rules: { limits: [], quietHours: [], optOut: false, prefixes: new Map() },
  dedupeMs: () => 0,
  sentMs: 600_000,
};
const question: ReplyRequest = {
  id: 'text-0',
  part: 'outgoing',
  kind: 'replyRequest',
  subscribers: ['node send'],
  attempts: 0,
  node: 'send',
  messageItemId: 'text',
  reference: referenceOf('q1', text),
  messageId: 'q1',
  recipient: handset,
  waitMs: 60_000,
};
const reply = (body: string) => ({ from: handset, body, inReplyToId: 'q1' }) as IncomingRecord;

describe('replies that other instances have read', () => {
  let remembered: Map<string, Remembered | undefined>;
  const readKey: ReadKey = (key) => remembered.get(key);

  function write(change: (changes: Changes) => void): void {
    const changes = createChanges();
    change(changes);
    for (const [key, value] of changes.remember) remembered.set(key, value);
  }

  /** Stores that the message is sent, or sent again, before an instance receives a reply. */
  const remember = () =>
    write((changes) =>
      rememberSent(
        {
          item: text,
          to: [handset],
          keys: { messageId: 'q1', reference: referenceOf('q1', text) },
          recipients: [handset],
          open: [question],
          isAccepted: false,
        },
        { now: 1_000, sentMs: 600_000 },
        readKey,
        changes,
      ),
    );
  const leave = (body: string) =>
    write((changes) => {
      closeRequest(question, readKey, changes);
      forwardResult(question.id, { reply: reply(body) }, 2_000, changes);
    });
  const known = (one = question) => {
    const book = new FollowUpBook(() => {});
    book.set(one);
    return book;
  };
  const inBooks = (followUps: FollowUpBook): StepContext => ({
    ...memory,
    current: { messages: Object.assign(new Map(), { replaceable: new Set<string>() }), followUps },
  });
  const isOpen = () => {
    const again = reply('again');
    return match('incoming', again, recordKeysOf(again), readKey)?.request !== undefined;
  };

  beforeEach(() => {
    remembered = new Map();
    remember();
  });

  it('close their reply request, although its message was sent again', () => {
    leave('yes');
    remember();
    assert.equal(isOpen(), true);
    const step = endFollowUps([question], known());
    write((changes) => step.decide(readKey, changes)(true));
    assert.equal(isOpen(), false);
  });

  it('answer their reply request once', () => {
    leave('yes');
    let answered: readonly FollowUp[] = [];
    write((changes) => {
      answered = endFollowUps([question], known()).decide(readKey, changes)(true);
    });
    assert.deepEqual(
      answered.map(({ result }) => result && 'reply' in result && !('reason' in result) && result.reply.body),
      ['yes'],
    );
    assert.deepEqual(endFollowUps([question], known()).decide(readKey, createChanges())(true), []);
    leave('too late');
    const step = endFollowUps([question], known({ ...question, result: { reply: reply('yes') } }));
    write((changes) => assert.deepEqual(step.decide(readKey, changes)(true), []));
    assert.equal(readForwarded(question.id, readKey).result, undefined);
  });

  it('keep their reply request closed when its message is sent again', () => {
    leave('yes');
    const step = textLeaves({ ...text, leftAt: 1_000 }, inBooks(known()));
    write((changes) => step.decide(readKey, changes)(true));
    assert.equal(isOpen(), false);
  });

  it('keep their reply request closed if read in the step of the outcome', () => {
    const sent: Sent = { messageId: 'q1', recipients: [], accepted: [handset], failed: [] };
    for (const step of [
      settle(text, { by: 'settle', outcome: sent }, inBooks(known())),
      textLeaves({ ...text, leftAt: 1_000 }, inBooks(known())),
    ]) {
      remembered = new Map();
      remember();
      const looked = new Map<string, Remembered | undefined>();
      const note: ReadKey = (key) => {
        looked.set(key, readKey(key));
        return readKey(key);
      };
      const changes = createChanges();
      step.decide(note, changes);
      leave('yes');
      const compared = [...changes.remember.keys(), ...changes.compare].filter((key) => looked.has(key));
      assert.ok(compared.some((key) => looked.get(key) !== readKey(key)));
    }
  });

  it('end the request if one commit stores the outcome and reads the reply', async () => {
    const { side, node, store } = beginReceiving(new FailingServer());
    await side.send(node, 'collects replies', { to: ['6421555999'], waitMs: 60_000, keep: forever });
    const accept = side.service.holdNext();
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: 60_000, keep: forever });
    const asked = store.disk.items.find((item) => 'recipient' in item && item.recipient === handset) as ReplyRequest;
    const changes = createChanges();
    forwardResult(asked.id, { reason: 'undelivered', statusCode: 'NUR' }, side.clock.now(), changes);
    for (const [key, value] of changes.remember) store.disk.remembered.set(key, formatRemembered(value as Remembered));
    store.turns = 50;
    const arriving = side.incoming('6421555777', 'occupies the store');
    await side.clock.advance(500);
    accept();
    await arriving;
    store.turns = 0;
    await side.pass(1_000);
    assert.deepEqual(answersOf(node), [`${handset}: undelivered NUR`]);
  });

  it('end a reply request whose time is up', () => {
    leave('yes');
    const step = endFollowUps([question], known(), true);
    write((changes) => {
      const [ended] = step.decide(readKey, changes)(true);
      assert.deepEqual(ended?.result, { reply: reply('yes') });
    });
    assert.equal(readForwarded(question.id, readKey).result, undefined);
  });
});
