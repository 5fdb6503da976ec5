import assert from 'node:assert/strict';
import {
  connectSimulator,
  createManualClock,
  type IncomingMessage,
  type SimulatorClient,
  type StatusUpdate,
} from '../../simulator';
import { Closing } from '../src/closing';
import { startRawService } from '../src/raw-service';
import { until } from '../until';
import { calls, handset, number, other, simulator, start, useSimulator } from './use-simulator';

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
    await assert.rejects(connectSimulator(pageUrl).read('state'), { message: none });
    const closing = new Closing();
    const page = await startRawService(closing, (_request, response) => response.end('<h1>Hello</h1>'));
    const other = new RegExp(`^The server at ${page.baseUrl} is not a simulator\\.`);
    await assert.rejects(connectSimulator(`${page.baseUrl}/`).read('state'), { message: other });
    await closing.run();
  });

  it('writes and reads messages as a handset', async () => {
    await calls.send({ to: handset, body: 'question', messageId: 'mine' });
    const reply = await client.change<IncomingMessage>('reply', { from: handset, body: 'yes', inReplyTo: 'mine' });
    const fresh = await client.change<IncomingMessage>('receive', { from: other, to: number, body: 'hello' });
    const change = { messageId: 'mine', msisdn: handset, statusCode: 'RCV' };
    const status = await client.change<StatusUpdate>('status', change);
    assert.deepEqual([reply.inReplyToId, fresh.to, status.from], ['mine', number, handset]);
    await calls.send({ to: handset, body: 'thanks 🚀' });
    const { texts } = await client.read('texts', { msisdn: handset });
    assert.equal(texts.map(({ body, statusCode }) => body + statusCode).join(), 'questionRCV,yesundefined,thanks ?PND');
    assert.equal((await client.read('texts', { msisdn: handset, limit: 1 })).texts[0]?.body, 'thanks ?');
    const { incoming } = await client.read('state', { limit: 1 });
    assert.equal(incoming.map(({ body }) => body).join(), 'hello');
    const { handsets } = await client.read('handsets');
    assert.equal(handsets.map(({ msisdn, last }) => msisdn + last?.body).join(), `${handset}thanks ?,${other}hello`);
    assert.equal((await client.read('handsets', { limit: 1 })).handsets[0]?.msisdn, other);
    assert.equal((await client.read('log', { group: 'poll' })).entries.length, 0);
  });

  it('changes settings of the network and of the account', async () => {
    await client.change('fault', { endpoint: 'send', fault: { status: 503 }, times: 1 });
    await client.change('outcome', { msisdn: handset, statusCode: 'NUR' });
    await client.change('outcome', { statusCode: 'EXP' });
    await client.change('balance', { balance: 7 });
    await client.change('daily-limit', { dailyLimit: 3 });
    await client.change('organisation', { callbackFormat: 'FORMv1', callbackUrl: 'http://127.0.0.1:9/' });
    await client.change('contacts', { name: 'Anna', msisdn: handset });
    await client.change('contacts', { name: 'Ben', msisdn: other });
    await client.change('remove-contact', { name: 'Ben' });
    await client.change('groups', { name: 'Team', contacts: ['Anna'] });
    await client.change('groups', { name: 'Others', contacts: [other] });
    await client.change('remove-group', { name: 'Others' });
    const { account, faults } = await client.read('state', { limit: 1 });
    const { balance, dailyLimit, nextOutcome, outcomes, contacts, groups, organisation } = account;
    assert.deepEqual([balance, dailyLimit, nextOutcome, outcomes], [7, 3, 'EXP', { [handset]: 'NUR' }]);
    assert.deepEqual([contacts, groups], [{ Anna: handset }, { Team: ['Anna'] }]);
    assert.deepEqual(organisation, { callbackFormat: 'FORMv1', callbackUrl: 'http://127.0.0.1:9/' });
    assert.equal(faults.send?.left, 1);
    await client.change('organisation', { callbackUrl: null });
    await client.change('outcome', { statusCode: null });
    await client.change('outcome', { msisdn: handset, statusCode: null });
    await client.change('daily-limit', { dailyLimit: null });
    await client.change('fault', { endpoint: 'send', fault: null });
    const usual = await client.read('state');
    assert.deepEqual(
      [usual.account.organisation, usual.account.nextOutcome, usual.account.outcomes, usual.account.dailyLimit],
      [{ callbackFormat: 'FORMv1' }, null, {}, null],
    );
    assert.deepEqual(usual.faults, {});
    await client.change('reset');
    assert.deepEqual((await client.read('state')).account.contacts, {});
  });

  it('starts an outage, which ends after its time', async () => {
    await start({ waitMs: 600_000 });
    client = connectSimulator(simulator.pageUrl);
    const brokenPoll = assert.rejects(calls.pollIncoming());
    await simulator.until(() => simulator.polling('incoming') === 1);
    await client.change('outage', { seconds: 1 });
    await brokenPoll;
    simulator.receive({ from: handset, to: number, body: 'meanwhile' });
    await until(() => client.read('state').then(Boolean, () => false), 'the simulator is online again');
    assert.equal((await calls.pollIncoming()).status, 200);
  });

  it('tries again to end an outage until the simulator closes', async () => {
    const setOnline = simulator.setOnline.bind(simulator);
    await new Promise<void>((resolve) => {
      let ends = 0;
      simulator.setOnline = async (isOnline) => {
        if (isOnline) ends += 1;
        if (isOnline && ends === 1) throw new Error('The port is in use');
        if (ends === 2) queueMicrotask(() => resolve(simulator.close()));
        await setOnline(isOnline);
      };
      simulator.startOutage(1);
    });
    await assert.rejects(client.read('state'), /No simulator answers/);
  });

  it('sets each kind of fault', async () => {
    const kinds = { dripMs: 1, drop: 'during', half: true, garbage: true, empty: true, hang: true, repeat: true };
    for (const [kind, value] of Object.entries({ ...kinds, delayMs: 1, status: 500 })) {
      const fault = { [kind]: value };
      await client.change('fault', { endpoint: 'send', fault, times: 2 });
      assert.deepEqual((await client.read('state')).faults, { send: { fault, left: 2 } });
    }
  });

  it('changes statuses by moving the clock forward', async () => {
    await calls.send({ to: handset, body: 'question', messageId: 'mine' });
    const before = Date.parse((await client.read('state')).now);
    await client.change('clock', { advanceMs: 86_400_000 });
    assert.equal(Date.parse((await client.read('state')).now), before + 86_400_000);
    assert.equal((await client.read('texts', { msisdn: handset })).texts[0]?.statusCode, 'RCV');
  });

  it('waits for a value until the time limit', async () => {
    const seen = client.until(async (it) =>
      (await it.read('texts', { msisdn: handset })).texts.find(({ body }) => body === 'late'),
    );
    await calls.send({ to: handset, body: 'late' });
    assert.equal((await seen).body, 'late');
    await assert.rejects(
      client.until(async () => null, 1),
      /did not reach the expected state in 1 ms: async ?\(\) ?=> ?null/,
    );
  });

  it('rejects with the error message of the simulator', async () => {
    await assert.rejects(client.change('reply', { from: '021', body: 'x' }), /^Error: from must be a number in int/);
  });
});
