import assert from 'node:assert/strict';
import { request } from 'undici';
import {
  createManualClock,
  type HandsetSummary,
  type ShownMessage,
  type SimulatorOptions,
  startSimulator,
} from '../../simulator';
import { readForm } from './service-calls';
import { calls, simulator, start as startOther, useSimulator } from './use-simulator';

const handset = '6421555123';
const other = '6421555124';
const number = '642100000001';

interface TextPage {
  texts: ShownMessage[];
}

describe('simulator: messages, handsets and log', () => {
  const start = (options: SimulatorOptions = {}) => startOther({ clock: createManualClock(), ...options });
  useSimulator();
  const read = async <T>(query: string): Promise<T> => {
    const answer = await request(`${simulator.controlUrl}/${query}`);
    assert.equal(answer.statusCode, 200, query);
    return (await answer.body.json()) as T;
  };
  const control = async (name: string, input: unknown): Promise<void> => {
    const answer = await calls.control(name, input);
    assert.deepEqual([answer.status, answer.text], [200, '{}']);
  };
  const receive = (count: number, from = handset): void => {
    for (let index = 0; index < count; index += 1) simulator.receive({ from, to: number, body: `${index}` });
  };

  describe('the messages of a handset', () => {
    it('are the last ones, oldest first', async () => {
      await start();
      receive(3, other);
      receive(10);
      const { texts } = await read<TextPage>(`texts?msisdn=${handset}&limit=4`);
      assert.equal(texts.map(({ body }) => body).join(''), '6789');
      assert.deepEqual(await read('texts?msisdn=6421555999'), { texts: [] });
    });

    it('show messages to the handset with parts and status', async () => {
      await start();
      await calls.send({ to: handset, body: `ž${'x'.repeat(200)}`, messageId: 'mine', from: 'SHOP' });
      simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'EXP' });
      simulator.block(handset);
      await calls.send({ to: `${handset} nobody`, body: 'y' });
      const { texts } = simulator.texts(handset, 9);
      const [sent, refused] = texts.map(({ key: _, at: __, call: ___, ...text }) => text);
      assert.deepEqual(sent, {
        msisdn: handset,
        isFromHandset: false,
        body: `?${'x'.repeat(200)}`,
        messageId: 'mine',
        parts: 2,
        sender: 'SHOP',
        statusCode: 'EXP',
      });
      assert.equal(refused?.refusal, 'Number is in the blocked list');
    });

    it('show whether a flow polled a reply or received it by callback', async () => {
      const clock = createManualClock(Date.parse('2026-03-01T14:05:31.000Z'));
      await start({ clock });
      await calls.send({ to: handset, body: 'x', messageId: 'mine' });
      const reply = simulator.reply({ from: handset, body: 'yes' });
      const last = () => simulator.texts(handset, 1).texts[0];
      assert.deepEqual([last()?.inReplyToId, last()?.readAt, last()?.call], ['mine', undefined, undefined]);
      assert.equal(readForm(await calls.pollIncoming()).messageId, reply.messageId);
      assert.equal(last()?.readAt, '2026-03-01T14:05:31.000Z');
      const entry = simulator.log({ limit: 1 }).entries[0];
      assert.deepEqual([entry?.key, entry?.text], [last()?.call, { key: last()?.key, msisdn: handset }]);
    });
  });

  describe('the handsets', () => {
    const list = async (query = ''): Promise<(string | undefined)[]> => {
      const { handsets } = await read<{ handsets: HandsetSummary[] }>(`handsets?${query}`);
      return handsets.map(({ name, msisdn }) => name ?? msisdn);
    };

    it('include added ones, contacts and those with messages, latest first', async () => {
      await start();
      simulator.addContact('Anna', other);
      simulator.receive({ from: '6421555125', to: number, body: 'first' });
      await calls.send({ to: other, body: 'second' });
      assert.deepEqual(await list(), ['Anna', '6421555125', handset]);
      assert.deepEqual(await list('limit=1'), ['Anna']);
    });
  });

  it('drops unread, due and pending items at a reset', async () => {
    const clock = createManualClock();
    await start({ clock, balance: 50 });
    simulator.setOrganisation({ callbackUrl: 'http://127.0.0.1:9/', callbackFormat: 'FORMv1' });
    simulator.addContact('Anna', other);
    simulator.setOutcome(handset, 'NUR');
    await calls.send({ to: handset, body: 'x', messageId: 'mine' });
    simulator.reply({ from: handset, body: 'x' });
    simulator.fault('feed', { status: 500 });
    await control('reset', {});
    await simulator.whenIdle();
    await clock.advance(10_000);
    const { now: _, baseUrl: __, ...state } = simulator.describe(99);
    const fresh = await startSimulator({ balance: 50 });
    const { now: ___, baseUrl: ____, ...expected } = fresh.describe(99);
    await fresh.close();
    assert.deepEqual(state, expected);
    assert.deepEqual(simulator.handsets({ search: '', limit: 9 }).total, 1);
    assert.equal(simulator.find('mine'), undefined);
    assert.equal((await calls.pollIncoming()).status, 204);
    assert.equal((await calls.pollStatus()).status, 204);
    assert.deepEqual(await calls.pollOutbox(), []);
    await calls.send({ to: handset, body: 'again' });
    assert.equal((await calls.pollOutbox()).length, 1);
  });

  describe('the limit on stored items', () => {
    it('drops the oldest messages, but polls still return unread ones', async () => {
      await start({ keepMessages: 100, statusDelayMs: 1 });
      await calls.send({ to: `${handset} ${other}`, body: 'the first', messageId: 'first' });
      receive(150);
      await calls.send({ to: other, body: 'the last', messageId: 'last' });
      assert.ok(simulator.incoming.length + simulator.messages.length <= 100);
      assert.equal(simulator.incoming.at(-1)?.body, '149');
      assert.equal(simulator.find('first'), undefined);
      assert.equal(simulator.reply({ from: handset, body: 'x' }).inReplyToId, 'default');
      assert.equal(simulator.reply({ from: other, body: 'x' }).inReplyToId, 'last');
      const { texts } = simulator.texts(handset, 200);
      assert.ok(texts.length <= 99 && texts.length > 90);
      for (let index = 0; index < 150; index += 1) assert.equal(readForm(await calls.pollIncoming()).body, `${index}`);
      assert.deepEqual(
        (await calls.pollOutbox()).map(({ messageId }) => messageId),
        ['last'],
      );
    });
  });

  it('answers 400 to an invalid query', async () => {
    await start();
    for (const query of [
      'texts',
      'texts?msisdn=021',
      `texts?msisdn=${handset}&limit=0`,
      'log?group=mine',
      'handsets?limit=10001',
    ]) {
      const answer = await request(`${simulator.controlUrl}/${query}`);
      assert.equal(answer.statusCode, 400, query);
      assert.match(((await answer.body.json()) as { error: string }).error, /must be/);
    }
  });
});
