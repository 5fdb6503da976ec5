import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import { createManualClock } from '../../simulator';
import { type FlowNode, startNodeRed } from '../node-red-process';
import { createAccount } from '../reliability/flows';
import { findBarriers, findFaintTexts } from './axe';
import {
  choose,
  first,
  goTo,
  open,
  page,
  phone,
  problems,
  row,
  second,
  send,
  simulator,
  start,
  useSimulatorPage,
  write,
} from './simulator-page';

const root = join(__dirname, '..', '..');

/** Creates a flow that answers every message. */
function createFlows(): FlowNode[] {
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

describe("the conversations on the simulator's page", function () {
  this.timeout(60_000);
  useSimulatorPage();

  it('shows a message, the answer of a flow in Node-RED and its status', async () => {
    const nodeRed = await startNodeRed({ flows: createFlows() });
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

  it('shows a lost connection, and catches up after it', async () => {
    await open();
    await simulator.setOnline(false);
    await page.getByText('Not connected').waitFor();
    await write(first, 'nobody hears this');
    // Looks only in the form, because the conversation shows the same error if it was still loading.
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
    problems.length = 0;
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
    await shown.first().click();
    await page.locator('.bubble:focus', { hasText: 'text 123' }).waitFor();
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

  it('shows right-to-left messages, and markup as plain characters', async () => {
    simulator.addContact('أمينة', first);
    simulator.receive({ from: first, to: '642100000001', body: 'مرحبا' });
    await open();
    const text = phone(first).locator('.bubble-text');
    await text.waitFor();
    assert.equal(await text.evaluate((element) => getComputedStyle(element).direction), 'rtl');
    const markup = '<img src=x onerror="document.title=1"><b>bold</b>';
    await write(first, markup);
    await text.getByText(markup, { exact: true }).waitFor();
  });

  it('is accessible, and announces messages', async () => {
    await open();
    await write(first, 'hear me');
    await page
      .locator('#announcer[aria-live="polite"]', { hasText: `${first} wrote: hear me` })
      .waitFor({ state: 'attached' });
    for (const part of ['Log', 'Service', 'Address book'] as const) {
      await goTo(part);
      assert.deepEqual(await findBarriers(page, 'body'), [], part);
    }
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
