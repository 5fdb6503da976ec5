import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { isLong } from '../long';
import { type FlowNode, nodeRedGeneration } from '../node-red-process';
import { until } from '../until';
import { findBarriers, findFaintTexts } from './axe';
import { unresolvedText } from './editor';
import {
  account,
  assertHolds,
  type Entry,
  editor,
  enter,
  node,
  nodeRed,
  openAccount,
  openEditor,
  prefixOf,
  readNode,
  simulator,
  tab,
  useFormEditor,
} from './form-editor';
import { findCutOff, unfold } from './form-texts';

const root = join(__dirname, '..', '..');
const paletteTypes = ['sms-send', 'sms-ask', 'sms-in', 'sms-status', 'sms-outbox', 'sms-feed', 'sms-callback-in'];
const allTypes = ['sms-account', ...paletteTypes];

/** Values to enter into each form, for all its fields. */
const entries: Record<string, Entry[]> = {
  'sms-send': [
    { property: 'name', value: 'Alarm' },
    { property: 'to', type: 'str', value: '6421555123 oncall' },
    { property: 'from', type: 'env', value: 'SENDER' },
    { property: 'messageId', type: 'uuid' },
    { property: 'fragmentationLimit', type: 'msg', value: 'limit' },
    { property: 'callbackUrl', type: 'str', value: 'https://flows.example.com/reply?id={!messageId}' },
    { property: 'callbackStatusUrl', type: 'jsonata', value: '"https://" & host' },
    { property: 'retries', value: '7' },
    { property: 'retryUncertain', value: true },
    { property: 'keep', value: true },
    { property: 'expire', type: 'flow', value: 'patience' },
    { property: 'replace', type: 'msg', value: 'order' },
    { property: 'once', type: 'msg', value: 'sms.messageId' },
    { property: 'resolve', value: '30' },
    { property: 'priority', type: 'msg', value: 'urgency' },
    { property: 'unlimited', value: true },
    { property: 'remember', type: 'json', value: '{"order":4711}' },
    { property: 'report', type: 'num', value: '48' },
  ],
  'sms-ask': [
    { property: 'name', value: 'Appointment' },
    { property: 'to', type: 'str', value: '6421555123 oncall' },
    { property: 'again', type: 'msg', value: 'again' },
    { property: 'wait', type: 'num', value: '30' },
    { property: 'messageId', type: 'none' },
    { property: 'keep', value: true },
  ],
  'sms-in': [
    { property: 'name', value: 'Replies' },
    { property: 'filter', value: 'replies' },
    { property: 'acknowledge', value: 'flow' },
    { property: 'ackTimeout', value: '90' },
    { property: 'maxAttempts', value: '9' },
  ],
  'sms-status': [
    { property: 'name', value: 'Outcome' },
    { property: 'filter', value: 'final' },
    { property: 'acknowledge', value: 'flow' },
    { property: 'ackTimeout', value: '45' },
    { property: 'maxAttempts', value: '2' },
  ],
  'sms-outbox': [
    { property: 'name', value: 'Sent' },
    { property: 'interval', value: '120' },
    { property: 'output', value: 'list' },
  ],
  'sms-feed': [
    { property: 'name', value: 'Balance' },
    { property: 'messages', value: 'reply' },
    { property: 'size', type: 'msg', value: 'size' },
    { property: 'output', value: 'each' },
    { property: 'format', value: 'RSS' },
  ],
  'sms-callback-in': [
    { property: 'name', value: 'Callback' },
    { property: 'publicUrl', value: 'https://flows.example.com' },
    { property: 'path', value: '/sms/callback' },
    { property: 'acknowledge', value: 'flow' },
    { property: 'ackTimeout', value: '10' },
  ],
};

