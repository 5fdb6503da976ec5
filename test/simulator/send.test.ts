import assert from 'node:assert/strict';
import { type Clock, createManualClock } from '../../simulator';
import { type ReadAnswer, readXml } from './service-calls';
import { calls, handset, simulator, useSimulator } from './use-simulator';

describe('simulator: send endpoint', () => {
  let clock: Clock;
  useSimulator(() => {
    clock = createManualClock(Date.parse('2026-03-01T23:00:00.000Z'));
    return { clock, balance: 100 };
  });

  const rootOf = (answer: ReadAnswer): Readonly<Record<string, string>> => {
    const root = readXml(answer.text);
    assert.equal(root.name, 'outbound-message-delivery');
    return { ...root.attributes };
  };
  const recipientsOf = (answer: ReadAnswer): Readonly<Record<string, string>>[] =>
    readXml(answer.text)
      .children.filter(({ name }) => name === 'recipient')
      .map(({ attributes }) => ({ ...attributes }));

  // §2.1 of docs/specification.md
  it('accepts each parameter by POST', async () => {
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
    assert.deepEqual({ ...message, ...params, to: [handset], fragmentationLimit: 2 }, message);
  });

  it('makes a UUID for a message without `messageId`', async () => {
    const answer = await calls.send({ to: handset, body: 'a b+c' }, { method: 'GET' });
    assert.equal(simulator.messages[0]?.body, 'a b+c');
    assert.match(rootOf(answer).messageId ?? '', /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    assert.equal(simulator.messages[0]?.messageIdGiven, false);
  });

  // §8 of docs/specification.md
  it('answers 400 to a missing, wrong or too long parameter', async () => {
    for (const [params, reason] of [
      [{ to: ' ' }, /to/],
      [{ body: '' }, /body/],
      [{ contentType: 'text/html' }, /contentType/],
      ...['0', '1.5', 'x', '-1'].map((fragmentationLimit) => [{ fragmentationLimit }, /fragmentationLimit/] as const),
      [{ body: 'x'.repeat(307), fragmentationLimit: '2' }, /3 parts/],
      [{ body: '🚀'.repeat(481) }, /480/],
      [{ messageId: 'm'.repeat(37) }, /36/],
      [{ callbackUrl: 'ftp://client.example' }, /callbackUrl/],
      [{ callbackUrl: 'not a url' }, /callbackUrl/],
      [{ callbackStatusUrl: 'mailto:a@b.example' }, /callbackStatusUrl/],
    ] as const) {
      const answer = await calls.send({ to: handset, body: 'x', ...params });
      assert.equal(answer.status, 400);
      assert.match(answer.reason, reason);
      assert.equal(/<h1>(.*)<\/h1>/.exec(answer.text)?.[1], answer.reason);
    }
    assert.equal(simulator.messages.length, 0);
    const contentType = 'text/plain; charset=UTF-16';
    for (const params of [
      { body: '🚀'.repeat(480), messageId: 'm'.repeat(36) },
      { body: '🚀'.repeat(481), fragmentationLimit: '15', contentType },
    ])
      assert.equal((await calls.send({ to: handset, ...params })).status, 200);
  });

  // §2.2 of docs/specification.md
  describe('with an address book', () => {
    beforeEach(() => {
      simulator.addContact('Anna', '6421555001');
      simulator.addContact('Ben', '6421555002');
      simulator.addGroup('Team', ['Anna', 'Ben', '6421555003']);
    });

    it('reports contacts and groups by name, not by their numbers', async () => {
      const answer = await calls.send({ to: `${handset} Anna Team`, body: 'x', messageId: 'mine' });
      assert.deepEqual(rootOf(answer), { messageId: 'mine', isError: 'false' });
      assert.deepEqual(
        recipientsOf(answer),
        [handset, 'Anna', 'Team'].map((msisdn) => ({ msisdn, isError: 'false' })),
      );
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
      const results = recipientsOf(answer).map(({ msisdn, isError }) => `${msisdn} ${isError}`);
      assert.deepEqual(results, [`${handset} false`, 'Anna false', '6421555001 false', 'Nobody true']);
      assert.equal(simulator.balance, 100 - 2);
      assert.equal((await calls.pollOutbox())[0]?.recipientCount, 3);
      await clock.advance(2000);
      assert.equal(simulator.statuses.length, 4, 'each handset goes to SNT and RCV once');
    });

    it('reports 403 for a blocked or unknown recipient', async () => {
      simulator.setOutcome('6421555009', 'BLOCKED');
      const answer = await calls.send({ to: `6421555009 Nobody 0215551234 ${handset}`, body: 'x' });
      assert.equal(rootOf(answer).isError, 'false');
      const [blocked, unknown, leadingZero, sent] = recipientsOf(answer);
      for (const failed of [blocked, unknown, leadingZero]) assert.equal(failed?.errorCode, '403');
      assert.match(blocked?.errorMessage ?? '', /blocked/);
      assert.match(unknown?.errorMessage ?? '', /address book/);
      assert.deepEqual(sent, { msisdn: handset, isError: 'false' });
      const refused = await calls.send({ to: '6421555009', body: 'x' });
      assert.deepEqual([refused.status, rootOf(refused).isError], [200, 'false'], 'the root has no error');
      simulator.setOutcome('6421555009', undefined);
      assert.equal(recipientsOf(await calls.send({ to: '6421555009', body: 'x' }))[0]?.isError, 'false');
    });

    // §7.1 of docs/specification.md
    it('charges one credit per recipient and part', async () => {
      await calls.send({ to: `${handset} Team`, body: 'x'.repeat(161) });
      assert.equal(simulator.balance, 100 - 4 * 2);
      simulator.setBalance(1);
      const [paid, unpaid] = recipientsOf(await calls.send({ to: 'Anna Ben', body: 'x' }));
      assert.deepEqual([simulator.balance, paid?.isError, unpaid?.errorCode], [0, 'false', '402']);
      assert.match(unpaid?.errorMessage ?? '', /funds/i);
    });
  });

  // §7.1 of docs/specification.md
  it('answers 403 if all recipients are unknown', async () => {
    const answer = await calls.send({ to: 'Nobody', body: 'x', messageId: 'm' });
    assert.equal(answer.status, 403);
    const { messageId, isError, errorCode } = rootOf(answer);
    assert.deepEqual([messageId, isError, errorCode], ['m', 'true', '403']);
    assert.equal(simulator.messages.length, 0);
  });

  it('answers 403 beyond the daily limit until the next day', async () => {
    simulator.setDailyLimit(2);
    assert.equal((await calls.send({ to: `${handset} 6421555124`, body: 'x' })).status, 200);
    const refused = await calls.send({ to: handset, body: 'x' });
    assert.equal(refused.status, 403);
    assert.match(rootOf(refused).errorMessage ?? '', /limit/);
    await clock.advance(3_600_000);
    assert.equal((await calls.send({ to: handset, body: 'x' })).status, 200);
  });

  it('delivers `?` for a character outside GSM 03.38', async () => {
    await calls.send({ to: handset, body: 'Žluťoučký 🚀 Größe [€]' });
    await calls.send({ to: handset, body: '🚀', contentType: 'text/plain; charset=UTF-16' });
    const delivered = simulator.messages.map(({ body, deliveredBody }) => deliveredBody ?? body);
    assert.deepEqual(delivered, ['?lu?ou?k? ? Größe [€]', '🚀']);
    assert.equal((await calls.pollOutbox())[0]?.body, 'Žluťoučký 🚀 Größe [€]', 'the outbox has the submitted body');
  });

  for (const version of ['1', '2']) {
    it(`answers 204 to a message on the path /api/${version}`, async () => {
      const send = (params: object) => calls.call(`/api/${version}/sms/out`, { to: handset, body: 'x', ...params });
      const sent = await send({ messageId: 'mine', from: 'SHOP', contentType: 'nonsense' });
      assert.deepEqual([sent.status, sent.text], [204, '']);
      const { messageIdGiven, from, apiVersion } = simulator.messages[0] ?? {};
      assert.deepEqual([messageIdGiven, from, apiVersion], [false, undefined, Number(version)]);
      const several = await send({ to: `${handset} 6421555124` });
      assert.equal(several.status, 400);
      assert.match(several.reason, /\/api\/3/);
      simulator.setOutcome(handset, 'BLOCKED');
      assert.equal((await send({})).status, 403);
      assert.equal(simulator.messages.length, 1);
    });
  }

  it('gives a message the status SNT, then RCV or the chosen status', async () => {
    simulator.setNextOutcome('BLOCKED');
    const refused = await calls.send({ to: handset, body: 'refused' });
    assert.match(recipientsOf(refused)[0]?.errorMessage ?? '', /Number is in the blocked list/);
    simulator.setNextOutcome('NRCV');
    simulator.setOutcome('6421555124', 'EXP');
    for (const body of ['x', 'y']) await calls.send({ to: `${handset} 6421555124`, body });
    const codes = () =>
      simulator.messages
        .slice(1)
        .flatMap(({ recipients }) => recipients.map(({ history }) => history.map((item) => item.statusCode).join('+')));
    assert.deepEqual(codes(), ['', '', '', '']);
    await clock.advance(1000);
    assert.deepEqual(codes(), ['SNT', 'SNT', 'SNT', 'SNT']);
    await clock.advance(1000);
    assert.deepEqual(codes(), ['SNT+NRCV', 'SNT+EXP', 'SNT+RCV', 'SNT+EXP']);
    const update = simulator.statuses.find(({ statusCode }) => statusCode === 'NRCV');
    assert.equal(update?.statusDate, '2026-03-01T23:00:02.000Z');
    assert.match(update?.error ?? '', /not received/);
  });
});
