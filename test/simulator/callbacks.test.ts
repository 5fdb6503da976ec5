import assert from 'node:assert/strict';
import { createManualClock, type ManualClock } from '../../simulator';
import { CallbackReceiver } from './callback-receiver';
import { calls, simulator, useSimulator } from './use-simulator';
import { readXml } from './xml-element';

const handset = '6421555123';
const number = '642100000001';
const start = '2026-03-01T00:00:00.000Z';
const hourMs = 3_600_000;

describe('simulator: §6 callbacks', () => {
  let client: CallbackReceiver;
  let clock: ManualClock;
  useSimulator(() => {
    clock = createManualClock(Date.parse(start));
    return { clock };
  });
  beforeEach(async () => {
    client = await CallbackReceiver.start();
  });
  afterEach(() => client.close());

  const send = (params: Record<string, string>) => calls.send({ to: handset, body: 'x', messageId: 'mine', ...params });

  describe('§6.4 reply payload', () => {
    it('is XMLv3 by default, safe for the end of a CDATA section', async () => {
      simulator.addContact('Anna "A" <a>', handset);
      await send({ callbackUrl: client.url('/in') });
      simulator.reply({ from: handset, body: 'a]]>b & <c>\u0007' });
      await simulator.whenIdle();
      const [callback] = client.received;
      assert.equal(callback?.method, 'POST');
      assert.equal(callback?.contentType, 'text/xml; charset=UTF-8');
      assert.match(callback?.body ?? '', /<body><!\[CDATA\[/);
      const root = readXml(callback?.body ?? '');
      assert.equal(root.name, 'inbound-message');
      assert.deepEqual(root.attributes, { messageId: 'mine', receivedDate: start });
      assert.deepEqual(root.child('recipient').attributes, { displayName: 'Anna "A" <a>', msisdn: handset });
      assert.equal(root.child('recipient').child('body').text, 'a]]>b & <c>\ufffd');
    });

    it('is FORMv1 if the organisation chose it', async () => {
      simulator.setOrganisation({ callbackFormat: 'FORMv1' });
      await send({ callbackUrl: client.url('/in') });
      const message = simulator.reply({ from: handset, body: 'Ä & b', extra: { network: 'N1' } });
      await simulator.whenIdle();
      const [callback] = client.received;
      assert.equal(callback?.contentType, 'application/x-www-form-urlencoded');
      assert.deepEqual(Object.fromEntries(new URLSearchParams(callback?.body)), {
        messageId: message.messageId,
        to: number,
        from: handset,
        inReplyToId: 'mine',
        body: 'Ä & b',
        network: 'N1',
      });
    });

    it('is sent to the organisation, with blank messageId, if not a reply', async () => {
      simulator.setOrganisation({ callbackUrl: client.url('/default') });
      simulator.receive({ from: handset, to: number, body: 'hello' });
      await simulator.whenIdle();
      assert.equal(client.received[0]?.path, '/default');
      assert.equal(readXml(client.received[0]?.body ?? '').attributes.messageId, '');
    });
  });

  describe('§6.5 status payload', () => {
    it('is XMLv3 with seven elements', async () => {
      await send({ callbackStatusUrl: client.url('/status'), from: 'SHOP' });
      const update = simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'EXP', error: 'a < b' });
      await simulator.whenIdle();
      const root = readXml(client.received[0]?.body ?? '');
      assert.equal(root.name, 'status-update');
      assert.deepEqual(Object.fromEntries(root.children.map(({ name, text }) => [name, text])), {
        messageId: 'mine',
        to: 'SHOP',
        from: handset,
        statusCode: 'EXP',
        statusDate: start,
        statusId: update.messageId,
        error: 'a < b',
      });
    });

    it('is FORMv1 with the statusId as messageId', async () => {
      simulator.setOrganisation({ callbackFormat: 'FORMv1' });
      await send({ callbackStatusUrl: client.url('/status') });
      const update = simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' });
      await simulator.whenIdle();
      assert.deepEqual(Object.fromEntries(new URLSearchParams(client.received[0]?.body)), {
        messageId: update.messageId,
        to: number,
        from: handset,
        inReplyToId: 'mine',
        statusCode: 'RCV',
      });
    });
  });

  describe('the choice of the callback URL (§6)', () => {
    it('prefers the URL of the message, and calls none if both are absent', async () => {
      simulator.setOrganisation({
        callbackUrl: client.url('/default'),
        callbackStatusUrl: client.url('/default-status'),
      });
      await send({ callbackUrl: client.url('/own') });
      simulator.reply({ from: handset, body: 'x' });
      await simulator.whenIdle();
      simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' });
      await simulator.whenIdle();
      simulator.setOrganisation({ callbackUrl: null });
      await send({ messageId: 'next' });
      simulator.reply({ from: handset, body: 'x' });
      await simulator.whenIdle();
      assert.deepEqual(
        client.received.map(({ path }) => path),
        ['/own', '/default-status'],
      );
    });
  });

  describe('§6.2 URL variables', () => {
    it('are inserted URL-encoded', async () => {
      simulator.addContact('Änn & Co', handset);
      const variables = 'm={!messageId}&b={!body}&r={!recipient.msisdn}&d={!recipient.displayname}&u={!unknown}';
      await send({ messageId: 'a/b&c', callbackUrl: client.url(`/in/{!recipient.msisdn}?${variables}`) });
      simulator.reply({ from: handset, body: 'ja & "nein" #1' });
      await simulator.whenIdle();
      assert.equal(client.received[0]?.path, `/in/${handset}`);
      assert.deepEqual(client.received[0]?.query, {
        m: 'a/b&c',
        b: 'ja & "nein" #1',
        r: handset,
        d: 'Änn & Co',
        u: '{!unknown}',
      });
    });
  });

  describe('§6.3 mailto', () => {
    it('writes an e-mail with the subject and body of the URL, or the default', async () => {
      await send({ callbackUrl: 'mailto:ops%2Bsms@client.example?Subject=Von%20{!recipient.msisdn}&Body=1%0A{!body}' });
      simulator.reply({ from: handset, body: '50% & mehr' });
      await send({ callbackUrl: 'mailto:ops@client.example' });
      simulator.reply({ from: handset, body: 'Danke' });
      assert.deepEqual(simulator.mailbox, [
        { to: 'ops+sms@client.example', subject: `Von ${handset}`, body: '1\n50% & mehr' },
        { to: 'ops@client.example', subject: 'RE:', body: 'Danke' },
      ]);
      assert.equal(simulator.callbackLog.length, 0);
    });
  });

  describe('§6.1 delivery', () => {
    it('retries after a status of 400 or more, with growing pauses', async () => {
      client.statuses.push(400, 503, 200);
      await send({ callbackUrl: client.url('/in') });
      simulator.reply({ from: handset, body: 'x' });
      await clock.advance(hourMs);
      assert.deepEqual(
        simulator.callbackLog.map(({ attempt, status, at }) => [attempt, status, at - Date.parse(start)]),
        [
          [1, 400, 0],
          [2, 503, 1000],
          [3, 200, 3000],
        ],
      );
      assert.equal(new Set(client.received.map(({ body }) => body)).size, 1);
    });

    it('sets calledBackAt only after a successful callback', async () => {
      client.statuses.push(500, 200);
      await send({ callbackUrl: client.url('/in') });
      const message = simulator.reply({ from: handset, body: 'x' });
      await simulator.whenIdle();
      const text = () => simulator.texts(handset, 1).texts[0];
      assert.deepEqual([message.calledBackAt, text()?.calledBackAt], [undefined, undefined]);
      await clock.advance(1000);
      assert.equal(message.calledBackAt, '2026-03-01T00:00:01.000Z');
      assert.equal(text()?.calledBackAt, message.calledBackAt);
      assert.equal(message.read, false);
      assert.deepEqual(simulator.log({ limit: 1 }).entries[0]?.text, { key: text()?.key, msisdn: handset });
    });

    it('retries for 48 hours if it cannot connect (§8)', async () => {
      await send({ callbackUrl: client.url('/in') });
      await client.close();
      simulator.reply({ from: handset, body: 'x' });
      await clock.advance(47 * hourMs);
      assert.equal(simulator.undelivered.length, 0);
      const before = simulator.callbackLog.length;
      assert.ok(before > 40 && before < 100, String(before));
      assert.ok(simulator.callbackLog.every(({ error, status }) => error !== undefined && status === undefined));
      await clock.advance(2 * hourMs);
      const [lost] = simulator.undelivered;
      assert.equal(lost?.event, 'reply');
      assert.equal(lost?.attempts, simulator.callbackLog.length);
      await clock.advance(48 * hourMs);
      assert.equal(simulator.callbackLog.length, lost?.attempts);
      client = await CallbackReceiver.start();
    });
  });
});
