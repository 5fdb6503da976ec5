import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { readTexts as readCatalogs } from '../catalogs';
import { languages, shownLanguages } from '../languages';
import type { FlowNode } from '../node-red-process';
import { paletteTypes, unresolvedText } from './editor';
import { findCutOff, readTexts, unfold } from './form-texts';
import { editor, nodeRed, useEditor } from './use-editor';

const locales = join(__dirname, '..', '..', 'nodes', 'locales');
const english = new Set(readCatalogs('en-US').values());

/** The flow is disabled, because its service does not exist. */
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Flow', disabled: true },
  { id: 'account', type: 'sms-account', name: 'Demo', baseUrl: 'http://sms.example.com', authType: 'form' },
  ...paletteTypes.map((type, index) => ({
    id: type,
    type,
    z: 'tab',
    x: 200,
    y: 60 + 60 * index,
    wires: [[], []],
    account: 'account',
    acknowledge: 'flow',
    inputs: 1,
    // With these values, the form of sms-send also shows warnings and the fields for an e-mail and a stored message.
    callbackUrl: '',
    callbackUrlType: 'mailto',
    keep: true,
    retryUncertain: true,
  })),
];

describe('the Node-RED editor', () => {
  useEditor(() => ({ flows }));

  it('has SMS texts in the ten languages of Node-RED', () => {
    assert.deepEqual(languages, ['de', 'en-US', 'es-ES', 'fr', 'ja', 'ko', 'pt-BR', 'ru', 'zh-CN', 'zh-TW']);
  });

  for (const language of shownLanguages) {
    it(`shows forms, help and palette labels in ${language}`, async () => {
      const catalogs = readCatalogs(language);
      const translations = new Set(catalogs.values());

      async function checkForm(type: string, form: Locator): Promise<void> {
        await unfold(form);
        assert.equal(await form.getAttribute('lang'), language, type);
        const texts = await readTexts(form);
        assert.ok(texts.filter((text) => translations.has(text)).length >= 5, type);
        for (const text of texts) {
          assert.doesNotMatch(text, unresolvedText, type);
          assert.ok(!english.has(text) || translations.has(text), `${type} says in English: ${text}`);
        }
        assert.deepEqual([...(await findCutOff(form)), ...(await findCutHelp())], [], type);
        const source = readFileSync(join(locales, language, `${type}.html`), 'utf8');
        assert.equal(await editor.shownHelp(), await editor.textOf(source), `the help of ${type}`);
      }

      await editor.open(nodeRed, { language });
      // The height fits the longest form.
      await editor.page.setViewportSize({ width: 1280, height: 1900 });
      await editor.showSidebar('help');
      for (const type of paletteTypes) {
        assert.equal(await editor.paletteLabel(type), catalogs.get(`${type}.label.palette`));
        await checkForm(type, await editor.openForm(type));
        if (type === 'sms-feed') {
          const form = await editor.openAccount();
          await unfold(form);
          await form.locator('#node-config-input-method').selectOption('GET');
          await form.locator('#node-config-input-store').selectOption('redis');
          await checkForm('sms-account', form);
          await editor.saveAccount();
        }
        await editor.save();
      }
    });
  }
});

/** Finds elements that are wider than the help. */
function findCutHelp(): Promise<string[]> {
  return editor.page
    .locator('.red-ui-sidebar-help-stack .red-ui-help .red-ui-help dt')
    .evaluateAll((names) => names.filter((dt) => dt.scrollWidth > dt.clientWidth).map((dt) => dt.outerHTML));
}
