import assert from 'node:assert/strict';
import { createManualClock, type ManualClock } from '../../simulator';
import type { ReadAnswer } from './service-calls';
import { calls, simulator, useSimulator } from './use-simulator';
import { readXml } from './xml-element';

const handset = '6421555123';

describe('simulator: send', () => {
  let clock: ManualClock;
  useSimulator(() => {
    clock = createManualClock(Date.parse('2026-03-01T23:00:00.000Z'));
    return { clock, balance: 100 };
  });

  const rootOf = (answer: ReadAnswer): Readonly<Record<string, string>> => {
    const root = readXml(answer.text);
    assert.equal(root.name, 'outbound-message-delivery');
    return root.attributes;
  };
  const recipientsOf = (answer: ReadAnswer): Readonly<Record<string, string>>[] =>
    readXml(answer.text)
      .all('recipient')
      .map(({ attributes }) => attributes);
  const assertBadRequest = async (params: Record<string, string>, reason: RegExp): Promise<void> => {
    const answer = await calls.send(params);
    assert.equal(answer.status, 400);
    assert.match(answer.reason, reason);
    assert.equal(/<h1>(.*)<\/h1>/.exec(answer.text)?.[1], answer.reason);
    assert.equal(simulator.messages.length, 0);
  };

  describe('the send endpoint (§2.1 parameters)', () => {
    it('accepts every parameter by POST', async () => {
      const params = {
        to: handset,
        body: 'Grüße & <Küsse> 50% + 🚀',
        from: 'SHOP',
        messageId: 'a"<&>b',
        fragmentationLimit: '2',
        contentType: 'text/plain; charset=UTF-16',
        callbackUrl: 'https://client.example/in?id={!messageId}',
        callbackStatusUrl: 'http://client.example/status',
      };
      const answer = await calls.send(params);
      assert.equal(answer.status, 200);
      assert.equal(rootOf(answer).messageId, 'a"<&>b');
      const [message] = simulator.messages;
      assert.deepEqual({ ...message, ...params, to: message?.to }, { ...message, fragmentationLimit: '2' });
      assert.deepEqual(message?.to, [handset]);
      assert.equal(message?.fragmentationLimit, 2);
    });

    it('accepts a message by GET, and makes a UUID if messageId is absent', async () => {
      const answer = await calls.send({ to: handset, body: 'a b+c' }, { method: 'GET' });
      assert.equal(simulator.messages[0]?.body, 'a b+c');
      assert.match(rootOf(answer).messageId ?? '', /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
      assert.equal(simulator.messages[0]?.messageIdGiven, false);
    });

    it('refuses each missing or wrong parameter', async () => {
      await assertBadRequest({ body: 'x' }, /to/);
      await assertBadRequest({ to: ' ', body: 'x' }, /to/);
      await assertBadRequest({ to: handset }, /body/);
      const message = { to: handset, body: 'x' };
      await assertBadRequest({ ...message, contentType: 'text/html' }, /contentType/);
      for (const fragmentationLimit of ['0', '1.5', 'x', '-1'])
        await assertBadRequest({ ...message, fragmentationLimit }, /fragmentationLimit/);
      await assertBadRequest({ ...message, body: 'x'.repeat(307), fragmentationLimit: '2' }, /3 parts/);
      await assertBadRequest({ ...message, callbackUrl: 'ftp://client.example' }, /callbackUrl/);
      await assertBadRequest({ ...message, callbackUrl: 'not a url' }, /callbackUrl/);
      await assertBadRequest({ ...message, callbackStatusUrl: 'mailto:a@b.example' }, /callbackStatusUrl/);
    });
  });

  describe('the send endpoint (§2.2 answer)', () => {
    beforeEach(() => {
      simulator.addContact('Anna', '6421555001');
      simulator.addContact('Ben', '6421555002');
      simulator.addGroup('Team', ['Anna', 'Ben', '6421555003']);
    });

    it('reports recipients as submitted, also contacts and groups', async () => {
      const answer = await calls.send({ to: `${handset} Anna Team`, body: 'x', messageId: 'mine' });
      assert.deepEqual(rootOf(answer), { messageId: 'mine', isError: 'false' });
      assert.deepEqual(recipientsOf(answer), [
        { msisdn: handset, isError: 'false' },
        { msisdn: 'Anna', isError: 'false' },
        { msisdn: 'Team', isError: 'false' },
      ]);
      assert.deepEqual(
        simulator.messages[0]?.recipients.map(({ item, msisdn, name }) => [item, msisdn, name]),
        [
          [handset, handset, undefined],
          ['Anna', '6421555001', 'Anna'],
          ['Team', '6421555002', 'Ben'],
          ['Team', '6421555003', undefined],
        ],
      );
    });

    it('counts a repeated recipient once', async () => {
      simulator.setDailyLimit(2);
      const answer = await calls.send({ to: `${handset} Anna ${handset} 6421555001 Nobody Nobody`, body: 'x' });
      assert.deepEqual(
        recipientsOf(answer).map(({ msisdn, isError }) => [msisdn, isError]),
        [
          [handset, 'false'],
          ['Anna', 'false'],
          ['6421555001', 'false'],
          ['Nobody', 'true'],
        ],
      );
      assert.equal(simulator.balance, 100 - 2);
      const [record] = await calls.pollOutbox();
      const { recipientCount, recipientsList } = record ?? {};
      assert.deepEqual([recipientCount, (recipientsList as unknown[]).length], [3, 3]);
      assert.deepEqual(simulator.messages[0]?.to, [handset, 'Anna', '6421555001', 'Nobody'], 'the items, each once');
      await clock.advance(2000);
      assert.equal(simulator.statuses.length, 4, 'each handset goes to SNT and RCV once');
    });

    it('reports 403 for a blocked number and an unknown contact', async () => {
      simulator.block('6421555009');
      const answer = await calls.send({ to: `6421555009 Nobody 0215551234 ${handset}`, body: 'x' });
      assert.equal(rootOf(answer).isError, 'false');
      const [blocked, unknown, leadingZero, sent] = recipientsOf(answer);
      for (const failed of [blocked, unknown, leadingZero]) assert.equal(failed?.errorCode, '403');
      assert.match(blocked?.errorMessage ?? '', /blocked/);
      assert.match(unknown?.errorMessage ?? '', /address book/);
      assert.deepEqual(sent, { msisdn: handset, isError: 'false' });
      const refused = await calls.send({ to: '6421555009', body: 'x' });
      assert.deepEqual([refused.status, rootOf(refused).isError], [200, 'false'], 'the root has no error');
      assert.equal(recipientsOf(refused)[0]?.isError, 'true');
      simulator.block('6421555009', false);
      assert.equal(recipientsOf(await calls.send({ to: '6421555009', body: 'x' }))[0]?.isError, 'false');
    });

    it('charges parts and recipients, and reports insufficient funds (§7.1)', async () => {
      await calls.send({ to: `${handset} Team`, body: 'x'.repeat(161) });
      assert.equal(simulator.balance, 100 - 4 * 2);
      simulator.setBalance(1);
      const [paid, unpaid] = recipientsOf(await calls.send({ to: 'Anna Ben', body: 'x' }));
      assert.deepEqual([simulator.balance, paid?.isError, unpaid?.errorCode], [0, 'false', '402']);
      assert.match(unpaid?.errorMessage ?? '', /funds/i);
    });
  });

  describe('the send endpoint (§7.1, §8 refusals)', () => {
    it('answers 403 when no recipient is a number, a contact or a group', async () => {
      const answer = await calls.send({ to: 'Nobody', body: 'x', messageId: 'm' });
      assert.equal(answer.status, 403);
      const { messageId, isError, errorCode } = rootOf(answer);
      assert.deepEqual([messageId, isError, errorCode], ['m', 'true', '403']);
      assert.equal(simulator.messages.length, 0);
    });

    it('answers 403 when the daily limit would be exceeded, until the next day', async () => {
      simulator.setDailyLimit(2);
      assert.equal((await calls.send({ to: `${handset} 6421555124`, body: 'x' })).status, 200);
      const refused = await calls.send({ to: handset, body: 'x' });
      assert.equal(refused.status, 403);
      assert.match(rootOf(refused).errorMessage ?? '', /limit/);
      await clock.advance(3_600_000);
      assert.equal((await calls.send({ to: handset, body: 'x' })).status, 200);
    });

    it('refuses more than 480 characters without fragmentationLimit', async () => {
      const long = '🚀'.repeat(481);
      await assertBadRequest({ to: handset, body: long }, /480/);
      assert.equal((await calls.send({ to: handset, body: '🚀'.repeat(480) })).status, 200);
      const contentType = 'text/plain; charset=UTF-16';
      assert.equal((await calls.send({ to: handset, body: long, fragmentationLimit: '15', contentType })).status, 200);
    });

    it('refuses a messageId of more than 36 characters', async () => {
      await assertBadRequest({ to: handset, body: 'x', messageId: 'm'.repeat(37) }, /36/);
      assert.equal((await calls.send({ to: handset, body: 'x', messageId: 'm'.repeat(36) })).status, 200);
    });
  });

  describe('a body without the UTF-16 content type', () => {
    const arrived = () => simulator.messages.map(({ body, deliveredBody }) => deliveredBody ?? body);

    it('arrives with ? instead of characters outside GSM 03.38', async () => {
      await calls.send({ to: handset, body: 'Žluťoučký 🚀 Größe [€]' });
      await calls.send({ to: handset, body: '🚀', contentType: 'text/plain' });
      await calls.send({ to: handset, body: '🚀', contentType: 'text/plain; charset=UTF-16' });
      await calls.send({ to: handset, body: 'Größe [€]' });
      assert.deepEqual(arrived(), ['?lu?ou?k? ? Größe [€]', '?', '🚀', 'Größe [€]']);
      assert.equal((await calls.pollOutbox())[0]?.body, 'Žluťoučký 🚀 Größe [€]', 'the outbox has the submitted body');
      assert.equal(simulator.messages[3]?.deliveredBody, undefined);
    });
  });

  describe('the send endpoint (§9 versions)', () => {
    for (const version of ['1', '2']) {
      it(`accepts four parameters and one recipient on /api/${version}, and answers 204`, async () => {
        const send = (params: object) => calls.call(`/api/${version}/sms/out`, { to: handset, body: 'x', ...params });
        const sent = await send({ messageId: 'mine', from: 'SHOP', contentType: 'nonsense' });
        assert.deepEqual([sent.status, sent.text], [204, '']);
        const { messageIdGiven, from, apiVersion } = simulator.messages[0] ?? {};
        assert.deepEqual([messageIdGiven, from, apiVersion], [false, undefined, Number(version)]);
        const several = await send({ to: `${handset} 6421555124` });
        assert.equal(several.status, 400);
        assert.match(several.reason, /\/api\/3/);
        simulator.block(handset);
        assert.equal((await send({})).status, 403);
        assert.equal(simulator.messages.length, 1);
      });
    }
  });

  describe('the status of a sent message (§3)', () => {
    it('becomes SNT and then RCV as time passes', async () => {
      await calls.send({ to: handset, body: 'x' });
      const history = () => simulator.messages[0]?.recipients[0]?.history.map(({ statusCode }) => statusCode);
      assert.deepEqual(history(), []);
      await clock.advance(1000);
      assert.deepEqual(history(), ['SNT']);
      await clock.advance(1000);
      assert.deepEqual(history(), ['SNT', 'RCV']);
      assert.equal(simulator.statuses[1]?.statusDate, '2026-03-01T23:00:02.000Z');
    });

    it('ends with the result set for the next message or for a handset', async () => {
      simulator.setNextOutcome('BLOCKED');
      const refused = await calls.send({ to: handset, body: 'refused' });
      assert.match(recipientsOf(refused)[0]?.errorMessage ?? '', /Number is in the blocked list/);
      simulator.setNextOutcome('NRCV');
      simulator.setOutcome('6421555124', 'EXP');
      await calls.send({ to: `${handset} 6421555124`, body: 'x' });
      await calls.send({ to: `${handset} 6421555124`, body: 'y' });
      await clock.advance(2000);
      const codes = simulator.messages
        .slice(-2)
        .map(({ recipients }) => recipients.map(({ statusCode }) => statusCode));
      assert.deepEqual(codes, [
        ['NRCV', 'EXP'],
        ['RCV', 'EXP'],
      ]);
      assert.match(simulator.statuses.find(({ statusCode }) => statusCode === 'NRCV')?.error ?? '', /not received/);
    });
  });
});
