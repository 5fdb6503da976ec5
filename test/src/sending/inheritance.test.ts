import assert from 'node:assert/strict';
import { adopt } from '../../../src/sending/inheritance';
import { type Letter, leaveLetter, mailboxKey, readLetters } from '../../../src/sending/mailbox';
import { createChanges, type Look, type Remembered } from '../../../src/store/store';

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
});
