import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { editor, nodeRed, simulator, useFormEditor } from './form-editor';

const screenshots = join(__dirname, '..', '..', '.cache', 'screenshots');

describe('the first flow of the README', () => {
  useFormEditor(undefined, { deviceScaleFactor: 1.5 });

  /** Draws a wire from the first output of a node to the input of another. */
  async function wire(from: string, to: string): Promise<void> {
    const { page } = editor;
    await page.locator(`[id="${from}"] .red-ui-flow-port-output .red-ui-flow-port`).first().hover();
    await page.mouse.down();
    await page.locator(`[id="${to}"] .red-ui-flow-port-input .red-ui-flow-port`).hover();
    await page.mouse.up();
  }

  it('sends a message if a user follows each step', async () => {
    const { page } = editor;
    const button = (form: Locator, name: string) => form.getByRole('button', { name, exact: true });
    await nodeRed.deploy([{ id: 'tab', type: 'tab', label: 'Flow 1' }]);
    await editor.open(nodeRed);
    const inject = await editor.drag('inject', 120, 100);
    const send = await editor.drag('sms-send', 320, 100);
    const debug = await editor.drag('debug', 520, 100);
    await wire(inject, send);
    await wire(send, debug);

    await editor.openForm(send);
    const account = await editor.openAccount('add');
    await account.locator('#node-config-input-baseUrl').fill(simulator.baseUrl);
    await account.locator('#node-config-input-apiKey').fill(simulator.credentials.apiKey ?? '');
    await button(account, 'Test connection').click();
    await account.locator('#sms-account-test-result', { hasText: 'Balance' }).waitFor();
    await editor.saveAccount();

    await editor.chooseTypeByName('to', 'string');
    await editor.typed('to').fill('6421555123');
    await editor.chooseTypeByName('body', 'string');
    await page.locator('#sms-body-text').fill('Hello from Node-RED');
    await editor.save();

    await editor.openTray(debug);
    await editor.chooseTypeByName('typed-complete', 'complete msg object');
    await editor.save();

    await editor.deploy();
    await page.locator(`[id="${inject}"] .red-ui-flow-node-button-button`).click();
    await simulator.until(() => simulator.messages.length === 1, 30_000);
    assert.deepEqual(simulator.messages[0]?.to, ['6421555123']);
    assert.equal(simulator.messages[0]?.body, 'Hello from Node-RED');

    await page.keyboard.press('Control+g');
    await page.keyboard.press('d');
    await page.locator('.red-ui-debug-msg-expandable').first().click();
    const sms = page.locator('.red-ui-debug-msg-object-entry', { hasText: /^sms:/ });
    await sms.locator('.red-ui-debug-msg-expandable').first().click();
    await sms.getByText('messageId').waitFor();
    await page.setViewportSize({ width: 1200, height: 520 });
    await page.evaluate(() => {
      for (const notification of document.querySelectorAll('.red-ui-notification')) notification.remove();
      document.querySelector('#red-ui-workspace-chart')?.scrollTo(0, 0);
    });
    // Clicks on an empty place, so that no node is selected.
    await page.mouse.click(600, 450);
    await editor.settle();
    await page.screenshot({ path: join(screenshots, 'first-flow.png') });
  });
});
