import assert from 'node:assert/strict';
import type { Locator } from 'playwright-core';
import { type FlowNode, nodeRedGeneration } from '../node-red-process';
import { until } from '../until';
import { findBarriers } from './axe';
import { allTypes, findOverflow, paletteTypes, unresolvedText } from './editor';
import {
  account,
  editor,
  node,
  nodeRed,
  openAccount,
  openEditor,
  openNode,
  prefixOf,
  readNode,
  simulator,
  tab,
  useFormEditor,
} from './form-editor';
import { unfold } from './form-texts';

describe('a node form', () => {
  useFormEditor();

  it('preselects the account if exactly one account is usable', async () => {
    await openEditor(account(), account({ id: 'second', name: 'Second' }));
    assert.equal((await editor.node(await editor.drag('sms-in', 300, 100))).valid, false, 'two accounts');
    await openEditor({ id: 'other', type: 'tab', label: 'Other' }, account({ z: 'other' }));
    assert.equal((await editor.node(await editor.drag('sms-in', 300, 100))).valid, false, 'an account of another flow');
    await openEditor(account({ d: true }), account({ id: 'second', name: 'Second' }), node('sms-status', { y: 300 }));
    const form = await editor.openForm(await editor.drag('sms-in', 300, 100));
    assert.equal(await form.locator('#node-input-account').inputValue(), 'second');
    await editor.accepts('account');
    await editor.cancel();
    await editor.openForm('sms-status');
    await editor.complains('account', /This account is disabled/);
  });

  it('adds an input to the node if the flow acknowledges messages', async () => {
    let form = await openNode(node('sms-in'));
    const port = editor.page.locator('[id="sms-in"] .red-ui-flow-port-input');
    assert.equal(await port.count(), 0);
    assert.equal(await form.locator('#node-input-ackTimeout').isVisible(), false);
    await form.locator('#node-input-acknowledge').selectOption('flow');
    await form.locator('#node-input-ackTimeout').fill('never');
    await editor.complains('ackTimeout', /number/);
    await form.locator('#node-input-ackTimeout').fill('30');
    await editor.saveAndReload();
    await port.waitFor();
    form = await editor.openForm('sms-in');
    await form.locator('#node-input-acknowledge').selectOption('auto');
    await editor.save();
    await port.waitFor({ state: 'detached' });
    assert.equal((await editor.node('sms-in')).inputs, 0);
  });

  it('saves the answers of sms-ask', async () => {
    const form = await openNode(node('sms-ask'));
    const row = (index: number) => form.locator('.sms-answer').nth(index);
    for (const [index, value, words] of [
      [0, 'YES', 'yes, ja, 1'],
      [1, 'NO', 'yes!'],
    ] as const) {
      await form.locator('.red-ui-editableList-addButton').click();
      await row(index).locator('.sms-answer-value').fill(value);
      await row(index).locator('.sms-answer-words').fill(words);
    }
    await form.locator('.sms-outputs', { hasText: '1: YES, NO · 2: no answer' }).waitFor();
    await editor.complains('answers', /The word "yes!" stands for two answers/);
    await row(1).locator('.sms-answer-words').fill('');
    await editor.accepts('answers');
    await editor.saveAndReload();
    assert.deepEqual(await editor.portLabels('sms-ask'), ['message to send', 'YES, NO', 'no answer']);
    assert.deepEqual((await readNode('sms-ask'))?.answers, [
      { value: 'YES', words: ['yes', 'ja', '1'] },
      { value: 'NO', words: ['NO'] },
    ]);
    await editor.openForm('sms-ask');
    assert.equal(await row(0).locator('.sms-answer-words').inputValue(), 'yes, ja, 1');
    assert.equal((await editor.node('sms-ask')).valid, true);
  });

  it('explains the filter `notAwaited` of sms-in', async () => {
    const form = await openNode(node('sms-in'));
    const hint = form.locator('#sms-in-notAwaited-hint');
    assert.equal(await hint.isVisible(), false);
    await form.locator('#node-input-filter').selectOption('notAwaited');
    await hint.filter({ hasText: 'sms ask' }).waitFor();
  });

  for (const [type, ofBlank] of [
    ['sms-outbox', 'interval'],
    ['sms-feed', 'input'],
  ] as const) {
    it(`saves an interval of 0 if ${type} reads only on input`, async () => {
      const form = await openNode(node(type, { interval: '' }));
      const trigger = form.locator('#sms-trigger');
      const interval = form.locator('#node-input-interval');
      assert.equal(await trigger.inputValue(), ofBlank, 'a blank interval');
      await trigger.selectOption('input');
      assert.equal(await interval.isVisible(), false);
      assert.equal(await interval.inputValue(), '0');
      await trigger.selectOption('interval');
      assert.match(await interval.inputValue(), /^[1-9]\d*$/);
      await interval.fill('often');
      await editor.complains('interval', /number/);
      await interval.fill('');
      await interval.blur();
      assert.equal(await trigger.inputValue(), ofBlank, 'an interval that was deleted');
    });
  }

  it('blocks the read button of a node with undeployed changes', async () => {
    const reads = ['sms-feed', 'sms-outbox'].map((type, index) => node(type, { interval: 0, y: 100 + 100 * index }));
    await openEditor(account(), ...reads);
    for (const { id } of reads) {
      await editor.page.locator(`[id="${id}"] .red-ui-flow-node-button-button`).click();
      await editor
        .badge(id)
        .filter({ hasText: /^messages: \d+$/ })
        .waitFor();
    }
    const form = await editor.openForm('sms-feed');
    await form.locator('#node-input-output').selectOption('each');
    await editor.save();
    const requests = simulator.requests.length;
    await editor.page.locator('[id="sms-feed"] .red-ui-flow-node-button-button').click();
    await editor.page.locator('.red-ui-notification', { hasText: 'undeployed changes' }).first().waitFor();
    assert.equal(simulator.requests.length, requests);
  });

  it('shows and copies the callback URL with a new token', async () => {
    let form = await openNode(node('sms-callback-in'));
    const address = form.locator('#sms-callback-in-address');
    const copy = form.locator('#sms-callback-in-copy');
    const token = form.locator('#node-input-token');
    const shows = (text: string) => until(async () => (await address.innerText()) === text, text);
    for (const name of ['token', 'url']) await form.locator(`#sms-callback-in-${name}-warning`).waitFor();
    assert.equal(await copy.isDisabled(), true);
    await form.locator('#node-input-publicUrl').fill('https://flows.example.com/');
    await form.locator('#sms-callback-in-url-warning').waitFor({ state: 'hidden' });
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    const variable = '${SITE}';
    for (const [path, shown] of [
      ['/é/a%20b%2fc', '/%C3%A9/a%20b%2Fc'],
      [variable, `/${variable}`],
      ['/sms/callback', '/sms/callback'],
    ] as const) {
      await form.locator('#node-input-path').fill(path);
      await shows(`https://flows.example.com${shown}`);
    }
    await token.fill('a&b');
    await shows('https://flows.example.com/sms/callback?token=a%26b');
    await form.locator('#sms-callback-in-token-warning').waitFor({ state: 'hidden' });
    await form.locator('#sms-callback-in-generate').click();
    await until(async () => (await token.inputValue()) !== 'a&b');
    const created = await token.inputValue();
    assert.match(created, /^[\w-]{43}$/);
    await copy.click();
    const copied = await editor.page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, `https://flows.example.com/sms/callback?token=${created}`);
    await editor.saveAndReload();
    form = await editor.openForm('sms-callback-in');
    await shows('https://flows.example.com/sms/callback?token=…');
    assert.equal(await copy.isDisabled(), true);
    assert.equal(JSON.stringify(await nodeRed.readFlows()).includes(created), false);
  });

  it('refuses the path of another enabled callback node', async () => {
    const hook = (id: string, path: string, changes: Record<string, unknown> = {}): FlowNode =>
      node('sms-callback-in', { id, path, y: 200, ...changes });
    await openEditor(
      account(),
      { id: 'off', type: 'tab', label: 'Off', disabled: true },
      hook('first', '/first'),
      hook('live', '/LIVE/é', { y: 300 }),
      hook('second', '/first', { d: true }),
      hook('third', '/first', { z: 'off' }),
      hook('fourth', '/off', { z: 'off' }),
      hook('fifth', '/off', { z: 'off' }),
    );
    assert.equal((await editor.node('first')).valid, true);
    assert.equal((await editor.node('fourth')).valid, false, 'both run as soon as their flow is enabled');
    const form = await editor.openForm('first');
    await form.locator('#node-input-path').fill('/OFF/');
    await editor.accepts('path');
    await form.locator('#node-input-path').fill('/live/%c3%a9');
    await editor.complains('path', /already has the path/);
  });

  // Tests only light colours with Node-RED 4, which has no dark theme.
  for (const theme of nodeRedGeneration < 5 ? (['light'] as const) : (['light', 'dark'] as const)) {
    it(`is accessible in ${theme} colours`, async () => {
      await deployAll();
      await editor.open(nodeRed, { theme });
      for (const type of allTypes) {
        const form = await openForm(type);
        assert.deepEqual(await findBarriers(editor.page, '.sms-form'), [], type);
        const spoken = await form
          .locator('a.red-ui-button[id*="-btn-"]')
          .evaluateAll((buttons) => buttons.map((button) => button.getAttribute('aria-label')));
        const named = type === 'sms-account' ? ['TLS settings', 'Proxy'] : ['Account'];
        assert.deepEqual(
          spoken,
          named.flatMap((name) => [`Edit: ${name}`, `Add: ${name}`]),
        );
        assert.doesNotMatch(await editor.textOnScreen(), unresolvedText, type);
        await closeForm(type);
      }
    });
  }

  it('is usable in a narrow window and by keyboard', async () => {
    await deployAll();
    await editor.open(nodeRed);
    // Hides the sidebar, because a narrow window has no room for a form beside it.
    await editor.page.keyboard.press('Control+Space');
    for (const type of allTypes) {
      const form = await openForm(type);
      const fields = await form.evaluate((element) => {
        const selector = 'input, select, textarea, button, summary, a.red-ui-button';
        // Lists the fields and buttons that the Tab key must reach. The hidden input in each TypedInput is not one of
        // them.
        const stops = [...element.querySelectorAll<HTMLElement>(selector)].filter(
          (part) =>
            part.checkVisibility({ visibilityProperty: true }) &&
            !part.matches(':disabled, .red-ui-typedInput-container input[type=hidden]'),
        );
        for (const [index, part] of stops.entries()) part.dataset.stop = String(index);
        return stops.map((part) => part.id || part.className || part.tagName);
      });
      await form.locator(`#${prefixOf(type)}-name`).focus();
      const reached = [0];
      for (let step = 1; step < fields.length; step++) {
        await editor.page.keyboard.press('Tab');
        reached.push(
          await editor.page.evaluate(() => Number((document.activeElement as HTMLElement | null)?.dataset.stop ?? -1)),
        );
      }
      assert.deepEqual(
        reached.map((stop) => fields[stop]),
        fields,
        type,
      );
      await editor.page.setViewportSize({ width: 500, height: 1000 });
      await editor.settle();
      assert.deepEqual(await findOverflow(form, '.red-ui-tray'), [], type);
      const buttons = form.locator('#node-input-btn-account-edit, #node-input-btn-account-add');
      for (const button of await buttons.all()) assert.ok(await button.isVisible(), type);
      await editor.page.setViewportSize({ width: 1280, height: 1000 });
      await editor.settle();
      await closeForm(type);
    }
  });

  it('opens the account form by keyboard', async () => {
    await openNode(node('sms-send'));
    await editor.page.locator('#node-input-btn-account-edit').focus();
    await editor.page.keyboard.press('Enter');
    await editor.page.locator('#node-config-input-baseUrl').waitFor();
  });
});

/** Deploys a node of each type, with an account that has a long name. */
async function deployAll(): Promise<void> {
  const name = 'An account with a name that is a good deal longer than any tray is wide, and then some more of it';
  const changes = { acknowledge: 'flow', answers: [{ value: 'YES', words: ['yes'] }] };
  const nodes = paletteTypes.map((type, index) => node(type, { y: 60 + 60 * index, ...changes }));
  await nodeRed.deploy([tab, account({ name }), ...nodes]);
}

/** Opens the form of a type with all its groups. The form of the account opens from the form of the feed. */
async function openForm(type: string): Promise<Locator> {
  const form = await (type === 'sms-account' ? openAccount() : editor.openForm(type));
  await unfold(form);
  return form;
}

async function closeForm(type: string): Promise<void> {
  if (type === 'sms-account') await editor.saveAccount();
  await editor.save();
}
