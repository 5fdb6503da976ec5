import assert from 'node:assert/strict';
import type { IncomingRecord } from '../../../src/model';
import type { SendOptions } from '../../../src/outbox/message-item';
import { findAnswer, parseAnswers } from '../../../src/replies/answers';
import {
  beginAsking,
  beginReceiving,
  type FakeNode,
  forever,
  type SendingSide,
  type SendTextOptions,
} from '../sending/sending-side';
import { createError } from '../some-error';

const handset = '6421555123';
const hour = 3_600_000;
const answers = [
  { value: 'YES', words: ['yes', 'ja', '1', '👍'] },
  { value: 'NO', words: ['no', 'not today'] },
];
const again: SendOptions['again'] = {
  message: { to: [], body: 'Please answer YES or NO.' },
  encoding: 'GSM-7',
  parts: 1,
};

describe('parseAnswers', () => {
  const refuses = (value: unknown, reason: string) =>
    assert.throws(() => parseAnswers(value), { code: 'SMS_CONFIG', reason }, JSON.stringify(value));

  it('accepts up to 20 answers with 20 words of 160 characters', () => {
    const most = Array.from({ length: 20 }, (_, answer) => ({
      value: 'v'.repeat(64),
      words: Array.from({ length: 20 }, (_word, word) => `${answer} ${word} `.padEnd(160, '😀')).map((word) =>
        [...word].slice(0, 160).join(''),
      ),
    }));
    for (const value of [undefined, null, '', [], answers]) parseAnswers(value);
    assert.equal(parseAnswers(most).length, 20);
  });

  it('refuses answers of a wrong type or size', () => {
    const one = (change: object) => [{ value: 'YES', words: ['yes'], ...change }];
    const long = 'x'.repeat(161);
    for (const value of ['yes', {}, [null], ['yes'], Array(21).fill({ value: 'a', words: ['a'] })]) {
      refuses(value, 'answersInvalid');
    }
    for (const value of ['', ' ', 1, 'x'.repeat(65)]) refuses(one({ value }), 'answersInvalid');
    for (const words of [undefined, 'yes', [], [' '], [1], [long], Array(21).fill('yes')]) {
      refuses(one({ words }), 'answersInvalid');
    }
  });

  it('refuses equal words in two answers', () => {
    refuses([...answers, { value: 'LATER', words: ['(Yes!)'] }], 'answerWordTwice');
    refuses([...answers, { value: 'LATER', words: ['👍 '] }], 'answerWordTwice');
    assert.equal(parseAnswers([{ value: 'YES', words: ['yes', 'YES'] }]).length, 1);
  });
});

describe('findAnswer', () => {
  for (const [body, value] of [
    ['YES', 'YES'],
    [' "Yes"! ', 'YES'],
    ['ｙｅｓ', 'YES'],
    ['yes 👍', 'YES'],
    ['1.', 'YES'],
    ['👍', 'YES'],
    ['Not \n today', 'NO'],
    ['yes please', undefined],
    ['👎', undefined],
    ['👍👍', undefined],
    ['?', undefined],
    ['', undefined],
  ] as const) {
    it(`reads ${JSON.stringify(body)} as ${value ?? 'unclear'}`, () => {
      assert.equal(findAnswer(answers, body), value);
    });
  }
});

