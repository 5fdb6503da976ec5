import assert from 'node:assert/strict';
import { type Clock, createManualClock } from '../../simulator';
import type { Feed } from '../../src/model';
import { parseFeed } from '../../src/wire/feed';
import { calls, handset, simulator, start, useSimulator } from './use-simulator';

// §2.6, §4.5 of docs/specification.md
describe('simulator: feed', () => {
  let clock: Clock;
  useSimulator(() => {
    clock = createManualClock(Date.parse('2026-03-01T00:00:00.000Z'));
    return { clock, balance: 50 };
  });
  const read = async (params: Record<string, string> = {}): Promise<Feed> => {
    const answer = await calls.call('/api/2/sms/list', params);
    assert.equal(answer.status, 200);
    return parseFeed(Buffer.from(answer.text));
  };
  /** Sends `sent-0`, receives `got-0`, sends `sent-1` and so on, a minute apart. */
  const converse = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) {
      await calls.send({ to: handset, body: `sent-${round}`, messageId: `id ${round}` });
      await clock.advance(60_000);
      simulator.reply({ from: handset, body: `got-${round}` });
      await clock.advance(60_000);
    }
  };
  const bodiesOf = ({ entries }: Feed) => entries.map(({ body }) => body);

  it('is ATOM 1.0 by default, with the newest message first', async () => {
    simulator.addContact('Anna', handset);
    await converse(2);
    const { text } = await calls.call('/api/2/sms/list');
    assert.match(text, /<feed xmlns="http:\/\/www\.w3\.org\/2005\/Atom"/);
    const feed = await read();
    assert.ok(feed.title && feed.updated);
    assert.deepEqual(feed.account, { balance: 48, type: 'Prepaid', currency: 'EUR' });
    assert.deepEqual(bodiesOf(feed), ['got-1', 'sent-1', 'got-0', 'sent-0']);
    const [reply, sent] = feed.entries;
    assert.deepEqual([reply?.title, reply?.categories, reply?.author], ['From Anna', ['reply'], handset]);
    assert.deepEqual([sent?.id, sent?.categories], ['urn:sms:out:id%201', ['out']]);
    assert.deepEqual([sent?.published, sent?.updated], ['2026-03-01T00:02:00.000Z', '2026-03-01T00:02:02.000Z']);
    assert.equal(sent?.fields.statusCode, 'RCV');
  });

  it('has equal entries in RSS 2.0 and ATOM 1.0', async () => {
    await converse(2);
    assert.deepEqual(await read({ format: 'RSS' }), { ...(await read()), format: 'RSS' });
    const { text } = await calls.call('/api/2/sms/list', { format: 'RSS' });
    assert.match(text, /<rss version="2\.0".*<channel>.*<link>.*<description>.*<guid isPermaLink="false">/s);
  });

  it('escapes markup in the bodies of messages', async () => {
    simulator.receive({ from: handset, to: '642100000001', body: '<b>&amp; ]]> "\u0000' });
    for (const format of ['ATOM', 'RSS']) assert.deepEqual(bodiesOf(await read({ format })), ['<b>&amp; ]]> "\ufffd']);
  });

  // §8 of docs/specification.md
  it('has 8 messages by default, and at most 300', async () => {
    await converse(10);
    assert.deepEqual(bodiesOf(await read({ type: 'out', size: '2' })), ['sent-9', 'sent-8']);
    assert.deepEqual(bodiesOf(await read({ type: 'reply', size: '1' })), ['got-9']);
    for (const params of [{ format: 'atom' }, { type: 'in' }, { size: '0' }, { size: 'x' }, { size: '-1' }])
      assert.equal((await calls.call('/api/2/sms/list', params)).status, 400, JSON.stringify(params));
    for (let index = 0; index < 300; index += 1) simulator.reply({ from: handset, body: `${index}` });
    assert.equal((await read()).entries.length, 8);
    assert.equal((await read({ size: '3' })).entries.length, 3);
    assert.equal((await read({ size: '301' })).entries.length, 300);
    assert.equal((await read({ Size: '3' })).entries.length, 8, 'names are case sensitive');
  });

  it('gives entries a generated id if `ownRecordIds` is set', async () => {
    await start({ ownRecordIds: true });
    assert.match((await calls.send({ to: handset, body: 'x', messageId: 'mine' })).text, /messageId="mine"/);
    const own = String((await calls.pollOutbox())[0]?.messageId);
    assert.match(own, /^[\da-f-]{36}$/);
    for (const format of ['ATOM', 'RSS']) assert.equal((await read({ format })).entries[0]?.id, `urn:sms:out:${own}`);
    assert.equal(simulator.reply({ from: handset, body: 'yes' }).inReplyToId, 'mine');
    assert.equal(simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' }).inReplyToId, 'mine');
  });
});
