import assert from 'node:assert/strict';
import { connectSimulator, createManualClock, type Fault, type SimulatorClient } from '../../simulator';
import { Closing } from '../src/closing';
import { startRawService } from '../src/raw-service';
import { calls, handset, number, other, simulator, useSimulator } from './use-simulator';

describe('simulator: client', () => {
  let client: SimulatorClient;
  useSimulator(() => ({ clock: createManualClock() }));
  beforeEach(() => {
    client = connectSimulator(simulator.pageUrl);
  });

  it('names the address in the error if no simulator answers', async () => {
    const { pageUrl } = simulator;
    await simulator.close();
    const { origin } = new URL(pageUrl);
    const none = new RegExp(`^No simulator answers at ${origin}\\.`);
    await assert.rejects(connectSimulator(pageUrl).state(), { message: none });
    const closing = new Closing();
    const page = await startRawService(closing, (_request, response) => response.end('<h1>Hello</h1>'));
    const other = new RegExp(`^The server at ${page.baseUrl} is not a simulator\\.`);
    await assert.rejects(connectSimulator(`${page.baseUrl}/`).state(), { message: other });
    await closing.run();
  });

  it('writes and reads messages as a handset', async () => {
    await calls.send({ to: handset, body: 'question', messageId: 'mine' });
    const reply = await client.reply({ from: handset, body: 'yes', inReplyTo: 'mine' });
    const fresh = await client.receive({ from: other, to: number, body: 'hello' });
    const status = await client.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' });
    assert.deepEqual([reply.inReplyToId, fresh.to, status.from], ['mine', number, handset]);
    const { texts } = await client.texts(handset);
    assert.equal(texts.map(({ body, statusCode }) => `${body} ${statusCode}`).join(), 'question RCV,yes undefined');
    assert.equal((await client.texts(handset, 1)).texts[0]?.body, 'yes');
    const { incoming } = await client.state(1);
    assert.equal(incoming.map(({ body }) => body).join(), 'hello');
    const { handsets } = await client.handsets({ search: 'hell' });
    assert.equal(handsets.map(({ msisdn }) => msisdn).join(), other);
    assert.equal((await client.log({ group: 'send' })).entries.length, 1);
  });

  it('changes settings of the network and of the account', async () => {
    await client.fault('send', { status: 503 }, 1);
    await client.setOutcome(handset, 'NUR');
    await client.setNextOutcome('EXP');
    await client.setBalance(7);
    await client.setDailyLimit(3);
    await client.setOrganisation({ callbackFormat: 'FORMv1', callbackUrl: 'http://127.0.0.1:9/' });
    await client.addContact('Anna', handset);
    await client.addGroup('Team', ['Anna']);
    await client.block(other);
    const { account, faults } = await client.state(1);
    assert.deepEqual(account, JSON.parse(JSON.stringify(simulator.describe(1).account)));
    assert.deepEqual(
      [account.balance, account.dailyLimit, account.nextOutcome, account.outcomes, account.groups, account.blocked],
      [7, 3, 'EXP', { [handset]: 'NUR' }, { Team: ['Anna'] }, [other]],
    );
    assert.equal(faults.send?.left, 1);
    await client.setOrganisation({ callbackUrl: null });
    await client.setNextOutcome(undefined);
    await client.setDailyLimit(null);
    await client.fault('send', null);
    await client.reset();
    const fresh = await client.state();
    assert.deepEqual([fresh.account.contacts, fresh.faults], [{}, {}]);
  });

  it('still reaches the simulator during an outage of the service', async () => {
    const service = simulator.baseUrl;
    await client.setOutage(true);
    await simulator.until(() => !simulator.describe(0).online);
    await assert.rejects(
      fetch(service),
      ({ cause }: Error) => (cause as NodeJS.ErrnoException).code === 'ECONNREFUSED',
    );
    assert.notEqual(simulator.pageUrl, `${service}/`);
    assert.deepEqual([(await client.state()).online, (await client.state()).baseUrl], [false, service]);
    await client.receive({ from: handset, to: number, body: 'meanwhile' });
    await client.setOutage(false);
    assert.equal((await calls.pollIncoming()).status, 200);
    assert.equal((await client.state()).online, true);
    assert.equal(simulator.pageUrl, `${service}/`);
  });

  it('sets each kind of fault', async () => {
    const kinds = { dripMs: 1, drop: 'during', half: true, garbage: true, empty: true, hang: true, repeat: true };
    for (const [kind, value] of Object.entries({ ...kinds, delayMs: 1, status: 500 })) {
      const fault = { [kind]: value } as Fault;
      await client.fault('send', fault, 2);
      assert.deepEqual((await client.state()).faults, { send: { fault, left: 2 } });
    }
  });

  it('changes statuses by moving the clock forward', async () => {
    await calls.send({ to: handset, body: 'question', messageId: 'mine' });
    const before = Date.parse((await client.state()).now);
    await client.advanceClock(86_400_000);
    assert.equal(Date.parse((await client.state()).now), before + 86_400_000);
    assert.equal((await client.texts(handset)).texts[0]?.statusCode, 'RCV');
  });

  it('waits for a value until the time limit', async () => {
    const seen = client.until(async (it) => (await it.texts(handset)).texts.find(({ body }) => body === 'late'));
    await calls.send({ to: handset, body: 'late' });
    assert.equal((await seen).body, 'late');
    await assert.rejects(
      client.until(async () => null, 1),
      /did not reach the expected state in 1 ms: async ?\(\) ?=> ?null/,
    );
  });

  it('rejects with the error message of the simulator', async () => {
    await assert.rejects(
      client.reply({ from: '021', body: 'x' }),
      /^Error: from must be a number in international format/,
    );
  });
});
