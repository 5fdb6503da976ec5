import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FlowNode } from '../node-red-process';
import { ServiceCalls } from '../simulator/service-calls';
import { until } from '../until';
import {
  codeOf,
  example,
  namesShown,
  nodeRed,
  opened,
  press,
  sent,
  simulator,
  untilListed,
  untilSent,
  untilShown,
  useExamples,
  write,
} from './deployed-example';

const shortDelay = { timeout: '50', timeoutUnits: 'milliseconds' };

describe('example', function () {
  this.timeout(60_000);
  useExamples();

  example('Send a message', ({ number, deploy }) => {
    it('shows whether its message was sent', async () => {
      await deploy();
      await press('Send');
      await untilSent(`${number}: Hello from Node-RED`);
      const [shown] = await untilShown('sent');
      assert.deepEqual(shown?.sms?.accepted, [number]);
      simulator.setOutcome(number, 'BLOCKED');
      await press('Send');
      const [failed] = await untilShown('failed recipient');
      assert.equal(failed?.sms?.msisdn, number);
      simulator.fault('send', { status: 401 }, 1);
      await press('Send');
      const [error] = await untilShown('error');
      assert.equal(codeOf(error), 'SMS_UNAUTHORIZED');
    });
  });

  example('Auto-reply', ({ number, other, deploy }) => {
    const answerTo = (from: string, text: string) =>
      `${from}: Thank you for your message: ${text}. We will call you back.`;

    it('answers each number as often as the account allows', async () => {
      await deploy();
      const texts = Array.from({ length: 20 }, (_, index) => `text ${index + 1}`);
      for (const text of [...texts, 'one too many']) await write(number, text);
      await write(other, 'Me too');
      const [error] = await untilShown('error');
      assert.equal(codeOf(error), 'SMS_LIMIT');
      await untilSent(...texts.map((text) => answerTo(number, text)), answerTo(other, 'Me too'));
      assert.equal(simulator.messages.length, 21);
    });
  });

  example('Answer by keyword', ({ number, other, deploy }) => {
    it('answers a keyword, and otherwise lists the keywords', async () => {
      await deploy();
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

  example('Opt-out that is remembered', ({ number, other, deploy }) => {
    const news = 'We are open on Saturday. Answer STOP to end these messages.';
    const toBoth = `${number} ${other}: ${news}`;

    it('skips a number from its STOP until its START', async () => {
      await deploy();
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

  example('Callbacks instead of polling', ({ number, deploy }) => {
    it('receives statuses and replies by callback', async () => {
      const token = 'a token of the tests';
      await deploy({ 'sms-callback-in': { publicUrl: nodeRed.url, credentials: { token } } });
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

  example('Store every message before acknowledging it', ({ number, other, deploy }) => {
    const storeFolder = (): string => join(nodeRed.userDir, 'sms-received');
    const readStored = (): Record<string, string>[] =>
      readdirSync(storeFolder()).map(
        (name) => JSON.parse(readFileSync(join(storeFolder(), name), 'utf8')) as Record<string, string>,
      );
    it('writes each message to a separate file', async () => {
      await deploy();
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

    it('writes a message later if the first attempt fails', async () => {
      writeFileSync(storeFolder(), 'in the way');
      await deploy({ delay: shortDelay });
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

  example('Answer once', ({ number, other, deploy }) => {
    const answer = `${number}: Thank you for your message. We will call you back.`;

    it('sends one answer to a message that is delivered twice', async () => {
      const unwire = ({ name, wires }: FlowNode) => ({ wires: name === 'back to sms in' ? [[]] : wires });
      await deploy({ 'sms-in': { ackTimeout: 0.3, maxAttempts: 2 }, change: unwire });
      await write(number, 'Are you there?');
      const [first, second] = await untilShown('answered', 2);
      assert.deepEqual([first?.sms?.duplicate, second?.sms?.duplicate], [undefined, true]);
      assert.equal(second?.sms?.messageId, first?.sms?.messageId);
      const [given] = await untilShown('last attempt or polling failed');
      assert.equal(given?.topic, number);
      assert.deepEqual(sent(), [answer]);
    });

    it('answers later if the first attempt fails', async () => {
      await deploy({ delay: { timeout: '0.1' } });
      simulator.fault('send', { status: 401 }, 2);
      await write(number, 'Are you there?');
      await untilShown('answered again later', 2);
      await untilShown('answered');
      assert.deepEqual(sent(), [answer]);
    });

    it('reports an answer with an unknown outcome', async () => {
      const edits = { 'sms-in': { maxAttempts: 1, ackTimeout: 3 }, 'sms-send': { resolve: 0.1 } };
      await deploy(edits, { ownRecordIds: true });
      simulator.fault('send', { drop: 'before' }, 1);
      await write(number, 'Are you there?');
      const [unknown] = await untilShown('unknown outcome of the answer');
      assert.equal(codeOf(unknown), 'SMS_UNCERTAIN');
      await write(other, 'Me too');
      await untilShown('answered');
      assert.ok(!namesShown().includes('last attempt or polling failed'));
    });
  });

  example('Reminder a day before', ({ number, deploy }) => {
    /** Deploys the example with an appointment that takes place one day and `aheadMs` from now. */
    const deployWith = (aheadMs: number): Promise<void> => {
      const changeTime = (text: string) => JSON.parse(text.replace(/\+ [12]0000/, `+ ${aheadMs}`));
      return deploy({ inject: ({ props }) => ({ props: changeTime(JSON.stringify(props)) }) });
    };

    it('sends a reminder a day before the appointment', async () => {
      await deployWith(500);
      await press('Appointment');
      await untilShown('reminded');
      assert.match(sent().join(), new RegExp(`^${number}: Dear Anna, your appointment is tomorrow at \\d+:\\d\\d\\.$`));
    });

    it('replaces or withdraws the reminder if the appointment changes', async () => {
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

  example('Send to a list from a CSV', ({ number, other, third, deploy }) => {
    it('retries a failed message at most three times', async () => {
      await deploy({ delay: shortDelay });
      simulator.setOutcome(other, 'BLOCKED');
      await press('Send to all');
      const [given] = await untilShown('last try failed');
      assert.equal(given?.topic, other);
      assert.equal(simulator.requests.filter(({ params }) => params.to === other).length, 4);
      await untilShown('sent', 2);
      await untilSent(`${number}: Dear Anna, Your parcel is here.`, `${third}: Dear Carl, Your parcel comes tomorrow.`);
    });

    it('retries only temporary failures', async () => {
      await deploy({ delay: shortDelay, template: { template: `number,name,text\n${number},Anna,Hi\n` } });
      simulator.fault('send', { status: 503 }, 2);
      await press('Send to all');
      await untilSent(`${number}: Dear Anna, Hi`);
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Send to all');
      const [uncertain] = await untilShown('last try failed');
      assert.equal(codeOf(uncertain), 'SMS_UNCERTAIN');
      assert.equal(simulator.messages.length, 2);
    });
  });

  example('Send from a spreadsheet and report deliveries', ({ number, other, third, deploy }) => {
    const reportFile = (): string => join(nodeRed.userDir, 'sms-report.csv');

    /** Waits until the report contains these three results. Its rows are in the order in which the results arrived. */
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

    it('reports whether the message of each row was delivered', async () => {
      await deploy();
      simulator.setOutcome(other, 'NUR');
      simulator.setOutcome(third, 'BLOCKED');
      await press('Send');
      await untilReported('received', 'not received: number unreachable', 'not sent: Number is in the blocked list');
      simulator.setOutcome(other, undefined);
      simulator.setOutcome(third, undefined);
      await press('Send');
      await untilReported('received', 'received', 'received');
    });
  });

  example('Log sent messages', ({ number, other, deploy }) => {
    it('writes one CSV line for each sent message', async () => {
      await deploy({}, { statusDelayMs: Number.POSITIVE_INFINITY });
      const calls = new ServiceCalls(simulator);
      opened.push(calls);
      await calls.send({ to: `${number} ${other}`, body: 'plain' });
      await calls.send({ to: number, body: 'with, comma and "quotes"' });
      await press('Read now');
      await untilShown('logged', 2);
      await press('Read now');
      await calls.send({ to: number, body: 'last' });
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