describe('a form in the editor', function () {
  this.timeout(90_000);
  useFormEditor();

  it('belongs to a node that has a palette label and help', async () => {
    await openEditor();
    const shown = await editor.page
      .locator('.red-ui-palette-node[data-palette-type^="sms-"]')
      .evaluateAll((elements) => elements.map((element) => element.getAttribute('data-palette-type')));
    assert.deepEqual(shown.sort(), [...paletteTypes].sort());
    const labels = await editor.page.locator('.red-ui-palette-node[data-palette-type^="sms-"]').allInnerTexts();
    for (const label of labels) assert.match(label.replace(/\s+/g, ' '), /^sms \w+$/);
    for (const type of allTypes) assert.match(await editor.help(type), /<p>/, type);
  });

  for (const type of paletteTypes) {
    it(`keeps every value of ${type} through a deploy and a reload`, async () => {
      await openEditor(account());
      const id = await editor.drag(type, 300, 100);
      let form = await editor.openForm(id);
      await unfold(form);
      assert.equal(await form.locator('#node-input-account').inputValue(), 'account');
      for (const entry of entries[type] ?? []) await enter(form, type, entry);
      await editor.save();
      assert.equal((await editor.node(id)).valid, true);
      await editor.deploy();

      await editor.loadFlows();
      form = await editor.openForm(id);
      assert.equal(await form.locator('#node-input-account').inputValue(), 'account');
      for (const entry of entries[type] ?? []) await assertHolds(form, type, entry);
      await editor.save();
      const saved = await readNode(id);
      for (const { property, ...entry } of entries[type] ?? []) {
        if (entry.value !== undefined) assert.equal(String(saved?.[property]), String(entry.value), property);
        if (entry.type !== undefined) assert.equal(saved?.[`${property}Type`], entry.type, property);
      }
    });
  }

  it('chooses the account of a new node only if there is exactly one', async () => {
    await openEditor(account(), account({ id: 'second', name: 'Second' }));
    const id = await editor.drag('sms-in', 300, 100);
    assert.equal((await editor.node(id)).valid, false);
    await openEditor({ id: 'other', type: 'tab', label: 'Other' }, account({ z: 'other' }));
    assert.equal((await editor.node(await editor.drag('sms-in', 300, 100))).valid, false);
  });

  it('explains a disabled account, and does not choose it', async () => {
    await openEditor(account({ d: true }), node('sms-in'));
    const added = await editor.drag('sms-status', 300, 300);
    assert.equal((await editor.node(added)).valid, false, 'there is none to choose');
    await editor.openForm('sms-in');
    await editor.complains('account', /This account is disabled/);
    await openEditor(account({ d: true }), account({ id: 'second', name: 'Second' }));
    const form = await editor.openForm(await editor.drag('sms-in', 300, 100));
    assert.equal(await form.locator('#node-input-account').inputValue(), 'second');
    await editor.accepts('account');
  });

  it('explains the filter notAwaited of sms-in', async () => {
    await openEditor(account(), node('sms-in'));
    const form = await editor.openForm('sms-in');
    assert.equal(await form.locator('#sms-in-notAwaited-hint').isVisible(), false);
    await form.locator('#node-input-filter').selectOption('notAwaited');
    await form.locator('#sms-in-notAwaited-hint', { hasText: 'sms ask' }).waitFor();
  });

  for (const type of ['sms-in', 'sms-status', 'sms-callback-in']) {
    it(`adds the input of ${type} for acknowledgement by the flow`, async () => {
      await openEditor(account(), node(type, { path: '/ack', publicUrl: 'https://a.example' }));
      const port = editor.page.locator(`[id="${type}"] .red-ui-flow-port-input`);
      assert.equal(await port.count(), 0);
      let form = await editor.openForm(type);
      assert.equal(await form.locator('#node-input-ackTimeout').isVisible(), false);
      await form.locator('#node-input-acknowledge').selectOption('flow');
      await form.locator('#node-input-ackTimeout').waitFor();
      await form.locator('#node-input-ackTimeout').fill('never');
      await editor.complains('ackTimeout', /number/);
      await form.locator('#node-input-ackTimeout').fill('30');
      await editor.save();
      await port.waitFor();
      await editor.deploy();
      await editor.loadFlows();
      await port.waitFor();
      assert.equal((await readNode(type))?.inputs, 1);

      form = await editor.openForm(type);
      await form.locator('#node-input-acknowledge').selectOption('auto');
      await editor.save();
      await port.waitFor({ state: 'detached' });
      assert.equal((await editor.node(type)).inputs, 0);
    });
  }

  it('saves the trigger of sms-outbox as an interval, or 0 for its input', async () => {
    await openEditor(account(), node('sms-outbox', { interval: 60 }));
    const form = await editor.openForm('sms-outbox');
    const interval = form.locator('#node-input-interval');
    assert.equal(await form.locator('#sms-trigger').inputValue(), 'interval');
    await interval.fill('often');
    await editor.complains('interval', /number/);
    await form.locator('#sms-trigger').selectOption('input');
    assert.equal(await interval.isVisible(), false);
    assert.equal(await interval.inputValue(), '0');
    await form.locator('#sms-trigger').selectOption('interval');
    assert.match(await interval.inputValue(), /^[1-9]\d*$/);
  });

  for (const type of ['sms-outbox', 'sms-feed']) {
    it(`shows the effect of a blank interval of ${type}`, async () => {
      const meaning = type === 'sms-outbox' ? 'interval' : 'input';
      await openEditor(account(), node(type, { interval: '' }));
      const form = await editor.openForm(type);
      const trigger = form.locator('#sms-trigger');
      assert.equal(await trigger.inputValue(), meaning);
      await trigger.selectOption('interval');
      await form.locator('#node-input-interval').fill('');
      await form.locator('#node-input-interval').blur();
      assert.equal(await trigger.inputValue(), meaning);
      await editor.save();
      assert.equal((await editor.node(type)).valid, true);
    });
  }

  for (const width of isLong ? [500, 760, 1400] : [500]) {
    it(`fits into the tray of a window of ${width} pixels`, async () => {
      const label = 'An account with a name that is a good deal longer than any tray is wide, and then some more of it';
      await openEditor(
        account({ name: label }),
        ...paletteTypes.map((type, index) => node(type, { y: 60 + 60 * index, acknowledge: 'flow' })),
      );
      // Hides the sidebar, because a window this narrow has no room for a form beside it.
      if (width < 760) await editor.page.keyboard.press('Control+Space');
      for (const type of allTypes) {
        const form = await openForm(type);
        await unfold(form);
        await editor.page.setViewportSize({ width, height: 1000 });
        await editor.settle();
        const outside = await form.evaluate((element) => {
          const tray = element.closest('.red-ui-tray')?.getBoundingClientRect();
          if (!tray) return ['no tray'];
          const parts = [...element.querySelectorAll('*')].filter((part) => part.checkVisibility());
          const buttons = element.querySelectorAll('#node-input-btn-account-edit, #node-input-btn-account-add');
          if (![...buttons].every((button) => button.checkVisibility())) return ['a button is hidden'];
          return parts
            .filter((part) => part.getBoundingClientRect().right > tray.right + 1)
            .map((part) => part.outerHTML);
        });
        assert.deepEqual(outside, [], type);
        await editor.page.setViewportSize({ width: 1280, height: 1000 });
        await editor.settle();
        await closeForm(type);
      }
    });
  }

  it('starts a read if a user presses the button of a deployed node', async () => {
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

  it('shows the callback URL, creates a token and copies the address', async () => {
    await openEditor(account(), node('sms-callback-in'));
    let form = await editor.openForm('sms-callback-in');
    const address = form.locator('#sms-callback-in-address');
    const copy = form.locator('#sms-callback-in-copy');
    const shows = (text: string) => until(async () => (await address.innerText()) === text, text);
    for (const name of ['token', 'url']) await form.locator(`#sms-callback-in-${name}-warning`).waitFor();
    assert.equal(await copy.isDisabled(), true);
    await form.locator('#node-input-publicUrl').fill('https://flows.example.com/');
    await form.locator('#node-input-path').fill('/sms/callback');
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
    await form.locator('#node-input-token').fill('a&b');
    await shows('https://flows.example.com/sms/callback?token=a%26b');
    await form.locator('#sms-callback-in-token-warning').waitFor({ state: 'hidden' });
    await form.locator('#sms-callback-in-generate').click();
    await until(async () => (await form.locator('#node-input-token').inputValue()) !== 'a&b');
    const token = await form.locator('#node-input-token').inputValue();
    assert.match(token, /^[\w-]{43}$/);
    await copy.click();
    const copied = await editor.page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, `https://flows.example.com/sms/callback?token=${token}`);
    await editor.save();
    await editor.deploy();

    await editor.loadFlows();
    form = await editor.openForm('sms-callback-in');
    await shows('https://flows.example.com/sms/callback?token=…');
    await form.locator('#sms-callback-in-hidden-hint').waitFor();
    assert.equal(await copy.isDisabled(), true);
    assert.equal(JSON.stringify(await nodeRed.readFlows()).includes(token), false);
  });

  it('refuses the path of another callback node, unless it is disabled', async () => {
    const hook = (id: string, changes: Record<string, unknown> = {}): FlowNode =>
      node('sms-callback-in', { id, path: `/${id}`, y: 200, ...changes });
    await openEditor(
      account(),
      { id: 'off', type: 'tab', label: 'Off', disabled: true },
      hook('first'),
      hook('live', { path: '/LIVE/é', y: 300 }),
      hook('second', { path: '/first', d: true }),
      hook('third', { path: '/first', z: 'off' }),
      hook('fourth', { path: '/off', z: 'off' }),
      hook('fifth', { path: '/off', z: 'off' }),
    );
    assert.equal((await editor.node('first')).valid, true);
    assert.equal((await editor.node('fourth')).valid, false, 'both are there as soon as their flow is enabled');
    const form = await editor.openForm('first');
    await form.locator('#node-input-path').fill('/OFF/');
    await editor.accepts('path');
    await form.locator('#node-input-path').fill('/live/%c3%a9');
    await editor.complains('path', /already has the path/);
  });

  it('is accessible and shows no catalog key, for each node type', async () => {
    const answers = [{ value: 'YES', words: ['yes'] }];
    await openEditor(account(), ...paletteTypes.map((type, index) => node(type, { y: 60 + 60 * index, answers })));
    for (const type of allTypes) {
      const form = await openForm(type);
      await unfold(form);
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

  it('reaches every field with the Tab key in order', async () => {
    await openEditor(
      account(),
      ...paletteTypes.map((type, index) => node(type, { y: 60 + 60 * index, acknowledge: 'flow' })),
    );
    for (const type of allTypes) {
      const form = await openForm(type);
      await unfold(form);
      const mark = await form.evaluate((element) => {
        const reachable = [
          ...element.querySelectorAll<HTMLElement>('input, select, textarea, button, summary, a.red-ui-button'),
        ];
        const visible = reachable.filter(
          (part) => part.checkVisibility({ visibilityProperty: true }) && !part.matches(':disabled'),
        );
        // Keyboard users reach the options of a TypedInput by its value, not by the arrow beside it.
        const stops = visible.filter((part) => !part.matches('.red-ui-typedInput-container input[type=hidden]'));
        for (const [index, part] of stops.entries()) part.dataset.stop = String(index);
        return stops.map((part) => part.id || part.className || part.tagName);
      });
      await form.locator(`#${prefixOf(type)}-name`).focus();
      const reached = [0];
      for (let step = 1; step < mark.length; step++) {
        await editor.page.keyboard.press('Tab');
        reached.push(
          await editor.page.evaluate(() => Number((document.activeElement as HTMLElement | null)?.dataset.stop ?? -1)),
        );
      }
      assert.deepEqual(
        reached.map((stop) => mark[stop]),
        mark,
        type,
      );
      await closeForm(type);
    }
  });

  it('unfolds groups and opens the account by keyboard', async () => {
    await openEditor(account(), node('sms-send'));
    const form = await editor.openForm('sms-send');
    await form.locator('#sms-callbacks > summary').focus();
    await editor.page.keyboard.press('Enter');
    await form.locator('#node-input-messageId + .red-ui-typedInput-container').waitFor();
    await editor.page.locator('#node-input-btn-account-edit').focus();
    await editor.page.keyboard.press('Enter');
    await editor.page.locator('#node-config-input-baseUrl').waitFor();
  });

  // Node-RED 4 has no dark theme of its own.
  for (const theme of nodeRedGeneration < 5 ? (['light'] as const) : (['light', 'dark'] as const)) {
    it(`is readable and not cut off in ${theme} colours`, async () => {
      await nodeRed.deploy([tab, account({ name: 'Main account', store: 'disk' }), ...paletteTypes.map(exemplary)]);
      await editor.open(nodeRed, { theme });
      const dark = await editor.page.evaluate(() => document.documentElement.classList.contains('nr-theme-dark'));
      assert.equal(dark, theme === 'dark');
      const folder = join(root, '.cache', 'screenshots');
      mkdirSync(folder, { recursive: true });
      await editor.page.screenshot({ path: join(folder, `flow-${theme}.png`) });
      for (const type of allTypes) {
        const form = await openForm(type);
        await unfold(form);
        if (type === 'sms-account') await form.locator('#node-config-input-baseUrl').fill('https://sms.example.com');
        if (type === 'sms-callback-in') await form.locator('#node-input-token').fill('a-long-and-random-token');
        await editor.page.setViewportSize({ width: 1280, height: 1000 });
        const height = await form.evaluate((element) => element.scrollHeight);
        await editor.page.setViewportSize({ width: 1280, height: Math.max(700, height + 260) });
        await editor.settle();
        assert.deepEqual(await findCutOff(form), [], type);
        // Checks only dark colours, because another test checks the light ones.
        if (dark) assert.deepEqual(await findFaintTexts(editor.page, '.sms-form'), [], type);
        await editor.page.screenshot({ path: join(folder, `${type}-${theme}.png`) });
        await closeForm(type);
      }
    });
  }

  /** Creates a node with typical properties, for a picture of its form. */
  function exemplary(type: string, index: number): FlowNode {
    const changes: Record<string, Record<string, unknown>> = {
      'sms-send': {
        body: 'Pump 2 stopped at 21:40.\nReply OK to take the call.',
        bodyType: 'str',
        messageIdType: 'uuid',
        callbackNode: 'sms-callback-in',
        callbackUrlType: 'node',
      },
      'sms-in': { acknowledge: 'flow', inputs: 1 },
      'sms-callback-in': { path: '/sms/callback', publicUrl: 'https://flows.example.com' },
      'sms-outbox': { interval: 60 },
    };
    return node(type, { x: 200, y: 60 + 60 * index, ...changes[type] });
  }
});

/** Opens the form of a type. The form of the account opens from the form of the feed. */
function openForm(type: string): Promise<Locator> {
  return type === 'sms-account' ? openAccount() : editor.openForm(type);
}

async function closeForm(type: string): Promise<void> {
  if (type === 'sms-account') await editor.saveAccount();
  await editor.save();
}
