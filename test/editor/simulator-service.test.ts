import assert from 'node:assert/strict';
import { CallbackReceiver } from '../simulator/callback-receiver';
import { until } from '../until';
import {
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
  useSimulatorPage,
  whenLoaded,
  write,
} from './simulator-page';

describe('the simulator page', () => {
  useSimulatorPage();

  /** Waits until the organisation of the simulator has a setting. */
  const untilOrganisation = (isSet: (organisation: Record<string, string>) => boolean): Promise<void> =>
    until(async () => isSet((await (await fetch(`${simulator.pageUrl}control/state`)).json()).account.organisation));

  it('sets the result of the next message or of one handset', async () => {
    await open({}, '#service');
    const next = page.getByLabel('The next message that a flow sends is');
    await next.selectOption('refused: number blocked');
    await page.locator('#next-outcome.unusual').waitFor();
    await send({ to: first, body: 'first' });
    const refusal = phone(first).locator('.status', { hasText: 'not sent: Number is in the blocked list' });
    await refusal.waitFor();
    await page.locator('#next-outcome:not(.unusual)').waitFor();
    await phone(first).getByLabel('Messages to this handset are').selectOption('unreachable');
    await phone(first).locator('.unusual').waitFor();
    await send({ to: first, body: 'far away' });
    await phone(first).locator('.bubble', { hasText: 'far away' }).getByText('unreachable').waitFor();
  });

  it('sets the balance and the daily limit', async () => {
    await open({}, '#service');
    const balance = page.getByLabel('Balance');
    await balance.fill('1');
    await page.getByLabel('Messages per day').fill('1');
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await simulator.until(() => simulator.balance === 1);
    await send({ to: first, body: 'paid' });
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[name=balance]')?.value === '0');
    assert.equal((await send({ to: first, body: 'the second of the day' })).status, 403);
    await balance.fill('-1');
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await page.getByText('Enter the balance as a number of 0 or more').waitFor();
  });

  it('switches callbacks on and off', async () => {
    const receiver = await CallbackReceiver.start();
    try {
      await open({}, '#service');
      const panel = page.locator('#callbacks-form');
      const set = panel.getByRole('button', { name: 'Set callbacks' });
      await panel.getByLabel('Replies go to').fill('nowhere');
      await set.click();
      await panel.getByText('callbackUrl must be a URL').waitFor();
      simulator.setBalance(7);
      await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[name=balance]')?.value === '7');
      assert.equal(await panel.getByLabel('Replies go to').inputValue(), 'nowhere');
      // Ignores the refused request, which the browser reports as a problem.
      problems.length = 0;
      await panel.getByLabel('Replies go to').fill(receiver.url('/cb'));
      await panel.getByLabel('Format').selectOption('FORMv1');
      await set.click();
      await untilOrganisation(
        ({ callbackFormat, callbackUrl }) => callbackFormat === 'FORMv1' && callbackUrl !== undefined,
      );
      await write(first, 'call me');
      await phone(first)
        .locator('.bubble')
        .getByText(/^called back \d\d:\d\d:\d\d$/)
        .waitFor();
      await goTo('Log');
      const entry = page.locator('.log-entry.callback', { hasText: 'reply callback' });
      await entry.getByText('200', { exact: true }).waitFor();
      assert.match(receiver.received[0]?.body ?? '', /body=call(\+|%20)me/);
      await goTo('Service');
      await panel.getByLabel('Replies go to').fill('');
      await set.click();
      await untilOrganisation(({ callbackUrl }) => callbackUrl === undefined);
    } finally {
      await receiver.close();
    }
  });

  it('masks credentials in the log', async () => {
    await open();
    const authorization = 'Bearer do-not-show';
    await send({ to: first, body: 'look inside', userId: 'demo', password: 'demo-password' }, { authorization });
    await send({ to: first, body: 'look inside', password: 'do-not-show' });
    const entries = page.locator('.log-entry');
    await entries.nth(1).waitFor();
    const link = phone(first).getByRole('link', { name: 'Request in the log: look inside' }).last();
    await link.click();
    await entries.first().locator('[open] summary').click();
    await link.click();
    await entries.first().getByRole('link', { name: 'Show the message' }).click();
    await page.waitForFunction(() => document.activeElement?.classList.contains('bubble'));
    await entries.nth(1).locator('summary').click();
    await entries.nth(1).getByText('authorization: Bearer ••••••').waitFor();
    const shown = await page.locator('#log').innerText();
    assert.match(shown, /to: 6421555123\s+body: look inside/);
    assert.doesNotMatch(shown, /do-not-show|demo-password/);
    const filter = page.locator('#log-filter');
    await filter.selectOption('sending');
    await entries.nth(1).waitFor();
    await filter.selectOption('callbacks');
    await page.getByText('No such entries yet').waitFor();
    await link.click();
    await entries.first().locator('[open]').waitFor();
  });

  it('makes an endpoint fail several times', async () => {
    await open({}, '#service');
    const fault = page.locator('.faults li[data-endpoint="send"]');
    const kind = fault.getByLabel('Fault of Sending');
    await fault.getByLabel('How often').selectOption('3 times');
    await kind.selectOption('503 unavailable');
    await fault.getByText('3 left').waitFor();
    assert.equal((await send({ to: first, body: 'x' })).status, 503);
    await fault.getByText('2 left').waitFor();
    simulator.fault('send', { delayMs: 77 });
    const untilShown = (text: string) =>
      page.waitForFunction(
        (expected) =>
          document.querySelector<HTMLSelectElement>('[data-endpoint="send"] select')?.selectedOptions[0]?.text ===
          expected,
        text,
      );
    await untilShown('{"delayMs":77}');
    simulator.fault('send', null);
    await untilShown('none');
  });

  it('starts an outage', async () => {
    await open({}, '#service');
    await page.getByRole('button', { name: 'Outage for 1 min' }).click();
    await page.getByText('Not connected').waitFor();
    await simulator.setOnline(true);
    await page.getByText('Live', { exact: true }).waitFor();
    // Ignores the refused connections, which the browser reports as problems.
    problems.length = 0;
  });

  it('copies credentials to the clipboard', async () => {
    await open({ permissions: ['clipboard-read', 'clipboard-write'] }, '#service');
    for (const [name, value] of [
      ['Base URL', simulator.baseUrl],
      ['Password', 'demo-password'],
    ] as const) {
      const button = page.getByRole('button', { name: `Copy the ${name}` });
      // Starts to wait before the click, because the button shows *Copied* only for a moment.
      const copied = button.getByText('Copied').waitFor();
      await button.click();
      await copied;
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), value);
    }
  });

  it('edits the address book', async () => {
    await open({}, '#addresses');
    const contact = page.locator('#contact-form');
    await contact.getByLabel('Name').fill('Anna');
    await contact.getByLabel('Number').fill('+64 21 555 123');
    await page.keyboard.press('Enter');
    await page.locator('#contacts').getByText('Anna').waitFor();
    // Waits for the focus, because the form focuses its name field again when it has saved the contact.
    await contact.locator('input[name="name"]:focus').waitFor();
    const group = page.locator('#group-form');
    await group.getByLabel('Name').fill('nurses');
    await group.getByLabel('Members').fill('Anna, Bob');
    await page.keyboard.press('Enter');
    await page.getByText('Bob is neither a contact nor a number.').waitFor();
    await group.getByLabel('Members').fill('Anna, 6421555124');
    await page.keyboard.press('Enter');
    await page.locator('#groups').getByText('Anna, 6421555124').waitFor();
    await send({ to: 'nurses', body: 'to both' });
    await row(second).getByText('to both').waitFor();
    await page.locator('#groups').getByRole('button', { name: 'Remove nurses' }).click();
    await page.locator('#groups li').waitFor({ state: 'detached' });
  });

  it('clears the log, moves the clock and resets the simulator', async () => {
    await open();
    await send({ to: first, body: 'soon gone' });
    await page.locator('.log-entry').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.locator('.log-entry').waitFor({ state: 'detached' });
    await page.reload();
    await whenLoaded();
    await phone(first).getByText('soon gone').waitFor();
    assert.equal(await page.locator('.log-entry').count(), 0);
    await goTo('Service');
    await page.getByText('Simulated time is the real time.').waitFor();
    const before = simulator.clock.now();
    await page.getByRole('button', { name: '+1 day' }).click();
    await page.getByText('Simulated time at the last change').waitFor();
    assert.ok(simulator.clock.now() - before >= 86_400_000);
    page.once('dialog', (dialog) => dialog.dismiss());
    await page.getByRole('button', { name: 'Reset everything' }).click();
    assert.equal(simulator.messages.length, 1);
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Reset everything' }).click();
    await page.getByText('Simulated time is the real time.').waitFor();
    await row(first).getByText('No messages yet').waitFor();
    await phone(first).locator('.bubble').waitFor({ state: 'detached' });
    assert.equal(simulator.messages.length, 0);
  });
});
