import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import { createManualClock } from '../../simulator';
import { createTemporaryFolder } from '../temporary-folder';
import { findBarriers, findFaintTexts } from './axe';
import {
  choose,
  first,
  goTo,
  open,
  page,
  phone,
  poll,
  problems,
  receive,
  row,
  second,
  send,
  simulator,
  start,
  useSimulatorPage,
  write,
} from './simulator-page';

const screenshots = join(__dirname, '..', '..', '.cache', 'screenshots');

describe('the simulator page', () => {
  useSimulatorPage();

  it('shows a conversation between a handset and a flow', async () => {
    await open();
    await phone(first).getByRole('button', { name: 'Write START' }).click();
    await phone(first).locator('.bubble.typed').getByText('START').waitFor();
    await phone(first).getByText('waiting for the flow').waitFor();
    await poll();
    await phone(first)
      .getByText(/^fetched \d\d:\d\d:\d\d$/)
      .waitFor();
    await send({ to: first, body: 'Welcome', messageId: 'news' });
    const answer = phone(first).locator('.bubble.sent', { hasText: 'Welcome' });
    await answer.getByText('received', { exact: true }).waitFor();
    await phone(first).getByRole('radio', { name: 'Reply', checked: true }).waitFor();
    await write(first, 'thanks');
    await phone(first).locator('.bubble.typed').getByText('thanks').waitFor();
    await phone(first).getByLabel('Write as').fill('half a sentence');
    await phone(first).getByRole('button', { name: 'Write STOP' }).click();
    await phone(first).locator('.bubble.typed').getByText('STOP').waitFor();
    const written = simulator.incoming.map(({ body, inReplyToId = 'new' }) => `${body} ${inReplyToId}`);
    assert.deepEqual(written, ['START new', 'thanks news', 'STOP news']);
    assert.equal(await phone(first).getByLabel('Write as').inputValue(), 'half a sentence');
  });

  it('adds a handset by keyboard', async () => {
    await open();
    await page.getByRole('link', { name: 'Add a handset' }).focus();
    await page.keyboard.press('Enter');
    const form = page.locator('#contact-form');
    await form.getByLabel('Name').fill('Anna');
    await page.keyboard.press('Tab');
    await page.keyboard.type('021 555');
    await page.keyboard.press('Enter');
    await page.getByText('Enter the number with its country code').waitFor();
    await form.getByLabel('Number').fill('+64 (21) 555-124');
    await page.keyboard.press('Enter');
    await row(second).getByText('Anna').waitFor();
    await row(second).focus();
    await page.keyboard.press('Enter');
    await phone(second).getByRole('heading', { name: 'Anna' }).waitFor();
    await page.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA');
    await page.keyboard.type('first line');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('second line');
    await page.keyboard.press('Enter');
    await phone(second).locator('.bubble.typed').waitFor();
    const [{ body, displayName } = assert.fail()] = simulator.incoming;
    assert.deepEqual([body, displayName], ['first line\nsecond line', 'Anna']);
  });

  it('opens the latest conversation and keeps its draft while others write', async () => {
    receive(second, 'hello');
    receive(first, 'and you');
    await open({}, '#handset-12');
    await phone(first).locator('.bubble').getByText('and you').waitFor();
    await phone(first).getByLabel('Write as').fill('I am wri');
    await send({ to: second, body: 'later' });
    await row(second).getByText('later').waitFor();
    await choose(second);
    await choose(first);
    assert.equal(await phone(first).getByLabel('Write as').inputValue(), 'I am wri');
  });

  it('opens the clicked handset if a message arrives during the click', async () => {
    for (const from of [first, '6421555125', second]) receive(from, 'one');
    await open();
    await row(second).hover();
    await page.mouse.down();
    receive(first, 'two');
    await row(first).getByText('two').waitFor();
    await page.mouse.up();
    await phone(second).waitFor();
  });

  it('shows missed messages after a lost connection', async () => {
    await open();
    await simulator.setOnline(false);
    await page.getByText('Not connected').waitFor();
    await write(first, 'nobody hears this');
    // Looks only in the form, because a conversation that was still loading shows the same error.
    await phone(first).locator('form').getByText('The simulator does not answer').waitFor();
    assert.equal(await phone(first).getByLabel('Write as').inputValue(), 'nobody hears this');
    // Answers as a proxy does while the simulator restarts.
    await page.route('**/control/events', (route) => route.fulfill({ status: 502 }), { times: 1 });
    await start({ port: Number(new URL(page.url()).port), credentials: { userId: 'u', password: 'p', apiKey: 'new' } });
    receive(first, 'missed meanwhile');
    await phone(first).locator('.bubble').getByText('missed meanwhile').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('#credentials', { hasText: 'new' }).waitFor({ state: 'attached' });
    // Ignores the refused connections, which the browser reports as problems.
    problems.length = 0;
  });

  it('shows many handsets, each with its last message', async () => {
    simulator.addContact('Änna', '6421555049');
    for (let index = 0; index < 500; index += 1) receive(`64215550${index % 50}`.padEnd(10, '0'), `text ${index}`);
    await open();
    await row('6421555049').getByText('Änna').waitFor();
    const { handsets } = simulator.handsets(500);
    const shown = await page
      .locator('.handset')
      .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-msisdn')));
    assert.equal(shown.join(), handsets.map(({ msisdn }) => msisdn).join());
    await row('6421555049').getByText('text 499').waitFor();
    receive('6421555000', 'the newest');
    await row('6421555000').getByText('the newest').waitFor();
  });

  it('keeps the scroll position while messages arrive', async () => {
    for (let index = 0; index < 205; index += 1) receive(first, `text ${index}`);
    await open();
    for (const [from, place] of Object.entries({ [second]: 'text 204', [first]: 'text 100' })) {
      const text = phone(first).locator('.bubble').getByText(place, { exact: true });
      const measure = async () => (await text.boundingBox())?.y ?? Number.NaN;
      await text.evaluate((element) => element.scrollIntoView({ block: 'end' }));
      const before = await measure();
      receive(from, 'new');
      await row(from).getByText('new').waitFor();
      const movedPx = (await measure()) - before;
      assert.ok(Math.abs(movedPx) < 2, `${place} moved by ${movedPx} px`);
    }
  });

  it('replies to a chosen message', async () => {
    await open();
    await send({ to: first, body: 'Shall I come?', messageId: 'question-1' });
    await send({ to: first, body: 'x'.repeat(200), messageId: 'question-2' });
    const bubbles = phone(first).locator('.bubble.sent');
    await bubbles.nth(1).getByText('2 parts').waitFor();
    await bubbles.first().getByText('question-1').waitFor();
    await bubbles.first().getByRole('button', { name: 'Reply to: Shall I come?' }).click();
    await phone(first).locator('.quoted', { hasText: 'Shall I come?' }).waitFor();
    await page.keyboard.type('yes');
    await page.keyboard.press('Enter');
    await simulator.until(() => simulator.incoming.length === 1);
    assert.equal(simulator.incoming[0]?.inReplyToId, 'question-1');
  });

  it('shows the date between messages of different days', async () => {
    const clock = createManualClock(Date.parse('2026-03-01T12:00:00.000Z'));
    const dataFolder = createTemporaryFolder('sms-days');
    await start({ clock, dataFolder });
    receive(first, 'one');
    await clock.advance(48 * 3_600_000);
    receive(first, 'two');
    await start({ clock: createManualClock(Date.parse('2026-03-01T13:00:00.000Z')), dataFolder });
    receive(first, 'three');
    await open();
    await phone(first).locator('.bubble').getByText('three').waitFor();
    const items = await phone(first).locator('.bubbles > li').allInnerTexts();
    assert.match(items.join('|'), /March 1, 2026\|one\n[^|]*\|\w+, March 3, 2026\|two\n[^|]*\|\w+, March 1, .*three/);
  });

  it('shows one view at a time on a phone', async () => {
    receive(second, 'hello');
    await open({ viewport: { width: 360, height: 740 } });
    assert.equal(await phone(second).isVisible(), false);
    await choose(second);
    await row(second).waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: 'Back to the handsets' }).click();
    await row(second).waitFor();
    await goTo('Log');
    await page.getByRole('region', { name: 'Log' }).waitFor();
    await row(second).waitFor({ state: 'hidden' });
    await page.goBack();
    await row(second).waitFor();
  });

  it('shows right-to-left text and escapes HTML in messages', async () => {
    receive(first, 'مرحبا');
    await open();
    const text = phone(first).locator('.bubble-text');
    await text.waitFor();
    assert.equal(await text.evaluate((element) => getComputedStyle(element).direction), 'rtl');
    const markup = '<img src=x onerror="document.title=1"><b>bold</b>';
    await write(first, markup);
    await text.getByText(markup, { exact: true }).waitFor();
  });

  it('is usable with a screen reader and by keyboard', async () => {
    await open({}, '#service');
    await write(first, 'hear me');
    await page
      .locator('#announcer[aria-live="polite"]', { hasText: `${first} wrote: hear me` })
      .waitFor({ state: 'attached' });
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
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

  for (const [name, where, options] of [
    ['light', 'in light colours', { colorScheme: 'light' }],
    ['dark', 'in dark colours', { colorScheme: 'dark' }],
    ['phone', 'on a phone', { colorScheme: 'light', viewport: { width: 360, height: 740 } }],
  ] satisfies [string, string, BrowserContextOptions][]) {
    it(`has no layout or accessibility fault ${where}`, async () => {
      await open(options);
      await converse();
      const { scrollWidth, clientWidth } = await page.evaluate(() => ({
        scrollWidth: document.documentElement.scrollWidth,
        clientWidth: document.documentElement.clientWidth,
      }));
      assert.ok(scrollWidth <= clientWidth, `${scrollWidth} px of content on ${clientWidth} px`);
      for (const part of ['Address book', 'Service', 'Log'] as const) {
        await goTo(part);
        assert.deepEqual(await findBarriers(page, 'body'), [], part);
      }
      await page.evaluate((hash) => {
        location.hash = hash;
      }, `#handset-${second}`);
      await phone(second).getByText('on my way').waitFor();
      assert.deepEqual(await findFaintTexts(page), []);
      mkdirSync(screenshots, { recursive: true });
      await page.screenshot({ path: join(screenshots, `simulator-${name}.png`), animations: 'disabled' });
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
    await send({ to: first, body: 'Ben has taken the call.' });
    simulator.fault('feed', { status: 500 });
    await fetch(`${simulator.baseUrl}/api/2/sms/list`);
    await arrived(2);
    simulator.setNextOutcome('BLOCKED');
    await send({ to: '6421555125', body: 'Are you there?' });
    await arrived(3);
    await send({ to: second, body: 'Thank you. The spare key is at the gate.' });
    await arrived(4);
    simulator.reply({ from: first, body: 'Good. Tell me when it runs again.' });
    for (const _ of simulator.incoming) await poll();
    await choose(second);
    await phone(second).locator('.bubble').getByText('spare key').waitFor();
    await phone(second).locator('.bubble').getByText('on my way').waitFor();
    await page.waitForFunction(() => !document.querySelector('[data-phase="under-way"]'));
  }
});
