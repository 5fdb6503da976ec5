import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { startBrowser } from '../editor/browser';
import { until } from '../until';
import {
  example,
  namesShown,
  nodeRed,
  press,
  sent,
  simulator,
  untilSent,
  untilShown,
  useExamples,
  write,
} from './deployed-example';
import { MailServer } from './mail-server';

describe('example', function () {
  this.timeout(60_000);
  useExamples();

  example('Appointment reminder with YES or NO', ({ number, other, deploy }) => {
    const question = `${number}: Dear Anna, your appointment is on Monday at 10. Do you come? Answer YES or NO.`;

    it('repeats the question after an unclear reply', async () => {
      await deploy();
      await press('Remind');
      await untilSent(question);
      simulator.reply({ from: number, body: 'Nobody told me' });
      await untilSent(`${number}: Please answer YES or NO: do you come on Monday at 10?`);
      simulator.reply({ from: number, body: 'No!' });
      await untilSent(`${number}: Thank you, Anna. The appointment on Monday at 10 is cancelled.`);
    });

    it('adds the confirmed appointment to a later message', async () => {
      await deploy();
      await press('Remind');
      await untilSent(question);
      simulator.reply({ from: number, body: ' Yes! ' });
      await untilSent(`${number}: Thank you, Anna. See you on Monday at 10.`);
      await untilShown('confirmed');
      await write(other, 'Are you open?');
      await write(number, 'I shall be late');
      const [later] = await untilShown('later message');
      assert.equal(later?.payload, 'I shall be late');
      assert.deepEqual((later?.sms?.sent as { remembered?: unknown } | undefined)?.remembered, {
        name: 'Anna',
        date: 'Monday at 10',
        number,
      });
      const [unrelated] = await untilShown('other message');
      assert.equal(unrelated?.topic, other);
      assert.equal(simulator.messages.length, 2);
    });

    it('reports a missing answer after the time limit', async () => {
      await deploy({ 'sms-ask': { wait: '0.002' } });
      await press('Remind');
      const [none] = await untilShown('no answer: call');
      assert.deepEqual([none?.topic, none?.sms?.reason], [number, 'timeout']);
    });
  });

  example('One-time code that expires', ({ number, deploy }) => {
    const asks = `${number}: Do you want to sign in? Answer with the code on your screen within 5 minutes. If it is not you, do not answer.`;

    async function signIn(): Promise<string> {
      await press('Sign in');
      const [screen] = await untilShown('on the screen');
      const code = String(screen?.code);
      assert.match(code, /^\d{6}$/);
      await untilSent(asks);
      return code;
    }

    it('confirms a number that replies with the code', async () => {
      await deploy();
      const code = await signIn();
      simulator.reply({ from: number, body: ` ${code.slice(0, 3)} ${code.slice(3)}.` });
      const [confirmed] = await untilShown('confirmed');
      assert.equal(confirmed?.topic, number);
    });

    it('allows no second try after a wrong code', async () => {
      await deploy();
      const code = await signIn();
      simulator.reply({ from: number, body: code === '000000' ? '000001' : '000000' });
      await untilShown('wrong code');
      const late = simulator.reply({ from: number, body: code });
      await press('Sign in');
      await untilShown('on the screen', 2);
      await simulator.until(() => late.read);
      assert.ok(!namesShown().includes('confirmed'));
    });

    it('reports that a code has expired without a reply', async () => {
      await deploy({ 'sms-ask': { wait: '0.002' } });
      await signIn();
      const [expired] = await untilShown('expired');
      assert.equal(expired?.topic, number);
    });
  });

  example('Survey of three questions', ({ number, other, deploy }) => {
    const [one, two, three] = [
      'How did you like your stay, from 1 to 5?',
      'What did you like best?',
      'Will you come again?',
    ] as const;

    /** Waits until a handset has received a question, and answers it. */
    async function answer(from: string, question: string, body: string): Promise<void> {
      const isAsked = () =>
        simulator.messages.some((message) => message.body === question && message.to.includes(from));
      await until(isAsked, () => `${from} was not asked: ${JSON.stringify(sent())}`);
      simulator.reply({ from, body });
    }

    it('gathers the answers of each number to all questions', async () => {
      await deploy();
      await press('Start');
      await answer(number, one, '5');
      await answer(other, one, '1');
      await answer(number, two, 'The breakfast');
      await untilSent(`${number}: ${three}`, `${other}: ${two}`);
      await answer(number, three, 'Yes');
      await answer(other, two, 'The end');
      await answer(other, three, 'No');
      const shown = await untilShown('answers', 2);
      assert.deepEqual(
        new Map(shown.map(({ topic, answers }) => [topic, answers])),
        new Map([
          [number, ['5', 'The breakfast', 'Yes']],
          [other, ['1', 'The end', 'No']],
        ]),
      );
      await untilSent(...[number, other].map((to) => `${to}: Thank you for your answers.`));
    });
  });

  example('One-time code for a login', ({ number, other, deploy }) => {
    /** Submits a form of the page and returns the heading of the answer. */
    async function enter(path: string, fields: Record<string, string>): Promise<string> {
      const response = await fetch(`${nodeRed.url}${path}`, { method: 'POST', body: new URLSearchParams(fields) });
      assert.equal(response.status, 200);
      return heading(await response.text());
    }

    function heading(page: string): string {
      return /<h1>(.*)<\/h1>/.exec(page)?.[1] ?? page;
    }

    async function askFor(to: string): Promise<string> {
      assert.equal(await enter('/sms-login/code', { number: `+${to}` }), 'Enter the code that you received');
      const code = /^(\d{6}) is your code/.exec(simulator.messages.at(-1)?.body ?? '')?.[1];
      assert.ok(code, JSON.stringify(sent()));
      return code;
    }

    it('accepts each code only once', async () => {
      await deploy();
      const page = await (await fetch(`${nodeRed.url}/sms-login`)).text();
      assert.equal(heading(page), 'Log in');
      assert.match(page, /action="\/sms-login\/code"/);
      const code = await askFor(number);
      assert.equal(
        await enter('/sms-login', { number, code: `${code.slice(0, 3)} ${code.slice(3)}` }),
        'You are logged in.',
      );
      const [login] = await untilShown('login');
      assert.equal(login?.topic, number);
      assert.equal(await enter('/sms-login', { number, code }), 'This code is wrong or has expired.');
    });

    it('refuses all codes for a number after five wrong tries', async () => {
      await deploy();
      const wrong = 'This code is wrong or has expired.';
      const code = await askFor(number);
      await askFor(other);
      assert.equal(await enter('/sms-login', { number: other, code }), wrong);
      const guess = code === '000000' ? '000001' : '000000';
      for (let count = 0; count < 3; count += 1)
        assert.equal(await enter('/sms-login', { number, code: guess }), wrong);
      const second = await askFor(number);
      for (let count = 0; count < 2; count += 1)
        assert.equal(await enter('/sms-login', { number, code: second === guess ? '000002' : guess }), wrong);
      assert.equal(await enter('/sms-login', { number, code: second }), wrong);
      assert.equal(await enter('/sms-login', { number: '__proto__', code: '' }), wrong);
    });

    it('shows an error if the code cannot be sent', async () => {
      await deploy();
      const failed = 'The code could not be sent. Check the number.';
      for (const wrong of ['12', '+8821612345678'])
        assert.equal(await enter('/sms-login/code', { number: wrong }), failed);
      assert.deepEqual(sent(), []);
      simulator.setOutcome(number, 'BLOCKED');
      assert.equal(await enter('/sms-login/code', { number }), failed);
    });
  });

  example('SMS to e-mail and back', ({ number, deploy }) => {
    let mail: MailServer;

    beforeEach(async () => {
      mail = new MailServer();
      await mail.open();
    });

    afterEach(async () => {
      await nodeRed.deploy([]);
      await mail.close();
    });

    const deployWithMail = (): Promise<void> => {
      const server = { server: '127.0.0.1', credentials: { userid: 'sms@example.com', password: 'secret' } };
      return deploy({
        'e-mail': { ...server, port: mail.smtpPort, secure: false, tls: false },
        // Uses POP3 instead of IMAP, because a POP3 server is much simpler.
        'e-mail in': { ...server, protocol: 'POP3', port: mail.pop3Port, useSSL: false },
        delay: { timeout: '50', timeoutUnits: 'milliseconds' },
      });
    };

    it('forwards a message as soon as the mail server accepts it', async () => {
      mail.isTaking = false;
      await deployWithMail();
      await write(number, 'Patience');
      await untilShown('not mailed yet', 2);
      mail.isTaking = true;
      const [mailed] = await untilShown('mailed message');
      assert.equal(mailed?.topic, `SMS from ${number}`);
      assert.equal(mail.taken.length, 1);
      assert.match(mail.taken[0] ?? '', /^To: office@example\.com\r$/m);
      assert.match(mail.taken[0] ?? '', /^Patience\r$/m);
    });

    it('sends an answer once although it reads the e-mail twice', async () => {
      const answer = {
        from: 'Office <office@example.com>',
        subject: `Re: SMS from ${number}`,
        id: 'one@example.com',
        body: 'Yes, from 8 to 17.\n\nOn Monday, sms@example.com wrote:\n> Is anybody there?',
      };
      mail.put(answer);
      mail.put(answer);
      mail.put({ from: 'mallory@example.org', subject: `SMS from ${number}`, body: 'Buy!', id: 'two@example.org' });
      mail.put({ from: 'office@example.com', subject: 'Lunch', body: 'At noon?', id: 'three@example.com' });
      await deployWithMail();
      await untilShown('another e-mail', 2);
      const shown = await untilShown('answered', 2);
      assert.deepEqual(
        shown.map(({ payload }) => payload),
        ['Yes, from 8 to 17.', 'Yes, from 8 to 17.'],
      );
      assert.deepEqual(sent(), [`${number}: Yes, from 8 to 17.`]);
    });
  });

  example('Dashboard chat', ({ number, other, deploy }) => {
    let browser: Browser;

    before(async () => {
      browser = await startBrowser();
    });

    after(async () => {
      await browser.close();
    });

    it('shows received messages and the status of sent answers', async () => {
      await deploy();
      const page = await browser.newPage();
      await page.goto(`${nodeRed.url}/dashboard/sms`);
      const chat = page.locator('.sms-chat');
      await chat.waitFor();
      await write(number, 'Is anybody there?');
      await chat.locator('li', { hasText: 'Is anybody there?' }).waitFor();
      await chat.getByLabel('Text', { exact: true }).fill('Yes, from 8 to 17.');
      await chat.getByRole('button', { name: 'Send' }).click();
      await untilSent(`${number}: Yes, from 8 to 17.`);
      await chat.locator('li.mine', { hasText: /Yes, from 8 to 17\..*received by the handset/s }).waitFor();
      await write(other, 'Me too');
      await chat.getByLabel('Handset').fill(other);
      await chat.locator('li', { hasText: 'Me too' }).waitFor();
      assert.equal(await chat.locator('li').count(), 1);
      await page.reload();
      await chat.locator('li').first().waitFor();
      assert.equal(simulator.messages.length, 1);
      simulator.setOutcome(number, 'BLOCKED');
      await chat.getByLabel('Handset').fill(number);
      for (const text of ['blocked', 'refused']) {
        await chat.getByLabel('Text', { exact: true }).fill(text);
        await chat.getByRole('button', { name: 'Send' }).click();
        await chat.locator('li.mine', { hasText: new RegExp(`${text}.*not sent: `, 's') }).waitFor();
        simulator.fault('send', { status: 400, reason: 'No such thing' }, 1);
      }
    });
  });
});
