import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createAccount } from '../reliability/flows';
import { CallbackReceiver } from '../simulator/callback-receiver';
import { Badges } from './badges';
import { startBrowser } from './browser';
import { findFaintTexts } from './contrast';

const root = join(__dirname, '..', '..');
const first = '6421555123';
const second = '6421555124';

/** A flow that answers every text. */
function createFlows(simulator: Simulator): FlowNode[] {
  return [
    { id: 'tab', type: 'tab', label: 'Auto-reply' },
    createAccount(simulator, { store: 'memory' }),
    { id: 'in', type: 'sms-in', z: 'tab', account: 'account', filter: 'all', acknowledge: 'auto', wires: [['say']] },
    {
      id: 'say',
      type: 'template',
      z: 'tab',
      field: 'payload',
      template: 'Thank you for: {{{payload}}}',
      output: 'str',
      wires: [['send']],
    },
    {
      id: 'send',
      type: 'sms-send',
      z: 'tab',
      account: 'account',
      to: 'topic',
      toType: 'msg',
      body: 'payload',
      bodyType: 'msg',
      messageIdType: 'uuid',
      contentTypeType: 'auto',
      retries: 0,
      wires: [[], []],
    },
  ];
}

describe("the simulator's page in a browser", function () {
  this.timeout(60_000);
  let browser: Browser;
  let simulator: Simulator;
  let context: BrowserContext;
  let page: Page;
  let problems: string[];

  const start = async (options: SimulatorOptions = {}): Promise<void> => {
    simulator = await startSimulator({ waitMs: 300, statusDelayMs: 50, ...options });
  };
  const open = async (options: BrowserContextOptions = {}): Promise<void> => {
    context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: 'en-US', ...options });
    context.setDefaultTimeout(15_000);
    page = await context.newPage();
    problems = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(simulator.pageUrl)) problems.push(`a request to ${request.url()}`);
    });
    await page.goto(simulator.pageUrl);
    await page.getByText('Live', { exact: true }).waitFor();
  };
  const phone = (msisdn: string): Locator => page.locator(`.phone[data-msisdn="${msisdn}"]`);
  const write = async (msisdn: string, text: string): Promise<void> => {
    await phone(msisdn).getByLabel(`Write as ${msisdn}`).fill(text);
    await page.keyboard.press('Enter');
  };
  /** Sends as a flow does. */
  const send = async (params: Record<string, string>, authorization = `Bearer ${simulator.credentials.apiKey}`) => {
    const answer = await fetch(`${simulator.baseUrl}/api/3/sms/out`, {
      method: 'POST',
      headers: { authorization },
      body: new URLSearchParams(params),
    });
    return { status: answer.status, text: await answer.text() };
  };

  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());
  afterEach(async () => {
    await context?.close();
    await simulator?.close();
  });

  describe('with a flow in Node-RED', () => {
    let nodeRed: NodeRedProcess;
    let badges: Badges;

    beforeEach(async () => {
      await start();
      nodeRed = await startNodeRed({ flows: createFlows(simulator) });
      badges = await Badges.open(nodeRed.url);
      await open();
    });
    afterEach(async () => {
      badges?.close();
      await nodeRed?.stop();
    });

    it('a handset writes, the flow answers, and the answer turns received, without a reload', async () => {
      await write(first, 'is anyone there?');
      const typed = phone(first).locator('.bubble.typed');
      await typed.getByText('is anyone there?').waitFor();
      const answer = phone(first).locator('.bubble.sent', { hasText: 'Thank you for: is anyone there?' });
      await answer.waitFor();
      await answer.getByText('received', { exact: true }).waitFor();
      assert.equal(await answer.getAttribute('data-status'), 'RCV');
      assert.equal(await phone(first).getByLabel('Reply').isChecked(), true);
      await write(first, 'good');
      await phone(first)
        .locator('.bubble.sent', { hasText: 'Thank you for: good' })
        .getByText('received', { exact: true })
        .waitFor();
      assert.deepEqual(
        simulator.incoming.map(({ body, inReplyToId }) => [body, inReplyToId]),
        [
          ['is anyone there?', undefined],
          ['good', simulator.messages[0]?.messageId],
        ],
      );
      assert.deepEqual(problems, []);
    });

    it("a fault that is switched on shows in the node's badge, and switched off the node recovers", async () => {
      await badges.until('in', ({ fill }) => fill === 'green');
      const row = page.locator('.faults li[data-endpoint="incoming"]');
      await row.getByLabel('What goes wrong').selectOption('500 internal error');
      await row.getByRole('switch').check();
      const failed = await badges.until('in', ({ fill }) => fill === 'red');
      assert.equal(failed.shape, 'ring');
      await page.locator('#log').getByText('500', { exact: true }).first().waitFor();
      await row.getByRole('switch').uncheck();
      await badges.until('in', ({ fill }) => fill === 'green');
      await write(first, 'and now?');
      await phone(first).locator('.bubble.sent', { hasText: 'Thank you for: and now?' }).waitFor();
      assert.deepEqual(problems, []);
    });
  });

  it('shows a text on its way, then passed on, then as its outcome, in the bubble', async () => {
    await start({ statusDelayMs: Number.POSITIVE_INFINITY });
    await open();
    await send({ to: first, body: 'look', messageId: 'm' });
    const bubble = phone(first).locator('.bubble.sent');
    await bubble.getByText('submitted').waitFor();
    simulator.status({ messageId: 'm', msisdn: first, statusCode: 'SNT' });
    await bubble.getByText('passed to the network').waitFor();
    simulator.status({ messageId: 'm', msisdn: first, statusCode: 'EXP' });
    await bubble.getByText('expired').waitFor();
    assert.equal(await phone(first).locator('.bubble').count(), 1);
    await page.locator('#announcer', { hasText: `Text to ${first}: expired` }).waitFor({ state: 'attached' });
  });

  it('sets the outcome of the next text, once, and of a handset, until it is changed', async () => {
    await start();
    await open();
    const next = page.getByLabel('The next text that a flow sends is');
    for (const [choice, expected] of [
      ['not received', 'not received'],
      ['expired', 'expired'],
      ['refused: number blocked', 'not sent: Number is in the blocked list'],
    ] as const) {
      await next.selectOption(choice);
      await page.locator('#next-outcome.unusual').waitFor();
      await send({ to: first, body: choice });
      await phone(first).locator('.bubble', { hasText: choice }).getByText(expected).last().waitFor();
      await page.locator('#next-outcome:not(.unusual)').waitFor();
    }
    await phone(first).getByLabel('Texts to it are').selectOption('unreachable');
    await phone(first).and(page.locator('.unusual')).waitFor();
    await send({ to: first, body: 'far away' });
    await phone(first).locator('.bubble', { hasText: 'far away' }).getByText('unreachable').waitFor();
    await phone(first).getByLabel('Texts to it are').selectOption('refused: number blocked');
    await page.waitForFunction(() =>
      fetch('/control/state').then(async (a) => (await a.json()).account.blocked.length === 1),
    );
    assert.match((await send({ to: first, body: 'no' })).text, /errorCode="403"/);
    assert.deepEqual(problems, []);
  });

  it('adds a handset with a name, by the keyboard alone, and explains a number that is none', async () => {
    await start();
    await open();
    await page.locator('#add-handset').getByLabel('Number').focus();
    await page.keyboard.type('021 555');
    await page.keyboard.press('Enter');
    await page.getByText('Enter the number with its country code').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('name')), 'msisdn');
    await page.locator('#add-handset').getByLabel('Number').fill('');
    await page.keyboard.type('+64 (21) 555-124');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Anna');
    await page.keyboard.press('Enter');
    await phone('6421555124').getByRole('heading', { name: 'Anna' }).waitFor();
    await page.keyboard.type('first line');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('second line');
    await page.keyboard.press('Enter');
    await phone(second).locator('.bubble.typed').waitFor();
    assert.equal(simulator.incoming[0]?.body, 'first line\nsecond line');
    assert.equal(simulator.incoming[0]?.displayName, 'Anna');
    assert.equal(await phone(second).getByLabel('Reply').isDisabled(), true);
    assert.equal(
      await phone(second)
        .getByLabel(/^Write as/)
        .inputValue(),
      '',
    );
    await page.reload();
    await phone(second).locator('.bubble.typed').waitFor();
    await phone(first).getByLabel('Remove the handset').click();
    await phone(first).waitFor({ state: 'detached' });
    assert.deepEqual(problems, []);
  });

  it('sets balance and daily limit, and shows what texts cost', async () => {
    await start();
    await open();
    const balance = page.getByLabel('Balance');
    await balance.fill('1');
    await page.getByLabel('Texts per day').fill('2');
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await simulator.until(() => simulator.balance === 1);
    assert.equal((await send({ to: first, body: 'paid' })).status, 200);
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[name=balance]')?.value === '0');
    assert.match((await send({ to: first, body: 'unpaid' })).text, /Insufficient funds/);
    await phone(first).getByText('not sent: Insufficient funds').waitFor();
    await balance.fill('100');
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await simulator.until(() => simulator.balance === 100);
    await send({ to: first, body: 'second of the day' });
    assert.equal((await send({ to: first, body: 'third of the day' })).status, 403);
    await balance.fill('-1');
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await page.getByText('Enter the balance as a number of 0 or more').waitFor();
  });

  it('switches callbacks on and off, with address and format, and logs them with the token masked', async () => {
    await start();
    const receiver = await CallbackReceiver.start();
    try {
      await open();
      const panel = page.locator('#callbacks-form');
      await panel.getByRole('switch').click();
      await panel.getByText('Enter an address to call').waitFor();
      assert.equal(await panel.getByRole('switch').isChecked(), false);
      await panel.getByLabel('Replies go to').fill(receiver.url('/cb?token=do-not-show'));
      await panel.getByLabel('Format').selectOption('FORMv1');
      await panel.getByRole('switch').check();
      await page.waitForFunction(() =>
        fetch('/control/state').then(async (a) => (await a.json()).account.organisation.callbackFormat === 'FORMv1'),
      );
      await write(first, 'call me');
      const entry = page.locator('.log-entry.callback', { hasText: 'reply callback' });
      await entry.getByText('200', { exact: true }).waitFor();
      assert.match(receiver.received[0]?.body ?? '', /body=call(\+|%20)me/);
      await entry.locator('summary').click();
      await entry.getByText(/body=call/).waitFor();
      assert.equal((await entry.innerText()).includes('do-not-show'), false);
      await panel.getByRole('switch').uncheck();
      await page.waitForFunction(() =>
        fetch('/control/state').then(async (a) => !(await a.json()).account.organisation.callbackUrl),
      );
      await write(first, 'do not call me');
      await phone(first).getByText('do not call me').waitFor();
      await simulator.whenIdle();
      assert.equal(simulator.callbackLog.length, 1);
      assert.match(await panel.getByLabel('Replies go to').inputValue(), /\/cb/);
    } finally {
      await receiver.close();
    }
  });

  it('logs each request with parameters, headers, body and answer, credentials masked, and filters them', async () => {
    await start();
    await open();
    await send({ to: first, body: 'look inside', userId: 'demo', password: 'demo-password' }, 'Bearer do-not-show');
    await send({ to: first, body: 'look inside', password: 'do-not-show' });
    const entries = page.locator('.log-entry');
    await entries.nth(1).waitFor();
    await entries.first().locator('summary').click();
    await entries
      .first()
      .getByText(/<outbound-message-delivery/)
      .waitFor();
    await entries.nth(1).locator('summary').click();
    await entries
      .nth(1)
      .getByText(/authorization: Bearer ••••••/)
      .waitFor();
    const shown = await page.locator('#log').innerText();
    assert.match(shown, /to=6421555123&body=look\+inside/);
    assert.doesNotMatch(shown, /do-not-show|demo-password/);
    await page.getByLabel('Show').selectOption('polling');
    assert.equal(await entries.first().isVisible(), false);
    await page.getByLabel('Show').selectOption('sending');
    assert.equal(await entries.first().isVisible(), true);
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('Nothing yet').waitFor();
  });

  it('fails an endpoint once, says how often is left, and shows a fault that a program has set', async () => {
    await start();
    await open();
    const row = page.locator('.faults li[data-endpoint="send"]');
    await row.getByLabel('What goes wrong').selectOption('503 unavailable');
    await row.getByLabel('How often').selectOption('3 times');
    await row.getByRole('switch').check();
    await row.getByText('3 to go').waitFor();
    assert.equal((await send({ to: first, body: 'x' })).status, 503);
    await row.getByText('2 to go').waitFor();
    simulator.fault('send', { delayMs: 77 });
    await page.waitForFunction(
      () =>
        document.querySelector<HTMLSelectElement>('[data-endpoint="send"] select')?.selectedOptions[0]?.text ===
        '{"delayMs":77}',
    );
    simulator.fault('send', null);
    await row.and(page.locator(':not(.on)')).waitFor();
    assert.equal(await row.getByRole('switch').isChecked(), false);
  });

  it('copies the credentials', async () => {
    await start();
    await open({ permissions: ['clipboard-read', 'clipboard-write'] });
    for (const [name, value] of [
      ['Base URL', simulator.baseUrl],
      ['API key', 'demo-api-key'],
      ['User', 'demo'],
      ['Password', 'demo-password'],
    ] as const) {
      await page.getByRole('button', { name: `Copy the ${name}` }).click();
      await page
        .getByRole('button', { name: `Copy the ${name}` })
        .getByText('Copied')
        .waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), value);
    }
  });

  it('says when the simulator is gone, and catches up by itself when it is back', async () => {
    await start();
    await open();
    await simulator.setOnline(false);
    await page.getByText('Not connected').waitFor();
    await write(first, 'nobody hears this');
    await phone(first).getByText('The simulator does not answer').waitFor();
    assert.equal(
      await phone(first)
        .getByLabel(/^Write as/)
        .inputValue(),
      'nobody hears this',
    );
    simulator.receive({ from: first, to: '642100000001', body: 'missed meanwhile' });
    await simulator.setOnline(true);
    await phone(first).locator('.bubble').getByText('missed meanwhile').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  it('shows the handsets that were active last, and all on demand', async () => {
    await start();
    await open();
    for (let index = 10; index < 30; index += 1) {
      simulator.receive({ from: `64215550${index}`, to: '642100000001', body: `from ${index}` });
    }
    await page.getByRole('button', { name: 'Show all 21 handsets' }).click();
    assert.equal(await page.locator('.phone').count(), 21);
    await page.getByRole('button', { name: 'Show the latest 12' }).click();
    assert.equal(await page.locator('.phone').count(), 12);
  });

  it('gives markup that a handset writes as text', async () => {
    await start();
    await open();
    const markup = '<img src=x onerror="document.title=1"><b>bold</b>';
    await write(first, markup);
    assert.equal(await phone(first).locator('.bubble-text').innerText(), markup);
    assert.deepEqual(problems, []);
  });

  it('names every control, has landmarks and headings in order, and says new texts politely', async () => {
    await start();
    await open();
    await write(first, 'hear me');
    await page
      .locator('#announcer[aria-live="polite"]', { hasText: `${first} wrote: hear me` })
      .waitFor({ state: 'attached' });
    const unnamed = await page.locator('input, select, textarea, button').evaluateAll((elements) =>
      elements
        .filter((element) => {
          const labels = (element as HTMLInputElement).labels ?? [];
          const text = [...labels].map((label) => label.textContent).join('') || element.textContent;
          return (
            !element.getAttribute('aria-label') &&
            (element.tagName === 'BUTTON' ? !element.textContent : labels.length === 0 || !text)
          );
        })
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(unnamed, []);
    for (const name of ['Handsets', 'Service', 'Log']) {
      assert.equal(await page.getByRole('region', { name, exact: true }).count(), 1, name);
    }
    for (const landmark of ['banner', 'navigation', 'main'] as const) {
      assert.equal(await page.getByRole(landmark).count(), 1, landmark);
    }
    const levels = await page
      .locator('h1, h2, h3, h4')
      .evaluateAll((headings) => headings.map(({ tagName }) => Number(tagName[1])));
    assert.equal(levels[0], 1);
    levels.reduce((before, level) => {
      assert.ok(level <= before + 1, levels.join());
      return level;
    });
  });

  it('shows where the keyboard is, on everything that Tab reaches', async () => {
    await start();
    await open();
    let reached = 0;
    for (; reached < 80; reached += 1) {
      await page.keyboard.press('Tab');
      const focus = await page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return undefined;
        return { outline: getComputedStyle(element).outlineStyle, html: element.outerHTML.slice(0, 120) };
      });
      if (!focus) break;
      assert.notEqual(focus.outline, 'none', focus.html);
    }
    assert.ok(reached > 25 && reached < 80, `Tab reached ${reached}`);
  });

  for (const [name, options] of [
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['phone', { colorScheme: 'light', viewport: { width: 360, height: 740 } }],
    ['phone-dark', { colorScheme: 'dark', viewport: { width: 360, height: 740 } }],
  ] satisfies [string, BrowserContextOptions][]) {
    it(`fits and has enough contrast as ${name}, for screenshots`, async () => {
      await start();
      await open(options);
      await converse();
      const { scrollWidth, clientWidth } = await page.evaluate(() => ({
        scrollWidth: document.documentElement.scrollWidth,
        clientWidth: document.documentElement.clientWidth,
      }));
      assert.ok(scrollWidth <= clientWidth, `${scrollWidth} px of content on ${clientWidth} px`);
      assert.deepEqual(await findFaintTexts(page), []);
      const folder = join(root, '.cache', 'screenshots');
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: join(folder, `simulator-${name}.png`), fullPage: true, animations: 'disabled' });
      if (name === 'light' && process.env.UPDATE_IMAGES === '1') {
        const images = join(root, 'docs', 'images');
        mkdirSync(images, { recursive: true });
        await page.screenshot({ path: join(images, 'simulator.png'), animations: 'disabled' });
      }
      assert.deepEqual(problems, []);
    });
  }

  /** A conversation such as a person would have with a flow, with a bit of everything. */
  async function converse(): Promise<void> {
    simulator.addContact('Anna', first);
    simulator.addContact('Ben', second);
    simulator.addContact('Night shift', '6421555125');
    const arrived = (texts: number) =>
      simulator.until(
        () =>
          simulator.messages.length === texts &&
          simulator.messages.every(({ recipients }) =>
            recipients.every(({ statusCode }) => !['PND', 'SNT'].includes(statusCode)),
          ),
      );
    simulator.setOutcome('6421555125', 'NUR');
    await send({ to: `${first} ${second} 6421555125`, body: 'Pump 2 stopped at 21:40. Reply OK to take the call.' });
    await arrived(1);
    simulator.reply({ from: second, body: 'OK, on my way' });
    await send({ to: `${first}`, body: 'Ben has taken the call.' });
    simulator.fault('feed', { status: 500 });
    await fetch(`${simulator.baseUrl}/api/2/sms/list`);
    await arrived(2);
    simulator.setNextOutcome('BLOCKED');
    await send({ to: '6421555125', body: 'Are you there?' });
    await arrived(3);
    await send({ to: second, body: 'Thank you. The spare key is at the gate.' });
    await arrived(4);
    simulator.reply({ from: first, body: 'Good. Tell me when it runs again.' });
    await page.locator('.bubble').getByText('Tell me when it runs again').waitFor();
    await page.locator('.bubble').getByText('spare key').waitFor();
    await page.waitForFunction(() => !document.querySelector('[data-phase="under-way"]'));
  }
});
