import assert from 'node:assert/strict';
import { createManualClock } from '../../simulator';
import { readForm } from './service-calls';
import { calls, handset, number, simulator, start, useSimulator } from './use-simulator';

describe('simulator: poll', () => {
  useSimulator(() => ({ statusDelayMs: Number.POSITIVE_INFINITY }));

  // §2.3, §4.2 of docs/specification.md
  describe('for incoming messages', () => {
    it('returns a reply with `inReplyToId` instead of `to`', async () => {
      await start({ clock: createManualClock(Date.parse('2026-03-01T01:02:03.004Z')) });
      await calls.send({ to: handset, body: 'x', messageId: 'mine' });
      const { messageId } = simulator.reply({ from: handset, body: 'Ja & nein = 1+1\n€' });
      const answer = await calls.pollIncoming();
      assert.deepEqual([answer.status, answer.headers['content-type']], [200, 'application/x-www-form-urlencoded']);
      assert.deepEqual(readForm(answer), {
        messageId,
        from: handset,
        inReplyToId: 'mine',
        body: 'Ja & nein = 1+1\n€',
        messageDate: '2026-03-01T01:02:03.004Z',
        contentType: 'text/plain',
      });
    });

    // §9 of docs/specification.md
    it('returns the id of the message that a reply answers', async () => {
      await calls.send({ to: handset, body: 'x' });
      simulator.reply({ from: handset, body: 'y' });
      for (const messageId of ['first', 'second', 'refused']) {
        if (messageId === 'refused') simulator.setNextOutcome('BLOCKED');
        await calls.send({ to: handset, body: 'x', messageId });
      }
      simulator.reply({ from: handset, body: 'y' });
      simulator.reply({ from: handset, body: 'y', inReplyTo: 'first' });
      for (const id of ['default', 'second', 'first'])
        assert.equal(readForm(await calls.pollIncoming()).inReplyToId, id);
      simulator.receive({ from: handset, to: number, body: 'привет' });
      const { inReplyToId, to, contentType } = readForm(await calls.pollIncoming());
      assert.deepEqual([inReplyToId, to], [undefined, number]);
      assert.equal(contentType, 'text/plain; charset=UTF-16');
    });

    // §3 of docs/specification.md
    it('returns one message at a time, in order of arrival', async () => {
      for (const body of ['1', '2']) simulator.receive({ from: handset, to: number, body });
      assert.equal(readForm(await calls.pollIncoming()).body, '1');
      assert.equal(simulator.incoming.map(({ read }) => read).join(), 'true,false');
      assert.equal(readForm(await calls.pollIncoming({ method: 'GET' })).body, '2');
      assert.equal((await calls.pollIncoming()).status, 204);
    });

    it('returns the first message to the poll that waited longest', async () => {
      await start({ waitMs: 600_000 });
      const polls = [];
      for (const count of [1, 2, 3]) {
        polls.push(calls.pollIncoming());
        await simulator.until(() => simulator.polling('incoming') === count);
      }
      for (const body of ['1', '2', '3']) simulator.receive({ from: handset, to: number, body });
      const answers = await Promise.all(polls);
      assert.equal(answers.map((answer) => readForm(answer).body).join(), '1,2,3');
    });

    it('leaves a message unread after the client disconnects', async () => {
      await start({ waitMs: 600_000 });
      const abort = new AbortController();
      const gone = assert.rejects(calls.pollIncoming({ signal: abort.signal }));
      await simulator.until(() => simulator.polling('incoming') === 1);
      abort.abort();
      await gone;
      await simulator.until(() => simulator.polling('incoming') === 0);
      const message = simulator.receive({ from: handset, to: number, body: 'still here' });
      assert.equal(message.read, false);
      assert.equal(simulator.requests[0]?.aborted, true);
      assert.equal(readForm(await calls.pollIncoming()).body, 'still here');
    });
  });

  // §2.5, §4.4 of docs/specification.md
  describe('for statuses', () => {
    it('returns one status update with all its fields', async () => {
      await calls.send({ to: handset, body: 'x', messageId: 'mine', from: 'SHOP' });
      const update = simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'NUR', error: 'off & away' });
      const answer = await calls.pollStatus();
      assert.equal(answer.headers['content-type'], 'application/x-www-form-urlencoded');
      assert.deepEqual(readForm(answer), {
        messageId: update.messageId,
        to: 'SHOP',
        from: handset,
        statusCode: 'NUR',
        inReplyToId: 'mine',
        error: 'off & away',
      });
      assert.equal(update.read, true);
      assert.equal((await calls.pollStatus({ method: 'GET' })).status, 204);
    });

    it('returns up to `statusBatch` status updates at once', async () => {
      await start({ statusBatch: 2 });
      for (const statusCode of ['SNT', 'EXP', 'RCV'] as const)
        simulator.status({ messageId: 'm', msisdn: handset, statusCode });
      const form = new URLSearchParams((await calls.pollStatus()).text);
      assert.deepEqual(form.getAll('statusCode'), ['SNT', 'EXP']);
      assert.equal(form.getAll('error').length, 2);
      assert.equal(readForm(await calls.pollStatus()).statusCode, 'RCV');
    });

    // §7.2 of docs/specification.md
    it('returns 204 if no status update comes within `waitMs`', async () => {
      await start({ waitMs: 30 });
      assert.equal((await calls.pollStatus()).status, 204);
      const poll = calls.pollStatus();
      await simulator.until(() => simulator.polling('status') === 1);
      simulator.status({ messageId: 'm', msisdn: handset, statusCode: 'RCV' });
      assert.equal((await poll).status, 200);
    });
  });

  // §2.4, §4.3 of docs/specification.md
  describe('for outgoing messages', () => {
    it('returns the messages since the previous poll', async () => {
      await start({ clock: createManualClock(Date.parse('2026-03-01T00:00:00.000Z')) });
      simulator.addContact('Anna', '6421555001');
      const to = `Anna ${handset} 6421555124 6421555125`;
      await calls.send({ to, body: 'Hallo "Ü"', messageId: 'one', from: 'SHOP' });
      simulator.status({ messageId: 'one', msisdn: '6421555001', statusCode: 'RCV' });
      const [record] = await calls.pollOutbox();
      const { recipientsList, ...fields } = record as { recipientsList: { statusCode: string }[] };
      assert.deepEqual(fields, {
        messageId: 'one',
        body: 'Hallo "Ü"',
        recipientCount: 4,
        recipients: `Anna, ${handset} and 2 others`,
        messageDate: '2026-03-01T00:00:00.000Z',
        statusCode: 'SNT',
        deleted: false,
      });
      const recipient = { from: 'SHOP', to: '6421555001', name: 'Anna', statusCode: 'RCV', channel: 'Sms' };
      assert.deepEqual(recipientsList[0], recipient);
      assert.equal(recipientsList.map(({ statusCode }) => statusCode).join(), 'RCV,SNT,SNT,SNT');
      assert.deepEqual(await calls.pollOutbox(), []);
      await calls.send({ to: handset, body: 'y', messageId: 'two' });
      simulator.deleteMessage('two');
      const [next] = await calls.pollOutbox();
      assert.deepEqual([next?.messageId, next?.deleted], ['two', true]);
    });
  });
});
