import assert from 'node:assert/strict';
import { type Clock, createManualClock } from '../../simulator';
import { CallbackReceiver } from './callback-receiver';
import { readXml } from './service-calls';
import { calls, handset, number, simulator, useSimulator } from './use-simulator';

const start = '2026-03-01T00:00:00.000Z';
const hourMs = 3_600_000;

describe('simulator: callback', () => {
  let client: CallbackReceiver;
  let clock: Clock;
  useSimulator(() => {
    clock = createManualClock(Date.parse(start));
    return { clock };
  });
  beforeEach(async () => {
    client = await CallbackReceiver.start();
  });
  afterEach(() => client.close());

  const send = (params: Record<string, string>) => calls.send({ to: handset, body: 'x', messageId: 'mine', ...params });

  // §6.4, §6.5 of docs/specification.md
  it('is valid XMLv3 by default', async () => {
    simulator.addContact('Anna "A" <a>', handset);
    await send({ callbackUrl: client.url('/in'), callbackStatusUrl: client.url('/status'), from: 'SHOP' });
    simulator.reply({ from: handset, body: 'a]]>b & <c>\u0007' });
    await simulator.whenIdle();
    const update = simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'EXP', error: 'a < b' });
    await simulator.whenIdle();
    const [reply, status] = client.received;
    assert.deepEqual([reply?.method, reply?.contentType], ['POST', 'text/xml; charset=UTF-8']);
    assert.match(reply?.body ?? '', /<body><!\[CDATA\[/);
    const message = readXml(reply?.body ?? '');
    assert.deepEqual([message.name, message.attributes.messageId], ['inbound-message', 'mine']);
    assert.equal(message.attributes.receivedDate, start);
    const [recipient, ...others] = message.children;
    assert.deepEqual([recipient?.name, others.length], ['recipient', 0]);
    assert.deepEqual({ ...recipient?.attributes }, { displayName: 'Anna "A" <a>', msisdn: handset });
    assert.deepEqual(
      recipient?.children.map(({ name, text }) => [name, text]),
      [['body', 'a]]>b & <c>\ufffd']],
    );
    const root = readXml(status?.body ?? '');
    assert.equal(root.name, 'status-update');
    assert.deepEqual(Object.fromEntries(root.children.map((element) => [element.name, element.text])), {
      messageId: 'mine',
      to: 'SHOP',
      from: handset,
      statusCode: 'EXP',
      statusDate: start,
      statusId: update.messageId,
      error: 'a < b',
    });
  });

  it('is FORMv1 if the organisation chose this format', async () => {
    simulator.setOrganisation({ callbackFormat: 'FORMv1' });
    await send({ callbackUrl: client.url('/in'), callbackStatusUrl: client.url('/status') });
    const message = simulator.reply({ from: handset, body: 'Ä & b' });
    await simulator.whenIdle();
    const update = simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' });
    await simulator.whenIdle();
    const shared = { to: number, from: handset, inReplyToId: 'mine' };
    assert.equal(client.received[0]?.contentType, 'application/x-www-form-urlencoded');
    assert.deepEqual(
      client.received.map(({ body }) => Object.fromEntries(new URLSearchParams(body))),
      [
        { ...shared, messageId: message.messageId, body: 'Ä & b' },
        { ...shared, messageId: update.messageId, statusCode: 'RCV' },
      ],
    );
  });

  it('prefers the URL of the message to the URL of the organisation', async () => {
    simulator.setOrganisation({ callbackUrl: client.url('/in'), callbackStatusUrl: client.url('/status') });
    await send({ callbackUrl: client.url('/own') });
    simulator.reply({ from: handset, body: 'x' });
    await simulator.whenIdle();
    simulator.status({ messageId: 'mine', msisdn: handset, statusCode: 'RCV' });
    await simulator.whenIdle();
    simulator.receive({ from: handset, to: number, body: 'not a reply' });
    await simulator.whenIdle();
    simulator.setOrganisation({ callbackUrl: null });
    simulator.receive({ from: handset, to: number, body: 'x' });
    await simulator.whenIdle();
    assert.equal(client.received.map(({ path }) => path).join(), '/own,/status,/in');
    assert.equal(readXml(client.received[2]?.body ?? '').attributes.messageId, '', 'blank if it is not a reply');
  });

  // §6.2 of docs/specification.md
  it('replaces the variables of its URL by encoded values', async () => {
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

  // §6.3 of docs/specification.md
  it('is an e-mail if its URL is a `mailto:` URL', async () => {
    await send({ callbackUrl: 'mailto:ops%2Bsms@client.example?Subject=Von%20{!recipient.msisdn}&Body=1%0A{!body}' });
    simulator.reply({ from: handset, body: '50% & mehr' });
    await send({ callbackUrl: 'mailto:ops@client.example' });
    simulator.reply({ from: handset, body: 'Danke' });
    assert.deepEqual(simulator.mailbox, [
      { at: clock.now(), to: 'ops+sms@client.example', subject: `Von ${handset}`, body: '1\n50% & mehr' },
      { at: clock.now(), to: 'ops@client.example', subject: 'RE:', body: 'Danke' },
    ]);
    assert.equal(simulator.callbackLog.length, 0);
  });

  // §6.1 of docs/specification.md
  describe('after a failure', () => {
    it('is repeated with growing pauses if the status is 400 or more', async () => {
      client.statuses.push(400, 503, 200);
      await send({ callbackUrl: client.url('/in') });
      const message = simulator.reply({ from: handset, body: 'x' });
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
      assert.equal(message.calledBackAt, '2026-03-01T00:00:03.000Z');
    });

    // §8 of docs/specification.md
    it('is repeated for 48 hours if no connection succeeds', async () => {
      await send({ callbackUrl: client.url('/in') });
      await client.close();
      simulator.reply({ from: handset, body: 'x' });
      await clock.advance(47 * hourMs);
      const before = simulator.callbackLog.length;
      assert.ok(before > 40 && before < 100, String(before));
      assert.ok(simulator.callbackLog.every(({ error, status }) => error !== undefined && status === undefined));
      await clock.advance(2 * hourMs);
      const attempts = simulator.callbackLog.length;
      await clock.advance(48 * hourMs);
      assert.equal(simulator.callbackLog.length, attempts);
      client = await CallbackReceiver.start();
    });
  });
});
