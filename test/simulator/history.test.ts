import assert from 'node:assert/strict';
import { request } from 'undici';
import {
  createManualClock,
  type HandsetSummary,
  type LogEntry,
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

    it('are found by number, name and message', async () => {
      await start();
      simulator.addContact('Änna 🚒', other);
      simulator.receive({ from: '6421555125', to: number, body: 'The Pump stopped' });
      simulator.receive({ from: '6421555125', to: number, body: 'never mind' });
      assert.deepEqual(await list('search=555124'), ['Änna 🚒']);
      assert.deepEqual(await list(`search=${encodeURIComponent('+64215551')}`), ['6421555125', handset, 'Änna 🚒']);
      assert.deepEqual(await list(`search=${encodeURIComponent('ÄNN')}`), ['Änna 🚒']);
      assert.deepEqual(await list(`search=${encodeURIComponent('🚒')}`), ['Änna 🚒']);
      assert.deepEqual(await list('search=pump'), ['6421555125']);
      const { handsets } = simulator.handsets({ search: 'pump', limit: 1 });
      assert.equal(handsets[0]?.last?.body, 'The Pump stopped');
    });

    it('are added, renamed and removed, and return with the next message', async () => {
      await start();
      await control('handset', { msisdn: other, name: 'Anna' });
      await control('handset', { msisdn: other, name: 'Anna B' });
      assert.deepEqual(await list(), [handset, 'Anna B']);
      assert.match((await calls.send({ to: 'Anna', body: 'x' })).text, /not in the address book/);
      await control('handset', { msisdn: other, name: null });
      assert.deepEqual(await list(), [handset, other]);
      simulator.receive({ from: other, to: number, body: 'old' });
      await control('remove-handset', { msisdn: other });
      assert.deepEqual(await list(), [handset]);
      simulator.receive({ from: other, to: number, body: 'new' });
      assert.deepEqual(await list(), [other, handset]);
      assert.deepEqual(
        simulator.texts(other, 9).texts.map(({ body }) => body),
        ['new'],
      );
      assert.equal(simulator.incoming.length, 2, 'the flow still gets both');
    });
  });

  describe('the address book', () => {
    it('sends to contacts and groups, and refuses removed ones (§2.2)', async () => {
      await start();
      await control('contacts', { name: 'Anna', msisdn: handset });
      await control('contacts', { name: 'Ben', msisdn: other });
      await control('groups', { name: 'nurses', contacts: ['Anna', 'Ben', '6421555125'] });
      await calls.send({ to: 'nurses', body: 'x' });
      assert.equal(simulator.messages[0]?.recipients.length, 3);
      await control('remove-contact', { name: 'Ben' });
      await calls.send({ to: 'nurses', body: 'x' });
      assert.equal(simulator.messages[1]?.recipients.length, 2);
      await control('remove-group', { name: 'nurses' });
      const answer = await calls.send({ to: 'Anna nurses', body: 'x' });
      assert.match(answer.text, /msisdn="nurses" isError="true" errorCode="403" errorMessage="Contact is not in/);
      assert.equal((await calls.send({ to: 'nurses', body: 'x' })).status, 403);
    });
  });

  describe('the log', () => {
    it('lists the newest entries first, of one group or of all', async () => {
      await start();
      await calls.send({ to: handset, body: 'x' });
      for (let index = 0; index < 5; index += 1) await calls.pollIncoming();
      await calls.call('/api/2/sms/list');
      const page = async (query: string) => await read<{ entries: LogEntry[] }>(`log?${query}`);
      const all = await page('');
      assert.deepEqual(
        all.entries.map(({ group }) => group),
        ['feed', 'poll', 'poll', 'poll', 'poll', 'poll', 'send'],
      );
      assert.deepEqual(await page('group=send'), { entries: [all.entries[6]] });
      assert.deepEqual(await page('group=poll&limit=2'), { entries: all.entries.slice(1, 3) });
      await control('clear-log', {});
      assert.deepEqual(await page(''), { entries: [] });
      assert.equal(simulator.messages.length, 1);
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
