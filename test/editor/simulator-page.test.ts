import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { createManualClock, type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { type FlowNode, startNodeRed } from '../node-red-process';
import { createAccount } from '../reliability/flows';
import { CallbackReceiver } from '../simulator/callback-receiver';
import { until } from '../until';
import { findBarriers, findFaintTexts } from './axe';
import { startBrowser } from './browser';

const root = join(__dirname, '..', '..');
const first = '6421555123';
const second = '6421555124';

/** Creates a flow that answers every message. */
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
    await simulator?.close();
    simulator = await startSimulator({ waitMs: 300, statusDelayMs: 50, ...options });
  };
  const open = async (options: BrowserContextOptions = {}, hash = ''): Promise<void> => {
    context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: 'en-US', ...options });
    context.setDefaultTimeout(30_000);
    page = await context.newPage();
    problems = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      const { url } = message.location();
      if (['error', 'warning'].includes(message.type())) problems.push(`${message.text()} of ${url}`);
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(simulator.pageUrl)) problems.push(`a request to ${request.url()}`);
    });
    await page.goto(`${simulator.pageUrl}${hash}`);
    await whenLoaded();
  };
  /** Waits until the page shows the credentials and a conversation, because it connects before it shows them. */
  const whenLoaded = async (): Promise<void> => {
    await page.locator('#credentials code').first().waitFor({ state: 'attached' });
    await page.locator('.phone[data-msisdn]').waitFor({ state: 'attached' });
  };
  const phone = (msisdn: string): Locator => page.locator(`.phone[data-msisdn="${msisdn}"]`);
  const row = (msisdn: string): Locator => page.locator(`.handset[data-msisdn="${msisdn}"]`);
  const choose = async (msisdn: string): Promise<Locator> => {
    await row(msisdn).click();
    await phone(msisdn).waitFor();
    return phone(msisdn);
  };
  const goTo = async (part: 'Handsets' | 'Log' | 'Service' | 'Address book'): Promise<void> => {
    await page.getByRole('navigation').getByRole('link', { name: part, exact: true }).click();
    await page.locator('nav a[aria-current="page"]', { hasText: part }).waitFor();
  };
  const write = async (msisdn: string, text: string): Promise<void> => {
    const field = phone(msisdn).getByLabel(`Write as ${msisdn}`);
    await field.fill(text);
    await field.press('Enter');
  };
  /**
   * Presses a switch, and waits until the simulator confirms its new state. The page can show the former state again
   * before, if a report is on its way.
   */
  const flip = async (row: Locator, isOn: boolean): Promise<void> => {
    await row.getByRole('switch').click();
    await row.and(page.locator(isOn ? '.on' : ':not(.on)')).waitFor();
    assert.equal(await row.getByRole('switch').isChecked(), isOn);
  };
  /** Starts or ends an outage, which moves the page to another port. */
  const setOutage = async (isOn: boolean): Promise<void> => {
    const { origin } = new URL(simulator.baseUrl);
    await page.getByRole('switch', { name: 'Outage' }).click();
    await page.waitForURL((url) => (url.origin === origin) === !isOn);
    await whenLoaded();
    await page.getByText(isOn ? 'Outage' : 'Live', { exact: true }).waitFor();
    assert.equal(await page.getByRole('switch', { name: 'Outage' }).isChecked(), isOn);
  };
  /** Waits until the organisation of the simulator has a setting. */
  const untilOrganisation = (isSet: (organisation: Record<string, string>) => boolean): Promise<void> =>
    until(async () => isSet((await (await fetch(`${simulator.controlUrl}/state`)).json()).account.organisation));
  /** Sends a message as a flow does. */
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
  beforeEach(() => start());
  afterEach(async () => {
    const found = problems;
    await context?.close();
    await simulator?.close();
    assert.deepEqual(found, []);
  });
  after(() => browser?.close());

  it('shows a message, the answer of a flow in Node-RED and its status', async () => {
    const nodeRed = await startNodeRed({ flows: createFlows(simulator) });
    try {
      await open();
      await write(first, 'is anyone there?');
      await phone(first).locator('.bubble.typed').getByText('is anyone there?').waitFor();
      const answer = (body: string) => phone(first).locator('.bubble.sent', { hasText: `Thank you for: ${body}` });
      await answer('is anyone there?').getByText('received', { exact: true }).waitFor();
      await phone(first).getByRole('radio', { name: 'Reply', checked: true }).waitFor();
      await write(first, 'good');
      await answer('good').getByText('received', { exact: true }).waitFor();
      assert.deepEqual(
        simulator.incoming.map(({ body, inReplyToId }) => [body, inReplyToId]),
        [
          ['is anyone there?', undefined],
          ['good', simulator.messages[0]?.messageId],
        ],
      );
    } finally {
      await nodeRed.stop();
    }
  });

  it('sets the result of the next message and of a handset', async () => {
    await open({}, '#service');
    const next = page.getByLabel('The next message that a flow sends is');
    for (const [choice, expected] of [
      ['not received', 'not received'],
      ['expired', 'expired'],
      ['refused: number blocked', 'not sent: Number is in the blocked list'],
    ] as const) {
      await next.selectOption(choice);
      await page.locator('#next-outcome.unusual').waitFor();
      await send({ to: first, body: choice });
      await phone(first)
        .locator('.bubble', { hasText: choice })
        .last()
        .locator('.status', { hasText: expected })
        .waitFor();
      await page.locator('#next-outcome:not(.unusual)').waitFor();
    }
    await phone(first).getByLabel('Messages to this handset are').selectOption('unreachable');
    await phone(first).locator('.unusual').waitFor();
    await send({ to: first, body: 'far away' });
    await phone(first).locator('.bubble', { hasText: 'far away' }).getByText('unreachable').waitFor();
    await phone(first).getByLabel('Messages to this handset are').selectOption('refused: number blocked');
    await until(
      async () => (await (await fetch(`${simulator.controlUrl}/state`)).json()).account.blocked.length === 1,
      'the handset is blocked',
    );
    assert.match((await send({ to: first, body: 'no' })).text, /errorCode="403"/);
  });

  it('adds a named handset by keyboard, and refuses an invalid number', async () => {
    await open();
    await page.getByText('Add a handset').focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.type('021 555');
    await page.keyboard.press('Enter');
    await page.getByText('Enter the number with its country code').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('name')), 'msisdn');
    await page.locator('#add-handset').getByLabel('Number').fill('');
    await page.keyboard.type('+64 (21) 555-124');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Anna');
    await page.keyboard.press('Enter');
    await phone(second).getByRole('heading', { name: 'Anna' }).waitFor();
    await page.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA');
    await page.keyboard.type('first line');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('second line');
    await page.keyboard.press('Enter');
    await phone(second).locator('.bubble.typed').waitFor();
    assert.equal(simulator.incoming[0]?.body, 'first line\nsecond line');
    assert.equal(simulator.incoming[0]?.displayName, 'Anna');
    assert.equal(await phone(second).getByRole('radio', { name: 'Reply' }).isDisabled(), true);
    // The page clears the field when the simulator has accepted the message.
    await phone(second).locator('textarea:placeholder-shown').waitFor();
    await page.reload();
    await phone(second).locator('.bubble.typed').waitFor();
  });

  it('renames a handset, refuses a used name, and removes the handset', async () => {
    await open();
    simulator.addContact('Anna', first);
    simulator.receive({ from: second, to: '642100000001', body: 'hello' });
    await row(first).getByText('Anna').waitFor();
    const opened = await choose(second);
    const rename = async (name: string): Promise<void> => {
      await opened.getByRole('button', { name: 'Rename' }).click();
      await opened.getByLabel('Name of this handset').fill(name);
      await page.keyboard.press('Enter');
    };
    await rename('Anna');
    await opened.getByText(`Anna is +${first}. Choose another name.`).waitFor();
    await page.keyboard.press('Escape');
    await rename('👩‍🚒');
    await opened.getByRole('heading', { name: '👩‍🚒' }).waitFor();
    await row(second).locator('.name', { hasText: '👩‍🚒' }).waitFor();
    await row(second).getByText(`+${second}`).waitFor();
    assert.equal(await row(second).locator('.initial').innerText(), '👩‍🚒', 'one sign, not a part of it');
    await opened.getByRole('button', { name: 'Remove the handset' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await row(second).waitFor();
    await opened.getByRole('button', { name: 'Remove the handset' }).click();
    await page.getByText('Remove 👩‍🚒, with its messages').waitFor();
    await page.getByRole('button', { name: 'Remove', exact: true }).and(page.locator('dialog *')).click();
    await row(second).waitFor({ state: 'detached' });
    await phone(first).waitFor();
    assert.deepEqual((await (await fetch(`${simulator.controlUrl}/state`)).json()).account.contacts, { Anna: first });
    simulator.receive({ from: second, to: '642100000001', body: 'I am back' });
    await row(second).getByText('I am back').waitFor();
  });

  it('sets balance and daily limit, and shows the cost of messages', async () => {
    await open({}, '#service');
    const balance = page.getByLabel('Balance');
    await balance.fill('1');
    await page.getByLabel('Messages per day').fill('2');
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

  it('switches callbacks on and off, and masks their tokens in the log', async () => {
    const receiver = await CallbackReceiver.start();
    try {
      await open({}, '#service');
      const panel = page.locator('#callbacks-form');
      await panel.getByRole('switch').click();
      await panel.getByText('Enter an address to call').waitFor();
      assert.equal(await panel.getByRole('switch').isChecked(), false);
      await panel.getByLabel('Replies go to').fill(receiver.url('/cb?token=do-not-show'));
      await panel.getByLabel('Format').selectOption('FORMv1');
      await untilOrganisation(({ callbackFormat }) => callbackFormat === 'FORMv1');
      await panel.getByRole('switch').click();
      await untilOrganisation(({ callbackUrl }) => callbackUrl !== undefined);
      await write(first, 'call me');
      await phone(first)
        .locator('.bubble')
        .getByText(/^called back \d\d:\d\d:\d\d$/)
        .waitFor();
      await goTo('Log');
      const entry = page.locator('.log-entry.callback', { hasText: 'reply callback' });
      await entry.getByText('200', { exact: true }).waitFor();
      assert.match(receiver.received[0]?.body ?? '', /body=call(\+|%20)me/);
      await entry.locator('summary').click();
      await entry.getByText(/body=call/).waitFor();
      assert.equal((await entry.innerText()).includes('do-not-show'), false);
      await goTo('Service');
      await panel.getByRole('switch', { checked: true }).click();
      await untilOrganisation(({ callbackUrl }) => callbackUrl === undefined);
      await write(first, 'do not call me');
      await phone(first).getByText('do not call me').waitFor();
      await simulator.whenIdle();
      assert.equal(simulator.callbackLog.length, 1);
      assert.match(await panel.getByLabel('Replies go to').inputValue(), /\/cb/);
    } finally {
      await receiver.close();
    }
  });

  it('logs each request with masked credentials, and filters the log', async () => {
    await open();
    await send({ to: first, body: 'look inside', userId: 'demo', password: 'demo-password' }, 'Bearer do-not-show');
    await send({ to: first, body: 'look inside', password: 'do-not-show' });
    const entries = page.locator('.log-entry');
    await entries.nth(1).waitFor();
    await phone(first).getByRole('link', { name: 'Request in the log: look inside' }).last().click();
    await entries.first().getByRole('link', { name: 'Show the message' }).click();
    await page.waitForFunction(() => document.activeElement?.classList.contains('bubble'));
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
    const filter = page.locator('#log-filter');
    await filter.selectOption('polling');
    await entries.first().waitFor({ state: 'detached' });
    await filter.selectOption('sending');
    await entries.nth(1).waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('No such entries yet').waitFor();
  });

  it('makes an endpoint fail several times, and shows faults set by programs', async () => {
    await open({}, '#service');
    const fault = page.locator('.faults li[data-endpoint="send"]');
    await fault.getByLabel('Kind of fault').selectOption('503 unavailable');
    await fault.getByLabel('How often').selectOption('3 times');
    await flip(fault, true);
    await fault.getByText('3 left').waitFor();
    assert.equal((await send({ to: first, body: 'x' })).status, 503);
    await fault.getByText('2 left').waitFor();
    simulator.fault('send', { delayMs: 77 });
    await page.waitForFunction(
      () =>
        document.querySelector<HTMLSelectElement>('[data-endpoint="send"] select')?.selectedOptions[0]?.text ===
        '{"delayMs":77}',
    );
    simulator.fault('send', null);
    await fault.and(page.locator(':not(.on)')).waitFor();
    assert.equal(await fault.getByRole('switch').isChecked(), false);
  });

  it('simulates an outage that refuses every connection, and ends it', async () => {
    await open({}, '#service');
    const service = simulator.baseUrl;
    await setOutage(true);
    await assert.rejects(
      fetch(service),
      ({ cause }: Error) => (cause as NodeJS.ErrnoException).code === 'ECONNREFUSED',
    );
    assert.equal(await page.locator('#credentials code').first().innerText(), service);
    await page.reload();
    await whenLoaded();
    await write(first, 'nobody fetches this yet');
    await phone(first).getByText('waiting for the flow').waitFor();
    await goTo('Service');
    await setOutage(false);
    assert.equal(page.url(), `${service}/#service`);
    assert.equal((await send({ to: first, body: 'here again' })).status, 200);
    await phone(first).locator('.bubble').getByText('here again').waitFor();
    await setOutage(true);
    await page.getByRole('button', { name: 'Reset everything' }).click();
    await page.getByRole('button', { name: 'Delete and reset' }).click();
    await page.waitForURL(`${service}/#service`);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('switch', { name: 'Outage', checked: false }).waitFor();
    // An outage interrupts the event stream of the page, or resets its request if the stream is just starting.
    const brokenOff = /(?:ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET) of \S+\/control\/events$/;
    problems = problems.filter((problem) => !problem.startsWith('a request to') && !brokenOff.test(problem));
  });

  it('sends START and STOP by buttons, and shows when a flow fetched them', async () => {
    await open();
    await phone(first).getByRole('button', { name: 'Write START' }).click();
    await phone(first).locator('.bubble.typed').getByText('START').waitFor();
    await phone(first).getByText('waiting for the flow').waitFor();
    const headers = { authorization: `Bearer ${simulator.credentials.apiKey}` };
    await fetch(`${simulator.baseUrl}/api/1/sms/in`, { headers });
    await phone(first)
      .getByText(/^fetched \d\d:\d\d:\d\d$/)
      .waitFor();
    await send({ to: first, body: 'News', messageId: 'news' });
    await phone(first).locator('.bubble.sent').waitFor();
    await phone(first).getByLabel('Write as').fill('half a sentence');
    await phone(first).getByRole('button', { name: 'Write STOP' }).click();
    await phone(first).locator('.bubble.typed').getByText('STOP').waitFor();
    assert.deepEqual(
      simulator.incoming.map(({ body, inReplyToId }) => [body, inReplyToId]),
      [
        ['START', undefined],
        ['STOP', 'news'],
      ],
    );
    assert.equal(await phone(first).getByLabel('Write as').inputValue(), 'half a sentence');
  });

  it('opens the latest handset until the user chooses one', async () => {
    await open();
    await phone(first).waitFor();
    await send({ to: second, body: 'hello' });
    await phone(second).locator('.bubble').getByText('hello').waitFor();
    await send({ to: first, body: 'and you' });
    await phone(first).locator('.bubble').getByText('and you').waitFor();
    await phone(first).getByLabel('Write as').fill('I am wri');
    await send({ to: second, body: 'later' });
    await row(second).getByText('later').waitFor();
    assert.equal(await phone(first).getByLabel('Write as').inputValue(), 'I am wri');
  });

  it('opens a search result at its message', async () => {
    for (let index = 0; index < 200; index += 1) {
      simulator.receive({ from: first, to: '642100000001', body: index === 50 ? 'the needle' : `hay ${index}` });
    }
    await open();
    await page.getByLabel('Search').fill('needle');
    await row(first).getByText('the needle').waitFor();
    await row(first).click();
    await phone(first).locator('.bubble:focus', { hasText: 'the needle' }).waitFor();
    await page.getByLabel('Search').fill('');
    await row(first).getByText('hay 199').waitFor();
    await row(first).click();
    await phone(first).locator('.bubble').getByText('hay 199').waitFor();
  });

  it('copies the credentials', async () => {
    await open({ permissions: ['clipboard-read', 'clipboard-write'] }, '#service');
    for (const [name, value] of [
      ['Base URL', simulator.baseUrl],
      ['API key', 'demo-api-key'],
      ['User', 'demo'],
      ['Password', 'demo-password'],
    ] as const) {
      const button = page.getByRole('button', { name: `Copy the ${name}` });
      // The button shows *Copied* only for a moment.
      const copied = button.getByText('Copied').waitFor();
      await button.click();
      await copied;
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), value);
    }
  });

  it('shows a lost connection, and catches up after it', async () => {
    await open();
    await simulator.setOnline(false);
    await page.getByText('Not connected').waitFor();
    await write(first, 'nobody hears this');
    // The conversation shows the same error if it was still loading.
    await phone(first).locator('form').getByText('The simulator does not answer').waitFor();
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
    // The browser reports the refused connections.
    problems = [];
  });

  it('lists and finds fifty handsets with their last messages', async () => {
    simulator.addContact('Änna', '6421555049');
    for (let index = 0; index < 500; index += 1) {
      simulator.receive({ from: `64215550${index % 50}`.padEnd(10, '0'), to: '642100000001', body: `text ${index}` });
    }
    await open();
    const shown = page.locator('.handset');
    await page.waitForFunction(() => document.querySelectorAll('.handset').length > 40);
    const count = await shown.count();
    assert.equal(count, simulator.handsets({ search: '', limit: 1 }).total);
    assert.match(await shown.first().innerText(), /text 499/);
    simulator.receive({ from: '6421555000', to: '642100000001', body: 'up I go' });
    await shown.first().getByText('up I go').waitFor();
    await page.getByLabel('Search').fill('änna');
    await page.waitForFunction(() => document.querySelectorAll('.handset').length === 1);
    const found = await shown.innerText();
    assert.ok(found.includes('Änna') && found.includes('+6421555049'), found);
    await page.getByLabel('Search').fill('text 123');
    await page.waitForFunction(() => document.querySelector('.handset .preview')?.textContent === 'text 123');
    await page.getByLabel('Search').fill('nobody has this');
    await page.getByText('No handset matches the search').waitFor();
    await page.getByLabel('Search').fill('');
    await page.waitForFunction((all) => document.querySelectorAll('.handset').length === all, count);
    await shown.first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const second = await shown.nth(1).getAttribute('data-msisdn');
    await phone(second ?? '').waitFor();
  });

  it('shows the end of a flood of messages', async () => {
    await start({ waitMs: 0 });
    await open({}, `#handset-${first}`);
    for (let index = 0; index < 2000; index += 1) {
      simulator.receive({ from: index % 2 ? first : second, to: '642100000001', body: `flood ${index}` });
      if (index % 20 === 0) await send({ to: first, body: `sent ${index}` });
    }
    await phone(first).locator('.bubble-text').getByText('flood 1999', { exact: true }).waitFor();
    await row(second).getByText('flood 1998').waitFor();
    assert.ok((await page.locator('.bubble').count()) <= 200);
    assert.ok((await page.locator('.log-entry').count()) <= 200);
    const keys = await page
      .locator('.bubble')
      .evaluateAll((bubbles) => bubbles.map((bubble) => Number((bubble as HTMLElement).dataset.key)));
    assert.deepEqual(
      keys,
      [...new Set(keys)].sort((one, other) => one - other),
      'each once, in order',
    );
  });

  it('replies to a chosen message, and shows messageId and parts', async () => {
    await open();
    await send({ to: first, body: 'Shall I come?', messageId: 'question-1' });
    await send({ to: first, body: 'x'.repeat(200), messageId: 'question-2' });
    const bubbles = phone(first).locator('.bubble.sent');
    await bubbles.nth(1).getByText('2 parts').waitFor();
    await bubbles.first().getByText('question-1').waitFor();
    await bubbles.first().getByText('1 part').waitFor();
    await bubbles.first().getByRole('button', { name: 'Reply to: Shall I come?' }).click();
    await phone(first).locator('.quoted', { hasText: 'Shall I come?' }).waitFor();
    await page.keyboard.type('yes');
    await page.keyboard.press('Enter');
    await simulator.until(() => simulator.incoming.length === 1);
    assert.equal(simulator.incoming[0]?.inReplyToId, 'question-1');
    await phone(first).locator('.quote').waitFor({ state: 'hidden' });
    await write(first, 'and this to the last one');
    await simulator.until(() => simulator.incoming.length === 2);
    assert.equal(simulator.incoming[1]?.inReplyToId, 'question-2');
    await bubbles
      .first()
      .getByRole('button', { name: /^Reply to/ })
      .click();
    await page.keyboard.press('Escape');
    await phone(first).locator('.quote').waitFor({ state: 'hidden' });
  });

  it('shows the date between messages of different days', async () => {
    const clock = createManualClock(Date.parse('2026-03-01T12:00:00.000Z'));
    await start({ clock });
    for (const body of ['one', 'two']) simulator.receive({ from: first, to: '642100000001', body });
    await clock.advance(48 * 3_600_000);
    simulator.receive({ from: first, to: '642100000001', body: 'three' });
    await open();
    await phone(first).locator('.bubble').getByText('three').waitFor();
    assert.deepEqual(
      await phone(first)
        .locator('.bubbles > li')
        .evaluateAll((items) =>
          items.map((item) => item.querySelector('.bubble-text')?.textContent ?? item.textContent),
        ),
      ['Sunday, March 1, 2026', 'one', 'two', 'Tuesday, March 3, 2026', 'three'],
    );
  });

  it('edits the address book, and refuses unknown members', async () => {
    await open({}, '#addresses');
    const contact = page.locator('#contact-form');
    await contact.getByLabel('Name').fill('Anna');
    await contact.getByLabel('Number').fill('+64 21 555 123');
    await page.keyboard.press('Enter');
    await page.locator('#contacts').getByText('Anna').waitFor();
    // The form takes the focus back when its contact is saved.
    await contact.locator('input[name="name"]:focus').waitFor();
    const group = page.locator('#group-form');
    await group.getByLabel('Name').fill('nurses');
    await group.getByLabel('Members').fill('Anna, Bob');
    await page.keyboard.press('Enter');
    await page.getByText('Bob is neither a contact nor a number.').waitFor();
    await group.getByLabel('Members').fill('Anna, 6421555124');
    await page.keyboard.press('Enter');
    await page.locator('#groups').getByText('Anna, 6421555124').waitFor();
    assert.match((await send({ to: 'nurses', body: 'to both' })).text, /msisdn="nurses" isError="false"/);
    await row(second).getByText('to both').waitFor();
    await page.locator('#groups').getByRole('button', { name: 'Remove nurses' }).click();
    await page.locator('#groups li').waitFor({ state: 'detached' });
    assert.match(
      (await send({ to: 'nurses Anna', body: 'x' })).text,
      /errorMessage="Contact is not in the address book"/,
    );
  });

  it('clears the log, moves the clock, and resets everything if confirmed', async () => {
    await open();
    await send({ to: first, body: 'soon gone' });
    await page.locator('.log-entry').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.locator('.log-entry').waitFor({ state: 'detached' });
    await page.reload();
    await whenLoaded();
    await phone(first).getByText('soon gone').waitFor();
    assert.equal(await page.locator('.log-entry').count(), 0);
    simulator.receive({ from: second, to: '642100000001', body: 'soon gone too' });
    simulator.addContact('Anna', first);
    await goTo('Service');
    await page.getByText('Simulated time is the real time.').waitFor();
    const before = simulator.clock.now();
    await page.getByRole('button', { name: '+1 day' }).click();
    await page.getByText('Simulated time at the last change').waitFor();
    assert.ok(simulator.clock.now() - before >= 86_400_000);
    await page.getByRole('button', { name: 'Reset everything' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(simulator.messages.length, 1);
    await page.getByRole('button', { name: 'Reset everything' }).click();
    await page.getByRole('button', { name: 'Delete and reset' }).click();
    await page.getByText('Simulated time is the real time.').waitFor();
    await row(second).waitFor({ state: 'detached' });
    await row(first).getByText('No messages yet').waitFor();
    await phone(first).locator('.bubble').waitFor({ state: 'detached' });
    assert.equal(simulator.messages.length + simulator.incoming.length, 0);
    await write(first, 'from the beginning');
    await phone(first).getByText('from the beginning').waitFor();
  });

  it('shows one view at a time on a phone', async () => {
    simulator.receive({ from: second, to: '642100000001', body: 'hello' });
    await open({ viewport: { width: 360, height: 740 } });
    assert.equal(await phone(second).isVisible(), false);
    await choose(second);
    await row(second).waitFor({ state: 'hidden' });
    await phone(second).getByText('hello').waitFor();
    await page.getByRole('link', { name: 'Back to the handsets' }).click();
    await row(second).waitFor();
    await goTo('Log');
    await page.getByRole('region', { name: 'Log' }).waitFor();
    await row(second).waitFor({ state: 'hidden' });
    await page.goBack();
    await row(second).waitFor();
  });

  it('shows right-to-left messages without changing the page', async () => {
    simulator.addContact('أمينة', first);
    simulator.receive({ from: first, to: '642100000001', body: 'مرحبا' });
    await open();
    const text = phone(first).locator('.bubble-text');
    await text.waitFor();
    assert.equal(await text.evaluate((element) => getComputedStyle(element).direction), 'rtl');
    await page.evaluate(() => {
      document.documentElement.dir = 'rtl';
    });
    const { list, conversation, fits } = await page.evaluate(() => ({
      list: document.querySelector('#handsets')?.getBoundingClientRect().left ?? 0,
      conversation: document.querySelector('#conversation')?.getBoundingClientRect().left ?? 0,
      fits: document.documentElement.scrollWidth <= document.documentElement.clientWidth,
    }));
    assert.ok(list > conversation && fits);
  });

  it('shows markup in a message as plain characters', async () => {
    await open();
    const markup = '<img src=x onerror="document.title=1"><b>bold</b>';
    await write(first, markup);
    assert.equal(await phone(first).locator('.bubble-text').innerText(), markup);
  });

  it('is accessible: names, landmarks, headings and announcements', async () => {
    await open();
    await write(first, 'hear me');
    await page
      .locator('#announcer[aria-live="polite"]', { hasText: `${first} wrote: hear me` })
      .waitFor({ state: 'attached' });
    for (const part of ['Log', 'Service', 'Address book'] as const) {
      await goTo(part);
      assert.deepEqual(await findBarriers(page, 'body'), [], part);
    }
    await goTo('Log');
    for (const name of ['Handsets', 'Conversation', 'Log']) {
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

  it('shows the keyboard focus on every control', async () => {
    await open({}, '#service');
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
    ['narrow', { colorScheme: 'light', viewport: { width: 900, height: 700 } }],
    ['widest', { colorScheme: 'dark', viewport: { width: 2560, height: 1300 } }],
    ['phone', { colorScheme: 'light', viewport: { width: 360, height: 740 } }],
  ] satisfies [string, BrowserContextOptions][]) {
    it(`fits and has enough contrast: ${name}`, async () => {
      await open(options);
      await converse();
      const { scrollWidth, clientWidth } = await page.evaluate(() => ({
        scrollWidth: document.documentElement.scrollWidth,
        clientWidth: document.documentElement.clientWidth,
      }));
      assert.ok(scrollWidth <= clientWidth, `${scrollWidth} px of content on ${clientWidth} px`);
      assert.deepEqual(await findFaintTexts(page), []);
      for (const part of ['Address book', 'Service', 'Log'] as const) {
        await goTo(part);
        assert.deepEqual(await findFaintTexts(page), [], part);
      }
      await page.evaluate((hash) => {
        location.hash = hash;
      }, `#handset-${second}`);
      await phone(second).getByText('on my way').waitFor();
      assert.deepEqual(await findFaintTexts(page), []);
      const folder = join(root, '.cache', 'screenshots');
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: join(folder, `simulator-${name}.png`), animations: 'disabled' });
    });
  }

  /** Creates a realistic conversation between a handset and a flow, with every kind of entry. */
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
    const headers = { authorization: `Bearer ${simulator.credentials.apiKey}` };
    for (const _ of simulator.incoming) await fetch(`${simulator.baseUrl}/api/1/sms/in`, { headers });
    await choose(second);
    await phone(second).locator('.bubble').getByText('spare key').waitFor();
    await phone(second).locator('.bubble').getByText('on my way').waitFor();
    await page.waitForFunction(() => !document.querySelector('[data-phase="under-way"]'));
  }
});
