import assert from 'node:assert/strict';
import { request } from 'undici';
import { createManualClock, startSimulator } from '../../simulator';
import { readForm } from './service-calls';
import { calls, handset, number, other, simulator, start, useSimulator } from './use-simulator';

describe('simulator: history', () => {
  useSimulator(() => ({}));

  it('is empty after a reset', async () => {
    const clock = createManualClock();
    await start({ clock, balance: 50 });
    simulator.setOrganisation({ callbackUrl: 'http://127.0.0.1:9/', callbackFormat: 'FORMv1' });
    simulator.addContact('Anna', other);
    simulator.setOutcome(handset, 'NUR');
    await calls.send({ to: handset, body: 'x', messageId: 'mine' });
    simulator.reply({ from: handset, body: 'x' });
    simulator.fault('feed', { status: 500 });
    assert.equal((await calls.control('reset', {})).text, '{}');
    await simulator.whenIdle();
    await clock.advance(10_000);
    const { now: _, baseUrl: __, ...state } = simulator.describe(99);
    const fresh = await startSimulator({ balance: 50 });
    const { now: ___, baseUrl: ____, ...expected } = fresh.describe(99);
    await fresh.close();
    assert.deepEqual(state, expected);
    assert.deepEqual(simulator.handsets(9).handsets, [{ msisdn: handset }]);
    assert.equal(simulator.find('mine'), undefined);
    assert.equal((await calls.pollIncoming()).status, 204);
    assert.equal((await calls.pollStatus()).status, 204);
    assert.deepEqual(await calls.pollOutbox(), []);
    await calls.send({ to: handset, body: 'again' });
    assert.equal((await calls.pollOutbox()).length, 1);
  });

  it('keeps unread messages beyond the limit `keepMessages`', async () => {
    await start({ keepMessages: 50, statusDelayMs: 1, clock: createManualClock() });
    await calls.send({ to: `${handset} ${other}`, body: 'the first', messageId: 'first' });
    const bodies = Array.from({ length: 75 }, (_, index) => String(index));
    for (const body of bodies) simulator.receive({ from: handset, to: number, body });
    for (let index = 1; index < 50; index += 1) await calls.send({ to: other, body: 'x' });
    assert.notEqual(simulator.find('first'), undefined);
    await calls.send({ to: other, body: 'the last', messageId: 'last' });
    assert.equal(simulator.find('first'), undefined);
    assert.deepEqual([simulator.incoming.length, simulator.messages.length], [50, 50]);
    assert.equal(simulator.incoming.at(-1)?.body, '74');
    assert.equal(simulator.texts(handset, 200).texts.length, 50);
    assert.equal(simulator.reply({ from: handset, body: 'x' }).inReplyToId, 'default');
    assert.equal(simulator.reply({ from: other, body: 'x' }).inReplyToId, 'last');
    for (const body of bodies) assert.equal(readForm(await calls.pollIncoming()).body, body);
    const polled = await calls.pollOutbox();
    assert.deepEqual([polled.length, polled.at(-1)?.messageId], [50, 'last']);
  });

  it('keeps the order of handsets that have messages', async () => {
    await start({ keepMessages: 3 });
    const orders = Array.from('767333', (last) => {
      simulator.receive({ from: `642155512${last}`, to: number, body: 'x' });
      return simulator.handsets(9).handsets.map(({ msisdn }) => msisdn.at(-1));
    });
    assert.equal(orders.join(' '), '3,7 3,7,6 3,7,6 3,7,6 3,7 3');
    simulator.receive({ from: other, to: number, body: 'from the handset' });
    for (const to of [other, handset, handset, handset]) await calls.send({ to, body: to, messageId: 'mine' });
    assert.equal(simulator.find('mine')?.body, handset);
    assert.equal(simulator.handsets(9).handsets.at(-1)?.last?.body, 'from the handset');
  });

  it('answers 400 to an invalid query', async () => {
    for (const query of [
      'texts',
      'texts?msisdn=021',
      `texts?msisdn=${handset}&limit=0`,
      'log?group=mine',
      'state?limit=x',
      'handsets?limit=10001',
    ]) {
      const answer = await request(`${simulator.pageUrl}control/${query}`);
      assert.equal(answer.statusCode, 400, query);
      assert.match(((await answer.body.json()) as { error: string }).error, /must be/);
    }
  });
});
