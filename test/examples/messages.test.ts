import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import {
  codeOf,
  deploy,
  handsetsOf,
  namesShown,
  nodeRed,
  press,
  sent,
  simulator,
  untilListed,
  untilSent,
  untilShown,
  useExamples,
  write,
} from './deployed-example';

describe('the examples of messages', function () {
  this.timeout(60_000);
  useExamples();

  describe('Send a message', () => {
    const { number } = handsetsOf('Send a message');
    it('sends its message, and shows the result or the failure', async () => {
      await deploy('Send a message');
      await press('Send');
      await untilSent(`${number}: Hello from Node-RED`);
      const [shown] = await untilShown('sent');
      assert.deepEqual(shown?.sms?.accepted, [number]);
      simulator.block(number);
      await press('Send');
      const [failed] = await untilShown('failed recipient');
      assert.equal(failed?.sms?.msisdn, number);
      simulator.fault('send', { status: 401 }, 1);
      await press('Send');
      const [error] = await untilShown('error');
      assert.equal(codeOf(error), 'SMS_UNAUTHORIZED');
    });
  });

  describe('Auto-reply', () => {
    const { number, other } = handsetsOf('Auto-reply');
    const answerTo = (from: string, text: string) =>
      `${from}: Thank you for your message: ${text}. We will call you back.`;

    it('answers each number as often as the account allows', async () => {
      await deploy('Auto-reply');
      const texts = Array.from({ length: 20 }, (_, index) => `text ${index + 1}`);
      for (const text of [...texts, 'one too many']) await write(number, text);
      await write(other, 'Me too');
      const [error] = await untilShown('error');
      assert.equal(codeOf(error), 'SMS_LIMIT');
      await untilSent(...texts.map((text) => answerTo(number, text)), answerTo(other, 'Me too'));
      assert.equal(simulator.messages.length, 21);
    });
  });

  describe('Answer by keyword', () => {
    const { number, other } = handsetsOf('Answer by keyword');

    it('answers a known first word, and lists the words for any other', async () => {
      await deploy('Answer by keyword');
      await write(number, ' hours? Thanks');
      await untilSent(`${number}: We are open from Monday to Friday, 8 to 17.`);
      await write(other, 'Address');
      await untilSent(`${other}: You find us at 12 Harbour Street.`);
      await write(other, 'What are your hours?');
      await untilSent(`${other}: Please write HOURS or ADDRESS.`);
      await untilShown('answered', 3);
      assert.equal(simulator.messages.length, 3);
    });
  });

  describe('Opt-out that is remembered', () => {
    const { number, other } = handsetsOf('Opt-out that is remembered');
    const news = 'We are open on Saturday. Answer STOP to end these messages.';
    const toBoth = `${number} ${other}: ${news}`;

    it('skips numbers that wrote STOP, until they write START', async () => {
      await deploy('Opt-out that is remembered');
      await press('News');
      await untilSent(toBoth);
      await write(number, ' stop. ');
      await untilListed('optouts', 1);
      await press('News');
      await untilSent(`${other}: ${news}`);
      const [leftOut] = await untilShown('left out, or failed');
      assert.deepEqual([leftOut?.topic, leftOut?.sms?.errorCode], [number, 'SMS_OPTED_OUT']);
      await write(other, 'STOP');
      await untilListed('optouts', 2);
      await press('News');
      await untilShown('error');
      await write(number, 'Start');
      await write(other, 'START');
      await untilListed('optouts', 0);
      await press('News');
      await until(
        () => sent().filter((text) => text === toBoth).length === 2,
        () => JSON.stringify(sent()),
      );
    });
  });

  describe('Callbacks instead of polling', () => {
    const { number } = handsetsOf('Callbacks instead of polling');
    it('receives status and reply, and confirms the reply', async () => {
      const token = 'a token of the tests';
      await deploy('Callbacks instead of polling', {}, ({ type }) =>
        type === 'sms-callback-in' ? { publicUrl: nodeRed.url, credentials: { token } } : {},
      );
      await press('Ask');
      const statuses = await untilShown('status', 2);
      const messageId = simulator.messages[0]?.messageId;
      assert.deepEqual(
        statuses.map(({ payload, sms }) => [payload, sms?.inReplyToId, sms?.via]),
        [
          ['SNT', messageId, 'callback'],
          ['RCV', messageId, 'callback'],
        ],
      );
      simulator.reply({ from: number, body: 'YES' });
      const [reply] = await untilShown('reply');
      assert.deepEqual([reply?.payload, reply?.topic, reply?.sms?.inReplyToId], ['YES', number, messageId]);
      await untilSent(`${number}: We have noted: YES`);
      assert.deepEqual([...new Set(simulator.callbackLog.map(({ status }) => status))], [200]);
      assert.ok(simulator.requests.every(({ endpoint }) => endpoint === 'send'));
    });
  });

  describe('Store every message before acknowledging it', () => {
    const { number, other } = handsetsOf('Store every message before acknowledging it');
    const storeFolder = (): string => join(nodeRed.userDir, 'sms-received');
    const readStored = (): Record<string, string>[] =>
      readdirSync(storeFolder()).map(
        (name) => JSON.parse(readFileSync(join(storeFolder(), name), 'utf8')) as Record<string, string>,
      );
    const edit = (node: FlowNode): object =>
      node.type === 'delay' ? { timeout: '50', timeoutUnits: 'milliseconds' } : {};

    afterEach(() => {
      rmSync(storeFolder(), { recursive: true, force: true });
    });

    it('writes each message to a separate file', async () => {
      await deploy('Store every message before acknowledging it', {}, edit);
      await write(number, 'one\ntwo');
      await write(other, '"three"');
      await untilShown('stored', 2);
      assert.deepEqual(
        new Set(readStored()),
        new Set(
          simulator.incoming.map(({ messageId, messageDate, from, body }) => ({
            messageId,
            date: messageDate,
            from,
            text: body,
          })),
        ),
      );
    });

    it('writes a message later if the first attempt failed', async () => {
      writeFileSync(storeFolder(), 'in the way');
      await deploy('Store every message before acknowledging it', {}, edit);
      await write(number, 'patience');
      await untilShown('storing failed', 2);
      rmSync(storeFolder());
      const [stored] = await untilShown('stored');
      assert.equal(stored?.sms?.redelivered, true);
      assert.deepEqual(
        readStored().map(({ text }) => text),
        ['patience'],
      );
    });
  });

  describe('Answer once', () => {
    const { number, other } = handsetsOf('Answer once');
    const answer = `${number}: Thank you for your message. We will call you back.`;

    it('sends nothing for an answered message that is redelivered', async () => {
      await deploy('Answer once', {}, (node) => {
        if (node.type === 'sms-in') return { ackTimeout: 0.3, maxAttempts: 2 };
        return node.name === 'back to sms in' ? { wires: [[]] } : {};
      });
      await write(number, 'Are you there?');
      const [first, second] = await untilShown('answered', 2);
      assert.deepEqual([first?.sms?.duplicate, second?.sms?.duplicate], [undefined, true]);
      assert.equal(second?.sms?.messageId, first?.sms?.messageId);
      const [given] = await untilShown('last attempt or polling failed');
      assert.equal(given?.topic, number);
      assert.deepEqual(sent(), [answer]);
    });

    it('answers later if the first answer failed', async () => {
      await deploy('Answer once', {}, ({ type }) => (type === 'delay' ? { timeout: '0.1' } : {}));
      simulator.fault('send', { status: 401 }, 2);
      await write(number, 'Are you there?');
      await untilShown('answered again later', 2);
      await untilShown('answered');
      assert.deepEqual(sent(), [answer]);
    });

    it('shows a message whose answer has an unknown outcome', async () => {
      await deploy('Answer once', { ownRecordIds: true }, (node) => {
        if (node.type === 'sms-in') return { maxAttempts: 1, ackTimeout: 3 };
        return node.type === 'sms-send' ? { resolve: 0.1 } : {};
      });
      simulator.fault('send', { drop: 'before' }, 1);
      await write(number, 'Are you there?');
      const [unknown] = await untilShown('unknown outcome of the answer');
      assert.equal(codeOf(unknown), 'SMS_UNCERTAIN');
      await write(other, 'Me too');
      await untilShown('answered');
      assert.ok(!namesShown().includes('last attempt or polling failed'));
    });
  });

  describe('Reminder a day before', () => {
    const name = 'Reminder a day before';
    const { number } = handsetsOf(name);

    /** Deploys the example with an appointment in one day and `aheadMs`. */
    const deployWith = (aheadMs: number): Promise<void> =>
      deploy(name, {}, ({ type, props }) =>
        type === 'inject' ? { props: JSON.parse(JSON.stringify(props).replace(/\+ [12]0000/, `+ ${aheadMs}`)) } : {},
      );

    it('reminds a day before, with the time of the appointment', async () => {
      await deployWith(500);
      await press('Appointment');
      await untilShown('reminded');
      assert.match(sent().join(), new RegExp(`^${number}: Dear Anna, your appointment is tomorrow at \\d+:\\d\\d\\.$`));
    });

    it('sends the changed reminder instead of the first, and none if cancelled', async () => {
      await deployWith(86_400_000);
      await press('Appointment');
      await untilListed('entries?state=kept', 1);
      await press('Appointment moved');
      const [replaced] = await untilShown('not sent');
      assert.match(String(replaced?.error?.message), /replaced/);
      await untilListed('entries?state=kept', 1);
      await press('Appointment cancelled');
      const [, withdrawn] = await untilShown('not sent', 2);
      assert.match(String(withdrawn?.error?.message), /withdr/);
      await untilListed('entries?state=kept', 0);
      assert.deepEqual(sent(), []);
    });
  });

  describe('Send to a list from a CSV', () => {
    const { number, other, third } = handsetsOf('Send to a list from a CSV');
    const edit = (node: FlowNode): object =>
      node.type === 'delay' ? { timeout: '100', timeoutUnits: 'milliseconds' } : {};

    it('sends a message for each row, and tries a failed one three more times', async () => {
      await deploy('Send to a list from a CSV', {}, edit);
      simulator.block(other);
      await press('Send to all');
      const [given] = await untilShown('last try failed');
      assert.equal(given?.topic, other);
      assert.equal(simulator.requests.filter(({ params }) => params.to === other).length, 4);
      await untilShown('sent', 2);
      await untilSent(`${number}: Dear Anna, Your parcel is here.`, `${third}: Dear Carl, Your parcel comes tomorrow.`);
    });

    const oneRow = (node: FlowNode): object =>
      node.type === 'template' ? { template: `number,name,text\n${number},Anna,Hi\n` } : edit(node);

    it('retries only temporary failures', async () => {
      await deploy('Send to a list from a CSV', {}, oneRow);
      simulator.fault('send', { status: 503 }, 2);
      await press('Send to all');
      await untilSent(`${number}: Dear Anna, Hi`);
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Send to all');
      const [uncertain] = await untilShown('last try failed');
      assert.equal(codeOf(uncertain), 'SMS_UNCERTAIN');
      assert.equal(simulator.messages.length, 2);
      simulator.fault('send', { status: 401 }, 1);
      await press('Send to all');
      const [, unauthorized] = await untilShown('last try failed', 2);
      assert.equal(codeOf(unauthorized), 'SMS_UNAUTHORIZED');
    });
  });

  describe('Send from a spreadsheet and report deliveries', () => {
    const name = 'Send from a spreadsheet and report deliveries';
    const { number, other, third } = handsetsOf(name);
    const reportFile = (): string => join(nodeRed.userDir, 'sms-report.csv');

    afterEach(() => rmSync(reportFile(), { force: true }));

    /** Waits until the report contains three results. Its rows are in the order of their results. */
    async function untilReported(anna: string, ben: string, carl: string): Promise<void> {
      const expected = [`${number},Anna,${anna}`, `${other},Ben,${ben}`, `${third},Carl,${carl}`, ''];
      const read = () => (existsSync(reportFile()) ? readFileSync(reportFile(), 'utf8') : '');
      await until(
        () => {
          const [head, ...rows] = read().split('\r\n');
          return head === 'number,name,result' && rows.sort().join() === expected.sort().join();
        },
        () => `${read()}, log: ${nodeRed.log}`,
      );
    }

    it('reports delivered, undelivered and unsent rows', async () => {
      await deploy(name);
      simulator.setOutcome(other, 'NUR');
      simulator.block(third);
      await press('Send');
      await untilReported('received', 'not received: number unreachable', 'not sent: Number is in the blocked list');
      simulator.setOutcome(other, undefined);
      simulator.block(third, false);
      await press('Send');
      await untilReported('received', 'received', 'received');
    });
  });

  describe('Log sent messages', () => {
    const { number, other } = handsetsOf('Log sent messages');
    afterEach(() => {
      rmSync(join(nodeRed.userDir, 'sms-sent.csv'), { force: true });
    });

    it('writes one CSV line for each sent message', async () => {
      await deploy('Log sent messages', { statusDelayMs: Number.POSITIVE_INFINITY });
      const send = (to: string, body: string): Promise<Response> =>
        fetch(`${simulator.baseUrl}/api/3/sms/out`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${simulator.credentials.apiKey}` },
          body: new URLSearchParams({ to, body }),
        });
      await send(`${number} ${other}`, 'plain');
      await send(number, 'with, comma and "quotes"');
      await press('Read now');
      await untilShown('logged', 2);
      await press('Read now');
      await send(number, 'last');
      await press('Read now');
      await untilShown('logged', 3);
      const dates = simulator.messages.map(({ messageDate }) => messageDate);
      assert.equal(
        readFileSync(join(nodeRed.userDir, 'sms-sent.csv'), 'utf8'),
        [
          `${dates[0]},${number} ${other},SNT,plain\n`,
          `${dates[1]},${number},SNT,"with, comma and ""quotes"""\n`,
          `${dates[2]},${number},SNT,last\n`,
        ].join(''),
      );
    });
  });
});
