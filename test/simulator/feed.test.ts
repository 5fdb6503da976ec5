import assert from 'node:assert/strict';
import { createManualClock, type ManualClock, type SimulatorOptions } from '../../simulator';
import { calls, simulator, start as startSimulator, useSimulator } from './use-simulator';
import { readXml, type XmlElement } from './xml-element';

const handset = '6421555123';

describe('simulator: §2.6, §4.5 feed', () => {
  let clock: ManualClock;
  const start = async (options: SimulatorOptions = {}): Promise<void> => {
    clock = createManualClock(Date.parse('2026-03-01T00:00:00.000Z'));
    await startSimulator({ clock, balance: 50, ...options });
  };
  useSimulator();
  const read = async (params: Record<string, string> = {}): Promise<XmlElement> => {
    const answer = await calls.call('/api/2/sms/list', params);
    assert.equal(answer.status, 200);
    return readXml(answer.text);
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
  const assertAccount = (root: XmlElement, balance = '48'): void => {
    assert.equal(root.child('balance').text, balance);
    assert.equal(root.child('accountType').text, 'Prepaid');
    assert.equal(root.child('currency').text, 'EUR');
  };
  const contents = (feed: XmlElement): string[] => feed.all('entry').map((entry) => entry.child('content').text);

  it('is ATOM 1.0 by default, newest first', async () => {
    await start();
    simulator.addContact('Anna', handset);
    await converse(2);
    const feed = await read();
    assert.equal(feed.name, 'feed');
    for (const name of ['id', 'title', 'updated']) assert.notEqual(feed.child(name).text, '');
    assert.deepEqual(contents(feed), ['got-1', 'sent-1', 'got-0', 'sent-0']);
    const [reply, sent] = feed.all('entry');
    assert.equal(reply?.child('title').text, 'From Anna');
    assert.equal(reply?.child('category').attributes.term, 'reply');
    assert.equal(reply?.child('author').child('name').text, handset);
    assert.equal(sent?.child('category').attributes.term, 'out');
    assert.equal(sent?.child('published').text, '2026-03-01T00:02:00.000Z');
    assert.equal(sent?.child('updated').text, '2026-03-01T00:02:02.000Z');
    assert.equal(sent?.child('statusCode').text, 'RCV');
    assert.equal(sent?.child('id').text, 'urn:sms:out:id%201');
    assertAccount(feed);
  });

  it('is RSS 2.0 if requested', async () => {
    await start();
    await converse(1);
    const rss = await read({ format: 'RSS' });
    assert.deepEqual([rss.name, rss.attributes.version], ['rss', '2.0']);
    const channel = rss.child('channel');
    assertAccount(channel, '49');
    for (const name of ['title', 'link', 'description']) assert.notEqual(channel.child(name).text, '');
    const [reply, sent] = channel.all('item');
    assert.equal(reply?.child('description').text, 'got-0');
    assert.equal(reply?.child('pubDate').text, 'Sun, 01 Mar 2026 00:01:00 GMT');
    assert.equal(sent?.child('category').text, 'out');
    assert.equal(sent?.child('guid').attributes.isPermaLink, 'false');
    assert.equal(sent?.child('pubDate').text, 'Sun, 01 Mar 2026 00:00:00 GMT');
    assert.equal(sent?.child('updated').text, simulator.messages[0]?.recipients[0]?.history.at(-1)?.date);
  });

  it('escapes the bodies of messages', async () => {
    await start();
    simulator.receive({ from: handset, to: '642100000001', body: '<b>&amp; ]]> "\u0000' });
    const item = (await read({ format: 'RSS' })).child('channel').child('item');
    for (const body of [...contents(await read()), item.child('description').text])
      assert.equal(body, '<b>&amp; ]]> "\ufffd');
  });

  it('returns 8 messages by default, at most 300, of the requested type (§8)', async () => {
    await start();
    await converse(10);
    assert.deepEqual(contents(await read({ type: 'out', size: '2' })), ['sent-9', 'sent-8']);
    assert.deepEqual(contents(await read({ type: 'reply', size: '1' })), ['got-9']);
    for (const params of [{ format: 'atom' }, { type: 'in' }, { size: '0' }, { size: 'x' }, { size: '-1' }])
      assert.equal((await calls.call('/api/2/sms/list', params)).status, 400, JSON.stringify(params));
    for (let index = 0; index < 300; index += 1) simulator.reply({ from: handset, body: `${index}` });
    assert.equal((await read()).all('entry').length, 8);
    assert.equal((await read({ size: '3' })).all('entry').length, 3);
    assert.equal((await read({ size: '301' })).all('entry').length, 300);
    assert.equal((await read({ Size: '3' })).all('entry').length, 8, 'names are case sensitive');
  });

  it('has ids of the service, also in the outbox, with ownRecordIds', async () => {
    await start({ ownRecordIds: true });
    assert.match((await calls.send({ to: handset, body: 'x', messageId: 'mine' })).text, /messageId="mine"/);
    const own = String((await calls.pollOutbox())[0]?.messageId);
    assert.match(own, /^[\da-f-]{36}$/);
    assert.equal((await read()).child('entry').child('id').text, `urn:sms:out:${own}`);
    const item = (await read({ format: 'RSS' })).child('channel').child('item');
    assert.equal(item.child('guid').text, `urn:sms:out:${own}`);
    assert.equal(simulator.reply({ from: handset, body: 'yes' }).inReplyToId, 'mine');
    assert.equal(simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' }).inReplyToId, 'mine');
  });
});