describe('a reply request with `answers`', () => {
  const ask = (options: SendTextOptions = {}) => beginAsking({ answers, ...options });
  const resultsOf = (node: FakeNode) =>
    node.answers.map(({ result }) =>
      'reason' in result ? result : { answer: result.answer, body: result.reply.body },
    );
  const awaitedOf = (side: SendingSide) => side.received.map(({ awaited }: Partial<IncomingRecord>) => awaited);

  it('ends with the value of the recognised answer', async () => {
    const { side, node } = await ask();
    await side.incoming(handset, 'Ja!', { inReplyToId: 'q1' });
    assert.deepEqual(resultsOf(node), [{ answer: 'YES', body: 'Ja!' }]);
    assert.deepEqual(awaitedOf(side), [true]);
  });

  it('stays open after an unclear reply', async () => {
    const { side, node } = await ask();
    for (const body of ['who?', 'what?']) await side.incoming(handset, body, { inReplyToId: 'q1' });
    assert.deepEqual(awaitedOf(side), [true, true]);
    await side.pass(hour);
    assert.deepEqual(resultsOf(node), [{ reason: 'unclear', reply: 'what?' }]);
    assert.deepEqual(side.service.bodies, ['Come?']);
  });

  describe('when it asks again', () => {
    it('sends one second message per handset after unclear replies', async () => {
      const { side, node } = await ask({ again, to: [handset, '6421555124'] });
      side.clock.random = Math.random;
      for (const body of ['who?', 'what?']) await side.incoming(handset, body, { inReplyToId: 'q1' });
      await side.incoming('6421555124', 'who?', { inReplyToId: 'q1' });
      const sent = side.service.taken.slice(1);
      assert.deepEqual(
        sent.map(({ to, body }) => [to, body]),
        [handset, '6421555124'].map((to) => [[to], 'Please answer YES or NO.']),
      );
      const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
      assert.ok(sent.every(({ messageId }) => uuid.test(messageId ?? '')));
      assert.notEqual(sent[0]?.messageId, sent[1]?.messageId);
      assert.equal(node.ends.length, 1);
    });

    it('sends only one second message if two unclear replies arrive together', async () => {
      for (let turns = 0; turns < 60; turns++) {
        const { side, store } = await ask({ again: { ...again, keep: forever }, keep: forever });
        store.turns = 3;
        const first = side.incoming(handset, 'who?', { inReplyToId: 'q1' });
        for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
        await Promise.all([first, side.incoming(handset, 'what?', { inReplyToId: 'q1' })]);
        store.turns = 0;
        await side.pass(100);
        await side.pass(100);
        assert.equal(side.service.taken.length, 2, `after ${turns} turns`);
      }
    });

    for (const messageId of ['q1', undefined]) {
      it(`accepts a reply to the second message if the first has ${messageId ? 'a' : 'no'} messageId`, async () => {
        const { side, node } = beginReceiving();
        const asked = { waitMs: hour, answers, again, remember: { value: 7 } };
        await side.send(node, 'Come?', messageId === undefined ? asked : { ...asked, messageId });
        await side.incoming(handset, 'who?');
        const inReplyToId = side.service.taken[1]?.messageId ?? 'made-2';
        await side.incoming(handset, 'yes', { inReplyToId });
        const [{ result } = assert.fail()] = node.answers;
        assert.ok(!('reason' in result));
        assert.deepEqual([result.answer, result.reply.sent?.remembered], ['YES', 7]);
        assert.equal(side.outbox.admin.state.awaitingReply, 0);
        await side.incoming(handset, 'no', { inReplyToId });
        assert.deepEqual(awaitedOf(side), [true, true, undefined]);
      });
    }

    it('stays open if the service refuses the second message', async () => {
      const { side, node } = await ask({ again });
      side.service.script.push({ error: createError('forbidden') });
      await side.incoming(handset, 'who?', { inReplyToId: 'q1' });
      assert.deepEqual([node.ends.length, node.answers.length], [1, 0]);
      await side.incoming(handset, 'what?', { inReplyToId: 'q1' });
      assert.equal(side.service.tries, 2);
      await side.incoming(handset, 'yes', { inReplyToId: 'q1' });
      assert.deepEqual(resultsOf(node), [{ answer: 'YES', body: 'yes' }]);
    });

    it('sends a second message to each group member with an unclear reply', async () => {
      const { side, node } = await ask({ again, to: ['nurses'] });
      for (const from of ['6421555777', '6421555778']) await side.incoming(from, 'who?', { inReplyToId: 'q1' });
      const inReplyToId = side.service.taken[2]?.messageId ?? '';
      assert.deepEqual(
        side.service.taken.slice(1).map(({ to }) => to),
        [['6421555777'], ['6421555778']],
      );
      await side.incoming('6421555778', 'no', { inReplyToId });
      assert.deepEqual(resultsOf(node), [{ answer: 'NO', body: 'no' }]);
    });

    for (const keep of [undefined, forever]) {
      it(`sends the second message once despite crashes if \`keep\` is ${keep ? 'set' : 'off'}`, async () => {
        const { side } = await ask(keep ? { again: { ...again, keep }, keep } : { again });
        side.service.holdConnection();
        await side.incoming(handset, 'who?', { inReplyToId: 'q1' });
        assert.equal(side.service.taken.length, 1);
        let process = side;
        for (let crashes = 0; crashes < 2; crashes++) {
          process = process.crash().next;
          await process.pass(1_000);
          assert.equal(side.service.taken.length, 2);
        }
      });
    }

    it('sends the second message when its node is deployed again', async () => {
      const { side, node } = await ask({ again });
      await node.node.close();
      await side.incoming(handset, 'who?', { inReplyToId: 'q1' });
      assert.equal(side.service.tries, 1);
      side.attach();
      await side.pass(100);
      assert.equal(side.service.tries, 2);
    });
  });
});
