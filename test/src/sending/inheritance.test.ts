import assert from 'node:assert/strict';
import type { IncomingRecord } from '../../../src/model';
import { abandon, adopt } from '../../../src/sending/inheritance';
import { type Letter, leaveLetter, mailboxKey, readLetters } from '../../../src/sending/mailbox';
import type { Text } from '../../../src/sending/outgoing';
import { match, rememberSent } from '../../../src/sending/sent';
import { type Changes, createChanges, type Look, type Remembered } from '../../../src/store/store';

function letter(question: string): Letter {
  return { question, at: 1_000, answer: { reason: 'undelivered', statusCode: 'NUR' } };
}

/** What is remembered once letters have been left. */
function mailboxWith(...questions: string[]): Remembered {
  const changes = createChanges();
  const look: Look = (key) => changes.remember.get(key);
  for (const question of questions) leaveLetter(letter(question), look, changes);
  const mailbox = look(mailboxKey);
  assert.ok(mailbox);
  return mailbox;
}

/** What is remembered under a key of `once` by a text, before or after its end. */
function guarded(id: string, outcome?: string): Remembered {
  return { at: 1_000, forMs: 1_000, value: JSON.stringify({ fingerprint: 'x', id, ...(outcome && { outcome }) }) };
}

describe('what a login takes over of another', () => {
  it('is every reply that instances have left each other under either, each once', () => {
    const own = mailboxWith('a', 'b');
    const step = adopt([], [[mailboxKey, mailboxWith('b', 'c')]], 2_000);
    assert.ok(step.keys.includes(mailboxKey));
    const changes = createChanges();
    step.decide((key) => (key === mailboxKey ? own : undefined), changes);
    const letters = readLetters((key) => changes.remember.get(key));
    assert.deepEqual(letters.map(({ question }) => question).sort(), ['a', 'b', 'c']);
  });

  for (const [name, own, other, kept] of [
    ['how a text has ended that it knew to be under way', guarded('a'), guarded('a', 'sent'), 'other'],
    ['nothing of a text that it knows more of', guarded('a', 'sent'), guarded('a'), 'own'],
    ['nothing of another text with the key of one of its own', guarded('b'), guarded('a', 'sent'), 'own'],
  ] as const) {
    it(`is ${name}`, () => {
      const changes = createChanges();
      adopt([], [['once:key', other]], 2_000).decide(() => own, changes);
      assert.deepEqual(changes.remember.get('once:key') ?? own, kept === 'own' ? own : other);
    });
  }

  it('is every open question to a handset, however many there are under either', () => {
    const ask = (from: number, look: Look, changes: Changes) => {
      for (let index = from; index < from + 150; index++) {
        const text = { id: `text ${index}`, node: 'send', message: { to: ['6421555123'], body: 'Come?' }, options: {} };
        rememberSent(
          { text: text as unknown as Text, messageId: `q${index}`, questions: new Map([['6421555123', `${index}`]]) },
          { at: 1_000 + index, forMs: 600_000 },
          look,
          changes,
        );
      }
    };
    const [own, other] = [createChanges(), createChanges()];
    for (const [index, changes] of [other, own].entries())
      ask(150 * index, (key) => changes.remember.get(key), changes);
    const memories = [...other.remember].flatMap(([key, value]) => (value ? [[key, value] as const] : []));
    adopt([], memories, 2_000).decide((key) => own.remember.get(key), own);
    const look: Look = (key) => own.remember.get(key);
    for (let index = 0; index < 300; index++) {
      const record = { from: '6421555123', body: 'yes', inReplyToId: `q${index}` } as IncomingRecord;
      assert.equal(match('incoming', record, look)?.question?.id, `${index}`);
    }
  });

  it('is kept that comes back in the commit in which it was let go of', () => {
    const item = { id: 'a', part: 'ledger', takers: [], attempts: 0 } as const;
    const changes = createChanges();
    const look: Look = (key) => changes.remember.get(key);
    abandon([item], []).decide(look, changes);
    assert.deepEqual(adopt([item], [], 1_000).decide(look, changes)(true), [item]);
    assert.deepEqual([[...changes.keep.keys()], [...changes.drop.keys()]], [['a'], []]);
  });
});
